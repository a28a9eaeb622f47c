//! Limits: what comes close to one round-trips, what breaks one is refused before anything is
//! written.

use log::{Batch, Draft, EVENT_MAX, EventError, Log, Offset, parse_object, read_one};
use serde_json::{Value, json};

use super::Opened;
use crate::support::{append_here, draft};

/// Appends a payload, and gives what is read.
fn round_trip(log: &dyn Log, branch: log::BranchId, payload: &Value) -> Value {
    let head = append_here(log, branch, &[draft(1, payload)]);
    let event = read_one(log, branch, head.last().expect("it has events")).expect("the event");
    Value::Object(event.payload().to_json())
}

fn refusal(draft: &Draft) -> EventError {
    let made = Batch::of_drafts(Offset::ZERO, std::slice::from_ref(draft));
    made.expect_err("the draft breaks a limit")
}

pub(super) fn an_event_takes_a_mebibyte_and_no_more(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let wide = |last: usize| {
        let mut parts = vec!["x".repeat(4096); 255];
        parts.push("x".repeat(last));
        json!({"parts": parts})
    };
    let batch = Batch::of_drafts(Offset::ZERO, &[draft(1, &wide(100))]).expect("it fits");
    let room = EVENT_MAX - batch.events().next().expect("one event").record().len();
    // Lengths over 127 take a second byte.
    let last = 100 + room - 1;
    assert!((128..4096).contains(&last), "{last}");
    let largest = wide(last);
    assert_eq!(round_trip(log, main, &largest), largest);
    let EventError::TooLarge { bytes, limit, .. } = refusal(&draft(1, &wide(last + 1))) else {
        panic!("it is too large")
    };
    assert_eq!((bytes, limit), (EVENT_MAX + 1, EVENT_MAX));
}

pub(super) fn values_nest_64_deep_and_no_more(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let nested = |depth: usize, open: &str, close: &str| {
        format!("{{\"a\":{}1{}}}", open.repeat(depth - 1), close.repeat(depth - 1))
    };
    for (open, close) in [("[", "]"), ("{\"k\":", "}")] {
        let text = nested(64, open, close);
        let payload = Value::Object(parse_object(&text).expect("64 deep"));
        assert_eq!(round_trip(log, main, &payload), payload);
        for depth in [67, 1000, 100_000] {
            let error = parse_object(&nested(depth, open, close)).expect_err("too deep");
            assert!(matches!(error, EventError::TooDeep { limit: 64, .. }), "{error}");
        }
    }
    let mut deep = json!(1);
    (0..64).for_each(|_| deep = json!([deep.take()]));
    let error = refusal(&draft(1, &json!({"a": deep})));
    assert!(matches!(error, EventError::TooDeep { limit: 64, .. }), "{error}");
}

pub(super) fn numbers_are_exact_at_their_extremes(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let text = r#"{
        "integers": [0, -1, 9223372036854775807, -9223372036854775808, 9223372036854775808,
                     18446744073709551615, 9007199254740993],
        "floats": [0.0, -0.0, 1.0, 0.1, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
                   -1.7976931348623157e308, 1e100]
    }"#;
    let payload = Value::Object(parse_object(text).expect("numbers"));
    let read = round_trip(log, main, &payload);
    assert_eq!(read.to_string(), payload.to_string());
    let floats = read["floats"].as_array().expect("a list");
    let bits = |n: usize| floats[n].as_f64().expect("a float").to_bits();
    assert_eq!((bits(0), bits(1)), (0, 1 << 63), "zero has a sign");
    assert_eq!(floats[2].to_string(), "1.0", "1.0 is not 1");
    assert_eq!(read["integers"][5].as_u64(), Some(u64::MAX));
}

pub(super) fn texts_of_any_characters_come_back(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let payload = json!({
        "": "", "\0": "\0", "\u{2028}\u{2029}": "\u{2028}", "\u{feff}": "\u{202e}abc",
        "😀": "\u{10ffff}", "e\u{301}": "é", "é": "e\u{301}", "\u{7f}": "\u{1}\"\\/\n\r\t",
    });
    assert_eq!(round_trip(log, main, &payload), payload);
}

pub(super) fn what_cannot_be_stored_is_refused_by_name(_: &Opened) {
    let said = |text: &str| parse_object(text).expect_err("refused").to_string();
    for text in [r#"{"a": NaN}"#, r#"{"a": [nan]}"#] {
        assert!(said(text).contains("NaN"), "{}", said(text));
    }
    for text in [r#"{"a": Infinity}"#, r#"{"a": -Infinity}"#, r#"{"a": 1e999}"#] {
        assert!(said(text).contains("infinity"), "{}", said(text));
    }
    assert!(said(r#"{"a": 1, "b": 2, "a": 3}"#).contains("`a` stands twice"));
    assert!(said(r#"{"x": [{"k": 1, "k": 1}]}"#).contains("`k` stands twice"));
    for digits in ["18446744073709551616", "-9223372036854775809", "123456789012345678901234"] {
        assert!(said(&format!("{{\"a\": {digits}}}")).contains(digits));
    }
    for lone in [r#"{"a": "\ud800"}"#, r#"{"a": "\udc00x"}"#, r#"{"\ud83d": 1}"#] {
        assert!(said(lone).contains("not JSON"), "{}", said(lone));
    }
    for text in ["[]", "1", "", "{", "{} x", r#"{"a" 1}"#] {
        assert!(said(text).contains("JSON"), "{}", said(text));
    }
    for kind in ["", &"k".repeat(1025)] {
        let mut odd = draft(1, &json!({}));
        odd.kind = kind.into();
        let error = refusal(&odd);
        assert!(matches!(error, EventError::FieldLength { field: "kind", .. }), "{error}");
    }
}

pub(super) fn unknown_kinds_and_fields_are_carried(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let mut odd = draft(1, &json!({}));
    odd.kind = "From The Future!".into();
    odd.extra = json!({"colour": "red", "deep": {"a": [1]}}).as_object().expect("map").clone();
    append_here(log, main, std::slice::from_ref(&odd));
    assert_eq!(read_one(log, main, Offset::ZERO).expect("the event").to_draft(), odd);
}
