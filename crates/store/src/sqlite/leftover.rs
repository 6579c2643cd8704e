//! The write-ahead log that a killed process has left.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use toolgate_engine::store::StoreError;

use super::fault::Fault;

/// Bytes that are written at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Writes the write-ahead log of `database` over itself and syncs it with its name. Called before anything builds on it.
///
/// After a failed sync the system may keep a commit in memory alone and take it for written: the next process reads it there,
/// and no later sync writes it. When the power fails, every commit behind it would be lost with it.
pub(crate) fn write_again(connection: &Connection, database: &Path) -> Result<(), Fault> {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    let log = PathBuf::from(log);
    // Nobody else may change the log meanwhile; readers may go on.
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let written = rewrite(&log).and_then(|()| sync_names(database));
    connection.execute_batch("ROLLBACK")?;
    written.map_err(|error| {
        StoreError::Unavailable(format!("{} cannot be synced: {error}", log.display())).into()
    })
}

fn rewrite(log: &Path) -> io::Result<()> {
    let mut file = match File::options().read(true).write(true).open(log) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut at = 0;
    loop {
        let bytes = file.read(&mut chunk)?;
        if bytes == 0 {
            return file.sync_all();
        }
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&chunk[..bytes])?;
        at += bytes as u64;
    }
}

/// SQLite syncs the directory too, but goes on when that fails.
fn sync_names(database: &Path) -> io::Result<()> {
    let directory = database.parent().filter(|path| !path.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}
