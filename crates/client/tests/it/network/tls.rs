//! TLS: which certificates are trusted, and for which names.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use toolgate_client::Client;

use super::ask_and_follow;
use super::server::{EVENTS, Server};

/// Valid from 2020 to 2120. The authorities' keys are not kept.
pub const AUTHORITY: &str = include_str!("certificates/authority.pem");
const OTHER_AUTHORITY: &str = include_str!("certificates/other-authority.pem");
const SERVER: &str = include_str!("certificates/server.pem");
const SERVER_KEY: &str = include_str!("certificates/server.key.pem");

pub fn acceptor() -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_slice(SERVER.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(SERVER_KEY.as_bytes()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("they fit");
    Arc::new(config).into()
}

fn client(host: &str, server: &Server, roots: &str) -> Client {
    let url = format!("https://{host}:{}", server.address.port());
    let builder = Client::builder(url).key("sk_none");
    builder.root_certificates(roots).build().expect("a client")
}

#[tokio::test]
async fn requests_and_streams_go_through_tls() {
    let server = Server::secure_gateway().await;
    let both = format!("{OTHER_AUTHORITY}{AUTHORITY}");
    let read = ask_and_follow(&client("localhost", &server, &both)).await;
    assert_eq!(read.unwrap(), EVENTS);
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    for asked in asked {
        assert!(asked.head.contains("authorization: bearer sk_none"), "{asked:?}");
        assert_eq!(
            asked.connection, 0,
            "the second request uses the first's connection"
        );
    }
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let server = Server::secure_gateway().await;
    let refused = ask_and_follow(&client("localhost", &server, OTHER_AUTHORITY)).await;
    let words = refused.unwrap_err();
    assert!(
        words.ends_with("invalid peer certificate: UnknownIssuer"),
        "{words}"
    );
    assert!(server.asked().is_empty(), "the key was sent");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let server = Server::secure_gateway().await;
    let refused = ask_and_follow(&client("127.0.0.1", &server, AUTHORITY)).await;
    let words = refused.unwrap_err();
    assert!(
        words.contains("certificate not valid for name \"127.0.0.1\""),
        "{words}"
    );
    assert!(server.asked().is_empty(), "the key was sent");
}

#[tokio::test]
async fn a_server_without_tls_is_refused() {
    let server = Server::gateway().await;
    let refused = ask_and_follow(&client("localhost", &server, AUTHORITY)).await;
    let words = refused.unwrap_err();
    assert!(words.contains("cannot be reached"), "{words}");
    assert!(server.asked().is_empty(), "the key was sent");
}

#[test]
fn root_certificates_that_are_none_are_refused() {
    let cut = &AUTHORITY[..AUTHORITY.len() - 30];
    let cases = [
        ("", "contain no certificate"),
        (SERVER_KEY, "contain no certificate"),
        (cut, "cannot be read"),
    ];
    for (pem, problem) in cases {
        let built = Client::builder("https://gateway.test")
            .root_certificates(pem)
            .build();
        let error = built.unwrap_err();
        assert_eq!(error.code(), "SETUP");
        assert!(error.to_string().contains(problem), "{error}");
    }
}
