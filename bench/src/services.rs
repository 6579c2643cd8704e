//! What several nodes share, as child processes: PostgreSQL with every commit synced, and Redis.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::process;
use crate::server::free_address;

/// Longest wait for a service to answer.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const START_POLL: Duration = Duration::from_millis(50);
/// Where Debian keeps the programs of PostgreSQL, by version.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";
const POSTGRES_CONNECTIONS: &str = "max_connections=300";

/// A service that ends, with its data, when dropped.
pub struct Service {
    child: Child,
    directory: PathBuf,
    address: SocketAddr,
    /// PostgreSQL leaves its children behind at a kill, so it is asked to stop.
    stop: Command,
}

impl Service {
    /// A new PostgreSQL. It refuses to run as root, so root starts it as its own user.
    pub fn postgres() -> anyhow::Result<Self> {
        let programs = postgres_programs()?;
        let address = free_address()?;
        let directory = std::env::temp_dir().join(format!("toolgate-bench-postgres-{}", address.port()));
        fs::create_dir_all(&directory)?;
        if is_root() {
            finish(Command::new("chown").arg("postgres").arg(&directory))?;
        }
        let data = directory.join("data");
        let program = |name: &str| as_postgres(&programs.join(name));
        finish(
            program("initdb")
                .args(["--auth=trust", "--username=postgres", "--no-sync", "--pgdata"])
                .arg(&data),
        )?;
        let mut command = program("postgres");
        command.arg("-D").arg(&data).arg("-k").arg(&directory);
        command.args(["-p", &address.port().to_string(), "-c", POSTGRES_CONNECTIONS]);
        let mut stop = program("pg_ctl");
        stop.args(["stop", "--mode=immediate", "--silent", "-D"])
            .arg(&data);
        Self::start(command, stop, directory, address)
    }

    /// A new Redis that keeps nothing on disk, as a bus needs it.
    pub fn redis() -> anyhow::Result<Self> {
        let address = free_address()?;
        let directory = std::env::temp_dir().join(format!("toolgate-bench-redis-{}", address.port()));
        fs::create_dir_all(&directory)?;
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--port"]);
        command
            .arg(address.port().to_string())
            .arg("--dir")
            .arg(&directory);
        Self::start(command, Command::new("true"), directory, address)
    }

    fn start(
        mut command: Command,
        stop: Command,
        directory: PathBuf,
        address: SocketAddr,
    ) -> anyhow::Result<Self> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut service = Self {
            child: child.with_context(|| format!("{command:?} cannot be started"))?,
            directory,
            address,
            stop,
        };
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(address).is_err() {
            let alive = service.child.try_wait()?.is_none() && Instant::now() < deadline;
            ensure!(alive, "{command:?} does not answer");
            std::thread::sleep(START_POLL);
        }
        Ok(service)
    }

    /// Creates a database and gives its address.
    pub fn database(&self, name: &str) -> anyhow::Result<String> {
        let port = self.address.port().to_string();
        // The port may answer before the server takes sessions.
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let mut create = Command::new("createdb");
            create.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &port, name]);
            match finish(&mut create) {
                Ok(()) => return Ok(format!("postgres://postgres@127.0.0.1:{port}/{name}")),
                Err(fault) if Instant::now() > deadline => return Err(fault),
                Err(_) => std::thread::sleep(START_POLL),
            }
        }
    }

    /// Address of a Redis.
    pub fn redis_url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// The service's processes.
    pub fn pids(&self) -> Vec<u32> {
        process::tree(self.child.id())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Whatever fails here leaves a folder in the temporary directory, nothing else.
        let _ = self.stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn postgres_programs() -> anyhow::Result<PathBuf> {
    let versions =
        fs::read_dir(POSTGRES_VERSIONS).context("PostgreSQL is not installed: apt-get install postgresql")?;
    let newest = versions.flatten().map(|version| version.path().join("bin")).max();
    newest.context("PostgreSQL is not installed: apt-get install postgresql")
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

fn as_postgres(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"])
        .arg(program);
    command.current_dir("/");
    command
}

fn finish(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
