//! The data directory.

use std::fs::DirBuilder;
use std::path::{Path, PathBuf};

use anyhow::Context;
use toolgate_kernel::id::NodeId;
use uuid::Uuid;

/// The directory with the database and the files of this node.
pub struct DataDir {
    path: PathBuf,
}

impl DataDir {
    /// Opens the directory, and creates it if it does not exist, readable by its owner only.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path).with_context(|| {
            format!(
                "cannot create the data directory {}, choose a writable one with --data",
                path.display()
            )
        })?;
        Ok(Self { path: path.into() })
    }

    /// Path of the database.
    pub fn database(&self) -> PathBuf {
        self.path.join("toolgate.db")
    }

    /// Writes the process id to a file, for people and scripts.
    pub fn sign(&self) {
        // Nothing depends on it, and a full disk must not keep the gateway from starting.
        let _ = std::fs::write(self.pid_file(), format!("{}\n", std::process::id()));
    }

    /// Removes the process id file at an orderly shutdown.
    pub fn unsign(&self) {
        // A stale file only names a process that does not exist.
        let _ = std::fs::remove_file(self.pid_file());
    }

    /// The process id that was written last.
    pub fn signed_by(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.pid_file()).ok()?;
        Some(text.trim().to_owned()).filter(|pid| !pid.is_empty())
    }

    fn pid_file(&self) -> PathBuf {
        self.path.join("pid")
    }

    /// The id of the node that uses this directory: the same one after a restart, so that it resumes its own
    /// runs at once instead of waiting for their leases to expire. Called only by the process that has locked
    /// the database.
    pub fn node(&self) -> anyhow::Result<NodeId> {
        let file = self.path.join("node");
        // A missing or unreadable file is replaced: the runs then wait until the old node's lease expires.
        if let Some(node) = std::fs::read_to_string(&file)
            .ok()
            .and_then(|text| text.trim().parse().ok())
        {
            return Ok(node);
        }
        let node = NodeId::new(Uuid::now_v7());
        std::fs::write(&file, format!("{node}\n")).with_context(|| {
            format!(
                "cannot write {}, choose a writable data directory with --data",
                file.display()
            )
        })?;
        Ok(node)
    }
}
