//! Archives what retention deletes: gzip-compressed JSON lines, in a local folder or an S3-compatible bucket. Reads nothing
//! back, and knows nothing of runs. Start with [`FolderArchive`]; `s3` is the other one, `signature` how it signs.

mod folder;
mod s3;
mod signature;

use std::io::Write;
use std::sync::Arc;

use async_trait::async_trait;
use aws_lc_rs::digest::{SHA256, digest};
use flate2::Compression;
use flate2::write::GzEncoder;
use toolgate_engine::retention::{ArchiveError, ArchiveObject, Archived};

pub use folder::FolderArchive;
pub use s3::{S3Archive, S3Settings};

/// Where whole objects go.
#[async_trait]
trait Target: Send + Sync {
    /// Stores an object under its name, in place of an earlier one; it is safe when this returns.
    async fn put(&self, name: &str, content: Vec<u8>) -> Result<(), ArchiveError>;
}

/// An object under way: only its compressed form is in memory.
struct Object {
    name: String,
    /// Without a time in its header, so that the same lines give the same bytes.
    content: GzEncoder<Vec<u8>>,
    target: Arc<dyn Target>,
}

impl Object {
    fn new(name: &str, target: Arc<dyn Target>) -> Self {
        Self {
            name: name.to_owned(),
            content: GzEncoder::new(Vec::new(), Compression::default()),
            target,
        }
    }
}

#[async_trait]
impl ArchiveObject for Object {
    fn write(&mut self, line: &[u8]) {
        self.content.write_all(line).expect("memory takes every byte");
    }

    async fn finish(self: Box<Self>) -> Result<Archived, ArchiveError> {
        let content = self.content.finish().expect("memory takes every byte");
        let archived = Archived {
            hash: hex(digest(&SHA256, &content).as_ref()),
            bytes: content.len() as u64,
        };
        self.target.put(&self.name, content).await?;
        Ok(archived)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
