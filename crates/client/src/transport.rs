//! HTTP/1.1 to one server: requests that can be sent again, responses that are read piece by piece. On `hyper` alone,
//! because whoever uses the SDK builds it: no cookies, no compression, and no redirects, which would carry the key to
//! another address.

mod connect;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::Error;
use crate::plugin::BoxError;
use connect::Connector;

/// Longest wait for the first byte of a response.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time without a byte in the body of a response: the gateway sends a heartbeat on its streams every 15 seconds.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How long a connection is kept for the next request. Shorter than the time after which servers and proxies close one,
/// commonly 60 seconds: a request on a connection that is being closed fails, and not every request can be sent twice.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// A request, which is small enough to be kept and sent again.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
    timeout: Option<Duration>,
    /// A header that cannot be sent.
    invalid: Option<HeaderName>,
}

impl Request {
    pub fn new(method: Method, uri: Uri) -> Self {
        Self {
            method,
            uri,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            timeout: None,
            invalid: None,
        }
    }

    /// Sets a header. One that HTTP cannot carry is reported when the request is sent.
    pub fn header(mut self, name: HeaderName, value: impl AsRef<str>) -> Self {
        match HeaderValue::from_str(value.as_ref()) {
            Ok(value) => drop(self.headers.insert(name, value)),
            Err(_) => self.invalid = Some(name),
        }
        self
    }

    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Limits the time until the response has been read to its end. Without it only the time to the first byte and
    /// between two bytes is limited.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }
}

/// A response whose body is still to be read.
#[derive(Debug)]
pub(crate) struct Response {
    status: StatusCode,
    headers: HeaderMap,
    body: Incoming,
    deadline: Option<(Instant, Duration)>,
}

impl Response {
    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The next bytes of the body; none at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BoxError> {
        loop {
            let frame = match self.deadline {
                Some((at, limit)) => timeout_at(at, self.body.frame()).await.map_err(|_| late(limit))?,
                None => timeout(SILENCE_MAX, self.body.frame())
                    .await
                    .map_err(|_| silent())?,
            };
            match frame.transpose()?.map(|frame| frame.into_data()) {
                Some(Ok(bytes)) => return Ok(Some(bytes)),
                // Trailers, which mean nothing here.
                Some(Err(_)) => {}
                None => return Ok(None),
            }
        }
    }

    /// The whole body; none if it is longer than `bytes_max`.
    pub async fn bytes(mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, BoxError> {
        let mut body = Vec::new();
        while let Some(bytes) = self.chunk().await? {
            if body.len() + bytes.len() > bytes_max {
                return Ok(None);
            }
            body.extend_from_slice(&bytes);
        }
        Ok(Some(body))
    }
}

/// Connections to one server, and what is sent with every request.
pub(crate) struct Transport {
    client: Client<Connector, Full<Bytes>>,
    connector: Connector,
    headers: HeaderMap,
}

impl Transport {
    /// For the server at `uri`, whose certificate may also be signed by one of `roots`, in PEM. A server on this machine
    /// is reached without the proxy of the environment.
    pub fn new(uri: &Uri, mut headers: HeaderMap, roots: Option<&[u8]>) -> Result<Self, Error> {
        let connector = Connector::new(uri, roots)?;
        headers.extend(connector.proxy_header(uri));
        // Without it a server may choose a coding, and there is none that could be read here.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(Self::of(connector, headers))
    }

    /// The same server, with connections of its own: for another runtime.
    pub fn fork(&self) -> Self {
        Self::of(self.connector.clone(), self.headers.clone())
    }

    fn of(connector: Connector, headers: HeaderMap) -> Self {
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new());
        builder.pool_idle_timeout(IDLE_MAX);
        Self {
            client: builder.build(connector.clone()),
            connector,
            headers,
        }
    }

    /// Sends a request once, and waits for the head of its response.
    pub async fn send(&self, request: &Request) -> Result<Response, BoxError> {
        if let Some(name) = &request.invalid {
            return Err(format!("the header {name} contains characters that HTTP cannot carry").into());
        }
        let mut sent = hyper::Request::new(Full::new(request.body.clone()));
        *sent.method_mut() = request.method.clone();
        *sent.uri_mut() = request.uri.clone();
        *sent.headers_mut() = self.headers.clone();
        sent.headers_mut().extend(request.headers.clone());
        let limit = request.timeout.unwrap_or(HEAD_TIMEOUT);
        let deadline = request.timeout.map(|limit| (Instant::now() + limit, limit));
        let answered = timeout(limit, self.client.request(sent)).await;
        let answered = answered.map_err(|_| late(limit))?;
        let (head, body) = answered.map_err(|error| root(&error))?.into_parts();
        Ok(Response {
            status: head.status,
            headers: head.headers,
            body,
            deadline,
        })
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Transport")
    }
}

/// The cause at the bottom of an error, such as "Connection refused": what stands above it are the words of the layers of
/// the HTTP client.
fn root(error: &(dyn std::error::Error + 'static)) -> BoxError {
    let causes = std::iter::successors(Some(error), |cause| cause.source());
    causes.last().map_or_else(String::new, ToString::to_string).into()
}

fn late(limit: Duration) -> BoxError {
    format!("no answer within {} seconds", limit.as_secs_f64()).into()
}

fn silent() -> BoxError {
    format!("no byte for {} seconds", SILENCE_MAX.as_secs()).into()
}
