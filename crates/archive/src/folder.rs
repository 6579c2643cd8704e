//! An archive in a folder of this machine, or one that is mounted.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use toolgate_engine::retention::{Archive, ArchiveError, ArchiveObject};

use crate::{Object, Target};

/// Only the gateway's user reads what people have said.
const MODE: u32 = 0o600;

/// An archive in a folder. Nodes that share a store share the folder, too.
#[derive(Clone)]
pub struct FolderArchive(Arc<Folder>);

struct Folder(PathBuf);

impl FolderArchive {
    /// Objects below this folder, which is made when the first one is stored.
    pub fn new(folder: PathBuf) -> Self {
        Self(Arc::new(Folder(folder)))
    }
}

impl Archive for FolderArchive {
    fn begin(&self, name: &str) -> Box<dyn ArchiveObject> {
        Box::new(Object::new(name, self.0.clone()))
    }
}

#[async_trait]
impl Target for Folder {
    async fn put(&self, name: &str, content: Vec<u8>) -> Result<(), ArchiveError> {
        let path = self.0.join(name);
        let stored = tokio::task::spawn_blocking(move || store(&path, &content)).await;
        let failed = |why: String| ArchiveError(format!("{name}: {why}"));
        stored
            .map_err(|error| failed(error.to_string()))?
            .map_err(|error| failed(error.to_string()))
    }
}

/// Written beside its place, synced, and moved there: whoever reads the folder never sees a part of an object.
fn store(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let beside = path.with_extension("tmp");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(MODE)
        .open(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    // The name, too, must be there after a power cut.
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[tokio::test]
    async fn the_same_lines_give_the_same_object_under_the_same_name() {
        let folder = tempfile::tempdir().unwrap();
        let archive = FolderArchive::new(folder.path().join("deep"));
        let mut hashes = Vec::new();
        for _ in 0..2 {
            let mut object = archive.begin("proj_1/a.jsonl.gz");
            object.write(b"{\"a\":1}\n");
            object.write(b"{\"b\":2}\n");
            hashes.push(object.finish().await.unwrap());
        }
        assert_eq!(hashes[0], hashes[1]);
        let stored = folder.path().join("deep/proj_1/a.jsonl.gz");
        let mut text = String::new();
        flate2::read::GzDecoder::new(File::open(&stored).unwrap())
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "{\"a\":1}\n{\"b\":2}\n");
        let beside = fs::read_dir(stored.parent().unwrap()).unwrap().count();
        assert_eq!(beside, 1, "nothing is left beside it");
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        let object = FolderArchive::new(file).begin("proj_1/a.jsonl.gz");
        assert!(object.finish().await.is_err());
    }
}
