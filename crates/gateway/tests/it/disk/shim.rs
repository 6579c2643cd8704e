//! The library that stands between the gateway and its disk, and its switch.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use super::journal::Journal;
use crate::harness::{Gateway, SOON_DUE};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/disk/shim.c");

/// A disk that is watched, and whose syncs can be made to fail.
pub struct Disk {
    folder: TempDir,
    data: PathBuf,
}

impl Disk {
    /// Starts a gateway on a disk of its own.
    pub async fn with_gateway() -> (Self, Gateway) {
        let home = tempfile::tempdir().expect("a directory");
        let data = Gateway::data(home.path());
        std::fs::create_dir(&data).expect("a directory");
        let disk = Self {
            folder: tempfile::tempdir().expect("a directory"),
            data,
        };
        let settings = [
            ("LD_PRELOAD", library().to_owned()),
            ("DISK_ROOT", disk.data.clone()),
            ("DISK_JOURNAL", disk.journal_file()),
            ("DISK_FAIL", disk.switch("fail")),
            ("DISK_KILL", disk.switch("kill")),
        ];
        let settings = settings.each_ref().map(|(name, path)| (*name, text(path)));
        let settings = [settings.as_slice(), &SOON_DUE].concat();
        let gateway = Gateway::start_in(home, &settings).await;
        (disk, gateway)
    }

    /// From now on every sync fails, and nothing that was not synced before reaches the disk by a later one.
    pub fn fail(&self) {
        std::fs::write(self.switch("fail"), "").expect("a file can be written");
    }

    /// The next sync ends the gateway as SIGKILL does.
    pub fn kill(&self) {
        std::fs::write(self.switch("kill"), "").expect("a file can be written");
    }

    /// The disk works again.
    pub fn mend(&self) {
        for switch in ["fail", "kill"] {
            let switch = self.switch(switch);
            if switch.exists() {
                std::fs::remove_file(switch).expect("it is there");
            }
        }
    }

    /// How long the journal is: everything that happened before now is in front of this place.
    pub fn now(&self) -> u64 {
        std::fs::metadata(self.journal_file())
            .expect("the gateway has written")
            .len()
    }

    /// Everything that was recorded.
    pub fn journal(&self) -> Journal {
        Journal::read(&self.journal_file())
    }

    /// The directory that is watched.
    pub fn data(&self) -> &Path {
        &self.data
    }

    fn journal_file(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    fn switch(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The compiled library, made once per process.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<TempDir> = OnceLock::new();
    let folder = LIBRARY.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a directory");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(folder.path().join("shim.so"))
            .arg(SOURCE)
            .output()
            .expect("the build needs a C compiler too");
        assert!(compiled.status.success(), "{compiled:?}");
        folder
    });
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| folder.path().join("shim.so"))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}
