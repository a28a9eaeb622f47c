//! The contract of a log: one set of claims, each of which every backend keeps.
//!
//! A new backend adds one function that opens an empty log, and one line to `every_backend`.

mod append;
mod blob;
mod claim;
mod fork;
mod key;
mod limit;
mod tail;

use std::sync::Arc;

use log::{Branch, GuestLog, Log, MemoryLog, RedbLog, Server};

use crate::support::{STORE, name};

/// An empty log, and what must live as long as it does.
pub(crate) struct Opened {
    pub(crate) log: Arc<dyn Log>,
    /// Who serves it, if it is a guest's.
    _server: Option<Server>,
    /// The folder of its file, if it has one.
    _folder: Option<tempfile::TempDir>,
}

impl Opened {
    /// The branch `main`, which is made.
    fn main(&self) -> Branch {
        self.log.create(&name("main")).expect("the log is empty")
    }
}

fn memory() -> Opened {
    Opened { log: Arc::new(MemoryLog::new(STORE)), _server: None, _folder: None }
}

fn redb() -> Opened {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let log = RedbLog::create(&folder.path().join("store.log"), STORE).expect("a store is made");
    Opened { log: Arc::new(log), _server: None, _folder: Some(folder) }
}

/// A log that another owns, here in the same process.
fn guest() -> Opened {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("store.log");
    let owned = Arc::new(MemoryLog::new(STORE));
    let server = Server::start(owned, &path, "the owner").expect("a socket is made");
    let log = GuestLog::connect(&path).expect("the owner greets").expect("the owner listens");
    Opened { log: Arc::new(log), _server: Some(server), _folder: Some(folder) }
}

/// Makes one test of each claim for each backend.
macro_rules! every_backend {
    ($backends:tt: $($chapter:ident { $($claim:ident)* })*) => {
        $(mod $chapter { $(every_backend!(@claim $backends $chapter $claim);)* })*
    };
    (@claim [$($backend:ident)*] $chapter:ident $claim:ident) => {
        mod $claim {
            $(#[test]
            fn $backend() {
                crate::contract::$chapter::$claim(&crate::contract::$backend());
            })*
        }
    };
}

mod claims {
    every_backend! { [memory redb guest]:
        append {
            a_batch_lands_whole_and_reads_as_it_was_written
            a_moved_tail_refuses_the_batch_and_tells_the_head
            an_empty_batch_writes_nothing
            a_batch_may_be_larger_than_a_block
            what_one_thread_submits_lands_in_order
            sixteen_threads_append_at_once
            a_lost_answer_is_found_by_its_batch
            reading_starts_anywhere_and_ends_at_the_head
            branches_are_named_once
            a_closed_log_says_so
        }
        key {
            the_same_again_is_a_no_op
            a_repeat_is_left_out_and_the_rest_lands
            a_repeat_inside_its_own_batch_is_left_out
            other_content_refuses_the_whole_batch
            a_key_holds_along_the_ancestry
            thousands_of_keys_in_one_batch
        }
        fork {
            a_fork_shares_its_prefix_at_any_cut
            a_fork_copies_no_event
            parent_and_fork_go_their_own_ways
            a_fork_of_a_fork_may_be_cut_below_it
            forks_nest_a_hundred_deep
            a_fork_is_refused_beyond_the_head_or_with_a_taken_name
            a_fork_begins_with_what_was_taken_at_its_cut
        }
        blob {
            a_text_over_4096_bytes_moves_to_a_blob
            a_blob_is_stored_once_and_may_be_named
            a_blob_that_is_not_there_cannot_be_named
            a_reference_tells_the_truth_about_its_text
            files_are_stored_by_their_hash
        }
        limit {
            an_event_takes_a_mebibyte_and_no_more
            values_nest_64_deep_and_no_more
            numbers_are_exact_at_their_extremes
            texts_of_any_characters_come_back
            what_cannot_be_stored_is_refused_by_name
            unknown_kinds_and_fields_are_carried
        }
        claim {
            an_engine_appends_under_its_claim
            a_second_engine_is_refused_while_the_first_lives
            a_later_claim_ends_the_older_one
            offers_go_to_the_engine_that_runs_the_branch
            offers_land_directly_where_no_engine_runs
        }
        tail {
            a_tail_starts_anywhere_and_goes_on_live
            a_slow_reader_misses_nothing_and_blocks_nobody
            a_tail_reads_through_a_fork
            a_watch_tells_the_head
        }
    }
}
