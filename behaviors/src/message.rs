//! The border to a host in another process: one message goes there, one comes back.
//!
//! A firing goes as postcard, with the stored values as they are; it is read in place. It is
//! trusted: only the runtime writes it. A reply comes back as JSON and is checked like any other
//! input; the runtime then holds the proposals to the rules again, with `Proposals::push`.

use std::borrow::Cow;

use log::{Bound, Change, EventId, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use crate::error::{MessageError, ReactError};
use crate::proposal::{Proposal, Reply};
use crate::stream::Stream;
use crate::texts::Texts;
use crate::view::{Binding, EventView, Firing, Read};
use crate::word::Word;

#[derive(Serialize, Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    event: EventView<'a>,
    #[serde(borrow)]
    bound: Vec<(&'a str, Binding<'a>)>,
    #[serde(borrow)]
    reads: Vec<Read<'a>>,
    settings: &'a str,
    seed: i64,
    cause: EventId,
    behavior: &'a str,
    #[serde(borrow)]
    row: Vec<Place<'a>>,
    now: Time,
}

/// `Bound`, by reference.
#[derive(Serialize, Deserialize)]
enum Place<'a> {
    Element(&'a str),
    #[serde(borrow)]
    Path(Vec<&'a str>),
}

impl<'a> Firing<'a> {
    /// The firing as one message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let settings =
            serde_json::to_string(&*self.settings).expect("a JSON object is written as JSON");
        let (seed, cause, behavior, row) = self.rand.parts();
        let message = Message {
            event: self.event,
            bound: self.bound.clone(),
            reads: self.reads.clone(),
            settings: &settings,
            seed,
            cause,
            behavior,
            row: row.iter().map(Place::of).collect(),
            now: self.now,
        };
        postcard::to_stdvec(&message).expect("plain data is written to a Vec")
    }

    /// Reads a message in place.
    ///
    /// # Errors
    /// It is no such message.
    pub fn decode(message: &'a [u8]) -> Result<Self, MessageError> {
        let bad = |what: String| MessageError { what };
        let message: Message<'a> =
            postcard::from_bytes(message).map_err(|error| bad(error.to_string()))?;
        let settings: Map<String, Value> =
            serde_json::from_str(message.settings).map_err(|error| bad(error.to_string()))?;
        let row: Vec<Bound> = message.row.iter().map(Place::to_bound).collect();
        Ok(Firing {
            event: message.event,
            bound: message.bound,
            reads: message.reads,
            settings: Cow::Owned(settings),
            rand: Stream::of_firing(message.seed, message.cause, message.behavior, row),
            now: message.now,
            answer: None,
            texts: Texts::none(),
        })
    }
}

impl<'a> Place<'a> {
    fn of(bound: &'a Bound) -> Self {
        match bound {
            Bound::Element(id) => Place::Element(id),
            Bound::Path(ids) => Place::Path(ids.iter().map(SmolStr::as_str).collect()),
        }
    }

    fn to_bound(&self) -> Bound {
        match self {
            Place::Element(id) => Bound::Element((*id).into()),
            Place::Path(ids) => Bound::Path(ids.iter().map(|id| SmolStr::from(*id)).collect()),
        }
    }
}

/// What became of a reaction, as one message.
#[must_use]
pub fn encode_reply(reply: &Result<Reply, ReactError>) -> Vec<u8> {
    let json = match reply {
        Ok(reply) => {
            let proposals: Vec<Value> = reply.proposals.iter().map(Proposal::to_json).collect();
            json!({"proposals": proposals, "printed": reply.printed})
        }
        Err(error) => json!({"error": {
            "message": error.message,
            "file": error.file,
            "line": error.line,
            "column": error.column,
            "line_text": error.line_text,
            "stopped": error.stopped,
        }}),
    };
    serde_json::to_vec(&json).expect("JSON is written to a Vec")
}

/// Reads what became of a reaction.
///
/// # Errors
/// It is no such message.
pub fn decode_reply(message: &[u8]) -> Result<Result<Reply, ReactError>, MessageError> {
    let bad = |what: String| MessageError { what };
    let text = std::str::from_utf8(message).map_err(|error| bad(error.to_string()))?;
    let json = log::parse_object(text).map_err(|error| bad(error.to_string()))?;
    if let Some(Value::Object(error)) = json.get("error") {
        return Ok(Err(read_error(error)));
    }
    let list = |name: &str| match json.get(name) {
        Some(Value::Array(items)) => Ok(items),
        _ => Err(bad(format!("expected a list of {name}"))),
    };
    let proposals: Result<_, _> = list("proposals")?.iter().map(Proposal::from_json).collect();
    let lines = list("printed")?.iter();
    let printed: Option<_> = lines.map(|line| line.as_str().map(str::to_owned)).collect();
    let printed = printed.ok_or_else(|| bad("what was printed is a list of texts".to_owned()))?;
    Ok(Ok(Reply { proposals: proposals?, printed }))
}

fn read_error(json: &Map<String, Value>) -> ReactError {
    let text = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| u32::try_from(json.get(name)?.as_u64()?).ok();
    ReactError {
        message: text("message").unwrap_or_default(),
        file: text("file"),
        line: number("line"),
        column: number("column"),
        line_text: text("line_text"),
        stopped: json.get("stopped") == Some(&Value::Bool(true)),
    }
}

