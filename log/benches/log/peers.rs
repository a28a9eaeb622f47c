//! What is compared: the log, rows of redb, and rows of SQLite, each as its users would write it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use log::{
    Append, AppendError, Appended, Batch, Branch, BranchId, Draft, Epoch, Event, Head, Log, LogId,
    Offset, Pending, RedbLog,
};
use redb::{Database, TableDefinition};
use rusqlite::Connection;

/// Something that keeps events.
pub(crate) trait Peer: Sync {
    /// Appends, for one of the appenders, and returns once that is durable.
    fn append(&self, appender: usize, drafts: &[Draft]);

    /// Appends batch after batch, where it can without waiting for each.
    fn append_all(&self, appender: usize, batches: &mut dyn Iterator<Item = &[Draft]>) {
        batches.for_each(|batch| self.append(appender, batch));
    }
}

/// The log, with a branch for each appender.
pub(crate) struct Starling {
    pub(crate) log: Arc<RedbLog>,
    branches: Vec<BranchId>,
    heads: Vec<AtomicU64>,
}

impl Starling {
    pub(crate) fn create(path: &Path, appenders: usize) -> Starling {
        let log = RedbLog::create(path, LogId::ZERO).expect("a store is made");
        let name = |n: usize| format!("b{n}").parse().expect("a branch name");
        let make = |n| log.create(&name(n)).expect("a branch is made");
        let branches: Vec<BranchId> = (0..appenders).map(|n| make(n).id).collect();
        let heads = branches.iter().map(|_| AtomicU64::new(0)).collect();
        Starling { log: Arc::new(log), branches, heads }
    }

    /// The branch of the first appender.
    pub(crate) fn branch(&self) -> Branch {
        self.log.branch(self.branches[0]).expect("the branch is there")
    }

    fn submit(&self, appender: usize, drafts: &[Draft]) -> Pending<Result<Appended, AppendError>> {
        let expected = self.heads[appender].fetch_add(drafts.len() as u64, Ordering::Relaxed);
        let expected = Head::of_count(expected);
        let batch = Batch::of_drafts(expected.next(), drafts).expect("the drafts are in order");
        let append =
            Append { branch: self.branches[appender], batch, expected, epoch: Epoch::UNCLAIMED };
        self.log.submit(append)
    }
}

fn landed(pending: Pending<Result<Appended, AppendError>>) {
    pending.wait().expect("the log answers").expect("the batch lands");
}

impl Peer for Starling {
    fn append(&self, appender: usize, drafts: &[Draft]) {
        landed(self.submit(appender, drafts));
    }

    fn append_all(&self, appender: usize, batches: &mut dyn Iterator<Item = &[Draft]>) {
        let mut on_the_way = VecDeque::new();
        for batch in batches {
            on_the_way.push_back(self.submit(appender, batch));
            if on_the_way.len() == 64 {
                landed(on_the_way.pop_front().expect("64 are on the way"));
            }
        }
        on_the_way.into_iter().for_each(landed);
    }
}

const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");

/// A row of redb for each event, with the same bytes.
pub(crate) struct RedbRows {
    database: Database,
    next: AtomicU64,
    two_phases: bool,
}

impl RedbRows {
    pub(crate) fn create(path: &Path, two_phases: bool) -> RedbRows {
        let database = Database::create(path).expect("a database is made");
        RedbRows { database, next: AtomicU64::new(0), two_phases }
    }
}

impl Peer for RedbRows {
    fn append(&self, _: usize, drafts: &[Draft]) {
        let records: Vec<Event> = drafts.iter().map(encode).collect();
        let mut transaction = self.database.begin_write().expect("the database is well");
        transaction.set_two_phase_commit(self.two_phases);
        {
            let mut rows = transaction.open_table(ROWS).expect("the database is well");
            let first = self.next.fetch_add(drafts.len() as u64, Ordering::Relaxed);
            for (offset, event) in (first..).zip(&records) {
                rows.insert(offset, &**event.record()).expect("the database is well");
            }
        }
        transaction.commit().expect("the database is well");
    }
}

fn encode(draft: &Draft) -> Event {
    Event::encode(draft, Offset::ZERO).expect("the draft is in order").0
}

/// A row of SQLite for each event, with the same bytes, in WAL mode with full synchronization.
pub(crate) struct Sqlite {
    connection: Mutex<Connection>,
}

impl Sqlite {
    pub(crate) fn create(path: &Path) -> Sqlite {
        let connection = Connection::open(path).expect("a database is made");
        let setup = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                     CREATE TABLE rows (sequence INTEGER PRIMARY KEY, record BLOB NOT NULL)";
        connection.execute_batch(setup).expect("the database is well");
        Sqlite { connection: Mutex::new(connection) }
    }
}

impl Peer for Sqlite {
    fn append(&self, _: usize, drafts: &[Draft]) {
        let records: Vec<Event> = drafts.iter().map(encode).collect();
        let mut connection = self.connection.lock().expect("no appender panics");
        let transaction = connection.transaction().expect("the database is well");
        {
            let insert = "INSERT INTO rows (record) VALUES (?1)";
            let mut insert = transaction.prepare_cached(insert).expect("the statement is right");
            for event in &records {
                insert.execute([&**event.record()]).expect("the database is well");
            }
        }
        transaction.commit().expect("the database is well");
    }
}
