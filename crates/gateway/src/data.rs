//! The data directory.

use std::fs::DirBuilder;
use std::path::{Path, PathBuf};

use anyhow::Context;
use toolgate_kernel::id::NodeId;
use uuid::Uuid;

/// Where everything is kept.
pub struct DataDir {
    path: PathBuf,
}

impl DataDir {
    /// Makes the directory when there is none, readable by its owner only.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path).with_context(|| {
            format!(
                "cannot make the data directory {}; choose one that you may write to with --data",
                path.display()
            )
        })?;
        Ok(Self { path: path.into() })
    }

    /// Where the database is.
    pub fn database(&self) -> PathBuf {
        self.path.join("toolgate.db")
    }

    /// Writes down which process works on this directory, for people who look for it.
    pub fn sign(&self) {
        // Nothing depends on it, and a full disk must not keep the gateway from starting.
        let _ = std::fs::write(self.pid_file(), format!("{}\n", std::process::id()));
    }

    /// Takes the signature back at an orderly end.
    pub fn unsign(&self) {
        // Whoever reads a number that is left over finds no such process.
        let _ = std::fs::remove_file(self.pid_file());
    }

    /// The process that signed last.
    pub fn signed_by(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.pid_file()).ok()?;
        Some(text.trim().to_owned()).filter(|pid| !pid.is_empty())
    }

    fn pid_file(&self) -> PathBuf {
        self.path.join("pid")
    }

    /// The node that works on this directory: the same one after a restart, so that it takes up its own runs
    /// at once. Called by the process that has the database to itself.
    pub fn node(&self) -> anyhow::Result<NodeId> {
        let file = self.path.join("node");
        // A file that is missing or says nothing is made anew: the runs then wait until the old lease ends.
        if let Some(node) = std::fs::read_to_string(&file)
            .ok()
            .and_then(|text| text.trim().parse().ok())
        {
            return Ok(node);
        }
        let node = NodeId::new(Uuid::now_v7());
        std::fs::write(&file, format!("{node}\n")).with_context(|| {
            format!(
                "cannot write {}; choose another directory with --data",
                file.display()
            )
        })?;
        Ok(node)
    }
}
