//! The files of a space: named, versioned, bounded, never on the host's disk. Tools and doors work on the same ones.

mod mime;
mod name;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolgate_kernel::id::{CallId, ProjectId, SpaceId};
use toolgate_kernel::time::Time;

use crate::record_updater::RecordUpdater;
use crate::records::{
    Amendment, Change, Expected, Listing, NewRecord, Owner, Receipt, Record, RecordSet, Records,
};
use crate::store::StoreError;

pub use mime::Mime;
pub use name::{BadFileName, FileName, is_output};

const KIND: &str = "file";
/// What the set holds besides files begins with a control character, which no name has. Files come after all of it.
const LEDGER: &str = "\u{1}";
/// Earlier versions of files.
const EARLIER: &str = "\u{2}";
const BEFORE_FILES: &str = "\u{1f}";

/// How much a space may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspaceLimits {
    /// Files.
    pub files_max: u64,
    /// Bytes of one file.
    pub file_bytes_max: usize,
    /// Bytes of all files, their earlier versions included.
    pub space_bytes_max: u64,
    /// Earlier versions of a file that can still be read.
    pub versions_max: u64,
}

impl Default for WorkspaceLimits {
    fn default() -> Self {
        Self {
            files_max: 1000,
            file_bytes_max: 8 << 20,
            space_bytes_max: 64 << 20,
            versions_max: 10,
        }
    }
}

/// Whose files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The project.
    pub project: ProjectId,
    /// The space.
    pub space: SpaceId,
}

/// What there is to say of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileInfo {
    /// Unique in its space.
    pub path: String,
    /// What it holds.
    pub mime_type: Mime,
    /// How much.
    pub bytes: u64,
    /// Higher with each change, and never the same again: a file that is deleted and made anew goes on behind it.
    pub version: u64,
    /// When it was first written.
    pub created_at: Time,
    /// When this version was written.
    pub updated_at: Time,
}

/// A file with what it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// What there is to say of it.
    pub info: FileInfo,
    /// What it holds.
    pub data: Vec<u8>,
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct NewFile {
    /// Where.
    pub name: FileName,
    /// What it holds; guessed when nobody says.
    pub mime: Option<Mime>,
    /// All of it.
    pub data: Vec<u8>,
    /// What must be there for it to be written.
    pub only: Only,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// What there is to say of it.
    pub file: FileInfo,
    /// Whether there was none of its name.
    pub is_new: bool,
}

/// What must be there for a change to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Only {
    /// Anything or nothing.
    #[default]
    Always,
    /// No file of this name.
    New,
    /// A file of this name, whatever its version.
    Existing,
    /// This version.
    Version(u64),
}

/// How much a space keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Used {
    /// Files.
    pub files: u64,
    /// Bytes, earlier versions included.
    pub bytes: u64,
}

/// Why it was not done.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// There is no such file, or not in this version.
    #[error("there is no file {0}")]
    Missing(String),
    /// The file is too large.
    #[error("a file may have {0} bytes at most")]
    TooLarge(usize),
    /// The space has no room for it.
    #[error("the workspace is full: {0}, and no earlier versions are left to give way; delete files first")]
    Full(String),
    /// The name is the gateway's own.
    #[error("what is under outputs/ is written by the gateway alone; choose another name")]
    Reserved,
    /// The file is not as expected.
    #[error("the file is now {}", .0.map_or("gone".to_owned(), |version| format!("at version {version}")))]
    Changed(Option<u64>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The files of all spaces.
#[derive(Clone)]
pub struct Workspace {
    updater: RecordUpdater,
    limits: WorkspaceLimits,
}

/// What the space keeps in all.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Ledger {
    #[serde(flatten)]
    used: Used,
    /// The highest version that a deleted file had. New files begin behind it, so that no version of a name ever comes
    /// back.
    #[serde(default)]
    deleted: u64,
}

/// A file's record.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    mime: Mime,
    bytes: u64,
    version: u64,
    /// For an earlier version: when the file was first written, and this version of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    times: Option<(Time, Time)>,
}

impl Workspace {
    /// Keeps files there.
    pub fn new(records: Arc<dyn Records>, limits: WorkspaceLimits) -> Self {
        Self {
            updater: RecordUpdater::new(records),
            limits,
        }
    }
    /// How much a space may keep.
    pub fn limits(&self) -> WorkspaceLimits {
        self.limits
    }

