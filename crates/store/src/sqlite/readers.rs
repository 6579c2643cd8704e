//! Reads concurrent with the writer, each on its own snapshot.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;
use toolgate_engine::store::StoreError;

use super::fault::Fault;
use super::{Damage, prepare};

/// Pool of connections for reading, opened on demand and kept up to a limit.
pub(crate) struct Readers {
    path: PathBuf,
    kept_max: usize,
    /// Idle connections; `None` once closed.
    idle: Mutex<Option<Vec<Connection>>>,
    long: Semaphore,
    damage: Damage,
}

impl Readers {
    pub(crate) fn new(path: &Path, kept_max: usize, damage: Damage) -> Arc<Self> {
        Arc::new(Self {
            path: path.to_owned(),
            kept_max,
            idle: Mutex::new(Some(Vec::new())),
            long: Semaphore::new(kept_max),
            damage,
        })
    }

    /// Runs a short read on the caller's thread, which costs less than a handover to another.
    pub(crate) fn short<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let connection = self.take()?;
        let value = read(&connection);
        self.keep(connection);
        value.map_err(|fault| self.damage.note(fault))
    }

    /// Runs a read that may be long on a thread that may block.
    pub(crate) async fn long<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let _permit = self.long.acquire().await.map_err(|_| closed())?;
        let readers = self.clone();
        let reading = tokio::task::spawn_blocking(move || readers.short(read));
        let panicked = |error| StoreError::Unavailable(format!("a read broke off: {error}"));
        reading.await.map_err(panicked)?
    }

    pub(crate) fn close(&self) {
        self.long.close();
        self.idle.lock().expect("no reader panics with the lock").take();
    }

    fn take(&self) -> Result<Connection, StoreError> {
        let idle = self
            .idle
            .lock()
            .expect("no reader panics with the lock")
            .as_mut()
            .ok_or_else(closed)?
            .pop();
        idle.map_or_else(|| open(&self.path).map_err(|fault| self.damage.note(fault)), Ok)
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock().expect("no reader panics with the lock");
        if let Some(idle) = idle.as_mut().filter(|idle| idle.len() < self.kept_max) {
            idle.push(connection);
        }
    }
}

/// Opens a connection for reading.
pub(crate) fn open(path: &Path) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    prepare(&connection)?;
    Ok(connection)
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}
