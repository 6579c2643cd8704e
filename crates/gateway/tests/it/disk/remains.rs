//! What is left in a directory after a loss of power, read by nothing of the gateway but its check.

use std::collections::BTreeMap;

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;
use toolgate_kernel::id::RunId;
use toolgate_store::check_database;

use super::Told;
use crate::harness::Gateway;

/// Distance between two places of a log.
const STRIDE: i64 = 1_000_000;

/// What `toolgate store check` says of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Whole,
    Damaged,
    /// There is none, or nothing that could be opened.
    Unusable,
}

/// What is left.
pub struct Remains {
    pub verdict: Verdict,
    /// What the rows of runs and their logs disagree in. Empty unless the database is whole.
    pub contradictions: Vec<String>,
    runs: BTreeMap<RunId, Left>,
}

/// What is left of a run.
#[derive(Default)]
struct Left {
    status: String,
    version: i64,
    /// The events of each entry.
    entries: Vec<String>,
    last: i64,
}

impl Remains {
    /// Whether this is stored, once.
    pub fn holds(&self, fact: &Told) -> bool {
        match fact {
            Told::Stored { run, mark } => {
                self.entries(*run).filter(|entry| entry.contains(mark)).count() == 1
            }
            Told::Ended { run } => self.runs.get(run).is_some_and(|left| left.status == "completed"),
        }
    }

    fn entries(&self, run: RunId) -> impl Iterator<Item = &String> {
        self.runs.get(&run).into_iter().flat_map(|left| &left.entries)
    }
}

/// Checks what is left below `directory` and reads it.
pub fn look(directory: &TempDir, place: &str) -> Remains {
    let database = Gateway::data(directory.path()).join("toolgate.db");
    let mut remains = Remains {
        verdict: Verdict::Whole,
        contradictions: Vec::new(),
        runs: BTreeMap::new(),
    };
    match check_database(&database) {
        Ok(report) if report.damage.is_empty() => {}
        Ok(report) => {
            eprintln!("{place}: {}", report.damage[0]);
            remains.verdict = Verdict::Damaged;
            return remains;
        }
        Err(error) => {
            eprintln!("{place}: {error}");
            remains.verdict = Verdict::Unusable;
            return remains;
        }
    }
    let connection =
        Connection::open_with_flags(&database, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("it is whole");
    read(&connection, &mut remains).expect("it is whole");
    remains
}

fn read(connection: &Connection, remains: &mut Remains) -> rusqlite::Result<()> {
    let mut rows = connection.prepare("SELECT id, status, version FROM runs")?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let left = Left {
            status: row.get(1)?,
            version: row.get(2)?,
            ..Left::default()
        };
        remains.runs.insert(RunId::from_bytes(row.get(0)?), left);
    }
    let mut ends: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    let mut rows =
        connection.prepare("SELECT space, first, last, run, events FROM log ORDER BY space, first")?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let (first, last): (i64, i64) = (row.get(1)?, row.get(2)?);
        let before = ends.insert(row.get(0)?, last).unwrap_or_default();
        if first != before + STRIDE {
            remains.contradictions.push(format!(
                "an entry begins at {first}, the one before ends at {before}"
            ));
        }
        let Some(run) = row.get::<_, Option<[u8; 16]>>(3)? else {
            continue;
        };
        let run = RunId::from_bytes(run);
        match remains.runs.get_mut(&run) {
            Some(left) => {
                left.entries.push(row.get(4)?);
                left.last = last;
            }
            None => remains.contradictions.push(format!("{run} has a log and no row")),
        }
    }
    for (run, left) in &remains.runs {
        let ended = ["completed", "failed", "cancelled"].contains(&left.status.as_str());
        let finishes = left
            .entries
            .iter()
            .filter(|entry| entry.contains("\"run-finish\""))
            .count();
        if left.version != left.last || finishes != usize::from(ended) {
            let Left {
                status,
                version,
                last,
                ..
            } = left;
            remains.contradictions.push(format!(
                "{run} is {status} at {version}, its log ends at {last} and has {finishes} ends"
            ));
        }
    }
    Ok(())
}
