//! A PostgreSQL server of this test.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BIN: &str = "/usr/lib/postgresql/15/bin";

pub struct PostgresProcess {
    port: u16,
    folder: tempfile::TempDir,
    process: Option<Child>,
}

impl PostgresProcess {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let owned = Command::new("chown").arg("postgres").arg(folder.path()).status();
        assert!(owned.expect("chown").success());
        let data = folder.path().join("data");
        let made = user()
            .arg(format!("{BIN}/initdb"))
            .args([
                "-A",
                "trust",
                "-U",
                "postgres",
                "-N",
                "-E",
                "UTF8",
                "--locale=C",
                "-D",
            ])
            .arg(&data)
            .stdout(Stdio::null())
            .status();
        assert!(made.expect("initdb").success());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("a port").port();
        drop(listener);
        let mut server = Self {
            port,
            folder,
            process: None,
        };
        server.start_again().await;
        server
    }

    pub fn address(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres dbname=postgres", self.port)
    }

    pub async fn start_again(&mut self) {
        self.stop();
        let mut command = user();
        command
            .arg(format!("{BIN}/postgres"))
            .arg("-D")
            .arg(self.folder.path().join("data"))
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"])
            .arg("-c")
            .arg(format!(
                "unix_socket_directories={}",
                self.folder.path().display()
            ))
            .args(["-p", &self.port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.process = Some(command.spawn().expect("postgres"));
        let began = Instant::now();
        while tokio_postgres::connect(&self.address(), tokio_postgres::NoTls)
            .await
            .is_err()
        {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "postgres does not answer"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub fn stop(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        let stopped = user()
            .arg(format!("{BIN}/pg_ctl"))
            .args(["stop", "-m", "immediate", "-D"])
            .arg(self.folder.path().join("data"))
            .stdout(Stdio::null())
            .status();
        assert!(stopped.expect("pg_ctl").success());
        let _ = process.wait();
    }
}

impl Drop for PostgresProcess {
    fn drop(&mut self) {
        self.stop();
    }
}

fn user() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]);
    command
}
