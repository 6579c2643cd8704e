//! Network namespaces: one for the test with its servers, and one for each node.
//!
//! None has a name. A namespace lasts as long as a process in it, and the processes end with the test, however that ends: nothing
//! is left behind, and nothing of the machine's own network is touched.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Says that the test is in its namespace.
const INSIDE: &str = "TOOLGATE_TEST_INSIDE";
/// Where nodes reach the servers.
pub const SERVERS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
/// Programs of the system's administrator are not in everybody's path.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs a test in a network namespace where it may make others, for so long at most. Says so where there cannot be any.
pub fn inside<T: Future<Output = ()>>(name: &str, limit: Duration, test: impl FnOnce() -> T) {
    if std::env::var_os(INSIDE).is_some() {
        run("ip", &["link", "set", "lo", "up"]);
        run("ip", &["address", "add", &format!("{SERVERS}/32"), "dev", "lo"]);
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        return runtime.block_on(test());
    }
    let Some(unshare) = ways_in().into_iter().find(|way| works(way)) else {
        // Not `eprintln!`: what a test prints that does not fail is shown to nobody.
        let words =
            format!("NOT RUN: {name} needs root or user namespaces, and unshare, nsenter, ip and tc\n");
        return std::io::stderr()
            .write_all(words.as_bytes())
            .expect("standard error");
    };
    let program = std::env::current_exe().expect("the test");
    let output = in_path(unshare[0])
        .args(&unshare[1..])
        .args(["timeout", "--verbose", "--kill-after=10"])
        .arg(limit.as_secs().to_string())
        .arg(program)
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "1")
        .stdin(Stdio::null())
        .output()
        .expect("unshare starts");
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("1 passed"),
        "in its namespace: {}: {told}",
        output.status
    );
}

/// Commands that run another one in a new network namespace: as root, or as a user who keeps its own id.
fn ways_in() -> [Vec<&'static str>; 2] {
    [
        vec!["unshare", "--net"],
        vec!["unshare", "--user", "--map-current-user", "--keep-caps", "--net"],
    ]
}

fn works(unshare: &[&str]) -> bool {
    let probe = "ip link set lo up && ip link add probe0 type veth peer name probe1 && tc qdisc add dev probe0 root \
                 bfifo limit 1 && unshare --net nsenter --net=/proc/$$/ns/net true";
    let tried = in_path(unshare[0])
        .args(&unshare[1..])
        .args(["sh", "-c", probe])
        .output();
    tried.is_ok_and(|output| output.status.success())
}

/// Which cable of a node.
#[derive(Debug, Clone, Copy)]
pub enum Side {
    Servers,
    Clients,
}

/// How a cable is cut. Neither end is told of what the other has sent.
#[derive(Debug, Clone, Copy)]
pub enum Cut {
    /// It is pulled out of the test's end.
    Link,
    /// Every packet is lost, both ways.
    Packets,
}

/// A namespace for a node, and its two cables to the test.
pub struct Line {
    number: usize,
    /// A process that does nothing but stay in the namespace until its standard input ends.
    keeper: Child,
}

impl Line {
    pub fn to_new_namespace(number: usize) -> Self {
        let mut keeper = in_path("unshare")
            .args(["--net", "sh", "-c", "echo; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare starts");
        let stdout = keeper.stdout.as_mut().expect("its output");
        let read = BufReader::new(stdout).read_line(&mut String::new());
        assert_eq!(read.expect("a line"), 1, "there is no namespace");
        let line = Self { number, keeper };
        line.within("ip", &["link", "set", "lo", "up"]);
        for side in [Side::Servers, Side::Clients] {
            line.connect(side);
        }
        let [gateway, servers] = [
            line.address(Side::Servers, 1).to_string(),
            format!("{SERVERS}/32"),
        ];
        line.within("ip", &["route", "add", &servers, "via", &gateway]);
        line
    }

    fn connect(&self, side: Side) {
        let [here, there] = self.ends(side);
        let keeper = self.keeper.id().to_string();
        run(
            "ip",
            &[
                "link", "add", &here, "type", "veth", "peer", "name", &there, "netns", &keeper,
            ],
        );
        let [own, its] = [1, 2].map(|host| format!("{}/30", self.address(side, host)));
        run("ip", &["address", "add", &own, "dev", &here]);
        run("ip", &["link", "set", &here, "up"]);
        self.within("ip", &["address", "add", &its, "dev", &there]);
        self.within("ip", &["link", "set", &there, "up"]);
    }

    /// Names of a cable's ends: here, and in the node's namespace.
    fn ends(&self, side: Side) -> [String; 2] {
        ["here", "there"].map(|end| {
            format!(
                "{}{end}{}",
                if matches!(side, Side::Servers) { "s" } else { "c" },
                self.number
            )
        })
    }

    fn address(&self, side: Side, host: u8) -> Ipv4Addr {
        let second = match side {
            Side::Servers => 78,
            Side::Clients => 79,
        };
        Ipv4Addr::new(10, second, u8::try_from(self.number).expect("few nodes"), host)
    }

    /// Where clients reach the node.
    pub fn clients_reach(&self) -> IpAddr {
        self.address(Side::Clients, 2).into()
    }

    /// The command that runs another one in the namespace.
    pub fn enter(&self) -> Vec<String> {
        vec![
            "nsenter".into(),
            format!("--net=/proc/{}/ns/net", self.keeper.id()),
        ]
    }

    fn within(&self, program: &str, arguments: &[&str]) {
        let enter = self.enter();
        let command: Vec<&str> = enter[1..].iter().map(String::as_str).chain([program]).collect();
        run(&enter[0], &[&command, arguments].concat());
    }

    pub fn cut(&self, side: Side, how: Cut) {
        let [here, there] = self.ends(side);
        let nothing = |end| ["qdisc", "add", "dev", end, "root", "bfifo", "limit", "1"];
        match how {
            Cut::Link => run("ip", &["link", "set", &here, "down"]),
            Cut::Packets => {
                run("tc", &nothing(&here));
                self.within("tc", &nothing(&there));
            }
        }
    }

    pub fn mend(&self, side: Side, how: Cut) {
        let [here, there] = self.ends(side);
        let all = |end| ["qdisc", "del", "dev", end, "root"];
        match how {
            Cut::Link => run("ip", &["link", "set", &here, "up"]),
            Cut::Packets => {
                run("tc", &all(&here));
                self.within("tc", &all(&there));
            }
        }
    }

    /// Whether the node can connect to this port of the servers.
    pub fn reaches(&self, port: u16) -> bool {
        let connect = format!(": < /dev/tcp/{SERVERS}/{port}");
        let enter = self.enter();
        let tried = in_path(&enter[0])
            .args(&enter[1..])
            .args(["timeout", "1", "bash", "-c", &connect])
            .output();
        tried.is_ok_and(|output| output.status.success())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // It ends with its input, and the namespace with it.
        let _ = self.keeper.wait();
    }
}

fn in_path(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("PATH", PATH);
    command
}

fn run(program: &str, arguments: &[&str]) {
    let output = in_path(program).args(arguments).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {told}");
}
