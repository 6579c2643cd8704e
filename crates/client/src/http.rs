//! Sends requests, and again where that can help.

use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Problem};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for the answer to one request that is no stream.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// First wait before something is tried again; doubles each time.
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
/// Longest wait between two tries.
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// How long to go on when the gateway does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Not at all: sent twice it would be done twice.
    Once,
    /// As long as a person waits.
    Brief,
    /// As long as a restart takes: what is sent must not be lost.
    Long,
}

impl Patience {
    fn limit(self) -> Duration {
        match self {
            Self::Once => Duration::ZERO,
            Self::Brief => Duration::from_secs(3),
            Self::Long => Duration::from_secs(120),
        }
    }
}

/// Waits between tries, longer each time.
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
    /// How long to wait now: somewhere in the upper half, so that many clients do not come back as one.
    pub fn step(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(BACKOFF_MAX);
        let spread = uuid::Uuid::now_v7().as_u128() as u8;
        wait / 2 + wait / 2 * u32::from(spread) / 255
    }
}

/// One gateway, and who we are to it.
#[derive(Debug)]
pub(crate) struct Http {
    client: reqwest::Client,
    base: Url,
}

impl Http {
    /// `headers` say who is asking.
    pub fn new(url: &str, headers: HeaderMap) -> Result<Self, Error> {
        let expected = "expected an address such as http://127.0.0.1:8787";
        let mut base: Url = url
            .parse()
            .map_err(|_| Error::Setup(format!("{url:?} is no address; {expected}")))?;
        let host = match (base.scheme(), base.host_str()) {
            ("http" | "https", Some(host)) => host.to_owned(),
            _ => {
                return Err(Error::Setup(format!(
                    "{url:?} is no address of a gateway; {expected}"
                )));
            }
        };
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let mut builder = reqwest::Client::builder()
            .default_headers(headers)
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("toolgate-client/", env!("CARGO_PKG_VERSION")));
        if matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]") {
            // A proxy cannot reach what listens on this machine alone.
            builder = builder.no_proxy();
        }
        let client = builder
            .build()
            .map_err(|error| Error::Setup(format!("no HTTP client: {error}")))?;
        Ok(Self { client, base })
    }

    /// Where the gateway is.
    pub fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// A request to a path such as `v1/runs`.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = self.base.join(path).expect("ids and names are fit for a path");
        self.client.request(method, url)
    }

    /// A request to a path of whatever parts, none of them `.` or `..`, with a query.
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
        self.read(request, Patience::Brief).await
    }

    /// Sends JSON.
    pub async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
        patience: Patience,
    ) -> Result<T, Error> {
        self.read(with_json(self.request(method, path), body)?, patience)
            .await
    }

    /// Sends JSON; the answer has no body that matters.
    pub async fn tell(&self, path: &str, body: &impl Serialize, patience: Patience) -> Result<(), Error> {
        let request = with_json(self.request(Method::POST, path), body)?;
        self.answer(request.timeout(ANSWER_TIMEOUT), patience)
            .await
            .map(drop)
    }

    /// Sends a request and reads the JSON of its answer.
    pub async fn read<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        patience: Patience,
    ) -> Result<T, Error> {
        let request = request.header(ACCEPT, "application/json").timeout(ANSWER_TIMEOUT);
        let answer = self.answer(request, patience).await?;
        let body = answer.bytes().await.map_err(|error| self.unreachable(error))?;
        serde_json::from_slice(&body).map_err(|error| Error::Protocol(error.to_string()))
    }

    /// Sends a request until something comes back or patience ends. An answer that says no is an error.
    pub async fn answer(&self, request: RequestBuilder, patience: Patience) -> Result<Response, Error> {
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
            if !error.is_retryable() || began.elapsed() + wait > patience.limit() {
                return Err(error);
            }
            tracing::debug!(%error, ?wait, "trying again");
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

/// The header that carries a key or a token.
pub(crate) fn bearer(secret: &str) -> Result<(HeaderName, HeaderValue), Error> {
    Ok((AUTHORIZATION, sensitive(&format!("Bearer {secret}"))?))
}

/// A value that no log shows.
pub(crate) fn sensitive(text: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| Error::Setup("the key holds characters that no header can carry".into()))?;
    value.set_sensitive(true);
    Ok(value)
}

fn with_json(request: RequestBuilder, body: &impl Serialize) -> Result<RequestBuilder, Error> {
    let body = serde_json::to_vec(body).map_err(|error| Error::Setup(format!("this is no JSON: {error}")))?;
    Ok(request.header(CONTENT_TYPE, "application/json").body(body))
}

/// What an answer that is no success says of itself.
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
        detail: format!("the answer was {status} and nothing that a gateway says"),
        errors: Vec::new(),
        winner: None,
        claim: None,
        retry_after: None,
    });
    problem.retry_after = retry_after;
    problem
}
