//! Lines of JSON carry everything: a branch comes back from them with the same bytes and hashes.

use log::{
    Append, Batch, Bound, BranchId, BranchName, Cause, Change, Derivation, Draft, Epoch, Escapes,
    EventId, Head, ImportError, Log, LogId, MemoryLog, Offset, Time, export, import, read_all,
    read_line, verify,
};
use serde_json::{Map, Value, json};

fn id(number: u64) -> EventId {
    Derivation::new().text("test").integer(number).finish()
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("not an object: {value}") };
    map
}

fn draft(number: u64, payload: Value) -> Draft {
    Draft { payload: object(payload), ..Draft::new(id(number), "thing.done", "user:ann") }
}

fn every_change() -> Vec<Change> {
    let list = json!([
        {"create": null, "type": "Task", "properties": {"a": 1}},
        {"create": "task:1", "type": "Task"},
        {"ensure": "task:2", "type": "Task", "properties": {"n": null}},
        {"link": "OWNS", "from": "#0", "to": "task:1", "properties": {"w": 0.5}},
        {"link": "OWNS", "from": "#0", "to": "task:2", "id": "edge:é"},
        {"ensure_link": "OWNS", "from": "a", "to": "b"},
        {"set": "task:1", "properties": {"s": "x\u{2028}\0\"\\\u{7f}"}, "if_version": 3},
        {"add": "task:1", "properties": {"n": u64::MAX}},
        {"append": "task:1", "properties": {"list": [1, 1.0, -0.0]}},
        {"unset": "task:1", "names": ["a", "😀"]},
        {"remove": "task:2"}
    ]);
    let list = list.as_array().expect("a list").iter();
    list.map(|change| Change::from_json(change, "test").unwrap()).collect()
}

/// Floats of all sizes, from a fixed seed.
fn floats() -> Vec<f64> {
    let mut state = 7u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from_bits(state ^ (state >> 29))
    };
    let mut floats = vec![0.0, -0.0, 1.0, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1e16, 0.1 + 0.2];
    floats.extend(std::iter::repeat_with(&mut next).filter(|f| f.is_finite()).take(20_000));
    floats
}

fn everything() -> Vec<Draft> {
    let firing = Cause::Firing {
        event: id(0),
        behavior: "guard".into(),
        row: vec![Bound::Element("a\"".into()), Bound::Path(vec!["e:1".into(), "e:2".into()])],
    };
    let long = "lang 😀 ".repeat(2000);
    vec![
        Draft::new(id(0), "goal.stated", "user:ann"),
        Draft {
            changes: every_change(),
            ..draft(1, json!({"text": "Grüße\n", "deep": {"b": [{}]}}))
        },
        Draft { cause: Some(firing), taken: 9, ..draft(2, json!({"long": long, "list": [long]})) },
        Draft { cause: Some(Cause::Action { action: id(2) }), ..draft(3, json!({"long": long})) },
        Draft {
            key: Some("key é".into()),
            time: Time::from_ms(-1).unwrap(),
            salt: Some([7; 16]),
            extra: object(json!({"zeta": 1, "alpha": {"b": [true, null]}})),
            ..draft(4, json!({"floats": floats()}))
        },
        draft(5, json!({"whole": [i64::MIN, i64::MAX, u64::MAX, 0, -1]})),
    ]
}

fn log_of(drafts: &[Draft]) -> MemoryLog {
    let log = MemoryLog::new(LogId::ZERO);
    let main = log.create(&BranchName::main()).unwrap().id;
    let batch = Batch::of_drafts(Offset::ZERO, drafts).unwrap();
    let append = Append { branch: main, batch, expected: Head::EMPTY, epoch: Epoch::UNCLAIMED };
    log.submit(append).wait().unwrap().unwrap();
    log
}

fn lines(log: &dyn Log, branch: BranchId, escapes: Escapes) -> Vec<u8> {
    let mut out = Vec::new();
    export(log, branch, Offset::ZERO..Offset::new(u64::MAX), &mut out, escapes).unwrap();
    out
}

