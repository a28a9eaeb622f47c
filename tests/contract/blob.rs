//! Blobs: long texts and files, stored once by hash.

use bytes::Bytes;
use log::{AppendError, EventError, Hash, Head, Log, LogError, Offer, Offset, ValueRef, read_one};
use serde_json::json;

use super::Opened;
use crate::support::{append, append_here, draft};

fn text_at(log: &dyn Log, branch: log::BranchId, offset: u64) -> (bool, String) {
    let event = read_one(log, branch, Offset::new(offset)).expect("the event");
    match event.payload().get("text") {
        Some(ValueRef::String(text)) => (false, text.to_owned()),
        Some(ValueRef::Blob(blob)) => {
            let text = log.blob(&blob.hash).expect("the blob is whole").expect("it is there");
            assert_eq!(blob.size, text.len() as u64);
            assert!(text.starts_with(blob.head.as_bytes()), "the head is how it begins");
            assert!(blob.head.len() > 250 && blob.head.len() <= 256, "{}", blob.head.len());
            (true, String::from_utf8(text.to_vec()).expect("it is text"))
        }
        other => panic!("{other:?}"),
    }
}

pub(super) fn a_text_over_4096_bytes_moves_to_a_blob(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let texts = [
        "x".repeat(4096),
        "x".repeat(4097),
        "é".repeat(2048),
        format!("{}é", "é".repeat(2048)),
        "\u{2028}\0\"".repeat(50_000),
    ];
    for (n, text) in (0..).zip(&texts) {
        append_here(log, main, &[draft(n, &json!({"text": text}))]);
        assert_eq!(text_at(log, main, n), (text.len() > 4096, text.clone()), "text {n}");
    }
    // The limit of an event counts what is left of it.
    let huge = "y".repeat(3 << 20);
    append_here(log, main, &[draft(9, &json!({"text": huge, "list": [huge, huge]}))]);
    assert_eq!(text_at(log, main, 5), (true, huge));
}

pub(super) fn a_blob_is_stored_once_and_may_be_named(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let text = "z".repeat(10_000);
    append_here(log, main, &[draft(0, &json!({"text": text})), draft(1, &json!({"text": text}))]);
    let named = read_one(log, main, Offset::ZERO).expect("the event").payload().to_json();
    assert_eq!(named["text"]["$blob"], json!(Hash::of(text.as_bytes()).to_string()));
    let mut again = draft(2, &json!({}));
    again.payload = named;
    append_here(log, main, &[again]);
    let events: Vec<_> = log::read_all(log, main).expect("main").map(|e| e.expect("e")).collect();
    assert_eq!(events[0].payload(), events[2].payload(), "a named blob is the same value");
    assert_eq!(text_at(log, main, 2), (true, text));
}

pub(super) fn a_blob_that_is_not_there_cannot_be_named(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let text = "z".repeat(5000);
    let hash = Hash::of(text.as_bytes());
    let naming = json!({"text": {"$blob": hash.to_string(), "head": &text[..256], "size": 5000}});
    let refused = append(log, main, Head::EMPTY, &[draft(0, &naming)]);
    let Err(AppendError::Log(LogError::Event(EventError::NoBlob { hash: named }))) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(named, hash);
    // The same batch may bring it along.
    append_here(log, main, &[draft(0, &naming), draft(1, &json!({"text": text}))]);
    assert_eq!(text_at(log, main, 0), (true, text));
}

pub(super) fn files_are_stored_by_their_hash(opened: &Opened) {
    let log = &*opened.log;
    for bytes in [vec![], vec![0xff; 3], (0..200_000u32).flat_map(u32::to_le_bytes).collect()] {
        let bytes = Bytes::from(bytes);
        let hash = log.put_blob(bytes.clone()).expect("it is stored");
        assert_eq!(hash, Hash::of(&bytes));
        assert_eq!(log.put_blob(bytes.clone()).expect("again"), hash);
        assert_eq!(log.blob(&hash).expect("it is whole"), Some(bytes));
    }
    assert_eq!(log.blob(&Hash::ZERO).expect("nothing is damaged"), None);
}

/// Such an event could never be exported: its text would have another reference when it came back.
pub(super) fn a_reference_tells_the_truth_about_its_text(opened: &Opened) {
    let (log, main) = (&*opened.log, opened.main().id);
    let text = "a long text ".repeat(1000);
    let hash = log.put_blob(text.clone().into()).expect("it is stored");
    let offer = |size: usize, head: &str| {
        let reference = json!({"$blob": hash.to_string(), "size": size, "head": head});
        let drafts = vec![draft(1, &json!({"text": reference}))];
        log.offer(main, Offer { drafts, expected: None }).wait().expect("an answer")
    };
    for (size, head) in [(text.len() + 1, &text[..256]), (text.len(), "another text")] {
        let refused = offer(size, head).map_err(|error| error.to_string());
        assert!(refused.is_err_and(|error| error.contains(&hash.to_string())), "{size} {head}");
    }
    assert_eq!(log.branch(main).expect("main").tip.head, Head::EMPTY, "nothing was written");
    offer(text.len(), &text[..256]).expect("the truth lands");
}
