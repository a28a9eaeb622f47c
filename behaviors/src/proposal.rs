//! What a reaction proposes: events, each with its own changes to the graph.
//!
//! The id of what a proposal makes is not known before the event is stamped. Until then it is
//! written `@i#j`: what change number j of proposal number i of this firing makes. A proposal may
//! name what it or an earlier one makes.

use log::{Change, WriteOp};
use serde_json::{Map, Value};
use smol_str::{SmolStr, format_smolstr};

use crate::error::ReactError;
use crate::metadata::Metadata;
use crate::rules::Rules;
use crate::view::Firing;
use crate::word::Word;

/// An event that should follow.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// What happens.
    pub kind: SmolStr,
    /// The domain's words.
    pub payload: Map<String, Value>,
    /// What it does to the graph.
    pub changes: Vec<Change>,
    /// A durable key.
    pub key: Option<SmolStr>,
    /// Whether it is an event, or another word of a behavior.
    pub word: Word,
}

/// What a reaction that succeeded hands back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The proposals, in order.
    pub proposals: Vec<Proposal>,
    /// What it printed, line by line: shown to people, never part of the log.
    pub printed: Vec<String>,
}

/// Collects the proposals of one firing and holds its behavior to what it declared.
#[derive(Debug)]
pub struct Proposals<'f> {
    metadata: &'f Metadata,
    firing: &'f Firing<'f>,
    reply: Reply,
    refused: Option<ReactError>,
}

/// How many proposals one firing may make. More are a mistake, or a work for many firings.
const PROPOSALS_MAX: usize = 10_000;

/// The proposal and the change that an id such as `@0#2` refers to.
pub(crate) fn made_by(id: &str) -> Option<(usize, usize)> {
    let (proposal, change) = id.strip_prefix('@')?.split_once('#')?;
    let number = |digits: &str| {
        let plain = digits.bytes().all(|b| b.is_ascii_digit());
        if plain { digits.parse().ok() } else { None }
    };
    Some((number(proposal)?, number(change)?))
}

impl<'f> Proposals<'f> {
    /// None yet.
    #[must_use]
    pub fn new(metadata: &'f Metadata, firing: &'f Firing<'f>) -> Self {
        Proposals { metadata, firing, reply: Reply::default(), refused: None }
    }

    /// Proposes an event; changes are added to what is returned. A proposal that breaks a rule
    /// makes the whole firing fail at its end.
    pub fn emit(&mut self, kind: &str, payload: Value) -> Emission<'_, 'f> {
        let payload = self.object(payload, "payload");
        self.say(Word::Event, kind, payload);
        Emission { out: self }
    }

    /// Asks for an effect that the behavior declares. Returns the id of the node `_Effect` that
    /// stands for it, so that an event of this firing can link it.
    pub fn request(&mut self, effect: &str, args: Value, key: Option<&str>) -> SmolStr {
        let args = self.object(args, "list of arguments");
        let number = self.say(Word::Request, effect, args);
        self.reply.proposals[number].key = key.map(SmolStr::from);
        format_smolstr!("@{number}#0")
    }

    /// A guard lets pass what it was shown.
    pub fn allow(&mut self) {
        self.say(Word::Allow, Word::Allow.as_str(), Map::new());
    }

    /// A guard refuses what it was shown.
    pub fn deny(&mut self, reason: &str) {
        let payload = self.object(serde_json::json!({"reason": reason}), "reason");
        self.say(Word::Deny, Word::Deny.as_str(), payload);
    }

    /// A guard puts other arguments in place of those it was shown.
    pub fn rewrite(&mut self, args: Value) {
        let args = self.object(args, "list of arguments");
        self.say(Word::Rewrite, Word::Rewrite.as_str(), args);
    }

    /// What follows from the rest of this firing may do no more than this: `effects` is a list of
    /// the effects that stay granted, `budget` an object of what they may use.
    pub fn narrow(&mut self, to: Value) {
        let to = self.object(to, "narrower grant");
        self.say(Word::Narrow, Word::Narrow.as_str(), to);
    }

    /// Effects are to end: `{"effect": ID}` of an action or its node, `{"firing": TAKEN}`,
    /// `{"goal": EVENT}`, or `{}` for all of the goal that this firing belongs to.
    pub fn cancel(&mut self, scope: Value) {
        let scope = self.object(scope, "scope");
        self.say(Word::Cancel, Word::Cancel.as_str(), scope);
    }

    /// Proposes something without changes, and tells its number.
    fn say(&mut self, word: Word, kind: &str, payload: Map<String, Value>) -> usize {
        let proposal =
            Proposal { kind: kind.into(), payload, changes: Vec::new(), key: None, word };
        let room = self.room();
        // What follows hangs on to the last proposal; the firing fails in any case.
        if room.is_ok() {
            self.reply.proposals.push(proposal);
        }
        let checked = room.and_then(|()| self.rules().check_kind());
        self.note(checked);
        self.reply.proposals.len() - 1
    }

    /// Proposes an event as a whole, and tells its number.
    ///
    /// # Errors
    /// It breaks a rule. It is not proposed.
    pub fn push(&mut self, proposal: Proposal) -> Result<usize, ReactError> {
        let number = self.reply.proposals.len();
        self.room().map_err(ReactError::new)?;
        self.reply.proposals.push(proposal);
        let rules = self.rules();
        let changes = 0..self.reply.proposals[number].changes.len();
        let checked = rules.check_kind();
        let checked =
            checked.and_then(|()| changes.into_iter().try_for_each(|j| rules.check_change(j)));
        if let Err(what) = checked {
            self.reply.proposals.pop();
            return Err(ReactError::new(what));
        }
        Ok(number)
    }