    /// A file, as it is or as it was.
    pub async fn read(
        &self,
        place: Place,
        name: &FileName,
        version: Option<u64>,
    ) -> Result<File, WorkspaceError> {
        let missing = || WorkspaceError::Missing(name.to_string());
        let newest = self.records().record(record_set(place), name.as_str()).await?;
        let newest = newest.ok_or_else(missing)?;
        let stored = stored(&newest)?;
        let (record, stored) = match version {
            Some(version) if version != stored.version => {
                let earlier = self
                    .records()
                    .record(record_set(place), &earlier(name, version))
                    .await?;
                let record = earlier.ok_or_else(missing)?;
                let stored = self::stored(&record)?;
                (record, stored)
            }
            Some(_) | None => (newest, stored),
        };
        Ok(File {
            info: info(name.to_string(), &record, &stored),
            data: record.data.unwrap_or_default(),
        })
    }

    /// Files by name, without what they hold.
    pub async fn list(&self, place: Place, listing: Listing) -> Result<Vec<FileInfo>, WorkspaceError> {
        let after = listing.after.unwrap_or_default().max(BEFORE_FILES.to_owned());
        let listing = Listing {
            after: Some(after),
            ..listing
        };
        let mut files = Vec::new();
        for record in self.records().list_records(record_set(place), listing).await? {
            files.push(info(record.id.clone(), &record, &stored(&record)?));
        }
        Ok(files)
    }

    /// How much a space keeps.
    pub async fn used(&self, place: Place) -> Result<Used, WorkspaceError> {
        let ledger = self.records().record(record_set(place), LEDGER).await?;
        Ok(ledger_of(ledger.as_ref())?.used)
    }

    /// Writes a file, whole. What it held before can still be read for some versions, as long as there is room.
    pub async fn write(&self, place: Place, new: NewFile, now: Time) -> Result<Written, WorkspaceError> {
        allowed(&new.name)?;
        self.write_with(place, new, now, |_| None).await
    }

    /// Writes a file and keeps a receipt that says so; [`StoreError::Exists`] when that is there already.
    pub async fn write_once(
        &self,
        place: Place,
        new: NewFile,
        now: Time,
        receipt: impl Fn(&FileInfo) -> Receipt,
    ) -> Result<FileInfo, WorkspaceError> {
        allowed(&new.name)?;
        let written = self.write_with(place, new, now, |file| Some(receipt(file)));
        Ok(written.await?.file)
    }

    /// Keeps what a call gave, as a file that nobody else can write, with a receipt that says so.
    pub async fn keep_output(
        &self,
        place: Place,
        call: CallId,
        (ending, data): (&str, Vec<u8>),
        now: Time,
        receipt: impl Fn(&FileInfo) -> Receipt,
    ) -> Result<FileInfo, WorkspaceError> {
        let new = NewFile {
            name: FileName::of_output(call, ending),
            mime: None,
            data,
            only: Only::Always,
        };
        let written = self.write_with(place, new, now, |file| Some(receipt(file)));
        Ok(written.await?.file)
    }

    async fn write_with(
        &self,
        place: Place,
        new: NewFile,
        now: Time,
        receipt: impl Fn(&FileInfo) -> Option<Receipt>,
    ) -> Result<Written, WorkspaceError> {
        if new.data.len() > self.limits.file_bytes_max {
            return Err(WorkspaceError::TooLarge(self.limits.file_bytes_max));
        }
        let mime = new.mime.clone();
        let mime = mime.unwrap_or_else(|| Mime::guess(&new.name, &new.data));
        let decide = |seen: Seen| -> Result<(Amendment, Written), WorkspaceError> {
            check(new.only, seen.file.as_ref())?;
            let version = match &seen.file {
                Some((_, before)) => before.version + 1,
                None => seen.ledger.deleted + 1,
            };
            let stored = Stored {
                mime: mime.clone(),
                bytes: new.data.len() as u64,
                version,
                times: None,
            };
            let written = Written {
                file: FileInfo {
                    path: new.name.to_string(),
                    mime_type: mime.clone(),
                    bytes: stored.bytes,
                    version,
                    created_at: seen.file.as_ref().map_or(now, |(record, _)| record.created),
                    updated_at: now,
                },
                is_new: seen.file.is_none(),
            };
            let mut amendment = self.replace(&new.name, &stored, seen)?;
            amendment
                .changes
                .push(put(new.name.as_str(), &stored, Some(new.data.clone())));
            amendment.receipt = receipt(&written.file);
            Ok((amendment, written))
        };
        let look = || self.look(place, &new.name, new.data.len() as u64);
        self.updater.update(record_set(place), now, look, decide).await
    }

