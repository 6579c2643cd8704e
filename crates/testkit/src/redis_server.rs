//! A real Redis server for tests: on a free loopback port, with its data in a temporary folder, gone with the test.

use std::net::{IpAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest wait for the server to answer.
const START_TIME: Duration = Duration::from_secs(20);
/// Runs the server until the test closes the pipe, or dies.
const KEEPER: &str = r#"redis-server "$@" & server=$!; cat; kill -9 $server; wait $server"#;
/// The server's password: it is never to be seen in a log.
pub const PASSWORD: &str = "redis-password-of-the-tests";

/// A server that ends with this value.
pub struct RedisServer {
    port: u16,
    /// Where it listens beside 127.0.0.1.
    also_at: Option<IpAddr>,
    /// The port for TLS, and the folder with `ca.crt`, `redis.crt` and `redis.key`.
    tls: Option<(u16, PathBuf)>,
    folder: PathBuf,
    process: Option<Child>,
}

impl RedisServer {
    /// Starts one and waits until it answers.
    pub async fn start() -> Self {
        Self::start_on(None, None).await
    }

    /// The same with TLS on a second port, by the certificate and the key in a folder.
    pub async fn start_with_tls(certificates: &Path) -> Self {
        Self::start_on(Some((free_port(), certificates.to_owned())), None).await
    }

    /// The same without TLS, and it also takes connections at another address.
    pub async fn start_also_at(address: IpAddr) -> Self {
        Self::start_on(None, Some(address)).await
    }

    async fn start_on(tls: Option<(u16, PathBuf)>, also_at: Option<IpAddr>) -> Self {
        let port = free_port();
        let folder = std::env::temp_dir().join(format!("toolgate-redis-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let mut server = Self {
            port,
            also_at,
            tls,
            folder,
            process: None,
        };
        server.start_again().await;
        server
    }

    /// The port it listens on, at 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address, with the password.
    pub fn address(&self) -> String {
        format!("redis://:{PASSWORD}@127.0.0.1:{}/0", self.port)
    }

    /// Its address with TLS.
    pub fn tls_address(&self) -> String {
        let (port, _) = self.tls.as_ref().expect("it was started with TLS");
        format!("rediss://:{PASSWORD}@127.0.0.1:{port}/0")
    }

    /// Kills it: what it held in memory is lost.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            drop(process.stdin.take());
            // It may have ended by itself.
            let _ = process.wait();
        }
    }

    /// Starts it on the same port, without what it held.
    pub async fn start_again(&mut self) {
        self.stop();
        let mut command = Command::new("sh");
        command
            .args(["-c", KEEPER, "sh"])
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args(self.also_at.map(|address| address.to_string()))
            .args(["--requirepass", PASSWORD, "--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some((port, certificates)) = &self.tls {
            command.args(["--tls-port", &port.to_string(), "--tls-auth-clients", "no"]);
            for (name, file) in [
                ("--tls-ca-cert-file", "ca.crt"),
                ("--tls-cert-file", "redis.crt"),
                ("--tls-key-file", "redis.key"),
            ] {
                command.arg(name).arg(certificates.join(file));
            }
        }
        self.process = Some(command.spawn().expect("there is a shell"));
        let began = Instant::now();
        while !self.answers().await {
            assert!(began.elapsed() < START_TIME, "redis-server does not answer");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn answers(&self) -> bool {
        let ask = async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
            let hello = format!("AUTH {PASSWORD}\r\nPING\r\n");
            stream.write_all(hello.as_bytes()).await?;
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await?;
            Ok::<_, std::io::Error>(&answer == b"+OK\r\n+PONG\r\n")
        };
        ask.await.unwrap_or(false)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
        // A folder that stays does no harm.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A port that nobody listens on now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").port()
}
