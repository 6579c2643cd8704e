//! The binary as a process of this test.

use std::ffi::OsString;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Instant;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use tempfile::TempDir;

use super::{Api, JWT_SECRET, LOOK, PUBLIC_KEY, SECRET_KEY, SOON};

/// Lines of the log that a failed test shows.
const LOG_LINES_SHOWN: usize = 60;

/// The binary under test, with nothing of this process's environment.
pub fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    command.env_clear();
    command
}

/// Which binary a gateway runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The one under test.
    Present,
    /// The one that `TOOLGATE_TEST_OLD_BIN` names; the one under test if it names none.
    Older,
}

impl Version {
    pub fn other(self) -> Self {
        match self {
            Self::Present => Self::Older,
            Self::Older => Self::Present,
        }
    }

    fn program(self) -> OsString {
        let older = std::env::var_os("TOOLGATE_TEST_OLD_BIN").filter(|path| !path.is_empty());
        match (self, older) {
            (Self::Older, Some(path)) => path,
            (Self::Present | Self::Older, _) => binary().get_program().to_owned(),
        }
    }
}

/// Where a gateway runs.
#[derive(Debug, Clone)]
pub struct Place {
    /// Address that it listens at.
    pub host: IpAddr,
    /// The command that runs another one there; empty for here.
    pub enter: Vec<String>,
}

impl Place {
    /// Here, for nobody but this machine.
    fn here() -> Self {
        Self {
            host: Ipv4Addr::LOCALHOST.into(),
            enter: Vec::new(),
        }
    }
}

/// A gateway on a data directory and a port that stay the same over restarts. Ends with this value.
pub struct Gateway {
    child: Child,
    version: Version,
    place: Place,
    port: u16,
    settings: Vec<(String, String)>,
    directory: TempDir,
}

impl Gateway {
    /// Starts one with these settings in the environment, and waits until it is ready.
    pub async fn start(settings: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self::start_in(directory, settings).await
    }

    /// The same, in another place.
    pub async fn start_at(place: Place, settings: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut gateway = Self::launch_at(place, directory, Version::Present, settings);
        gateway.ready().await;
        gateway
    }

    /// The same, of a version.
    pub async fn start_version(version: Version, settings: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut gateway = Self::launch(directory, version, settings);
        gateway.ready().await;
        gateway
    }

    /// The same, with `data` in a directory that was prepared; see [`Gateway::data`].
    pub async fn start_in(directory: TempDir, settings: &[(&str, &str)]) -> Self {
        let mut gateway = Self::launch(directory, Version::Present, settings);
        gateway.ready().await;
        gateway
    }

    /// The same, or what it said before it ended by itself.
    pub async fn try_start_in(directory: TempDir, settings: &[(&str, &str)]) -> Result<Self, String> {
        let mut gateway = Self::launch(directory, Version::Present, settings);
        match gateway.ready_or_ended().await {
            None => Ok(gateway),
            Some(_) => Err(gateway.log()),
        }
    }

    /// Starts one, without waiting until it is ready.
    fn launch(directory: TempDir, version: Version, settings: &[(&str, &str)]) -> Self {
        Self::launch_at(Place::here(), directory, version, settings)
    }

    fn launch_at(place: Place, directory: TempDir, version: Version, settings: &[(&str, &str)]) -> Self {
        let settings: Vec<(String, String)> = settings
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        let port = free_port();
        let child = spawn(version, &place, directory.path(), port, &settings, &[]);
        Self {
            child,
            version,
            place,
            port,
            settings,
            directory,
        }
    }

