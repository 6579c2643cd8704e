//! The bus over Redis with TLS.

use std::path::Path;
use std::process::{Command, Stdio};

use toolgate_testkit::redis_server::RedisServer;

use crate::harness::{Gateway, LOOK, soon};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bus_with_tls_is_joined_when_its_authority_is_known() {
    let folder = tempfile::tempdir().expect("a folder");
    make_certificates(folder.path());
    let server = RedisServer::start_with_tls(folder.path()).await;
    let address = server.tls_address();
    let authority = folder.path().join("ca.crt");
    let known = [
        ("TOOLGATE_BUS", address.as_str()),
        ("SSL_CERT_FILE", authority.to_str().expect("a path")),
    ];
    let gateway = Gateway::start(&known).await;
    until_bus(&gateway, "joined").await;
    // Without it the node starts all the same, and says why it is alone.
    let gateway = Gateway::start(&known[..1]).await;
    until_bus(&gateway, "away").await;
    let log = gateway.log();
    assert!(log.contains("certificate"), "{log}");
    assert!(!log.contains(toolgate_testkit::redis_server::PASSWORD), "{log}");
}

async fn until_bus(gateway: &Gateway, state: &str) {
    soon(&format!("the bus to be {state}"), async {
        while gateway.api().get("/readyz").await.body["details"]["bus"] != state {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await
}

/// An authority, and a certificate of it for 127.0.0.1.
fn make_certificates(folder: &Path) {
    openssl(
        folder,
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt",
    );
    openssl(
        folder,
        "req -newkey rsa:2048 -nodes -subj /CN=redis -keyout redis.key -out redis.csr",
    );
    std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1\n").expect("a file");
    openssl(
        folder,
        "x509 -req -in redis.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out redis.crt",
    );
}

fn openssl(folder: &Path, arguments: &str) {
    let done = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    assert!(
        done.expect("openssl is installed").success(),
        "openssl {arguments}"
    );
}
