//! HTTP requests to the gateway, with retries where they are safe.

use std::time::{Duration, Instant};

use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, RETRY_AFTER, USER_AGENT};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Problem};
use crate::plugin::BoxError;
use crate::transport::{Request, Response, Transport};

/// Timeout of a request that is not a stream.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// First back-off before a retry; doubles each time.
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
/// Longest back-off between two attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// Most bytes of a whole answer: more than any of the gateway's.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// Most bytes of the description of an error.
const PROBLEM_BYTES_MAX: usize = 1 << 20;
/// What is escaped in a segment of a path and in a query: all but the unreserved characters of RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// How long a request is retried while the gateway does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryPolicy {
    /// Never: sending it twice would do it twice.
    Once,
    /// For as long as a person would wait.
    Brief,
    /// For as long as a restart of the gateway takes: what is sent must not be lost.
    Long,
}

impl RetryPolicy {
    fn limit(self) -> Duration {
        match self {
            Self::Once => Duration::ZERO,
            Self::Brief => Duration::from_secs(3),
            Self::Long => Duration::from_secs(120),
        }
    }
}

/// Exponential back-off with jitter.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: BACKOFF_FIRST }
    }
}

impl Backoff {
    /// The next wait: in the upper half of the interval, so that many clients do not reconnect at the same
    /// time.
    pub fn step(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(BACKOFF_MAX);
        let spread = uuid::Uuid::now_v7().as_u128() as u8;
        wait / 2 + wait / 2 * u32::from(spread) / 255
    }
}

/// One gateway, and the credentials for it.
#[derive(Debug)]
pub(crate) struct Http {
    transport: Transport,
    /// The gateway's address, without a slash at its end.
    url: String,
}

impl Http {
    /// `headers` are the credentials, `roots` certificates in PEM that are trusted beside those of the operating system.
    pub fn new(url: &str, mut headers: HeaderMap, roots: Option<&[u8]>) -> Result<Self, Error> {
        let uri = gateway_uri(url)?;
        let agent = concat!("toolgate-client/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        Ok(Self {
            transport: Transport::new(&uri, headers, roots)?,
            url: uri.to_string().trim_end_matches('/').to_owned(),
        })
    }

    /// The same gateway and credentials, with connections of its own: for another runtime.
    pub fn fork(&self) -> Self {
        Self {
            transport: self.transport.fork(),
            url: self.url.clone(),
        }
    }

    /// The gateway's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A request to a path such as `v1/runs`.
    pub fn request(&self, method: Method, path: &str) -> Request {
        self.request_with(method, path, &[])
    }

    /// A request to a path of arbitrary segments, none of them `.` or `..`, with a query.
    pub fn request_segments(
        &self,
        method: Method,
        segments: &[impl AsRef<str>],
        query: &[(&str, String)],
    ) -> Request {
        let segments: Vec<String> = segments.iter().map(|segment| escape(segment.as_ref())).collect();
        self.request_with(method, &segments.join("/"), query)
    }

    fn request_with(&self, method: Method, path: &str, query: &[(&str, String)]) -> Request {
        let pairs: Vec<String> = query
            .iter()
            .map(|(name, value)| format!("{name}={}", escape(value)))
            .collect();
        let mark = if pairs.is_empty() { "" } else { "?" };
        let url = format!("{}/{path}{mark}{}", self.url, pairs.join("&"));
        Request::new(
            method,
            url.parse().expect("ids and escaped texts are fit for a URL"),
        )
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T, Error> {
        let request = self.request_with(Method::GET, path, query);
        self.read(request, RetryPolicy::Brief).await
    }

    /// Posts JSON and reads the JSON of the response.
    pub async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
        retries: RetryPolicy,
    ) -> Result<T, Error> {
        self.read(with_json(self.request(method, path), body)?, retries)
            .await
    }

    /// Posts JSON and ignores the response body.
    pub async fn post(&self, path: &str, body: &impl Serialize, retries: RetryPolicy) -> Result<(), Error> {
        let request = with_json(self.request(Method::POST, path), body)?;
        self.send_request(request.timeout(ANSWER_TIMEOUT), retries)
            .await
            .map(drop)
    }

    /// Sends a request and reads the JSON of the response.
    pub async fn read<T: DeserializeOwned>(
        &self,
        request: Request,
        retries: RetryPolicy,
    ) -> Result<T, Error> {
        let request = request.header(ACCEPT, "application/json").timeout(ANSWER_TIMEOUT);
        let (_, body) = self.read_bytes(request, retries).await?;
        serde_json::from_slice(&body).map_err(|error| Error::Protocol(error.to_string()))
    }

    /// Sends a request and reads the whole response: its headers and its body. One that breaks off is retried like one
    /// that does not come.
    pub async fn read_bytes(
        &self,
        request: Request,
        retries: RetryPolicy,
    ) -> Result<(HeaderMap, Vec<u8>), Error> {
        let mut attempts = Attempts::new(retries);
        loop {
            let error = match self.attempt(&request).await {
                Ok(response) => {
                    let headers = response.headers().clone();
                    match response.bytes(ANSWER_BYTES_MAX).await {
                        Ok(Some(body)) => return Ok((headers, body)),
                        Ok(None) => return Err(Error::Protocol("it is longer than 256 MiB".into())),
                        Err(error) => self.unreachable(error),
                    }
                }
                Err(error) => error,
            };
            attempts.pause(error).await?;
        }
    }

    /// Sends a request, and retries it as the policy allows. An error status is an [`Error`].
    pub async fn send_request(&self, request: Request, retries: RetryPolicy) -> Result<Response, Error> {
        let mut attempts = Attempts::new(retries);
        loop {
            match self.attempt(&request).await {
                Ok(response) => return Ok(response),
                Err(error) => attempts.pause(error).await?,
            }
        }
    }

    async fn attempt(&self, request: &Request) -> Result<Response, Error> {
        match self.transport.send(request).await {
            Ok(response) if response.status().is_success() => Ok(response),
            Ok(response) => Err(Error::Refused(Box::new(problem(response).await))),
            Err(error) => Err(self.unreachable(error)),
        }
    }

    pub fn unreachable(&self, cause: BoxError) -> Error {
        Error::Unreachable {
            url: self.url().to_owned(),
            cause,
        }
    }
}

