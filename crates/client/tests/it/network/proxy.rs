//! The proxy that the environment names. A client reads the environment of its process, so each runs in one of its own.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use toolgate_client::Client;

use super::ask_and_follow;
use super::server::{EVENTS, Server, read_head};

/// Address of the gateway for [`asks_a_gateway_when_told`].
const GATEWAY: &str = "NETWORK_TEST_GATEWAY";
/// Root certificates for it.
#[cfg(feature = "tls")]
const ROOTS: &str = "NETWORK_TEST_ROOTS";
/// Longest time that such a process takes.
const PROCESS_TIME_MAX: Duration = Duration::from_secs(60);
/// "user:secret" in Base64.
const KEY: &str = "proxy-authorization: basic dxnlcjpzzwnyzxq=";

/// A proxy in front of one server, whatever names it is asked for.
struct Proxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    accepting: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Proxy {
    async fn start(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (log, target) = (heads.clone(), server.address);
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(forward(stream, target, log.clone()));
            }
        });
        Self {
            address,
            heads,
            accepting,
        }
    }

    /// What connections to the proxy began with, in lower case.
    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no test panics with it").clone()
    }
}

async fn forward(mut client: TcpStream, target: SocketAddr, log: Arc<Mutex<Vec<String>>>) {
    let Some(head) = read_head(&mut client).await else {
        return;
    };
    log.lock().expect("no test panics with it").push(head.clone());
    let mut server = TcpStream::connect(target).await.expect("the server");
    // An end in the middle is the client's business.
    let _ = match head.starts_with("connect ") {
        true => client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await,
        false => server.write_all(head.as_bytes()).await,
    };
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

/// What a client of the gateway at `url` reads, in a process with these variables.
async fn read_with(url: &str, variables: &[(&str, &str)]) -> Result<Vec<String>, String> {
    let mut program = Command::new(std::env::current_exe().expect("this test"));
    for name in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "REQUEST_METHOD",
    ] {
        program.env_remove(name).env_remove(name.to_lowercase());
    }
    program
        .args([
            "--exact",
            "network::proxy::asks_a_gateway_when_told",
            "--nocapture",
        ])
        .env(GATEWAY, url)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let ended = timeout(PROCESS_TIME_MAX, program.output())
        .await
        .expect("it ends")
        .expect("it runs");
    let printed = String::from_utf8(ended.stdout).expect("text");
    let (_, outcome) = printed.split_once("outcome ").expect("an outcome");
    serde_json::from_str(outcome.lines().next().unwrap_or_default()).expect("JSON")
}

#[tokio::test]
async fn asks_a_gateway_when_told() {
    let Ok(url) = std::env::var(GATEWAY) else {
        return;
    };
    let builder = Client::builder(url).key("sk_none");
    #[cfg(feature = "tls")]
    let builder = match std::env::var(ROOTS) {
        Ok(roots) => builder.root_certificates(roots),
        Err(_) => builder,
    };
    let outcome = match builder.build() {
        Ok(client) => ask_and_follow(&client).await,
        Err(error) => Err(super::words(&error)),
    };
    println!("outcome {}", serde_json::to_string(&outcome).expect("JSON"));
}

#[tokio::test]
async fn plain_requests_go_to_the_proxy_with_their_whole_address() {
    let server = Server::gateway().await;
    let proxy = Proxy::start(&server).await;
    for (url, host) in [
        ("http://gateway.test", "gateway.test"),
        ("http://[2001:db8::1]:8787", "[2001:db8::1]:8787"),
    ] {
        let address = format!("http://user:secret@{}", proxy.address);
        let read = read_with(url, &[("HTTP_PROXY", &address)]).await;
        assert_eq!(read.unwrap(), EVENTS);
        let head = proxy.heads().pop().expect("a request");
        let line = format!("get http://{host}/readyz http/1.1\r\n");
        assert!(head.starts_with(&line), "{head}");
        assert!(head.contains(&format!("\r\nhost: {host}\r\n")), "{head}");
        assert!(head.contains(KEY), "{head}");
    }
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn tls_goes_through_a_tunnel_of_the_proxy() {
    use super::tls::AUTHORITY;
    let server = Server::secure_gateway().await;
    let proxy = Proxy::start(&server).await;
    let address = format!("http://user:secret@{}", proxy.address);
    for (url, host) in [
        ("https://gateway.test", "gateway.test:443"),
        ("https://[2001:db8::1]:8787", "[2001:db8::1]:8787"),
    ] {
        let variables = [("https_proxy", address.as_str()), (ROOTS, AUTHORITY)];
        assert_eq!(read_with(url, &variables).await.unwrap(), EVENTS);
        let head = proxy.heads().pop().expect("a request");
        assert!(
            head.starts_with(&format!("connect {host} http/1.1\r\n")),
            "{head}"
        );
        assert!(head.contains(KEY), "{head}");
        assert!(
            !head.contains("sk_none"),
            "the proxy read the gateway's key: {head}"
        );
    }
    for asked in server.asked() {
        let key = "proxy-authorization";
        assert!(
            !asked.head.contains(key),
            "the gateway read the proxy's key: {asked:?}"
        );
    }
    let other = [("HTTPS_PROXY", address.as_str()), (ROOTS, AUTHORITY)];
    let words = read_with("https://elsewhere.test", &other).await.unwrap_err();
    assert!(words.contains("not valid for name \"elsewhere.test\""), "{words}");
}

#[tokio::test]
async fn no_proxy_is_asked_for_an_excepted_host_or_a_gateway_on_this_machine() {
    let server = Server::gateway().await;
    let proxy = Proxy::start(&server).await;
    let address = format!("http://{}", proxy.address);
    let port = server.address.port();
    // Linux connects to loopback; a name would have to be known to the machine.
    let unnamed = format!("http://0.0.0.0:{port}");
    let excepted = [
        ("HTTP_PROXY", address.as_str()),
        ("NO_PROXY", "example.com, 0.0.0.0/8"),
    ];
    assert_eq!(read_with(&unnamed, &excepted).await.unwrap(), EVENTS);
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("http://{host}:{port}");
        let read = read_with(&url, &[("ALL_PROXY", &address)]).await;
        assert_eq!(read.unwrap(), EVENTS);
    }
    assert_eq!(proxy.heads(), [""; 0]);
    let read = read_with(&unnamed, &[("ALL_PROXY", &address), ("NO_PROXY", "example.com")]).await;
    assert_eq!(read.unwrap(), EVENTS);
    assert_eq!(proxy.heads().len(), 1);
}

#[tokio::test]
async fn a_proxy_that_cannot_be_used_is_named_without_its_password() {
    let variables = [("ALL_PROXY", "socks5://user:secret@127.0.0.1:1080")];
    let words = read_with("http://gateway.test", &variables).await.unwrap_err();
    assert_eq!(
        words,
        "the environment names the proxy socks5://127.0.0.1:1080/, expected one like http://proxy.example.com:3128"
    );
}

/// On other systems certificates come from the system's own store alone.
#[cfg(all(feature = "tls", target_os = "linux"))]
#[tokio::test]
async fn a_file_of_the_environment_names_the_trusted_certificates() {
    let server = Server::secure_gateway().await;
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("roots.pem");
    std::fs::write(&file, super::tls::AUTHORITY).expect("it is written");
    let url = format!("https://localhost:{}", server.address.port());
    let path = file.to_str().expect("text");
    let read = read_with(&url, &[("SSL_CERT_FILE", path)]).await;
    assert_eq!(read.unwrap(), EVENTS);
}
