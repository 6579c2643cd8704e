//! TLS to the database.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::Protection;

/// What makes the TLS part of connections.
pub(crate) fn connector(protection: &Protection) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = match protection {
        Protection::Unchecked => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer(provider)))
            .with_no_client_auth(),
        Protection::Platform => {
            let builder = builder
                .with_platform_verifier()
                .map_err(|error| error.to_string())?;
            builder.with_no_client_auth()
        }
        Protection::Authorities { names: true, file } => {
            let verifier =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots(file)?), provider).build();
            builder
                .with_webpki_verifier(verifier.map_err(|error| error.to_string())?)
                .with_no_client_auth()
        }
        Protection::Authorities { names: false, file } => {
            let roots = Arc::new(roots(file)?);
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyName { roots, provider }))
                .with_no_client_auth()
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

/// The authorities in a file.
fn roots(path: &Path) -> Result<RootCertStore, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read(path).map_err(|error| unreadable(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    match roots.is_empty() {
        true => Err(unreadable(&"no certificate in it")),
        false => Ok(roots),
    }
}

/// Accepts every certificate: `sslmode` asked for encryption alone.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

/// Accepts certificates of an authority, whatever host they name: `sslmode=verify-ca`.
#[derive(Debug)]
struct AnyName {
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

macro_rules! signatures_of {
    ($verifier:ident, $given:expr) => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let $verifier = self;
            let algorithms = &$given.signature_verification_algorithms;
            rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let $verifier = self;
            let algorithms = &$given.signature_verification_algorithms;
            rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            let $verifier = self;
            $given.signature_verification_algorithms.supported_schemes()
        }
    };
}

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }
    signatures_of!(verifier, verifier.0);
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(certificate)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&certificate, &self.roots, intermediates, now, algorithms)?;
        Ok(ServerCertVerified::assertion())
    }
    signatures_of!(verifier, verifier.provider);
}
