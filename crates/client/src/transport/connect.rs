//! Connections: direct or through the proxy that the environment names, with TLS for `https:`.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue, PROXY_AUTHORIZATION};
use hyper::http::uri::Scheme;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tower_service::Service;

use crate::error::Error;
use crate::plugin::BoxError;

#[cfg(feature = "tls")]
use tls::Tls;

/// Longest time until a connection stands, that of a proxy and TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens connections to one server.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    proxy: Option<Intercept>,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl Connector {
    /// `roots` are certificates in PEM that are trusted beside those of the operating system.
    #[cfg_attr(
        not(feature = "tls"),
        expect(unused_variables, reason = "no certificate is checked")
    )]
    pub fn new(server: &Uri, roots: Option<&[u8]>) -> Result<Self, Error> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // Shared by all addresses of a name: one that is gone leaves time for the next.
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let proxy = (!is_local(server))
            .then(|| Matcher::from_env().intercept(server))
            .flatten();
        if let Some(proxy) = &proxy
            && proxy.uri().scheme() != Some(&Scheme::HTTP)
        {
            return Err(Error::Setup(format!(
                "the environment names the proxy {}, expected one like http://proxy.example.com:3128",
                proxy.uri()
            )));
        }
        Ok(Self {
            tcp,
            proxy,
            #[cfg(feature = "tls")]
            tls: is_secure(server).then(|| Tls::new(roots)).transpose()?,
        })
    }

    /// What a proxy that forwards single requests wants to see in each of them.
    pub fn proxy_header(&self, server: &Uri) -> Option<(HeaderName, HeaderValue)> {
        let proxy = self.proxy.as_ref().filter(|_| !is_secure(server))?;
        Some((PROXY_AUTHORIZATION, proxy.basic_auth()?.clone()))
    }

    async fn connect(mut self, to: Uri) -> Result<TokioIo<Wire>, BoxError> {
        let stream = match &self.proxy {
            None => self.tcp.call(to.clone()).await?,
            Some(proxy) if is_secure(&to) => {
                let mut tunnel = Tunnel::new(proxy.uri().clone(), self.tcp.clone());
                if let Some(key) = proxy.basic_auth() {
                    tunnel = tunnel.with_auth(key.clone());
                }
                tunnel.call(to.clone()).await?
            }
            Some(proxy) => self.tcp.call(proxy.uri().clone()).await?,
        };
        let stream = stream.into_inner();
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return Ok(Wire::new(tls.secure(&to, stream).await?, false));
        }
        Ok(Wire::new(stream, self.proxy.is_some()))
    }
}

fn is_secure(uri: &Uri) -> bool {
    uri.scheme() == Some(&Scheme::HTTPS)
}

/// Whether the server is on this machine, where a proxy cannot reach it.
fn is_local(server: &Uri) -> bool {
    let host = bare_host(server);
    let address: Option<IpAddr> = host.parse().ok();
    address.map_or_else(
        || host.eq_ignore_ascii_case("localhost"),
        |address| address.is_loopback(),
    )
}

/// The host, an IPv6 address without its brackets.
fn bare_host(uri: &Uri) -> &str {
    let host = uri.host().unwrap_or_default();
    host.trim_start_matches('[').trim_end_matches(']')
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Wire>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connecting = timeout(CONNECT_TIMEOUT, self.clone().connect(to));
        Box::pin(async move {
            connecting.await.unwrap_or_else(|_| {
                let seconds = CONNECT_TIMEOUT.as_secs();
                Err(format!("no connection within {seconds} seconds").into())
            })
        })
    }
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection, with TLS or without.
pub(super) struct Wire {
    stream: Box<dyn Duplex>,
    /// A proxy reads the requests, and wants whole addresses in them.
    is_forwarded: bool,
}

impl Wire {
    fn new(stream: impl Duplex + 'static, is_forwarded: bool) -> TokioIo<Self> {
        TokioIo::new(Self {
            stream: Box::new(stream),
            is_forwarded,
        })
    }
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.is_forwarded)
    }
}
impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}
impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(feature = "tls")]
mod tls {
    use std::sync::Arc;

    use hyper::Uri;
    use rustls_platform_verifier::Verifier;
    use tokio::net::TcpStream;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream;
    use tokio_rustls::rustls::crypto::aws_lc_rs;
    use tokio_rustls::rustls::pki_types::CertificateDer;
    use tokio_rustls::rustls::pki_types::pem::PemObject as _;
    use tokio_rustls::rustls::{self, ClientConfig};

    use super::bare_host;
    use crate::error::Error;
    use crate::plugin::BoxError;

    /// TLS with the certificates that the operating system and the program trust.
    #[derive(Clone)]
    pub(super) struct Tls(TlsConnector);

    impl Tls {
        pub fn new(roots: Option<&[u8]>) -> Result<Self, Error> {
            let config = config(certificates(roots)?)
                .map_err(|error| Error::Setup(format!("TLS cannot be set up: {error}")))?;
            Ok(Self(Arc::new(config).into()))
        }

        pub async fn secure(
            &self,
            server: &Uri,
            stream: TcpStream,
        ) -> Result<TlsStream<TcpStream>, BoxError> {
            let name = bare_host(server).to_owned();
            Ok(self.0.connect(name.try_into()?, stream).await?)
        }
    }

    fn certificates(pem: Option<&[u8]>) -> Result<Vec<CertificateDer<'static>>, Error> {
        let Some(pem) = pem else {
            return Ok(Vec::new());
        };
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let reason = match read {
            Ok(read) if !read.is_empty() => return Ok(read),
            Ok(_) => "contain no certificate".to_owned(),
            Err(error) => format!("cannot be read ({error})"),
        };
        Err(Error::Setup(format!(
            "the root certificates {reason}, expected PEM text with -----BEGIN CERTIFICATE-----"
        )))
    }

    fn config(roots: Vec<CertificateDer<'static>>) -> Result<ClientConfig, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = Verifier::new_with_extra_roots(roots, provider.clone())?;
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        // The verifier checks as the operating system does; only its type is not one that rustls knows.
        let mut config = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}