fn take(log: &dyn Log, branch: BranchId, mut lines: &[u8]) -> Result<log::Imported, ImportError> {
    import(log, branch, &mut lines, "the test", &mut |_| {})
}

const MAIN: BranchId = BranchId::new(0);

#[test]
fn a_branch_comes_back_with_its_bytes_and_hashes() {
    let log = log_of(&everything());
    for escapes in [Escapes::Needed, Escapes::Ascii] {
        let text = lines(&log, MAIN, escapes);
        assert!(escapes == Escapes::Needed || text.is_ascii());
        let copy = log_of(&[]);
        let done = take(&copy, MAIN, &text).unwrap();
        assert_eq!((done.found, done.appended), (0, 6));
        assert_eq!((done.head, done.link), verify(&log, MAIN).unwrap());
        assert_eq!(verify(&copy, MAIN).unwrap(), verify(&log, MAIN).unwrap());
        let events = |log| read_all(log, MAIN).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        assert_eq!(events(&copy), events(&log));
        assert_eq!(lines(&copy, MAIN, escapes), text);
    }
}

#[test]
fn fields_have_a_fixed_order() {
    let event = Draft {
        changes: vec![Change::Remove { id: "x".into() }],
        extra: object(json!({"b": 1, "a": 2})),
        ..draft(1, json!({"z": 1, "a": "é"}))
    };
    let text = String::from_utf8(lines(&log_of(&[event]), MAIN, Escapes::Ascii)).unwrap();
    let id = id(1);
    let before = format!(
        r#"{{"offset":0,"id":"{id}","kind":"thing.done","payload":{{"a":"\u00e9","z":1}},"#
    );
    let after =
        r#""changes":[{"remove":"x"}],"actor":"user:ann","cause":null,"taken":0,"key":null,"#;
    let salt = log::Hash::of(&[b"salt".as_slice(), id.as_bytes()].concat()).to_string();
    let rest = format!(
        "\"time\":\"1970-01-01T00:00:00Z\",\"salt\":\"{}\",\"a\":2,\"b\":1}}\n",
        &salt[..32]
    );
    assert_eq!(text, format!("{before}{after}{rest}"));
}

#[test]
fn a_fork_comes_back_as_one_branch_with_its_hash() {
    let log = log_of(&everything());
    let name = "side".parse().unwrap();
    let side = log.fork(MAIN, Head::of_count(3), &name, "").unwrap().id;
    let offer = log::Offer { drafts: vec![draft(9, json!({"side": true}))], expected: None };
    log.offer(side, offer).wait().unwrap().unwrap();
    let copy = log_of(&[]);
    let done = take(&copy, MAIN, &lines(&log, side, Escapes::Needed)).unwrap();
    assert_eq!(done.appended, 4);
    assert_eq!(verify(&copy, MAIN).unwrap(), verify(&log, side).unwrap());
}

#[test]
fn an_interrupted_import_goes_on_without_duplicates() {
    let drafts: Vec<Draft> = (0..2_500).map(|n| draft(n, json!({"n": n}))).collect();
    let log = log_of(&drafts);
    let text = lines(&log, MAIN, Escapes::Needed);
    let ends: Vec<usize> =
        text.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    // Cut between lines, in the middle of a line, and around the ends of batches.
    for cut in [0, 1, ends[0], ends[998], ends[999], ends[1000], ends[1000] + 20, ends[2498]] {
        let copy = log_of(&[]);
        let whole = cut == 0 || text[cut - 1] == b'\n';
        assert_eq!(take(&copy, MAIN, &text[..cut]).is_ok(), whole, "cut at {cut}");
        let kept = ends.iter().filter(|end| **end <= cut).count() as u64;
        let done = take(&copy, MAIN, &text).unwrap();
        assert_eq!((done.found, done.appended), (kept, 2_500 - kept));
        assert_eq!(verify(&copy, MAIN).unwrap(), verify(&log, MAIN).unwrap());
        let again = take(&copy, MAIN, &text).unwrap();
        assert_eq!((again.found, again.appended), (2_500, 0));
    }
}

