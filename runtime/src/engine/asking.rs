//! Behaviors that cannot answer by themselves, in the fold: one is woken and asks an effect; what
//! the effect answers wakes it again, on the same match, and then it proposes.
//!
//! So what a program or a model said is an event like any other answer, and nobody asks again when
//! a log is folded, refired or forked. Both firings are held to what the behavior declares.

use log::{Event, EventId};
use smol_str::SmolStr;

use super::activation::Activation;
use super::guards::text;
use super::state::State;
use crate::effect::action_of;

impl State {
    /// A behavior asked the effect that answers for it: what woke it is kept until the answer.
    pub(super) fn note_question(&mut self, event: &Event) {
        if event.kind() != "effect.requested" {
            return;
        }
        let Some(last) = self.last.as_ref().filter(|last| !last.answered) else { return };
        let own = event.author() == Some(last.behavior.as_str());
        let asks = self.subscriptions.get(&last.behavior).and_then(|loaded| loaded.asks.as_ref());
        if own && asks.is_some_and(|asks| *asks == text(event, "effect")) {
            self.asking.insert(event.id(), last.clone());
        }
    }

    /// The answer wakes whoever asked. What is not known yet is none.
    pub(super) fn hear_answer(&mut self, event: &Event) {
        if !matches!(event.kind(), "effect.ended" | "effect.reconciled") {
            return;
        }
        let status = text(event, "status");
        if status == "unknown" {
            return;
        }
        let Some(first) = action_of(event).and_then(|id| self.asking.remove(&id)) else { return };
        let guard = self.subscriptions.get(&first.behavior).is_some_and(|s| s.metadata.guard);
        if guard && status != "succeeded" {
            // The runtime has said no in its name already.
            return;
        }
        let ticket = self.last.as_ref().map_or(0, |last| last.ticket) + 1;
        self.agenda.insert(Activation {
            event: event.clone(),
            at: event.offset(),
            ticket,
            depth: first.depth + 1,
            refused: 0,
            handled: Some(first.seen().clone()),
            answered: true,
            ..first
        });
    }

    /// What waits for answers of a behavior, which are not heard any more.
    pub(super) fn forget_questions(&mut self, name: &SmolStr) -> Vec<Activation> {
        let of =
            |(id, waiting): (&EventId, &Activation)| (waiting.behavior == *name).then_some(*id);
        let ids: Vec<EventId> = self.asking.iter().filter_map(of).collect();
        ids.iter().filter_map(|id| self.asking.remove(id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use behaviors::{Behavior, Firing, Loaded, Metadata, Proposals, ReactError};
    use log::{BranchName, Draft, Log, LogId, MemoryLog};
    use serde_json::{Value, json};

    use super::*;
    use crate::engine::{Engine, Library, Start, start_branch};

    struct Asking(Metadata);

    impl Behavior for Asking {
        fn metadata(&self) -> &Metadata {
            &self.0
        }

        fn react(&self, _: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
            out.request("exec:b", json!({}), None);
            Ok(())
        }
    }

    #[test]
    fn a_snapshot_holds_who_waits_for_an_answer() {
        let fields = json!({"name": "b", "on": "x.happened", "effects": ["exec:b"]});
        let metadata = Metadata::from_json(fields.as_object().expect("an object"), "b");
        let behavior = Loaded::new(Arc::new(Asking(metadata.expect("metadata"))), "b");
        let object = |value: Value| value.as_object().expect("an object").clone();
        let load = json!({
            "name": "b", "path": "", "hash": behavior.hash().to_string(), "metadata": fields,
            "asks": "exec:b",
        });
        let start = Start {
            flock: object(json!({"name": "f", "seed": 0, "schedule": "fifo"})),
            behaviors: vec![("b".into(), object(load))],
            events: vec![Draft::new(EventId::ZERO, "x.happened", "user:ann")],
            ..Start::default()
        };
        let log: Arc<dyn Log> = Arc::new(MemoryLog::new(LogId::ZERO));
        let branch = start_branch(&log, &BranchName::main(), &start, "test").expect("it starts");
        let mut library = Library::new();
        library.insert(behavior);
        let mut engine = Engine::open(log, branch.id, library, "test").expect("it opens");
        engine.run(|_| true).expect("it runs");
        let state = &engine.state;
        assert_eq!(state.asking.len(), 1);
        let again = State::decode(&state.encode(), state.graph.clone()).expect("it is read");
        let waiting = again.asking.values().next().expect("it still waits");
        assert_eq!((waiting.behavior.as_str(), waiting.seen().kind()), ("b", "x.happened"));
        assert_eq!(again.encode(), state.encode());
    }
}
