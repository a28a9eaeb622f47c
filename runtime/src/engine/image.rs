//! The engine's state as bytes: everything that a fold holds, so that going on from a snapshot
//! gives the same log as not.
//!
//! Events stand once, however many activations they caused. A snapshot is a cache: who loses one
//! folds from an earlier one, or from the beginning.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use log::{Bound, Event, EventId, Head, Offset, Time};
use projection::{Born, Graph, Row};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::activation::{Activation, Carried};
use super::catching::Catching;
use super::error::FoldError;
use super::rounds::{Round, Writes};
use super::settings::{Schedule, Settings};
use super::state::{Count, Rejection, State, Suspension};
use super::subscription::Subscription;
use crate::effect::{Action, Facts, Ledger};

/// The version of the fold's rules and of this layout. Another version's snapshots are not read.
pub(crate) const RULES_VERSION: u32 = 5;

/// All of a state but its graph.
#[derive(Debug, Serialize, Deserialize)]
struct Image {
    rules: u32,
    head: u64,
    taken: u64,
    settings: String,
    start: i64,
    counts: Vec<(SmolStr, u64, u64)>,
    /// Every event that something below names, once, by offset.
    events: Vec<(u64, Vec<u8>)>,
    behaviors: Vec<u64>,
    loads: Vec<(SmolStr, EventId)>,
    failed: Vec<(SmolStr, Vec<Vec<BoundImage>>)>,
    suspended: Vec<(SmolStr, u64, bool)>,
    exhausted: Vec<(SmolStr, u64)>,
    /// Who catches up: the event that loaded it, and what it is shown next.
    catching: Vec<(SmolStr, u64, u64)>,
    disabled: Vec<(SmolStr, Option<u64>)>,
    /// Broken files: path, hash and what is wrong.
    rejected: Vec<(SmolStr, SmolStr, String)>,
    agenda: Vec<ActivationImage>,
    last: Option<ActivationImage>,
    left: Vec<ActivationImage>,
    refused: Vec<ActivationImage>,
    base: Option<Vec<u8>>,
    writes: Writes,
    clock: i64,
    delayed: Vec<(i64, ActivationImage)>,
    ledger: Ledger,
    /// Open actions, each with the offset of its last revision.
    actions: Vec<(Facts, u64)>,
    /// Behaviors that wait for an answer, by the action that they asked.
    asking: Vec<(EventId, ActivationImage)>,
}

#[derive(Debug, Serialize, Deserialize)]
enum BoundImage {
    Element(SmolStr),
    Path(Vec<SmolStr>),
}

#[derive(Debug, Serialize, Deserialize)]
struct ActivationImage {
    behavior: SmolStr,
    order: i64,
    event: u64,
    bound: Vec<BoundImage>,
    born: Vec<(u64, u32)>,
    at: u64,
    ticket: u64,
    depth: u64,
    refused: u64,
    carried: Option<Vec<Carried>>,
    goal: EventId,
    scopes: Option<Vec<EventId>>,
    handled: Option<u64>,
    answered: bool,
}

/// Collects the events that images name.
#[derive(Default)]
struct Events(BTreeMap<u64, Event>);

impl Events {
    fn name(&mut self, event: &Event) -> u64 {
        let offset = event.offset().get();
        self.0.entry(offset).or_insert_with(|| event.clone());
        offset
    }

    fn activation(&mut self, activation: &Activation) -> ActivationImage {
        ActivationImage {
            behavior: activation.behavior.clone(),
            order: activation.order,
            event: self.name(&activation.event),
            bound: activation.row.bound.iter().map(image_of).collect(),
            born: activation.row.order.iter().map(|b| (b.offset.get(), b.index)).collect(),
            at: activation.at.get(),
            ticket: activation.ticket,
            depth: activation.depth,
            refused: activation.refused,
            carried: activation.carried.as_deref().cloned(),
            goal: activation.goal,
            scopes: activation.scopes.as_deref().map(<[EventId]>::to_vec),
            handled: activation.handled.as_ref().map(|event| self.name(event)),
            answered: activation.answered,
        }
    }

    fn all<'a>(&mut self, some: impl Iterator<Item = &'a Activation>) -> Vec<ActivationImage> {
        some.map(|activation| self.activation(activation)).collect()
    }
}

fn image_of(bound: &Bound) -> BoundImage {
    match bound {
        Bound::Element(id) => BoundImage::Element(id.clone()),
        Bound::Path(ids) => BoundImage::Path(ids.clone()),
    }
}

