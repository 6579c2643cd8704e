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
