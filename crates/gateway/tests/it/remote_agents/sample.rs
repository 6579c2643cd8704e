//! Sample agents as processes: `agent.py` on the official SDK for Python, `agent_ag2.py` on AG2.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Instant;

use tempfile::TempDir;

use crate::harness::{LOOK, SOON, free_port};

/// Which version and binding of the protocol an agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// 1.0 over JSON-RPC.
    JsonRpc,
    /// 1.0 over REST.
    Rest,
    /// 1.0 over JSON-RPC, without streams.
    Polling,
    /// 0.3 over JSON-RPC.
    V03,
    /// 1.0 over JSON-RPC, as the framework AG2 does it.
    Ag2,
}

impl Speaks {
    fn program(self) -> &'static str {
        match self {
            Self::Ag2 => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/remote_agents/agent_ag2.py"),
            Self::JsonRpc | Self::Rest | Self::Polling | Self::V03 => {
                concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/remote_agents/agent.py")
            }
        }
    }

    fn binding(self) -> &'static [&'static str] {
        match self {
            Self::Ag2 => &[],
            Self::JsonRpc | Self::V03 => &["jsonrpc"],
            Self::Rest => &["rest"],
            Self::Polling => &["jsonrpc", "polling"],
        }
    }

    /// The interpreter that has the SDK of this version.
    fn python(self) -> PathBuf {
        let variable = match self {
            Self::V03 => "TOOLGATE_TEST_A2A_PYTHON_03",
            Self::Ag2 => "TOOLGATE_TEST_AG2_PYTHON",
            Self::JsonRpc | Self::Rest | Self::Polling => "TOOLGATE_TEST_A2A_PYTHON",
        };
        std::env::var_os(variable)
            .unwrap_or_else(|| {
                panic!("{variable} names the Python with the A2A SDK; `make tests` installs it")
            })
            .into()
    }
}

/// A sample agent. Ends with this value.
pub struct Sample {
    child: Child,
    port: u16,
    speaks: Speaks,
    directory: TempDir,
}

impl Sample {
    /// Starts one, and waits until its card is there.
    pub async fn start(speaks: Speaks) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let child = spawn(speaks, port, &directory);
        let mut sample = Self {
            child,
            port,
            speaks,
            directory,
        };
        sample.ready().await;
        sample
    }

    /// Host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Base address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Lets `slow` end.
    pub fn permit(&self) {
        std::fs::write(self.directory.path().join("go"), "").expect("a file");
    }

    /// SIGKILL, now.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
    }

    /// Starts it again on the same tasks.
    pub async fn restart(&mut self) {
        self.child = spawn(self.speaks, self.port, &self.directory);
        self.ready().await;
    }

    /// Deletes every task that it has stored.
    pub fn forget_tasks(&self) {
        for path in self.tasks() {
            std::fs::remove_file(path).expect("a file");
        }
    }

    /// The messages that have arrived: id and words.
    pub fn messages(&self) -> Vec<String> {
        self.lines("messages")
    }

    /// Waits until it has stored a task, which a restart then knows.
    pub async fn has_stored_a_task(&self) {
        let began = Instant::now();
        while self.tasks().is_empty() {
            assert!(
                began.elapsed() < SOON,
                "the agent has stored no task within {SOON:?}"
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until a message has arrived.
    pub async fn has_begun(&self) {
        let began = Instant::now();
        while self.messages().is_empty() {
            assert!(began.elapsed() < SOON, "no message has arrived within {SOON:?}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until it was told to cancel a task.
    pub async fn has_cancelled(&self) {
        while self.lines("cancels").is_empty() {
            tokio::time::sleep(LOOK).await;
        }
    }

    fn tasks(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.directory.path()).expect("a directory");
        let paths = files.map(|file| file.expect("a file").path());
        paths
            .filter(|path| path.extension().is_some_and(|end| end == "task"))
            .collect()
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.directory.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    async fn ready(&mut self) {
        let began = Instant::now();
        let card = format!("{}/.well-known/agent-card.json", self.url());
        loop {
            if reqwest::get(&card)
                .await
                .is_ok_and(|answer| answer.status().is_success())
            {
                return;
            }
            let exited = self.child.try_wait().expect("it can be asked");
            assert!(exited.is_none(), "the sample agent ended by itself: {exited:?}");
            assert!(
                began.elapsed() < SOON,
                "the sample agent is not ready after {SOON:?}"
            );
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(speaks: Speaks, port: u16, directory: &TempDir) -> Child {
    Command::new(speaks.python())
        .arg(speaks.program())
        .arg(port.to_string())
        .arg(directory.path())
        .args(speaks.binding())
        .spawn()
        .expect("Python runs")
}
