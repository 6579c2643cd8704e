//! The files of a space: named, versioned, bounded, never on the host's disk. Tools and doors work on the same ones.

mod mime;
mod name;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolgate_kernel::id::{CallId, ProjectId, SpaceId};
use toolgate_kernel::time::Time;

use crate::records::{Change, Expected, Listing, NewRecord, Owner, Record, Records, Shelf};
use crate::store::StoreError;

pub use mime::Mime;
pub use name::{BadFileName, FileName, is_output};

const KIND: &str = "file";
/// What the shelf holds besides files begins with a control character, which no name has. Files come after all of it.
const LEDGER: &str = "\u{1}";
const BEFORE_FILES: &str = "\u{1f}";
/// How often a change is made again that another one came between.
const ATTEMPTS: u32 = 20;

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
    /// Counts its changes, from 1.
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
    /// Names the write: the same one again changes nothing.
    pub key: Option<String>,
}

/// What must be there for a change to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Only {
    /// Anything or nothing.
    #[default]
    Always,
    /// No file of this name.
    New,
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
    #[error("the workspace is full: {0}; delete files first")]
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
    records: Arc<dyn Records>,
    limits: WorkspaceLimits,
}

/// A file's record.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    mime: Mime,
    bytes: u64,
    version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// For an earlier version: when the file was first written, and this version of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    times: Option<(Time, Time)>,
}

