//! What is on its way from the owner to one guest.
//!
//! Heads are not queued: a guest that is slow hears the latest of each branch. Answers are, and a
//! guest that takes none of them for too long is hung up on.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard};

use super::fault::Fault;
use super::frame;
use super::message::{Answer, Notice};
use crate::error::LogError;
use crate::id::{BranchId, Head};

/// With more waiting than this, the guest's next call waits too.
const ROOM: usize = 8 << 20;
/// With more waiting than this, the guest is gone or means harm.
const WAITING_MAX: usize = frame::FRAME_MAX + ROOM;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    heads: BTreeMap<BranchId, Head>,
    closed: bool,
}

impl Outbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds an outbox")
    }

    /// Answers a call. Never waits.
    pub(super) fn answer(&self, number: u64, answer: Answer) {
        self.push(&Notice::Answer { number, answer });
    }

    /// Says something. Never waits.
    pub(super) fn push(&self, notice: &Notice) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        if let Err(bytes) = frame::append(&mut state.bytes, notice)
            && let Notice::Answer { number, .. } = notice
        {
            let error = LogError::Message { what: "the answer", bytes, limit: frame::FRAME_MAX };
            let answer = Answer::Failed(Fault::from(error));
            let failed = Notice::Answer { number: *number, answer };
            frame::append(&mut state.bytes, &failed).expect("an error is short");
        }
        state.closed = state.bytes.len() > WAITING_MAX;
        self.changed.notify_all();
    }

    /// Tells a head; only the latest of a branch is told.
    pub(super) fn head(&self, branch: BranchId, head: Head) {
        self.state().heads.insert(branch, head);
        self.changed.notify_all();
    }

    /// Waits until a good part of what was said has been written.
    pub(super) fn wait_for_room(&self) {
        let full = |state: &mut State| state.bytes.len() > ROOM && !state.closed;
        let room = self.changed.wait_while(self.state(), full);
        drop(room.expect("no thread panics while it holds an outbox"));
    }

    /// Nothing more is said; whoever waits goes on.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    /// Writes all that is said, until it is closed or the guest does not read.
    pub(super) fn write_to(&self, mut stream: &UnixStream) {
        let mut bytes = Vec::new();
        loop {
            let idle = |state: &mut State| {
                state.bytes.is_empty() && state.heads.is_empty() && !state.closed
            };
            let waited = self.changed.wait_while(self.state(), idle);
            let mut state = waited.expect("no thread panics while it holds an outbox");
            if state.closed {
                return;
            }
            bytes.clear();
            for (branch, head) in std::mem::take(&mut state.heads) {
                let told = frame::append(&mut bytes, &Notice::Head { branch, head });
                told.expect("a head is short");
            }
            if bytes.is_empty() {
                std::mem::swap(&mut bytes, &mut state.bytes);
            } else {
                bytes.append(&mut state.bytes);
            }
            self.changed.notify_all();
            drop(state);
            if stream.write_all(&bytes).is_err() {
                self.close();
                return;
            }
            if bytes.capacity() > ROOM {
                bytes = Vec::new();
            }
        }
    }
}
