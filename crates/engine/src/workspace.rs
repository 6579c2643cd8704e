//! The files of a space: named, versioned, limited in size, never on the host's disk. Tools and doors share them.

mod mime;
mod name;

use std::fmt::Display;
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
pub(crate) use name::outputs_of;
pub use name::{BadFileName, FileName, is_output};

/// Kind of the records that are files.
pub const FILE: &str = "file";
/// Ids of records that are no files begin with a control character, which no file name has, so files sort after them.
const LEDGER: &str = "\u{1}";
/// Earlier versions of files.
const EARLIER: &str = "\u{2}";
const BEFORE_FILES: &str = "\u{1f}";

/// Limits of one space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspaceLimits {
    /// Most files.
    pub files_max: u64,
    /// Most bytes of one file.
    pub file_bytes_max: usize,
    /// Most bytes of all files, earlier versions included.
    pub space_bytes_max: u64,
    /// Most earlier versions kept of a file.
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

/// Owner of files: a space in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Project of the space.
    pub project: ProjectId,
    /// Space that the files belong to.
    pub space: SpaceId,
}

/// Metadata of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileInfo {
    /// Name, unique in its space.
    pub path: String,
    /// Media type.
    pub mime_type: Mime,
    /// Size in bytes.
    pub bytes: u64,
    /// Version, increased by each change and never reused: a file that is deleted and created again continues after it.
    pub version: u64,
    /// Time at which the file was first written.
    pub created_at: Time,
    /// Time at which this version was written.
    pub updated_at: Time,
}

/// A file with its content.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// Metadata.
    pub info: FileInfo,
    /// Content.
    pub data: Vec<u8>,
}

/// A file to write.
#[derive(Debug, Clone, PartialEq)]
pub struct NewFile {
    /// Name of the file.
    pub name: FileName,
    /// Media type; guessed from name and content if there is none.
    pub mime: Option<Mime>,
    /// Complete content.
    pub data: Vec<u8>,
    /// Precondition of the write.
    pub only: Only,
}

/// A written file.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// Metadata.
    pub file: FileInfo,
    /// Whether the file is new.
    pub is_new: bool,
}

/// Precondition of a change, as in the HTTP headers `If-Match` and `If-None-Match`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Only {
    /// No precondition.
    #[default]
    Always,
    /// There is no file of this name.
    New,
    /// There is a file of this name, in any version.
    Existing,
    /// The file has this version.
    Version(u64),
}

/// Usage of a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Used {
    /// Number of files.
    pub files: u64,
    /// Total bytes, earlier versions included.
    pub bytes: u64,
}

/// Why an operation on files failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The file, or this version of it, does not exist.
    #[error("there is no file {0}")]
    Missing(String),
    /// The file is larger than the limit.
    #[error("a file may have {0} bytes at most")]
    TooLarge(usize),
    /// The space's limit is reached.
    #[error("the workspace is full: {0}, and no earlier versions are left to give way; delete files first")]
    Full(String),
    /// The name is reserved for the gateway.
    #[error("what is under outputs/ is written by the gateway alone; choose another name")]
    Reserved,
    /// The precondition does not hold; carries the current version.
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

/// Record of a space's usage.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Ledger {
    #[serde(flatten)]
    used: Used,
    /// Highest version of a deleted file. New files continue after it, so that no version of a name is ever
    /// reused.
    #[serde(default)]
    deleted: u64,
}

/// Stored metadata of a file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    mime: Mime,
    bytes: u64,
    version: u64,
    /// Only of an earlier version: times at which the file and this version were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    times: Option<(Time, Time)>,
}

impl Workspace {
    /// A workspace that stores files in `records`.
    pub fn new(records: Arc<dyn Records>, limits: WorkspaceLimits) -> Self {
        Self {
            updater: RecordUpdater::new(records),
            limits,
        }
    }
    /// Limits of one space.
    pub fn limits(&self) -> WorkspaceLimits {
        self.limits
    }

