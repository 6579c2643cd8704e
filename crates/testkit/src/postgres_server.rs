//! A real PostgreSQL server for tests: on a free port, in a temporary directory, gone when the test process is gone.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Whether the server writes to disk what it has committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A killed server may lose commits: for tests that are about something else, and quick.
    None,
    /// As in production.
    Full,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Connections are closed, then it writes everything and ends.
    Orderly,
    /// It ends at once, as after a loss of power, and recovers at its next start.
    AtOnce,
    /// All its processes are killed: clients hear no last word.
    Killed,
}

/// A server. Dropped, it is stopped and its data is deleted; so it is when the process ends, however that happens.
pub struct PostgresServer {
    port: u16,
    programs: PathBuf,
    databases: AtomicU32,
    keeper: Mutex<Keeper>,
}

/// The shell that starts the server and waits on its standard input: when that ends, so does the server.
struct Keeper {
    process: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// How long a server may take to start or stop.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks at a server that starts.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The arguments are the programs' directory, the port, `off` or `on` for durability, for a standby the port of its primary, and
/// an address to listen at beside 127.0.0.1: whoever has one of the same network is let in.
const KEEPER: &str = r#"
root=$(mktemp -d "${TMPDIR:-/tmp}/toolgate-postgres-XXXXXX") || exit 1
programs=$1 port=$2 durable=$3 primary=$4 also_at=$5
as_user=
if [ "$(id -u)" = 0 ]; then
    chown postgres "$root"
    as_user="setpriv --reuid=postgres --regid=postgres --init-groups"
fi
cd "$root" || exit 1
initialize() {
    $as_user "$programs/initdb" -D "$root/data" -U toolgate -A trust --no-sync --encoding=UTF8 --locale=C.UTF-8 \
        > "$root/initdb.log" 2>&1 || { cat "$root/initdb.log" >&2; exit 1; }
    [ -z "$also_at" ] || echo "host all all samenet trust" >> "$root/data/pg_hba.conf"
}
copy_of() {
    rm -rf "$root/data"
    $as_user "$programs/pg_basebackup" -h 127.0.0.1 -p "$1" -U toolgate -D "$root/data" --write-recovery-conf \
        --wal-method=stream --checkpoint=fast --no-sync > "$root/backup.log" 2>&1 || { cat "$root/backup.log" >&2; exit 1; }
}
start() {
    $as_user "$programs/postgres" -D "$root/data" -p "$port" -k "$root" \
        -c listen_addresses="127.0.0.1${also_at:+,$also_at}" -c max_connections=200 -c shared_buffers=64MB \
        -c fsync="$durable" -c full_page_writes="$durable" -c max_prepared_transactions=0 \
        -c wal_retrieve_retry_interval=100ms \
        < /dev/null >> "$root/server.log" 2>&1 &
    server=$!
}
if [ -n "$primary" ]; then copy_of "$primary"; else initialize; fi
start
echo "$root"
while read -r command argument; do
    case $command in
        start) start ;;
        follow) copy_of "$argument"; start ;;
        promote) $as_user "$programs/pg_ctl" promote -D "$root/data" > "$root/promote.log" 2>&1 || cat "$root/promote.log" >&2 ;;
        orderly) kill -INT "$server"; wait "$server" ;;
        at-once) kill -QUIT "$server"; wait "$server" ;;
        killed) kill -KILL "$server" $(pgrep -P "$server"); wait "$server" ;;
        pause) kill -STOP "$server" $(pgrep -P "$server") ;;
        continue) kill -CONT $(pgrep -P "$server") "$server" ;;
    esac
    echo done
done
kill -CONT $(pgrep -P "$server") "$server" 2> /dev/null
kill -QUIT "$server" 2> /dev/null
wait "$server"
rm -rf "$root"
"#;

