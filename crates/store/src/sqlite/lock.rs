//! One process per database. The lock belongs to the open file, so the OS releases it however the process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use toolgate_engine::store::StoreError;

/// Lock of the data directory, held for as long as the database may be written.
#[derive(Debug)]
pub(crate) struct DataLock {
    _file: File,
}

impl DataLock {
    /// Acquires the lock file beside the database at `path`; `Unavailable` if another process has it.
    pub(crate) fn take(path: &Path) -> Result<Self, StoreError> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".lock");
        let unavailable = |error| StoreError::Unavailable(format!("{}: {error}", beside.display()));
        let file = private().open(&beside).map_err(unavailable)?;
        match lock_soon(&file) {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Unavailable(format!(
                "another toolgate process uses this data directory ({})",
                path.display()
            ))),
            Err(TryLockError::Error(error)) => Err(unavailable(error)),
        }
    }
}

/// How long a lock may be held by nobody who means to.
const LINGER: Duration = Duration::from_millis(500);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Locks the file. A process that is just being started has copies of all open files until its program begins, and with them
/// a lock that was given up meanwhile.
fn lock_soon(file: &File) -> Result<(), TryLockError> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if begun.elapsed() < LINGER => std::thread::sleep(PAUSE),
            outcome => return outcome,
        }
    }
}

/// Opens or creates a file that only its owner may read.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