impl Proposal {
    /// The proposal as JSON; `from_json` reads it back.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let changes: Vec<Value> = self.changes.iter().map(Change::to_json).collect();
        json!({
            "kind": self.kind.as_str(),
            "payload": self.payload,
            "changes": changes,
            "key": self.key.as_deref(),
            "word": self.word.as_str(),
        })
    }

    /// Reads a proposal.
    ///
    /// # Errors
    /// It has not the form that `to_json` writes.
    pub fn from_json(json: &Value) -> Result<Proposal, MessageError> {
        let bad = |what: String| MessageError { what };
        let missing = |name: &str| bad(format!("a proposal without `{name}`"));
        let changes = json["changes"].as_array().ok_or_else(|| missing("changes"))?;
        let read = |(index, change)| Change::from_json(change, &format!("changes[{index}]"));
        let changes: Result<_, _> = changes.iter().enumerate().map(read).collect();
        Ok(Proposal {
            kind: json["kind"].as_str().ok_or_else(|| missing("kind"))?.into(),
            payload: json["payload"].as_object().ok_or_else(|| missing("payload"))?.clone(),
            changes: changes.map_err(|error| bad(error.to_string()))?,
            key: json["key"].as_str().map(SmolStr::from),
            word: match &json["word"] {
                Value::Null => Word::Event,
                word => word.as_str().and_then(Word::from_name).ok_or_else(|| {
                    bad(format!("`word`: {word} is none of emit, request, allow, deny, rewrite"))
                })?,
            },
        })
    }
}

/// Stored values in a message: their bytes, as they are.
pub(crate) mod stored_map {
    use log::MapRef;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(map: &MapRef<'_>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(map.as_bytes())
    }

    pub(crate) fn deserialize<'de: 'a, 'a, D: Deserializer<'de>>(
        from: D,
    ) -> Result<MapRef<'a>, D::Error> {
        <&'a [u8]>::deserialize(from).map(MapRef::from_checked)
    }
}

#[cfg(test)]
mod tests {
    use log::WriteOp;
    use proptest::prelude::{Just, Strategy, any, prop_oneof};
    use proptest::{prop_assert_eq, proptest};

    use super::*;
    use crate::testing::Scene;

    fn properties() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,9}".prop_map(Value::from),
        ];
        let value = leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[a-z]{1,3}", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        });
        proptest::collection::btree_map("[a-z]{1,5}", value, 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn a_firing_survives_the_way_to_another_process(
            payload in properties(), own in properties(), settings in properties(), seed: i64,
        ) {
            let node = json!({"id": "n", "type": "N", "properties": own, "version": 7});
            let edge = json!({"id": "e", "type": "E", "from": "n", "to": "m"});
            let scene = Scene::new(json!({
                "event": {"kind": "k", "payload": payload, "key": "once"},
                "bound": {"gone": null, "n": node, "path": [edge, edge]},
                "reads": {"pairs": [{"a": node, "e": edge}, {"a": node, "e": null}], "x": [node]},
                "settings": settings, "seed": seed, "now": 1_767_603_600_000i64,
            }));
            let firing = scene.firing("b");
            let message = firing.encode();
            let read = Firing::decode(&message).expect("it was just written");
            prop_assert_eq!(read.event, firing.event);
            prop_assert_eq!(&read.bound, &firing.bound);
            prop_assert_eq!(&read.reads, &firing.reads);
            prop_assert_eq!(&read.settings, &firing.settings);
            prop_assert_eq!(read.now, firing.now);
            prop_assert_eq!(read.rand.below(u64::MAX), firing.rand.below(u64::MAX));
            prop_assert_eq!(read.encode(), message);
        }

        #[test]
        fn a_reply_survives_the_way_back(payload in properties(), own in properties()) {
            let object = |value: Value| value.as_object().expect("an object").clone();
            let write = Change::Write {
                op: WriteOp::Set, id: "@0#0".into(), properties: object(own), if_version: Some(3),
            };
            let reply = Reply {
                proposals: vec![Proposal {
                    kind: "k".into(),
                    payload: object(payload),
                    changes: vec![write, Change::Remove { id: "x".into() }],
                    key: Some("once".into()),
                    word: Word::Request,
                }],
                printed: vec!["a\nb".to_owned()],
            };
            prop_assert_eq!(decode_reply(&encode_reply(&Ok(reply.clone()))), Ok(Ok(reply)));
        }
    }

    #[test]
    fn an_error_survives_the_way_back() {
        let error = ReactError {
            message: "no".to_owned(),
            file: Some("b.star".to_owned()),
            line: Some(3),
            column: Some(5),
            line_text: Some("    x".to_owned()),
            stopped: true,
        };
        assert_eq!(decode_reply(&encode_reply(&Err(error.clone()))), Ok(Err(error)));
    }

    #[test]
    fn a_reply_that_is_none_is_refused() {
        for message in [&b"{}"[..], b"[]", b"\xff", b"{\"proposals\":[{}],\"printed\":[]}"] {
            assert!(decode_reply(message).is_err());
        }
        assert!(Firing::decode(b"short").is_err());
    }
}
