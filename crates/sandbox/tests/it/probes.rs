//! What code that has taken its worker over can reach: nothing. Tried with real system calls from inside of a confined
//! worker, then without each of the two seals, which shows that the other holds by itself.

use toolgate_sandbox::{Sandbox, SandboxOptions};

use crate::program;

/// Everything that is tried. `DIR` is a directory that this test made, `PORT` a port on which it listens, `SOCKET` a
/// socket in the directory, `PARENT` the process of the test.
const PROBES: &[&str] = &[
    "open /etc/passwd",
    "open DIR/secret",
    "open /proc/self/environ",
    "open /proc/1/environ",
    "open /dev/null",
    "create DIR/new",
    "make-directory DIR/directory",
    "remove DIR/secret",
    "rename DIR/secret",
    "link DIR/secret",
    "symlink DIR/pointer",
    "list /",
    "list DIR",
    "connect 127.0.0.1:PORT",
    "listen",
    "datagram",
    "unix-connect SOCKET",
    "unix-listen DIR/mine",
    "execute",
    "thread",
    "look-for PARENT",
    "signal PARENT",
    "leave-group",
    "raise-files",
    "raise-memory",
    "raise-cpu",
    "change-root",
    "change-directory",
    "rename-machine",
    "environment",
];

/// What only seccomp keeps from a worker of the superuser: none of it reaches a file, the network or another process.
const ONLY_SECCOMP: &[&str] = &[
    "thread",
    "leave-group",
    "raise-files",
    "raise-memory",
    "raise-cpu",
    "change-root",
    "change-directory",
    "rename-machine",
];

struct World {
    directory: tempfile::TempDir,
    listener: std::net::TcpListener,
    _socket: std::os::unix::net::UnixListener,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("secret"), "kept").expect("a file");
        Self {
            listener: std::net::TcpListener::bind("127.0.0.1:0").expect("a port"),
            _socket: std::os::unix::net::UnixListener::bind(directory.path().join("socket"))
                .expect("a socket"),
            directory,
        }
    }

    fn fill_in(&self, probe: &str) -> String {
        let directory = self.directory.path().display().to_string();
        let port = self.listener.local_addr().expect("it listens").port().to_string();
        let socket = format!("{directory}/socket");
        probe
            .replace("DIR", &directory)
            .replace("PORT", &port)
            .replace("SOCKET", &socket)
            .replace("PARENT", &std::process::id().to_string())
    }
}

/// What every probe but those of `permitted` meets: a refusal. The world is as it was.
async fn holds(without: &[&str], permitted: &[&str]) {
    let options = SandboxOptions {
        without: without.iter().map(|seal| seal.to_string()).collect(),
        ..SandboxOptions::default()
    };
    let sandbox = Sandbox::new(program(), options);
    let world = World::new();
    let before = entries(&world);
    let mut got_out = Vec::new();
    for probe in PROBES.iter().filter(|probe| !permitted.contains(probe)) {
        let told = sandbox.probe(&world.fill_in(probe)).await;
        // One whose worker is killed got nowhere either.
        if !told.as_ref().is_ok_and(|told| told.starts_with("refused: ")) {
            got_out.push(format!("{probe}: {told:?}"));
        }
    }
    assert!(got_out.is_empty(), "without {without:?}: {got_out:#?}");
    assert_eq!(entries(&world), before);
    world.listener.set_nonblocking(true).expect("it can be asked");
    let nobody = world.listener.accept().expect_err("nobody connected");
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}

fn entries(world: &World) -> Vec<String> {
    let list = std::fs::read_dir(world.directory.path()).expect("it is there");
    let mut names: Vec<String> = list
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_worker_that_was_taken_over_reaches_nothing() {
    holds(&[], &[]).await;
}

#[tokio::test]
async fn without_landlock_a_worker_that_was_taken_over_reaches_nothing() {
    holds(&["landlock"], &[]).await;
}

#[tokio::test]
async fn without_seccomp_a_worker_that_was_taken_over_reaches_no_file_no_network_and_no_process() {
    holds(&["seccomp"], ONLY_SECCOMP).await;
}

#[tokio::test]
async fn a_probe_that_nothing_holds_back_succeeds() {
    // What the other tests show is the seals' doing.
    let options = SandboxOptions {
        without: vec!["seccomp".into(), "landlock".into()],
        ..SandboxOptions::default()
    };
    let sandbox = Sandbox::new(program(), options);
    let world = World::new();
    for probe in [
        "make-directory DIR/directory",
        "rename DIR/secret",
        "look-for PARENT",
        "signal PARENT",
        "thread",
    ] {
        let told = sandbox.probe(&world.fill_in(probe)).await;
        assert_eq!(told.as_deref(), Ok("succeeded"), "{probe}");
    }
}