impl Workspace {
    /// Keeps files there.
    pub fn new(records: Arc<dyn Records>, limits: WorkspaceLimits) -> Self {
        Self { records, limits }
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
        let newest = self.records.record(shelf(place), name.as_str()).await?;
        let newest = newest.ok_or_else(missing)?;
        let stored = stored(&newest)?;
        let (record, stored) = match version {
            Some(version) if version != stored.version => {
                let earlier = self.records.record(shelf(place), &earlier(name, version)).await?;
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
        for record in self.records.list_records(shelf(place), listing).await? {
            files.push(info(record.id.clone(), &record, &stored(&record)?));
        }
        Ok(files)
    }

    /// How much a space keeps.
    pub async fn used(&self, place: Place) -> Result<Used, WorkspaceError> {
        Ok(self.ledger(place).await?.0)
    }

    /// Writes a file, whole. What it held before can still be read for some versions.
    pub async fn write(&self, place: Place, new: NewFile, now: Time) -> Result<FileInfo, WorkspaceError> {
        if is_output(new.name.as_str()) {
            return Err(WorkspaceError::Reserved);
        }
        self.keep(place, new, now).await
    }

    /// Keeps what a call gave, as a file that nobody else can write.
    pub async fn keep_output(
        &self,
        place: Place,
        call: CallId,
        (ending, data): (&str, Vec<u8>),
        now: Time,
    ) -> Result<FileInfo, WorkspaceError> {
        let new = NewFile {
            name: FileName::of_output(call, ending),
            mime: None,
            data,
            only: Only::Always,
            key: Some(call.to_string()),
        };
        self.keep(place, new, now).await
    }

    async fn keep(&self, place: Place, new: NewFile, now: Time) -> Result<FileInfo, WorkspaceError> {
        if new.data.len() > self.limits.file_bytes_max {
            return Err(WorkspaceError::TooLarge(self.limits.file_bytes_max));
        }
        let mime = new.mime.clone();
        let mime = mime.unwrap_or_else(|| Mime::guess(&new.name, &new.data));
        for _ in 0..ATTEMPTS {
            match self.try_write(place, &new, &mime, now).await {
                Err(WorkspaceError::Store(StoreError::Conflict)) => {}
                done => return done,
            }
        }
        Err(StoreError::Conflict.into())
    }

    async fn try_write(
        &self,
        place: Place,
        new: &NewFile,
        mime: &Mime,
        now: Time,
    ) -> Result<FileInfo, WorkspaceError> {
        let (mut used, ledger) = self.ledger(place).await?;
        let old = self.records.record(shelf(place), new.name.as_str()).await?;
        let before = old.as_ref().map(stored).transpose()?;
        if let (Some(record), Some(before)) = (&old, &before)
            && new.key.is_some()
            && before.key == new.key
        {
            return Ok(info(new.name.to_string(), record, before));
        }
        check(new.only, before.as_ref())?;
        let file = Stored {
            mime: mime.clone(),
            bytes: new.data.len() as u64,
            version: before.as_ref().map_or(0, |before| before.version) + 1,
            key: new.key.clone(),
            times: None,
        };
        used.files += u64::from(old.is_none());
        used.bytes += file.bytes;
        let mut changes = self
            .make_room(place, &new.name, &mut used, before.as_ref())
            .await?;
        let expected = vec![
            as_it_is(LEDGER, ledger),
            as_it_is(new.name.as_str(), old.as_ref().map(|old| old.version)),
        ];
        let created_at = old.as_ref().map_or(now, |old| old.created);
        if let (Some(record), Some(before)) = (old, before)
            && changes.keeps_old
        {
            changes.list.push(put_earlier(&new.name, record, before));
        }
        let info = FileInfo {
            path: new.name.to_string(),
            mime_type: file.mime.clone(),
            bytes: file.bytes,
            version: file.version,
            created_at,
            updated_at: now,
        };
        changes
            .list
            .push(put(new.name.as_str(), &file, Some(new.data.clone())));
        changes.list.push(put(LEDGER, &used, None));
        self.records
            .change_records(shelf(place), expected, changes.list, now)
            .await?;
        Ok(info)
    }

    /// What goes so that the space stays within its limits; `used` is what it keeps then. Refused when that is not
    /// enough.
    async fn make_room(
        &self,
        place: Place,
        name: &FileName,
        used: &mut Used,
        before: Option<&Stored>,
    ) -> Result<Room, WorkspaceError> {
        let WorkspaceLimits {
            files_max,
            space_bytes_max,
            versions_max,
            ..
        } = self.limits;
        if used.files > files_max {
            return Err(WorkspaceError::Full(format!("it may have {files_max} files")));
        }
        let mut room = Room {
            list: Vec::new(),
            keeps_old: versions_max > 0,
        };
        let Some(before) = before else {
            return match used.bytes <= space_bytes_max {
                true => Ok(room),
                false => Err(full(space_bytes_max)),
            };
        };
        // Earlier versions of the file give way first, the oldest before the others, then the one that it has now.
        let mut kept = self.history(place, name).await?;
        kept.reverse();
        while kept.len() as u64 >= versions_max.max(1) || used.bytes > space_bytes_max {
            let Some((id, bytes)) = kept.pop() else { break };
            room.list.push(Change::Remove(id));
            used.bytes = used.bytes.saturating_sub(bytes);
        }
        if used.bytes > space_bytes_max || !room.keeps_old {
            room.keeps_old = false;
            used.bytes = used.bytes.saturating_sub(before.bytes);
        }
        match used.bytes <= space_bytes_max {
            true => Ok(room),
            false => Err(full(space_bytes_max)),
        }
    }

    /// Takes a file away, with everything that it held.
    pub async fn delete(
        &self,
        place: Place,
        name: &FileName,
        only: Only,
        now: Time,
    ) -> Result<(), WorkspaceError> {
        for _ in 0..ATTEMPTS {
            match self.try_delete(place, name, only, now).await {
                Err(WorkspaceError::Store(StoreError::Conflict)) => {}
                done => return done,
            }
        }
        Err(StoreError::Conflict.into())
    }

    async fn try_delete(
        &self,
        place: Place,
        name: &FileName,
        only: Only,
        now: Time,
    ) -> Result<(), WorkspaceError> {
        let (mut used, ledger) = self.ledger(place).await?;
        let missing = || WorkspaceError::Missing(name.to_string());
        let old = self.records.record(shelf(place), name.as_str()).await?;
        let old = old.ok_or_else(missing)?;
        let before = stored(&old)?;
        check(only, Some(&before))?;
        used.files = used.files.saturating_sub(1);
        used.bytes = used.bytes.saturating_sub(before.bytes);
        let mut changes = vec![Change::Remove(name.to_string())];
        for (id, bytes) in self.history(place, name).await? {
            used.bytes = used.bytes.saturating_sub(bytes);
            changes.push(Change::Remove(id));
        }
        changes.push(put(LEDGER, &used, None));
        let expected = vec![
            as_it_is(LEDGER, ledger),
            as_it_is(name.as_str(), Some(old.version)),
        ];
        let done = self.records.change_records(shelf(place), expected, changes, now);
        Ok(done.await?)
    }

    /// What the space keeps, and the version of the record that says so.
    async fn ledger(&self, place: Place) -> Result<(Used, Option<u64>), WorkspaceError> {
        match self.records.record(shelf(place), LEDGER).await? {
            None => Ok((Used::default(), None)),
            Some(record) => Ok((record.body.read().map_err(corrupt)?, Some(record.version))),
        }
    }

    /// Earlier versions of a file, oldest first: the ids of their records, and their bytes.
    async fn history(&self, place: Place, name: &FileName) -> Result<Vec<(String, u64)>, WorkspaceError> {
        let listing = Listing {
            prefix: format!("\u{2}{name}\u{1}"),
            after: None,
            limit: self.limits.versions_max as usize + 1,
        };
        let mut versions = Vec::new();
        for record in self.records.list_records(shelf(place), listing).await? {
            let bytes = stored(&record)?.bytes;
            versions.push((record.id, bytes));
        }
        Ok(versions)
    }
}

/// What a write takes away, and whether what the file held before is kept.
struct Room {
    list: Vec<Change>,
    keeps_old: bool,
}

fn check(only: Only, before: Option<&Stored>) -> Result<(), WorkspaceError> {
    let version = before.map(|before| before.version);
    let fits = match only {
        Only::Always => true,
        Only::New => version.is_none(),
        Only::Version(wanted) => version == Some(wanted),
    };
    if fits {
        Ok(())
    } else {
        Err(WorkspaceError::Changed(version))
    }
}

fn shelf(place: Place) -> Shelf {
    Shelf {
        project: place.project,
        owner: Owner::Space(place.space),
        kind: KIND,
    }
}

/// The id of an earlier version's record.
fn earlier(name: &FileName, version: u64) -> String {
    format!("\u{2}{name}\u{1}{version:012}")
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

fn stored(record: &Record) -> Result<Stored, WorkspaceError> {
    record.body.read().map_err(corrupt)
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

fn full(bytes: u64) -> WorkspaceError {
    WorkspaceError::Full(format!("it may have {bytes} bytes"))
}

fn corrupt(error: serde_json::Error) -> WorkspaceError {
    StoreError::Corrupt(format!("a file's record: {error}")).into()
}