/// The attempts of one request so far.
struct Attempts {
    retries: RetryPolicy,
    began: Instant,
    backoff: Backoff,
}

impl Attempts {
    fn new(retries: RetryPolicy) -> Self {
        Self {
            retries,
            began: Instant::now(),
            backoff: Backoff::default(),
        }
    }

    /// Waits before the next attempt; returns the error when there is none.
    async fn pause(&mut self, error: Error) -> Result<(), Error> {
        let wait = match &error {
            Error::Refused(problem) => problem.retry_after.unwrap_or_else(|| self.backoff.step()),
            _ => self.backoff.step(),
        };
        if !error.is_retryable() || self.began.elapsed() + wait > self.retries.limit() {
            return Err(error);
        }
        tracing::debug!(%error, ?wait, "retrying the request");
        tokio::time::sleep(wait).await;
        Ok(())
    }
}

/// The address of a gateway, without what no request to it has.
fn gateway_uri(url: &str) -> Result<Uri, Error> {
    let refused = |problem: &str| {
        Error::Setup(format!(
            "{url:?} {problem}, expected one like http://127.0.0.1:8787"
        ))
    };
    let uri: Uri = url.parse().map_err(|_| refused("is not a URL"))?;
    let (Some("http" | "https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(refused("is not the URL of a gateway"));
    };
    if authority.host().is_empty() || authority.as_str().contains('@') || uri.query().is_some() {
        return Err(refused("is not the URL of a gateway"));
    }
    if uri.scheme_str() == Some("https") && cfg!(not(feature = "tls")) {
        return Err(Error::Setup(format!(
            "{url:?} needs TLS, which this program was built without, enable the feature \"tls\" of toolgate-client"
        )));
    }
    Ok(uri)
}

fn escape(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// The header that carries a key or a JWT.
pub(crate) fn bearer(secret: &str) -> Result<(HeaderName, HeaderValue), Error> {
    Ok((AUTHORIZATION, sensitive(&format!("Bearer {secret}"))?))
}

/// A header value that is not logged.
pub(crate) fn sensitive(text: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| Error::Setup("the key contains characters that an HTTP header cannot carry".into()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The request, with a value as its JSON body.
pub(crate) fn with_json(request: Request, body: &impl Serialize) -> Result<Request, Error> {
    let body = serde_json::to_vec(body)
        .map_err(|error| Error::Setup(format!("the value cannot be written as JSON: {error}")))?;
    Ok(request.header(CONTENT_TYPE, "application/json").body(body))
}

/// The problem that an error response describes.
async fn problem(response: Response) -> Problem {
    let status = response.status();
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .map(Duration::from_secs);
    let target = response
        .headers()
        .get(LOCATION)
        .filter(|_| status.is_redirection());
    let detail = match target.and_then(|target| target.to_str().ok()) {
        Some(target) => {
            format!("the server redirects to {target}, give the SDK the gateway's address there")
        }
        None => format!(
            "the server answered {status} without a problem document, check that the URL is a gateway's"
        ),
    };
    let body = response
        .bytes(PROBLEM_BYTES_MAX)
        .await
        .ok()
        .flatten()
        .unwrap_or_default();
    let mut problem: Problem = serde_json::from_slice(&body).unwrap_or_else(|_| Problem {
        status: status.as_u16(),
        code: "UNEXPECTED".into(),
        detail,
        errors: Vec::new(),
        winner: None,
        claim: None,
        retry_after: None,
    });
    problem.retry_after = retry_after;
    problem
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// Sends a request to a server that gives this answer; what the server read, and what came of it.
    async fn exchange(
        answer: &'static str,
        request: impl FnOnce(&Http) -> Request,
    ) -> (String, Result<Vec<u8>, Error>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/base/", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut seen = vec![0; 16 * 1024];
            let bytes = stream.read(&mut seen).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(seen[..bytes].to_vec()).unwrap()
        });
        let http = Http::new(&url, HeaderMap::new(), None).unwrap();
        let outcome = match http.send_request(request(&http), RetryPolicy::Once).await {
            Ok(response) => Ok(response.bytes(ANSWER_BYTES_MAX).await.unwrap().unwrap()),
            Err(error) => Err(error),
        };
        (server.join().unwrap(), outcome)
    }

    #[tokio::test]
    async fn segments_and_queries_are_escaped_below_the_base_address() {
        let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        let (seen, read) = exchange(answer, |http| {
            http.request_segments(Method::PUT, &["v1", "a b/ü?#"], &[("q", "x&y=1 +".into())])
        })
        .await;
        let line = seen.lines().next().unwrap();
        assert_eq!(
            line,
            "PUT /base/v1/a%20b%2F%C3%BC%3F%23?q=x%26y%3D1%20%2B HTTP/1.1"
        );
        assert!(
            seen.to_lowercase().contains("user-agent: toolgate-client/"),
            "{seen}"
        );
        assert_eq!(read.unwrap(), b"hi");
    }

    #[tokio::test]
    async fn a_redirect_is_an_error_that_names_its_target() {
        let answer =
            "HTTP/1.1 308 Moved\r\nlocation: https://elsewhere.example/\r\ncontent-length: 0\r\n\r\n";
        let (_, outcome) = exchange(answer, |http| http.request(Method::GET, "readyz")).await;
        let error = outcome.unwrap_err();
        assert_eq!((error.code(), error.status()), ("UNEXPECTED", Some(308)));
        assert!(
            error.to_string().contains("https://elsewhere.example/"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn an_answer_that_does_not_come_in_time_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let http = Http::new(&url, HeaderMap::new(), None).unwrap();
        let request = http
            .request(Method::GET, "readyz")
            .timeout(Duration::from_millis(50));
        let error = http.send_request(request, RetryPolicy::Once).await.unwrap_err();
        let Error::Unreachable { cause, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(cause.to_string(), "no answer within 0.05 seconds");
    }
}