fn bound_of(image: BoundImage) -> Bound {
    match image {
        BoundImage::Element(id) => Bound::Element(id),
        BoundImage::Path(ids) => Bound::Path(ids),
    }
}

impl State {
    /// The state without its graph, as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut events = Events::default();
        let suspended = self.suspended.iter();
        let suspended = suspended.map(|(name, s)| (name.clone(), events.name(&s.at), s.announced));
        let suspended = suspended.collect();
        let behaviors = self.subscriptions.iter().map(|s| events.name(&s.loaded)).collect();
        let catching = self.catching.iter();
        let catching = catching.map(|(n, c)| (n.clone(), events.name(&c.cause), c.next.get()));
        let catching = catching.collect();
        let disabled = self.disabled.iter();
        let disabled = disabled
            .map(|(name, kept)| (name.clone(), kept.as_ref().map(|s| events.name(&s.loaded))));
        let disabled = disabled.collect();
        let rejected = self.rejected.iter();
        let rejected = rejected.map(|(path, r)| (path.clone(), r.hash.clone(), r.error.clone()));
        let failed = self.failed.iter().map(|(name, rows)| {
            let rows = rows.iter().map(|row| row.iter().map(image_of).collect());
            (name.clone(), rows.collect())
        });
        let delayed = self.agenda.delayed();
        let delayed = delayed.map(|(due, waiting)| (due, events.activation(waiting))).collect();
        let actions = self.effects.iter();
        let actions = actions.map(|a| (a.facts.clone(), events.name(&a.asked))).collect();
        let asking = self.asking.iter();
        let asking = asking.map(|(id, waiting)| (*id, events.activation(waiting))).collect();
        let image = Image {
            asking,
            rules: RULES_VERSION,
            head: self.head.count(),
            taken: self.taken,
            settings: serde_json::Value::Object(self.settings.whole.clone()).to_string(),
            start: self.settings.start.ms(),
            counts: self.counts.iter().map(|(n, c)| (n.clone(), c.firings, c.events)).collect(),
            behaviors,
            loads: self.subscriptions.loads.iter().map(|(n, id)| (n.clone(), *id)).collect(),
            failed: failed.collect(),
            suspended,
            exhausted: self.exhausted.iter().cloned().collect(),
            catching,
            disabled,
            rejected: rejected.collect(),
            agenda: events.all(self.agenda.iter()),
            last: self.last.as_ref().map(|last| events.activation(last)),
            left: events.all(self.round.left.iter()),
            refused: events.all(self.round.refused.iter()),
            base: self.round.base.as_ref().map(Graph::encode),
            writes: self.round.writes.clone(),
            clock: self.clock,
            delayed,
            ledger: self.effects.ledger.clone(),
            actions,
            events: events.0.into_iter().map(|(n, event)| (n, event.record().to_vec())).collect(),
        };
        postcard::to_stdvec(&image).expect("a state is plain data")
    }

    /// The state that `encode` wrote, with its graph.
    ///
    /// # Errors
    /// The bytes are none, or of other rules.
    pub(crate) fn decode(bytes: &[u8], graph: Graph) -> Result<State, FoldError> {
        let bad = |what: String| FoldError::Snapshot { what };
        let image: Image = postcard::from_bytes(bytes).map_err(|error| bad(error.to_string()))?;
        if image.rules != RULES_VERSION {
            return Err(bad(format!("it has rules {}, not {RULES_VERSION}", image.rules)));
        }
        let decoder = Decoder::new(image.events)?;
        let mut state = State { graph, ..State::default() };
        state.settings = Settings::restore(&image.settings, image.start)?;
        (state.head, state.taken) = (Head::of_count(image.head), image.taken);
        if state.graph.head() != state.head {
            return Err(bad("its graph stops at another offset".to_owned()));
        }
        let count = |(name, firings, events)| (name, Count { firings, events });
        state.counts = image.counts.into_iter().map(count).collect();
        if state.settings.schedule == Schedule::Random {
            state.agenda.order_by_ticket();
        }
        for offset in image.behaviors {
            let subscription = Subscription::read(decoder.event(offset)?)?;
            for (type_name, property) in subscription.indexes() {
                state.graph.declare_index(&type_name, &property);
            }
            state.subscriptions.insert(Arc::new(subscription));
        }
        state.subscriptions.loads = image.loads.into_iter().collect();
        let rows = |rows: Vec<Vec<BoundImage>>| -> BTreeSet<Vec<Bound>> {
            rows.into_iter().map(|row| row.into_iter().map(bound_of).collect()).collect()
        };
        state.failed = image.failed.into_iter().map(|(name, all)| (name, rows(all))).collect();
        for (name, at, announced) in image.suspended {
            let at = decoder.event(at)?.clone();
            state.suspended.insert(name, Suspension { at, announced });
        }
        state.exhausted = image.exhausted.into_iter().collect();
        let rejected = image.rejected.into_iter();
        let rejected = rejected.map(|(path, hash, error)| (path, Rejection { hash, error }));
        state.rejected = rejected.collect();
        state.read_late(image.catching, image.disabled, &decoder)?;
        for activation in decoder.all(image.agenda)? {
            state.agenda.insert(activation);
        }
        state.last = image.last.map(|last| decoder.activation(last)).transpose()?;
        let base = image.base.map(|bytes| Graph::decode(&bytes)).transpose();
        state.round = Round {
            left: decoder.all(image.left)?.into(),
            refused: decoder.all(image.refused)?.into(),
            base: base.map_err(|error| bad(error.to_string()))?,
            writes: image.writes,
        };
        state.clock = image.clock;
        for (due, waiting) in image.delayed {
            state.agenda.delay(due, decoder.activation(waiting)?);
        }
        state.effects.ledger = image.ledger;
        for (facts, asked) in image.actions {
            state.effects.insert(Action { asked: decoder.event(asked)?.clone(), facts });
        }
        for (id, waiting) in image.asking {
            state.asking.insert(id, decoder.activation(waiting)?);
        }
        Ok(state)
    }

    /// Who catches up, and who is switched off.
    fn read_late(
        &mut self,
        catching: Vec<(SmolStr, u64, u64)>,
        disabled: Vec<(SmolStr, Option<u64>)>,
        decoder: &Decoder,
    ) -> Result<(), FoldError> {
        for (name, cause, next) in catching {
            let cause = decoder.event(cause)?.clone();
            self.catching.insert(name, Catching::from(cause, Offset::new(next)));
        }
        for (name, loaded) in disabled {
            let loaded = loaded.map(|at| Subscription::read(decoder.event(at)?).map(Arc::new));
            self.disabled.insert(name, loaded.transpose()?);
        }
        Ok(())
    }
}

