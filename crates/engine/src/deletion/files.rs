//! Files that are deleted, with their earlier versions: what the archive and the export have of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_kernel::id::SpaceId;

use super::Deletions;
use super::tree::store_error;
use crate::records::{Listing, Owner, RecordSet};
use crate::store::StoreError;
use crate::workspace::{FILE, File, FileName, Place, WorkspaceError, earlier_of};

/// An earlier version of a file, as [`crate::workspace`] stores it.
#[derive(Deserialize)]
pub(super) struct EarlierVersion {
    pub(super) version: u64,
    pub(super) bytes: u64,
}

impl Deletions {
    /// Versions of a file before the present one, oldest first: those that are deleted with it.
    pub(super) async fn earlier_versions(
        &self,
        place: Place,
        path: &str,
    ) -> Result<Vec<EarlierVersion>, StoreError> {
        let listing = Listing {
            prefix: earlier_of(path),
            after: None,
            // A workspace keeps few versions of a file.
            limit: usize::MAX,
        };
        let found = self.records.list_records(files_of(place), listing).await?;
        let read = found.iter().map(|record| record.body.read());
        read.collect::<Result<_, _>>()
            .map_err(|error| StoreError::Corrupt(format!("an earlier version of {path:?}: {error}")))
    }

    /// Bytes of a file's earlier versions.
    pub(super) async fn earlier_bytes(&self, place: Place, path: &str) -> Result<u64, StoreError> {
        let earlier = self.earlier_versions(place, path).await?;
        Ok(earlier.iter().map(|version| version.bytes).sum())
    }

    /// A version of a file, the present one unless it is named; none when it is gone.
    pub(super) async fn file(
        &self,
        place: Place,
        path: &str,
        version: Option<u64>,
    ) -> Result<Option<File>, StoreError> {
        // A path that is no name any more is that of a file that cannot be deleted either.
        let Ok(name) = path.parse::<FileName>() else {
            return Ok(None);
        };
        match self.workspace.read(place, &name, version).await {
            Ok(file) => Ok(Some(file)),
            Err(WorkspaceError::Missing(_)) => Ok(None),
            Err(error) => Err(store_error(error)),
        }
    }
}

/// A version of a file as a line of JSON.
pub(super) fn file_line(space: SpaceId, file: &File) -> Value {
    let info = &file.info;
    json!({
        "kind": FILE,
        "spaceId": space,
        "path": info.path,
        "content": {"mime": info.mime_type, "bytes": info.bytes, "version": info.version},
        "createdAt": info.created_at,
        "updatedAt": info.updated_at,
        "data": STANDARD.encode(&file.data),
    })
}

pub(super) fn files_of(place: Place) -> RecordSet {
    RecordSet {
        project: place.project,
        owner: Owner::Space(place.space),
        kind: FILE,
    }
}