    /// What has to change besides so that `new` can stand in the place of what was seen: the ledger, and the earlier
    /// versions that give way.
    fn replace(&self, name: &FileName, new: &Stored, seen: Seen) -> Result<Amendment, WorkspaceError> {
        let WorkspaceLimits {
            files_max,
            space_bytes_max,
            versions_max,
            ..
        } = self.limits;
        let expected = seen.expected(name);
        let mut ledger = seen.ledger;
        let used = &mut ledger.used;
        used.files += u64::from(seen.file.is_none());
        used.bytes += new.bytes;
        if used.files > files_max {
            return Err(WorkspaceError::Full(format!("it may have {files_max} files")));
        }
        // The oldest go first: of the file when it has too many, of all files when there is no room.
        let own = earlier_of(name);
        let mut of_file = seen.earlier.iter().filter(|old| old.id.starts_with(&own)).count() as u64;
        let keeps = u64::from(seen.file.is_some());
        let mut changes = Vec::new();
        for old in seen.earlier {
            let is_own = old.id.starts_with(&own);
            let too_many = is_own && of_file + keeps > versions_max;
            if too_many || used.bytes > space_bytes_max {
                of_file -= u64::from(is_own);
                used.bytes = used.bytes.saturating_sub(old.bytes);
                changes.push(Change::Remove(old.id));
            }
        }
        if let Some((record, before)) = seen.file {
            // At last the version that it has now.
            if versions_max == 0 || used.bytes > space_bytes_max {
                used.bytes = used.bytes.saturating_sub(before.bytes);
            } else {
                changes.push(put_earlier(name, record, before));
            }
        }
        if used.bytes > space_bytes_max {
            let words = format!("it may have {space_bytes_max} bytes");
            return Err(WorkspaceError::Full(words));
        }
        changes.push(put(LEDGER, &ledger, None));
        Ok(Amendment {
            expected,
            changes,
            ..Amendment::default()
        })
    }

    /// Takes a file away, with everything that it held.
    pub async fn delete(
        &self,
        place: Place,
        name: &FileName,
        only: Only,
        now: Time,
        receipt: Option<Receipt>,
    ) -> Result<(), WorkspaceError> {
        let decide = |seen: Seen| -> Result<(Amendment, ()), WorkspaceError> {
            let expected = seen.expected(name);
            let missing = || WorkspaceError::Missing(name.to_string());
            let file = seen.file.ok_or_else(missing)?;
            check(only, Some(&file))?;
            let (_, before) = file;
            let mut ledger = seen.ledger;
            ledger.deleted = ledger.deleted.max(before.version);
            ledger.used.files = ledger.used.files.saturating_sub(1);
            let mut bytes = before.bytes;
            let mut changes = vec![Change::Remove(name.to_string())];
            for old in seen.earlier {
                bytes += old.bytes;
                changes.push(Change::Remove(old.id));
            }
            ledger.used.bytes = ledger.used.bytes.saturating_sub(bytes);
            changes.push(put(LEDGER, &ledger, None));
            let receipt = receipt.clone();
            let amendment = Amendment {
                expected,
                changes,
                receipt,
                ..Amendment::default()
            };
            Ok((amendment, ()))
        };
        let look = || self.look(place, name, 0);
        self.updater.update(record_set(place), now, look, decide).await
    }