struct Decoder(BTreeMap<u64, Event>);

impl Decoder {
    fn new(events: Vec<(u64, Vec<u8>)>) -> Result<Self, FoldError> {
        let event = |(offset, record): (u64, Vec<u8>)| {
            let event = Event::from_record(Bytes::from(record), Offset::new(offset));
            let event = event.map_err(|what| FoldError::Snapshot { what: what.to_owned() })?;
            Ok((offset, event))
        };
        events.into_iter().map(event).collect::<Result<_, _>>().map(Decoder)
    }

    fn event(&self, offset: u64) -> Result<&Event, FoldError> {
        let gone = || FoldError::Snapshot { what: format!("it names no event {offset}") };
        self.0.get(&offset).ok_or_else(gone)
    }

    fn all(&self, images: Vec<ActivationImage>) -> Result<Vec<Activation>, FoldError> {
        images.into_iter().map(|image| self.activation(image)).collect()
    }

    fn activation(&self, image: ActivationImage) -> Result<Activation, FoldError> {
        let born = |(offset, index)| Born { offset: Offset::new(offset), index };
        Ok(Activation {
            behavior: image.behavior,
            order: image.order,
            event: self.event(image.event)?.clone(),
            row: Row {
                bound: image.bound.into_iter().map(bound_of).collect(),
                order: image.born.into_iter().map(born).collect(),
            },
            at: Offset::new(image.at),
            ticket: image.ticket,
            depth: image.depth,
            refused: image.refused,
            carried: image.carried.map(Arc::new),
            goal: image.goal,
            scopes: image.scopes.map(Into::into),
            handled: image.handled.map(|at| self.event(at).cloned()).transpose()?,
            answered: image.answered,
        })
    }
}

impl Settings {
    fn restore(whole: &str, start: i64) -> Result<Settings, FoldError> {
        let bad = |what: String| FoldError::Snapshot { what };
        let whole = serde_json::from_str(whole).map_err(|error| bad(error.to_string()))?;
        let start =
            Time::from_ms(start).ok_or_else(|| bad("its time is out of range".to_owned()))?;
        let mut settings = Settings { whole, start, ..Settings::default() };
        // A branch that no flock began has no settings.
        if !settings.whole.is_empty() {
            settings.read().map_err(bad)?;
        }
        Ok(settings)
    }
}
