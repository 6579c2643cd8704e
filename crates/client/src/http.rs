//! HTTP requests to the gateway, with retries where they are safe.

use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Problem};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a request that is not a stream.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// First back-off before a retry; doubles each time.
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
/// Longest back-off between two attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(10);

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
    client: reqwest::Client,
    base: Url,
    headers: HeaderMap,
}

impl Http {
    /// `headers` are the credentials.
    pub fn new(url: &str, headers: HeaderMap) -> Result<Self, Error> {
        let expected = "expected one like http://127.0.0.1:8787";
        let mut base: Url = url
            .parse()
            .map_err(|_| Error::Setup(format!("{url:?} is not a URL, {expected}")))?;
        if !matches!((base.scheme(), base.host_str()), ("http" | "https", Some(_))) {
            return Err(Error::Setup(format!(
                "{url:?} is not the URL of a gateway, {expected}"
            )));
        }
        if base.scheme() == "https" && cfg!(not(feature = "tls")) {
            return Err(Error::Setup(format!(
                "{url:?} needs TLS, which this program was built without, enable the feature \"tls\" of toolgate-client"
            )));
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        Self::connected(base, headers)
    }

    /// The same gateway and credentials, with connections of its own: for another runtime.
    pub fn fork(&self) -> Result<Self, Error> {
        Self::connected(self.base.clone(), self.headers.clone())
    }

    fn connected(base: Url, headers: HeaderMap) -> Result<Self, Error> {
        let mut builder = reqwest::Client::builder()
            .default_headers(headers.clone())
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("toolgate-client/", env!("CARGO_PKG_VERSION")));
        if matches!(base.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
            // A proxy cannot reach a gateway on loopback.
            builder = builder.no_proxy();
        }
        let client = builder
            .build()
            .map_err(|error| Error::Setup(format!("no HTTP client: {error}")))?;
        Ok(Self {
            client,
            base,
            headers,
        })
    }

    /// The gateway's URL.
    pub fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// A request to a path such as `v1/runs`.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = self.base.join(path).expect("ids and names are fit for a path");
        self.client.request(method, url)
    }

    /// A request to a path of arbitrary segments, none of them `.` or `..`, with a query.
    pub fn request_segments(
        &self,
        method: Method,
        segments: &[String],
        query: &[(&str, String)],
    ) -> RequestBuilder {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .expect("http has a path")
            .pop_if_empty()
            .extend(segments);
        self.client.request(method, with_query(url, query))
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T, Error> {
        let url = self.base.join(path).expect("ids and names are fit for a path");
        let request = self.client.get(with_query(url, query));
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
        request: RequestBuilder,
        retries: RetryPolicy,
    ) -> Result<T, Error> {
        let request = request.header(ACCEPT, "application/json").timeout(ANSWER_TIMEOUT);
        let response = self.send_request(request, retries).await?;
        let body = response.bytes().await.map_err(|error| self.unreachable(error))?;
        serde_json::from_slice(&body).map_err(|error| Error::Protocol(error.to_string()))
    }

    /// Sends a request, and retries it as the policy allows. An error status is an [`Error`].
    pub async fn send_request(
        &self,
        request: RequestBuilder,
        retries: RetryPolicy,
    ) -> Result<Response, Error> {
        let began = Instant::now();
        let mut backoff = Backoff::default();
        loop {
            let attempt = request.try_clone().expect("no body is a stream");
            let error = match attempt.send().await {
                Ok(response) if response.status().is_success() => return Ok(response),
                Ok(response) => Error::Refused(Box::new(problem(response).await)),
                Err(error) => self.unreachable(error),
            };
            let wait = match &error {
                Error::Refused(problem) => problem.retry_after.unwrap_or_else(|| backoff.step()),
                _ => backoff.step(),
            };
            if !error.is_retryable() || began.elapsed() + wait > retries.limit() {
                return Err(error);
            }
            tracing::debug!(%error, ?wait, "retrying the request");
            tokio::time::sleep(wait).await;
        }
    }

    pub fn unreachable(&self, cause: reqwest::Error) -> Error {
        Error::Unreachable {
            url: self.url().to_owned(),
            cause: cause.without_url().into(),
        }
    }
}

fn with_query(mut url: Url, query: &[(&str, String)]) -> Url {
    if !query.is_empty() {
        url.query_pairs_mut()
            .extend_pairs(query.iter().map(|(name, value)| (name, value.as_str())));
    }
    url
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

fn with_json(request: RequestBuilder, body: &impl Serialize) -> Result<RequestBuilder, Error> {
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
    let text = response.text().await.unwrap_or_default();
    let mut problem: Problem = serde_json::from_str(&text).unwrap_or_else(|_| Problem {
        status: status.as_u16(),
        code: "UNEXPECTED".into(),
        detail: format!(
            "the server answered {status} without a problem document, check that the URL is a gateway's"
        ),
        errors: Vec::new(),
        winner: None,
        claim: None,
        retry_after: None,
    });
    problem.retry_after = retry_after;
    problem
}