#[test]
fn a_branch_that_differs_is_refused_by_its_offset() {
    let text = lines(&log_of(&everything()), MAIN, Escapes::Needed);
    let mut other = everything();
    other[2].taken = 8;
    let copy = log_of(&other[..4]);
    let before = verify(&copy, MAIN).unwrap();
    let error = take(&copy, MAIN, &text).unwrap_err();
    let ImportError::Differs { line: 3, offset } = error else { panic!("{error}") };
    assert_eq!(offset, Offset::new(2));
    assert_eq!(verify(&copy, MAIN).unwrap(), before);
}

#[test]
fn offsets_have_no_gaps_and_keys_stand_once() {
    let text = lines(&log_of(&everything()), MAIN, Escapes::Needed);
    let lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
    let gap = [lines[0], lines[1], lines[3]].concat();
    let copy = log_of(&[]);
    let error = take(&copy, MAIN, &gap).unwrap_err();
    assert!(matches!(error, ImportError::Gap { line: 3, .. }), "{error}");
    assert_eq!(copy.branch(MAIN).unwrap().tip.head, Head::of_count(2), "the good lines are kept");
    let late = take(&log_of(&[]), MAIN, lines[1]).unwrap_err();
    assert!(matches!(late, ImportError::Gap { line: 1, .. }), "{late}");

    let keyed = |key| {
        let line = |offset: u64| {
            let id = id(offset);
            format!(
                r#"{{"offset":{offset},"id":"{id}","kind":"k","actor":"a","key":"{key}","time":"2026-01-05T09:00:00Z"}}"#
            )
        };
        format!("{}\n{}\n", line(0), line(1))
    };
    let error = take(&log_of(&[]), MAIN, keyed("same").as_bytes()).unwrap_err();
    assert!(matches!(error, ImportError::KeyTwice { line: 2, .. }), "{error}");
}

#[test]
fn a_claimed_branch_is_left_alone() {
    let log = log_of(&everything());
    let claim = log.claim(MAIN, "pid 7 (starling run)").unwrap();
    let error = take(&log, MAIN, b"").unwrap_err().to_string();
    assert!(error.contains("being run by pid 7 (starling run)"), "{error}");
    drop(claim);
    assert!(take(&log, MAIN, b"").is_ok());
}

