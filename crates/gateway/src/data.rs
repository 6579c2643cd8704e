//! The data directory.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use toolgate_kernel::id::NodeId;
use toolgate_sources::oauth::EncryptionKey;
use uuid::Uuid;

/// Bytes written to see whether the disk takes any: as many as a long append.
const PROBE_BYTES: usize = 64 << 10;

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
        Ok(Self::at(path))
    }

    /// The directory at this path, as it is.
    pub fn at(path: &Path) -> Self {
        Self { path: path.into() }
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of the database.
    pub fn database(&self) -> PathBuf {
        self.path.join("toolgate.db")
    }

    /// Fails with the reason when nothing can be written here, before anything else fails by it. On a full disk a
    /// gateway with a database only says so: it can still be read, and is ready when there is room again.
    pub fn check_writable(&self) -> anyhow::Result<()> {
        let probe = self.path.join("probe");
        let written = write_durably(&probe, &[0; PROBE_BYTES]);
        // A file that stays is written over by the next start.
        let _ = std::fs::remove_file(&probe);
        let Err(error) = written else { return Ok(()) };
        let full = matches!(
            error.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
        );
        let why = match error.kind() {
            _ if full => "the disk is full, make room on it",
            ErrorKind::ReadOnlyFilesystem => "the file system is read-only, mount it for writing",
            ErrorKind::PermissionDenied => "this user may not write there",
            _ => "see that it is on a disk that works",
        };
        let path = self.path.display();
        if full && !is_empty(&self.database()) {
            tracing::error!(%error, "cannot write to the data directory {path}: {why}; nothing is accepted until then");
            return Ok(());
        }
        let words =
            format!("cannot write to the data directory {path}: {why}, or choose another with --data");
        Err(anyhow!(error).context(words))
    }

    /// Whether a gateway has used this directory and its database is gone: its node is known, which is written when
    /// the database is there.
    pub fn has_lost_database(&self) -> bool {
        self.node_file().exists() && is_empty(&self.database())
    }

    /// Whether the last process that used the database was killed, or lost power: SQLite removes its write-ahead log
    /// when it closes a database.
    pub fn ended_uncleanly(&self) -> bool {
        self.signed_by().is_some() || !is_empty(&self.path.join("toolgate.db-wal"))
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

    fn node_file(&self) -> PathBuf {
        self.path.join("node")
    }

    /// The id of the node that uses this directory: the same one after a restart, so that it resumes its own
    /// runs at once instead of waiting for their leases to expire. Called only by the process that has locked
    /// the database.
    pub fn node(&self) -> anyhow::Result<NodeId> {
        read_node(&self.node_file())
    }

    /// The id of a node of a gateway with several, and the lock on it. Of two processes with the same directory, the second
    /// is another node, whose id is not kept.
    pub fn node_of_many(&self) -> anyhow::Result<(NodeId, Option<File>)> {
        let path = self.path.join("postgres-node.lock");
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let lock = lock.with_context(|| {
            format!(
                "cannot write {}, choose a writable data directory with --data",
                path.display()
            )
        })?;
        match lock.try_lock() {
            Ok(()) => Ok((read_node(&self.path.join("postgres-node"))?, Some(lock))),
            Err(_) => Ok((NodeId::new(Uuid::now_v7()), None)),
        }
    }
}

/// The id in a file, made if there is none.
fn read_node(file: &Path) -> anyhow::Result<NodeId> {
    // A missing or unreadable file is replaced: the runs then wait until the old node's lease expires.
    let known = std::fs::read_to_string(file).ok();
    if let Some(node) = known.and_then(|text| text.trim().parse().ok()) {
        return Ok(node);
    }
    let node = NodeId::new(Uuid::now_v7());
    write_durably(file, format!("{node}\n").as_bytes()).with_context(|| {
        format!(
            "cannot write {}, choose a writable data directory with --data",
            file.display()
        )
    })?;
    Ok(node)
}

impl DataDir {
    /// The key that encrypts the tokens of MCP servers, made at the first start. The file is its owner's alone. Called
    /// only by the process that has locked the database.
    pub fn encryption_key(&self) -> anyhow::Result<EncryptionKey> {
        if let Some(key) = self.known_encryption_key()? {
            return Ok(key);
        }
        let path = self.path.join("mcp.key");
        let key = EncryptionKey::generate();
        let written = write_private(&path, format!("{}\n", key.write()).as_bytes());
        let shown = path.display();
        written
            .with_context(|| format!("cannot write {shown}, choose a writable data directory with --data"))?;
        Ok(key)
    }

    /// The key that was made at the first start, if there was one with SQLite.
    pub fn known_encryption_key(&self) -> anyhow::Result<Option<EncryptionKey>> {
        let path = self.path.join("mcp.key");
        let shown = path.display();
        match std::fs::read_to_string(&path) {
            Ok(text) => EncryptionKey::read(&text).map(Some).map_err(|words| {
                anyhow!("{shown} holds no key: {words}; remove it to have a new one made, and sign in to MCP servers again")
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(anyhow!(error).context(format!("cannot read {shown}, see that this user may"))),
        }
    }
}

/// Writes a file that only its owner can read, durably.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Writes a file so that after a loss of power it is there whole, or as it was before.
fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("tmp");
    let write = || {
        let mut file = File::create(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&draft, path)
    };
    write().inspect_err(|_| {
        // The first error tells more than a second one.
        let _ = std::fs::remove_file(&draft);
    })?;
    // The name is in the directory, which is synced by itself.
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Whether there is no such file, or nothing in it.
fn is_empty(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |about| about.len() == 0)
}
