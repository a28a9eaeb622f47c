//! Its SQLite file, schema version 1: events, runs with their lineage, an archive, snapshots.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, OpenFlags, Row as Record};
use serde_json::{Value, json};

use super::{Bad, Row, Run};

/// Reads all runs. The file is not written, not even its log.
pub(super) fn read(file: &Path) -> Result<Vec<Run>, Error> {
    let connection = open(file)?;
    let mut runs = Vec::new();
    let mut asked = connection
        .prepare("SELECT run_id, parent_run_id, forked_at_event_id FROM runs ORDER BY rowid")?;
    let mut records = asked.query([])?;
    while let Some(record) = records.next()? {
        let parent = text(record, 1).zip(text(record, 2));
        runs.push(Run { id: text(record, 0).unwrap_or_default(), parent, ..Run::default() });
    }
    // A run of which only events are left is a run.
    let mut asked = connection.prepare(
        "SELECT DISTINCT run_id FROM events WHERE run_id NOT IN (SELECT run_id FROM runs)",
    )?;
    let mut records = asked.query([])?;
    while let Some(record) = records.next()? {
        runs.push(Run { id: text(record, 0).unwrap_or_default(), ..Run::default() });
    }
    for run in &mut runs {
        let archived = read_table(&connection, "events_archive", run)?;
        read_table(&connection, "events", run)?;
        if !archived {
            run.base = base(&connection, run)?;
        }
    }
    runs.retain(|run| !run.rows.is_empty() || !run.bad.is_empty());
    Ok(runs)
}

/// Opens a file for reading. One that nobody writes can also be read where nothing may be written.
fn open(file: &Path) -> Result<Connection, Error> {
    let reads =
        |connection: &Connection| connection.query_row("SELECT count(*) FROM runs", [], |_| Ok(()));
    let only = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let plain = Connection::open_with_flags(file, only);
    let failed = match plain.and_then(|connection| reads(&connection).map(|()| connection)) {
        Ok(connection) => return Ok(connection),
        Err(failed) => failed,
    };
    let mut wal = file.as_os_str().to_owned();
    wal.push("-wal");
    if std::fs::metadata(&wal).is_ok_and(|wal| wal.len() > 0) {
        // Its newest rows stand there, and would be missing.
        return Err(failed);
    }
    let mut uri = "file:".to_owned();
    for byte in file.to_string_lossy().bytes() {
        match byte {
            b'?' | b'#' | b'%' => uri += &format!("%{byte:02x}"),
            _ => uri.push(char::from(byte)),
        }
    }
    let flags = only | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(format!("{uri}?immutable=1"), flags)?;
    reads(&connection)?;
    Ok(connection)
}

/// Reads the rows of a run; whether there were any.
fn read_table(connection: &Connection, table: &str, run: &mut Run) -> Result<bool, Error> {
    let columns = "seq, id, type, actor, payload, frame_id, caused_by, timestamp";
    let text = format!("SELECT {columns} FROM {table} WHERE run_id = ?1 ORDER BY seq");
    let mut asked = match connection.prepare(&text) {
        // An older file has no archive.
        Err(_) if table == "events_archive" => return Ok(false),
        asked => asked?,
    };
    let mut records = asked.query([&run.id])?;
    let mut any = false;
    while let Some(record) = records.next()? {
        any = true;
        match read_row(record, table) {
            Ok(row) => run.rows.push(row),
            Err(bad) => run.bad.push(bad),
        }
    }
    Ok(any)
}

fn read_row(record: &Record<'_>, table: &str) -> Result<Row, Bad> {
    let seq: i64 = record.get(0).unwrap_or(-1);
    let id = text(record, 1).unwrap_or_default();
    let place = format!("{table} row {seq} ({id})");
    let bad = |what: String| Bad { place: place.clone(), what };
    let payload = text(record, 4).ok_or_else(|| bad("its payload is no text".to_owned()))?;
    let payload: Value = serde_json::from_str(&payload)
        .map_err(|error| bad(format!("its payload is no JSON: {error}")))?;
    let event = json!({
        "id": text(record, 1), "type": text(record, 2), "actor": text(record, 3),
        "payload": payload, "frame_id": text(record, 5), "caused_by": text(record, 6),
        "timestamp": text(record, 7),
    });
    Row::of_json(place, event)
}

fn text(record: &Record<'_>, column: usize) -> Option<String> {
    match record.get_ref(column) {
        Ok(ValueRef::Text(bytes)) => String::from_utf8(bytes.to_vec()).ok(),
        _ => None,
    }
}

/// The graph that the first row of a run stands for, where what was before it is gone.
fn base(connection: &Connection, run: &Run) -> Result<Option<Value>, Error> {
    let first = run.rows.first().filter(|row| row.kind == "runtime.snapshot");
    let Some(hash) = first.and_then(|row| row.payload.get("state_hash")?.as_str()) else {
        return Ok(None);
    };
    let mut asked = connection.prepare("SELECT blob FROM snapshots WHERE state_hash = ?1")?;
    let mut records = asked.query([hash])?;
    let blob = records.next()?.and_then(|record| text(record, 0));
    Ok(blob.and_then(|blob| serde_json::from_str(&blob).ok()))
}