    /// Where `data` is below a directory.
    pub fn data(directory: &Path) -> PathBuf {
        directory.join("data")
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Where it listens, for clients of TCP.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.place.host, self.port)
    }

    /// A client with the secret key.
    pub fn api(&self) -> Api {
        Api::at(self.address())
    }

    /// SIGKILL, now.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
    }

    /// Starts it again, without waiting until it is ready.
    pub fn spawn(&mut self) {
        self.spawn_with(&[]);
    }

    /// The same, with the other version: an upgrade or a downgrade.
    pub fn spawn_other_version(&mut self) {
        self.version = self.version.other();
        self.spawn();
    }

    /// The same, with more arguments.
    pub fn spawn_with(&mut self, more: &[&str]) {
        self.child = spawn(
            self.version,
            &self.place,
            self.directory.path(),
            self.port,
            &self.settings,
            more,
        );
    }

    /// Kills it and starts it again.
    pub async fn crash(&mut self) {
        self.kill();
        self.spawn();
        self.ready().await;
    }

    /// Waits until it takes requests.
    pub async fn ready(&mut self) {
        let ended = self.ready_or_ended().await;
        assert!(ended.is_none(), "the gateway ended by itself: {ended:?}");
    }

    /// The same, and starts it again when it gave up because it began without its store, as a supervisor does.
    pub async fn ready_again(&mut self) {
        while let Some(ended) = self.ready_or_ended().await {
            let log = self.log();
            let last = log.lines().last().unwrap_or_default();
            assert!(
                last.contains("the store is not available"),
                "the gateway ended by itself: {ended:?}: {last}"
            );
            self.spawn();
        }
    }

    async fn ready_or_ended(&mut self) -> Option<ExitStatus> {
        let api = self.api();
        let began = Instant::now();
        loop {
            if let Ok(answer) = api.try_get("/readyz").await
                && answer.status == 200
            {
                return None;
            }
            if let Some(status) = self.child.try_wait().expect("it can be asked") {
                return Some(status);
            }
            assert!(began.elapsed() < SOON, "the gateway is not ready after {SOON:?}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it takes signals");
    }

    /// Waits until it has ended.
    pub async fn ended(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be asked") {
                return status;
            }
            assert!(began.elapsed() < SOON, "the gateway did not end within {SOON:?}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Bounds the size of every file it writes from now on, or lifts the bound: a disk that is full.
    pub fn limit_files(&self, bytes: Option<u64>) {
        let limit = Rlimit {
            current: bytes,
            maximum: None,
        };
        prlimit(Some(self.pid()), Resource::Fsize, limit).expect("limits of a child can be set");
    }

    /// Bounds the descriptors that it may open from now on.
    pub fn limit_open_files(&self, files: u64) {
        let limit = Rlimit {
            current: Some(files),
            maximum: Some(1024),
        };
        prlimit(Some(self.pid()), Resource::Nofile, limit).expect("limits of a child can be set");
    }

    /// The file that it stores everything in.
    pub fn database(&self) -> PathBuf {
        Self::data(self.directory.path()).join("toolgate.db")
    }

    /// Bytes of the largest file that it keeps.
    pub fn largest_file(&self) -> u64 {
        let files = std::fs::read_dir(Self::data(self.directory.path())).expect("a directory");
        files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .max()
            .unwrap_or(0)
    }

    /// Most memory that it has ever used, in KiB.
    pub fn peak_memory_kib(&self) -> u64 {
        let status = format!("/proc/{}/status", self.pid().as_raw_nonzero());
        let status = std::fs::read_to_string(status).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.expect("Linux tells it")
    }

    /// Everything it has written to its standard output and error.
    pub fn log(&self) -> String {
        std::fs::read_to_string(log(self.directory.path())).unwrap_or_default()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let shown = &lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..];
            eprintln!("the gateway's last words:\n{}", shown.join("\n"));
        }
    }
}

fn log(directory: &Path) -> PathBuf {
    directory.join("log")
}

fn spawn(
    version: Version,
    place: &Place,
    directory: &Path,
    port: u16,
    settings: &[(String, String)],
    more: &[&str],
) -> Child {
    let log = File::options()
        .create(true)
        .append(true)
        .open(log(directory))
        .expect("a log");
    // A shell that ignores SIGXFSZ and becomes the gateway: a full disk is an error to it, not its end. It has as
    // many descriptors as TEST_OPEN_FILES says.
    let mut enter = place.enter.iter().map(String::as_str).chain(["/bin/sh"]);
    Command::new(enter.next().expect("at least a shell"))
        .args(enter)
        .args([
            "-c",
            "trap '' XFSZ; [ -z \"$TEST_OPEN_FILES\" ] || ulimit -n $TEST_OPEN_FILES; exec \"$@\"",
            "sh",
        ])
        .arg(version.program())
        .args([
            "serve",
            "--listen",
            &SocketAddr::new(place.host, port).to_string(),
            "--data",
        ])
        .arg(Gateway::data(directory))
        .args(more)
        .env_clear()
        .envs([
            ("TOOLGATE_SECRET_KEY", SECRET_KEY),
            ("TOOLGATE_PUBLIC_KEY", PUBLIC_KEY),
            ("TOOLGATE_JWT_SECRET", JWT_SECRET),
        ])
        .envs(settings.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a log"))
        .stderr(log)
        .spawn()
        .expect("the binary starts")
}

/// A free port below those that the system gives to outgoing connections: one of these could take the port
/// while the gateway is down.
pub fn free_port() -> u16 {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 10_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let offset = (std::process::id() as u16).wrapping_mul(97);
    (0..COUNT)
        .map(|_| FIRST + offset.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT)
        .find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}