    /// What a change of a file by so many bytes has to know.
    async fn look(&self, place: Place, name: &FileName, bytes: u64) -> Result<Seen, StoreError> {
        let set = record_set(place);
        let record = self.records().record(set, LEDGER).await?;
        let ledger = ledger_of(record.as_ref())?;
        let file = match self.records().record(set, name.as_str()).await? {
            None => None,
            Some(record) => {
                let stored = stored(&record)?;
                Some((record, stored))
            }
        };
        let crowded = bytes > 0 && ledger.used.bytes + bytes > self.limits.space_bytes_max;
        let listing = Listing {
            prefix: match crowded {
                true => EARLIER.to_owned(),
                false => earlier_of(name),
            },
            after: None,
            limit: usize::MAX,
        };
        let mut earlier = Vec::new();
        for record in self.records().list_records(set, listing).await? {
            earlier.push(Earlier {
                bytes: stored(&record)?.bytes,
                since: record.updated,
                id: record.id,
            });
        }
        earlier.sort_by(|a, b| (a.since, &a.id).cmp(&(b.since, &b.id)));
        Ok(Seen {
            ledger,
            ledger_version: record.map(|record| record.version),
            file,
            earlier,
        })
    }

    fn records(&self) -> &Arc<dyn Records> {
        self.updater.records()
    }
}

/// What a change of a file goes by.
struct Seen {
    ledger: Ledger,
    /// Of the ledger's record.
    ledger_version: Option<u64>,
    file: Option<(Record, Stored)>,
    /// Earlier versions of the file, or of all files when there is no room for it; the oldest first.
    earlier: Vec<Earlier>,
}

/// An earlier version of a file.
struct Earlier {
    id: String,
    bytes: u64,
    /// When another took its place.
    since: Time,
}

impl Seen {
    /// That it is still so.
    fn expected(&self, name: &FileName) -> Vec<Expected> {
        let file = self.file.as_ref().map(|(record, _)| record.version);
        vec![
            as_it_is(LEDGER, self.ledger_version),
            as_it_is(name.as_str(), file),
        ]
    }
}

/// The gateway's own names are for nobody else.
fn allowed(name: &FileName) -> Result<(), WorkspaceError> {
    match is_output(name.as_str()) {
        true => Err(WorkspaceError::Reserved),
        false => Ok(()),
    }
}

fn check(only: Only, file: Option<&(Record, Stored)>) -> Result<(), WorkspaceError> {
    let version = file.map(|(_, stored)| stored.version);
    let fits = match only {
        Only::Always => true,
        Only::New => version.is_none(),
        Only::Existing => version.is_some(),
        Only::Version(wanted) => version == Some(wanted),
    };
    if fits {
        Ok(())
    } else {
        Err(WorkspaceError::Changed(version))
    }
}

fn record_set(place: Place) -> RecordSet {
    RecordSet {
        project: place.project,
        owner: Owner::Space(place.space),
        kind: KIND,
    }
}

/// What the ids of a file's earlier versions begin with.
fn earlier_of(name: &FileName) -> String {
    format!("{EARLIER}{name}\u{1}")
}

/// The id of an earlier version's record.
fn earlier(name: &FileName, version: u64) -> String {
    format!("{}{version:012}", earlier_of(name))
}

fn put_earlier(name: &FileName, record: Record, before: Stored) -> Change {
    let id = earlier(name, before.version);
    let times = Some((record.created, record.updated));
    put(&id, &Stored { times, ..before }, record.data)
}

fn put(id: &str, body: &impl Serialize, data: Option<Vec<u8>>) -> Change {
    Change::Put(NewRecord {
        id: id.to_owned(),
        body: serde_json::to_value(body).expect("it has text keys").into(),
        text: None,
        data,
        due: None,
    })
}

fn stored(record: &Record) -> Result<Stored, StoreError> {
    record.body.read().map_err(corrupt)
}

fn ledger_of(record: Option<&Record>) -> Result<Ledger, StoreError> {
    let ledger = record.map(|record| record.body.read()).transpose();
    Ok(ledger.map_err(corrupt)?.unwrap_or_default())
}

fn info(path: String, record: &Record, stored: &Stored) -> FileInfo {
    let (created_at, updated_at) = stored.times.unwrap_or((record.created, record.updated));
    FileInfo {
        path,
        mime_type: stored.mime.clone(),
        bytes: stored.bytes,
        version: stored.version,
        created_at,
        updated_at,
    }
}

fn as_it_is(id: &str, version: Option<u64>) -> Expected {
    Expected {
        id: id.to_owned(),
        version,
    }
}

fn corrupt(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("a file's record: {error}"))
}
