//! The data directory: one gateway at a time.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// A data directory that nobody else uses while this value lives.
pub struct DataDir {
    path: PathBuf,
    /// Held by the operating system for this process, so that a crash gives it back.
    _lock: File,
}

impl DataDir {
    /// Makes the directory when there is none, readable by its owner only, and locks it.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        make(path).with_context(|| {
            format!("cannot make the data directory {shown}; choose one that you may write to with --data")
        })?;
        let mut lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path.join("lock"))
            .with_context(|| {
                format!("cannot write to the data directory {shown}; choose another with --data")
            })?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(
                "the data directory {shown} is in use by process {}; stop it, or choose another directory with --data",
                holder(&mut lock)
            ),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock the data directory {shown}"));
            }
        }
        // Only the message above needs it, and a full disk must not keep the gateway from starting.
        let _ = sign(&mut lock);
        Ok(Self {
            path: path.into(),
            _lock: lock,
        })
    }

    /// Where the database is.
    pub fn database(&self) -> PathBuf {
        self.path.join("toolgate.db")
    }
}

fn make(path: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Who holds the lock, for the person who has to find it.
fn holder(lock: &mut File) -> String {
    let mut pid = String::new();
    // A file that cannot be read names nobody, and the message still says what to do.
    let _ = lock.read_to_string(&mut pid);
    let pid = pid.trim();
    if pid.is_empty() {
        "(unknown)".into()
    } else {
        pid.into()
    }
}

fn sign(lock: &mut File) -> std::io::Result<()> {
    lock.set_len(0)?;
    writeln!(lock, "{}", std::process::id())
}