impl PostgresServer {
    /// The server that all tests of this process share. It is not durable.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(Durability::None))
    }

    /// Starts a server of its own, for a test that stops it or measures it.
    pub fn start(durability: Durability) -> Self {
        Self::launch(durability, None, None)
    }

    /// The same, and it also takes connections at another address, from every network that this machine is part of: for a
    /// test in a network namespace of its own.
    pub fn start_also_at(durability: Durability, address: IpAddr) -> Self {
        Self::launch(durability, None, Some(address))
    }

    /// Starts a standby of another server, and makes commits there wait for it: what is acknowledged is on both.
    pub fn standby_of(primary: &Self) -> Self {
        let standby = Self::launch(Durability::None, Some(primary.port), None);
        primary.commit_with_standby();
        standby
    }

    fn launch(durability: Durability, primary: Option<u16>, also_at: Option<IpAddr>) -> Self {
        let programs = programs();
        let port = free_port();
        let durable = match durability {
            Durability::None => "off",
            Durability::Full => "on",
        };
        let primary = primary.map_or(String::new(), |port| port.to_string());
        let also_at = also_at.map_or(String::new(), |address| address.to_string());
        let mut keeper = Command::new("sh");
        keeper
            .args(["-c", KEEPER, "keeper"])
            .arg(&programs)
            .args([&port.to_string(), durable, &primary, &also_at])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // Of its own group, so that an interrupt at the terminal leaves it to clean up.
        std::os::unix::process::CommandExt::process_group(&mut keeper, 0);
        let mut process = keeper.spawn().expect("a shell");
        let commands = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().expect("its output"));
        let server = Self {
            port,
            programs,
            databases: AtomicU32::new(0),
            keeper: Mutex::new(Keeper {
                process,
                commands,
                answers,
            }),
        };
        server.keeper().answer();
        server.wait_until_ready();
        server
    }

    /// The port it listens on, at 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// URL of a new and empty database.
    pub fn database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.execute("postgres", &format!("CREATE DATABASE {name} TEMPLATE template0"));
        self.url(&name)
    }

    /// URL of a new database with the content of another, which nobody may use meanwhile.
    pub fn copy_of(&self, template: &str) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let template = template.rsplit('/').next().expect("a URL has a database");
        self.execute("postgres", &format!("CREATE DATABASE {name} TEMPLATE {template}"));
        self.url(&name)
    }

    fn url(&self, name: &str) -> String {
        format!("postgres://toolgate@127.0.0.1:{}/{name}", self.port)
    }

    /// Runs SQL in a database of this server, and gives its output without headings, one line per row.
    pub fn execute(&self, database: &str, sql: &str) -> String {
        let database = database.rsplit('/').next().expect("a name");
        let output = self
            .client("psql")
            .args([
                "-X",
                "-q",
                "-A",
                "-t",
                "-v",
                "ON_ERROR_STOP=1",
                "-d",
                database,
                "-c",
                sql,
            ])
            .output()
            .expect("psql runs");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {told}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Stops the server.
    pub fn stop(&self, how: Stop) {
        self.keeper().command(match how {
            Stop::Orderly => "orderly",
            Stop::AtOnce => "at-once",
            Stop::Killed => "killed",
        });
    }

    /// Starts it again after a stop, and waits until it takes connections.
    pub fn start_again(&self) {
        self.keeper().command("start");
        self.wait_until_ready();
    }

    /// Makes a primary of a standby, and waits until it takes writes.
    pub fn promote(&self) {
        self.keeper().command("promote");
        self.wait_until("is promoted", || {
            self.execute("postgres", "SELECT pg_is_in_recovery()") == "f"
        });
    }

    /// Starts this server again after a stop, as a standby with a copy of the primary's data and nothing of its own. Commits
    /// of the primary wait for it.
    pub fn follow(&self, primary: &Self) {
        self.keeper().command(&format!("follow {}", primary.port));
        self.wait_until_ready();
        primary.commit_with_standby();
    }

    /// Makes commits wait for the standby.
    fn commit_with_standby(&self) {
        // Set after the copy was made: once promoted, the standby waits for nobody.
        self.execute("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.execute("postgres", "SELECT pg_reload_conf()");
        let waits =
            "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'";
        self.wait_until("has a synchronous standby", || {
            self.execute("postgres", waits) == "1"
        });
    }

    /// Makes commits wait for no standby.
    pub fn commit_alone(&self) {
        self.execute("postgres", "ALTER SYSTEM RESET synchronous_standby_names");
        self.execute("postgres", "SELECT pg_reload_conf()");
    }

    /// Stops all its processes in the middle of what they do.
    pub fn pause(&self) {
        self.keeper().command("pause");
    }

    /// Lets them go on after a pause.
    pub fn unpause(&self) {
        self.keeper().command("continue");
    }

    /// Processor time of all its processes so far.
    pub fn cpu_time(&self) -> Duration {
        let keeper = self.keeper().process.id();
        let processes = processes();
        let children = |of: u32| processes.iter().filter(move |process| process.parent == of);
        let server = children(keeper).flat_map(|server| children(server.id).chain([server]));
        // In clock ticks, of which Linux has a hundred per second.
        Duration::from_millis(server.map(|process| process.ticks * 10).sum())
    }

    fn keeper(&self) -> std::sync::MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until_ready(&self) {
        self.wait_until("has started", || {
            let asked = self
                .client("psql")
                .args(["-X", "-q", "-d", "postgres", "-c", "SELECT 1"])
                .output();
            asked.is_ok_and(|output| output.status.success())
        });
    }

    fn wait_until(&self, what: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            let patient = begun.elapsed() < PATIENCE;
            assert!(patient, "not after {PATIENCE:?}: PostgreSQL {what}");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// A client program that connects to this server.
    pub fn client(&self, program: &str) -> Command {
        let mut client = Command::new(self.programs.join(program));
        client.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", "toolgate"]);
        client.stdin(Stdio::null());
        client
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let mut keeper = self.keeper();
        drop(keeper.commands.take());
        // It ends by itself; a test that is over does not look at how.
        let _ = keeper.process.wait();
    }
}

impl Keeper {
    fn command(&mut self, command: &str) {
        let commands = self.commands.as_mut().expect("the server was not dropped");
        writeln!(commands, "{command}").expect("the keeper of the server lives");
        self.answer();
    }

    fn answer(&mut self) {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line).expect("the keeper's output");
        assert!(
            read > 0,
            "the keeper of the PostgreSQL server ended, see its errors above"
        );
    }
}

/// A process of this machine.
struct Process {
    id: u32,
    parent: u32,
    /// Processor time, its own and the system's for it.
    ticks: u64,
}

fn processes() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let read = entries.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name in parentheses may hold spaces: count from behind it.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let ticks = [11, 12].map(|n| fields.get(n).and_then(|ticks| ticks.parse::<u64>().ok()));
        Some(Process {
            id,
            parent: fields.get(1)?.parse().ok()?,
            ticks: ticks.into_iter().flatten().sum(),
        })
    });
    read.collect()
}

/// Where the server's programs are: Debian's newest version, or those of the path.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let newest = versions
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse::<u32>().ok()?,
                entry.path().join("bin"),
            ))
        })
        .filter(|(_, programs)| programs.join("initdb").exists())
        .max();
    if let Some((_, programs)) = newest {
        return programs;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).find(|directory| Path::new(directory).join("initdb").exists());
    found.expect("PostgreSQL's initdb; `make services` installs it")
}

/// A port that is free now.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}