    /// Reads a file, in its newest or an earlier version.
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

    /// A page of files in the order of names, without content.
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

    /// As [`Workspace::list`], without the outputs of calls, which are not for people.
    pub async fn list_shown(&self, place: Place, listing: Listing) -> Result<Vec<FileInfo>, WorkspaceError> {
        let limit = listing.limit;
        let prefix = listing.prefix.clone();
        let page = self.list(place, listing).await?;
        let (read, last) = (page.len(), page.last().map(|file| file.path.clone()));
        let mut files: Vec<FileInfo> = page.into_iter().filter(|file| !is_output(&file.path)).collect();
        let Some(last) = last.filter(|_| read == limit && files.len() < read) else {
            return Ok(files);
        };
        // Outputs are one stretch of the order, so no more of them come behind what was read and behind that stretch.
        let rest = Listing {
            prefix,
            after: Some(last.max(name::AFTER_OUTPUTS.to_owned())),
            limit: limit - files.len(),
        };
        files.extend(self.list(place, rest).await?);
        Ok(files)
    }

    /// As [`Workspace::used`], without the outputs of calls.
    pub async fn used_by_shown(&self, place: Place) -> Result<Used, WorkspaceError> {
        let outputs = Listing {
            prefix: name::OUTPUTS.to_owned(),
            after: None,
            limit: self.limits.files_max as usize,
        };
        let outputs = self.list(place, outputs).await?;
        let used = self.used(place).await?;
        Ok(Used {
            files: used.files.saturating_sub(outputs.len() as u64),
            bytes: outputs
                .iter()
                .fold(used.bytes, |bytes, file| bytes.saturating_sub(file.bytes)),
        })
    }

    /// Usage of a space.
    pub async fn used(&self, place: Place) -> Result<Used, WorkspaceError> {
        let ledger = self.records().record(record_set(place), LEDGER).await?;
        Ok(ledger_of(ledger.as_ref())?.used)
    }

    /// Writes a whole file. Earlier versions stay readable up to the limits.
    pub async fn write(&self, place: Place, new: NewFile, now: Time) -> Result<Written, WorkspaceError> {
        allowed(&new.name)?;
        self.write_with(place, new, now, |_| None).await
    }

    /// Writes a file together with a receipt; [`StoreError::Exists`] if the receipt is stored already.
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

    /// Stores the output of a call as a file that only the gateway can write, together with a receipt.
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

    /// Further changes that replacing the seen file by `new` needs: the ledger, and the removal of earlier
    /// versions for lack of room.
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
        // The oldest are removed first: of this file if it has too many, of all files if there is no room.
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
            // Last comes the version that it has now.
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

    /// Deletes a file with all its earlier versions.
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

    /// Reads all that a change of a file by `bytes` depends on.
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

/// State that a change of a file depends on.
struct Seen {
    ledger: Ledger,
    /// Version of the ledger's record.
    ledger_version: Option<u64>,
    file: Option<(Record, Stored)>,
    /// Earlier versions of the file, or of all files if there is no room for it; the oldest first.
    earlier: Vec<Earlier>,
}

/// An earlier version of a file.
struct Earlier {
    id: String,
    bytes: u64,
    /// Time at which it was replaced.
    since: Time,
}

impl Seen {
    /// Precondition that the state has not changed.
    fn expected(&self, name: &FileName) -> Vec<Expected> {
        let file = self.file.as_ref().map(|(record, _)| record.version);
        vec![
            as_it_is(LEDGER, self.ledger_version),
            as_it_is(name.as_str(), file),
        ]
    }
}

/// Rejects names that are reserved for the gateway.
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
        kind: FILE,
    }
}

/// Id prefix of a file's earlier versions.
pub(crate) fn earlier_of(name: impl Display) -> String {
    format!("{EARLIER}{name}\u{1}")
}

/// Record id of an earlier version.
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