#[test]
fn a_malformed_line_is_refused_by_name_line_and_column() {
    let rest = r#""id":"00000000000000000000000000000000","kind":"k","actor":"a","time":"2026-01-05T09:00:00Z""#;
    let with = |field: &str| format!("{{\"offset\":0,{rest},{field}}}");
    let cases: Vec<(String, &str)> = vec![
        ("nonsense".into(), "line 7, column 2: expected ident"),
        (r#"{"offset":0"#.into(), "line 7, column 11: EOF while parsing an object"),
        ("[1]".into(), "line 7, column 1: expected an object, found [1]"),
        (format!("{{{rest}}}"), "line 7, column 1: offset: is missing; every event has one"),
        (r#"{"offset":-1}"#.into(), "line 7, column 2: offset: expected a whole number, found -1"),
        (
            r#"{"offset":0,"id":"9F"}"#.into(),
            "line 7, column 13: id: `9F` is not a EventId: it has 32 lower-case hexadecimal digits",
        ),
        (with(r#""payload":[1]"#), "line 7, column 106: payload: expected an object, found [1]"),
        (with(r#""payload":{"a":1,"a":2}"#), "the key `a` stands twice"),
        (with(r#""payload":{"a":NaN}"#), "NaN is not a JSON number"),
        (with(r#""payload":{"a":1e999}"#), "infinity is not a JSON number"),
        (
            with(r#""payload":{"a":99999999999999999999}"#),
            "line 7, column 121: the integer 99999999999999999999 fits neither",
        ),
        (with(r#""payload":{"a":"\ud800"}"#), "line 7, column 128: half of a surrogate pair"),
        (
            with(r#""changes":[{"remove":"x","soft":true}]"#),
            "column 106: changes[0].soft: `remove`",
        ),
        (with(r#""changes":[{}]"#), "line 7, column 106: changes[0]: names no operation"),
        (with(r#""cause":{"action":"x"}"#), "line 7, column 106: cause: expected null, {"),
        (with(r#""cause":{"event":1,"behavior":"b"}"#), "cause: expected null"),
        (with(r#""key":7"#), "line 7, column 106: key: expected a text or null, found 7"),
        (with(r#""salt":"00""#), "line 7, column 106: salt: `00` is not"),
        (with(r#""time":"2026-01-05""#), "the key `time` stands twice"),
        (with(r#""taken":1.5"#), "line 7, column 106: taken: expected a whole number, found 1.5"),
    ];
    for (line, expected) in cases {
        let error = read_line(&line, 7).expect_err(&line).to_string();
        assert!(error.starts_with("line 7, column "), "{error}");
        assert!(error.contains(expected), "{line}\n{error}\n{expected}");
    }
    let deep = with(&format!(r#""payload":{{"a":{}{}}}"#, "[".repeat(70), "]".repeat(70)));
    let error = take(&log_of(&[]), MAIN, deep.as_bytes()).unwrap_err().to_string();
    assert!(error.starts_with("line 1, column ") && error.contains("more than 64"), "{error}");
    let latin = take(&log_of(&[]), MAIN, b"{\"\xe9\"}").unwrap_err().to_string();
    assert_eq!(latin, "line 1, column 3: not UTF-8 from here on");
}

/// The lines of three events, of which the second holds 汉.
fn three_lines() -> (MemoryLog, Vec<u8>) {
    let texts = ["one", "two 汉 \u{2028} two", "three"];
    let drafts: Vec<Draft> =
        texts.iter().zip(0..).map(|(text, n)| draft(n, json!({"text": text}))).collect();
    let log = log_of(&drafts);
    let text = lines(&log, MAIN, Escapes::Needed);
    (log, text)
}

/// A reader dropped a complete last record that only lacked its newline, and another took a
/// separator of Unicode for the end of a line.
#[test]
fn a_last_line_is_whole_without_its_newline_and_only_a_newline_ends_one() {
    let (log, text) = three_lines();
    let copy = log_of(&[]);
    let done = take(&copy, MAIN, &text[..text.len() - 1]).unwrap();
    assert_eq!((done.appended, done.link), (3, verify(&log, MAIN).unwrap().1));
    assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 3);
}

/// A file cut in the middle of a letter made later appends write nothing, silently; a run of zeros
/// in the middle showed its end to one reader and its beginning to another. Here what stands before
/// is kept, the line is named, and nothing behind it is taken.
#[test]
fn a_line_cut_inside_a_letter_or_overwritten_with_zeros_is_named_and_nothing_after_it_is_taken() {
    let (log, text) = three_lines();
    let letter = text.windows(3).position(|bytes| bytes == "汉".as_bytes()).unwrap();
    let second = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut zeros = text.clone();
    zeros[second..second + 40].fill(0);
    let mut bridged = text[..letter + 1].to_vec();
    bridged.extend_from_slice(&text[second..]);
    for (damaged, column) in
        [(text[..letter + 1].to_vec(), None), (zeros, Some(1)), (bridged, None)]
    {
        let copy = log_of(&[]);
        let error = take(&copy, MAIN, &damaged).unwrap_err();
        let ImportError::Line(error) = error else { panic!("{error}") };
        assert_eq!(error.line, 2, "{error}");
        assert!(column.is_none_or(|column| column == error.column), "{error}");
        assert_eq!(log.branch(MAIN).unwrap().tip.head.count(), 3);
        assert_eq!(copy.branch(MAIN).unwrap().tip.head.count(), 1, "what came before it is kept");
        // Whole lines, given later, go on where it stopped.
        let done = take(&copy, MAIN, &text).unwrap();
        assert_eq!((done.found, done.appended), (1, 2));
    }
}
