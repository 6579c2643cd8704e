//! Copies of a database: made while it is in use, and put back in its place.

use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use toolgate_engine::store::StoreError;

use super::check::{CheckReport, check_contradictions, check_file};
use super::fault::Fault;
use super::lock::{self, DataLock};
use super::readers;

/// Copies the database at `from` to the file `to`, as it is at this moment, and checks the copy. A gateway may use the database
/// meanwhile. `Exists` if the file is there.
pub fn backup(from: &Path, to: &Path) -> Result<CheckReport, StoreError> {
    if !from.is_file() {
        return Err(failed(from, "it is not there, or is not a file"));
    }
    if to.exists() {
        return Err(StoreError::Exists);
    }
    let draft = beside(to, "part");
    let copied = copy(from, &draft).and_then(|()| checked(&draft));
    let report = copied.inspect_err(|_| {
        // The first error tells more than a second one.
        let _ = std::fs::remove_file(&draft);
    })?;
    put(&draft, to)?;
    Ok(report)
}

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// What a check of the copy found.
    pub report: CheckReport,
    /// Where the database is that was there before.
    pub before: Option<PathBuf>,
}

/// Puts the copy `from` in the place of the database at `to`. It is checked first. `Exists` if there is a database with
/// anything in it, unless `replace`: then that is kept beside it, under a name with `.before-restore` that nothing has yet.
/// `Unavailable` if a gateway uses it.
pub fn restore(from: &Path, to: &Path, replace: bool) -> Result<Restored, StoreError> {
    let report = checked(from)?;
    if let Some(directory) = to.parent() {
        std::fs::create_dir_all(directory).map_err(|error| failed(to, error))?;
    }
    let _lock = DataLock::take(to)?;
    let in_use = std::fs::metadata(to).is_ok_and(|about| about.len() > 0);
    if in_use && !replace {
        return Err(StoreError::Exists);
    }
    let draft = beside(to, "part");
    copy(from, &draft)?;
    let before = if in_use { Some(set_aside(to)?) } else { None };
    put(&draft, to)?;
    Ok(Restored { report, before })
}

/// What belongs to a database: the file, its write-ahead log, and the index of that.
const ENDS: [&str; 3] = ["", "-wal", "-shm"];

/// Moves a database away, with the write-ahead log that belongs to it. Gives where it is now.
fn set_aside(database: &Path) -> Result<PathBuf, StoreError> {
    let aside = free_name(database);
    for end in ENDS {
        let file = with_end(database, end);
        if file.exists() {
            std::fs::rename(&file, with_end(&aside, end)).map_err(|error| failed(&file, error))?;
        }
    }
    Ok(aside)
}

/// The first of `.before-restore`, `.before-restore-2` and so on that no earlier restore has used: what it has kept may be the
/// only copy.
fn free_name(database: &Path) -> PathBuf {
    let numbers = (2..).map(|n| format!(".before-restore-{n}"));
    let mut names = std::iter::once(".before-restore".to_owned())
        .chain(numbers)
        .map(|end| with_end(database, &end));
    let is_free = |name: &PathBuf| ENDS.iter().all(|end| !with_end(name, end).exists());
    names.find(is_free).expect("numbers do not end")
}

/// Copies all pages in one step: between two steps a writer could begin it anew, again and again.
fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    // A file that an interrupted copy has left.
    if to.exists() {
        std::fs::remove_file(to).map_err(|error| failed(to, error))?;
    }
    lock::private().open(to).map_err(|error| failed(to, error))?;
    let copied = || {
        let source = readers::open(from)?;
        let mut target = Connection::open(to)?;
        let done = Backup::new(&source, &mut target)?.step(-1)?;
        match done {
            StepResult::Done => Ok(()),
            other => Err(Fault::Refused(failed(
                from,
                format!("the copy ended with {other:?}"),
            ))),
        }
    };
    copied().map_err(Fault::into_store_error)?;
    let file = File::open(to).and_then(|file| file.sync_all());
    file.map_err(|error| failed(to, error))
}

/// What a check of a copy says; `Corrupt` if the file is damaged. Rows that contradict each other are in the report: they were
/// copied as they are, and everything else with them.
fn checked(copy: &Path) -> Result<CheckReport, StoreError> {
    let report = check_file(copy)?;
    match report.damage.first() {
        Some(damage) => Err(StoreError::Corrupt(format!("{}: {damage}", copy.display()))),
        None => Ok(CheckReport {
            damage: check_contradictions(copy)?,
            ..report
        }),
    }
}

/// Gives a finished file its name, so that it is there after a loss of power.
fn put(draft: &Path, to: &Path) -> Result<(), StoreError> {
    std::fs::rename(draft, to).map_err(|error| failed(to, error))?;
    let directory = to.parent().filter(|path| !path.as_os_str().is_empty());
    let synced = File::open(directory.unwrap_or(Path::new("."))).and_then(|directory| directory.sync_all());
    synced.map_err(|error| failed(to, error))
}

fn beside(path: &Path, end: &str) -> PathBuf {
    with_end(path, &format!(".{end}"))
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn failed(path: &Path, why: impl std::fmt::Display) -> StoreError {
    StoreError::Unavailable(format!("{}: {why}", path.display()))
}