    /// Proposes all that a reaction elsewhere proposed, and prints what it printed.
    ///
    /// # Errors
    /// A proposal breaks a rule.
    pub fn take(&mut self, reply: Reply) -> Result<(), ReactError> {
        self.reply.printed.extend(reply.printed);
        reply.proposals.into_iter().try_for_each(|proposal| self.push(proposal).map(|_| ()))
    }

    /// How many events are proposed so far: the number of the next one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.reply.proposals.len()
    }

    /// Shows a line to whoever watches; it is no part of the log.
    pub fn print(&mut self, line: impl Into<String>) {
        self.reply.printed.push(line.into());
    }

    /// The proposals of a reaction that succeeded.
    ///
    /// # Errors
    /// One of them breaks a rule: the first one that does.
    pub fn finish(self) -> Result<Reply, ReactError> {
        self.refused.map_or(Ok(self.reply), Err)
    }

    fn room(&self) -> Result<(), String> {
        if self.reply.proposals.len() < PROPOSALS_MAX {
            return Ok(());
        }
        Err(format!("a firing proposes at most {PROPOSALS_MAX} events; spread the work over many"))
    }

    fn rules(&self) -> Rules<'_> {
        Rules { metadata: self.metadata, firing: self.firing, proposals: &self.reply.proposals }
    }

    fn note(&mut self, checked: Result<(), String>) {
        if let (Err(what), None) = (checked, &self.refused) {
            self.refused = Some(ReactError::new(what));
        }
    }

    fn object(&mut self, value: Value, what: &str) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => {
                self.note(Err(format!("the {what} is an object, found {other}")));
                Map::new()
            }
        }
    }
}

/// A proposed event to which changes are added. What makes an element returns its id, `@i#j`.
#[derive(Debug)]
pub struct Emission<'p, 'f> {
    out: &'p mut Proposals<'f>,
}

impl Emission<'_, '_> {
    /// Gives the event a durable key.
    pub fn key(&mut self, key: impl Into<SmolStr>) -> &mut Self {
        self.proposal().key = Some(key.into());
        self
    }

    /// Makes a node with a derived id.
    pub fn create(&mut self, type_name: &str, properties: Value) -> SmolStr {
        let properties = self.out.object(properties, "list of properties");
        self.change(Change::Create { id: None, type_name: type_name.into(), properties })
    }

    /// Makes a node with a chosen id, unless it is there.
    pub fn ensure(&mut self, type_name: &str, id: &str, properties: Value) -> SmolStr {
        let properties = self.out.object(properties, "list of properties");
        self.change(Change::Ensure { id: id.into(), type_name: type_name.into(), properties })
    }

    /// Makes an edge.
    pub fn link(&mut self, from: &str, type_name: &str, to: &str, properties: Value) -> SmolStr {
        let properties = self.out.object(properties, "list of properties");
        let (from, to) = (from.into(), to.into());
        self.change(Change::Link { id: None, type_name: type_name.into(), from, to, properties })
    }

    /// Makes an edge, unless one of that type joins these ends.
    pub fn ensure_link(
        &mut self,
        from: &str,
        type_name: &str,
        to: &str,
        properties: Value,
    ) -> SmolStr {
        let properties = self.out.object(properties, "list of properties");
        let (from, to) = (from.into(), to.into());
        self.change(Change::EnsureLink { type_name: type_name.into(), from, to, properties })
    }

    /// Writes properties.
    pub fn set(&mut self, id: &str, properties: Value) -> &mut Self {
        self.write(WriteOp::Set, id, properties)
    }

    /// Adds numbers to properties.
    pub fn add(&mut self, id: &str, properties: Value) -> &mut Self {
        self.write(WriteOp::Add, id, properties)
    }

    /// Appends one item to each of these lists.
    pub fn append(&mut self, id: &str, properties: Value) -> &mut Self {
        self.write(WriteOp::Append, id, properties)
    }

    /// Drops properties.
    pub fn unset(&mut self, id: &str, names: &[&str]) -> &mut Self {
        let names = names.iter().map(|name| SmolStr::from(*name)).collect();
        self.change(Change::Unset { id: id.into(), names });
        self
    }

    /// Removes an element.
    pub fn remove(&mut self, id: &str) -> &mut Self {
        self.change(Change::Remove { id: id.into() });
        self
    }

    /// Adds any change, and returns the id of what it makes, if it makes something.
    pub fn change(&mut self, change: Change) -> SmolStr {
        let number = self.out.count() - 1;
        let index = self.proposal().changes.len();
        self.proposal().changes.push(change);
        let checked = self.out.rules().check_change(index);
        self.out.note(checked);
        format_smolstr!("@{number}#{index}")
    }

    fn write(&mut self, op: WriteOp, id: &str, properties: Value) -> &mut Self {
        let properties = self.out.object(properties, "list of properties");
        self.change(Change::Write { op, id: id.into(), properties, if_version: None });
        self
    }

    fn proposal(&mut self) -> &mut Proposal {
        self.out.reply.proposals.last_mut().expect("an emission has its proposal")
    }
}
