//! Sends a request, with retries where they can help, until a response stream begins.

use std::error::Error;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::Full;
use tokio::time::timeout;
use toolgate_engine::model::{ModelError, ModelErrorKind};
use toolgate_kernel::agent::Secret;

use crate::ModelSettings;
use crate::body::Body;
use crate::direct::Pool;
use crate::failure::{content_type, permanent, response_error, retryable};

/// First back-off before a retry; doubles each time.
const BACKOFF: Duration = Duration::from_millis(500);
/// Longest back-off between two attempts. A longer `Retry-After` is returned to the engine, which retries the
/// whole step later.
const BACKOFF_MAX: Duration = Duration::from_secs(20);
/// Content types that no event stream has. Others may be one: some servers stream as `text/plain`.
const NO_STREAM: [&str; 4] = ["application/json", "text/html", "application/xml", "text/xml"];

/// The media type that a response has, without its parameters.
pub(crate) type ContentType = String;

/// HTTP client for model servers.
pub(crate) struct Client {
    settings: ModelSettings,
    pool: Pool,
    /// Created on first use: a gateway whose models are all on plain `http://` needs no root certificates.
    shared: OnceLock<Result<reqwest::Client, String>>,
    sent: AtomicU64,
}

/// A request that can be sent any number of times.
pub(crate) struct Outgoing {
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
    /// An API key was added.
    has_key: bool,
}

impl Outgoing {
    /// A `POST` with a JSON body. Fails if `url` is not an absolute `http` or `https` URL.
    pub(crate) fn new(url: &str, body: Vec<u8>) -> Result<Self, ModelError> {
        let uri: Uri = url
            .parse()
            .map_err(|_| permanent("the model's baseUrl is not a URL, expected one like https://host/v1"))?;
        let known = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
        if !known {
            return Err(permanent(
                "the model's baseUrl is not a URL of http or https with a host, expected one like https://host/v1",
            ));
        }
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("toolgate/", env!("CARGO_PKG_VERSION"))),
        );
        Ok(Self {
            uri,
            headers,
            body: body.into(),
            has_key: false,
        })
    }

    /// Adds a header without a secret.
    pub(crate) fn header(&mut self, name: &'static str, value: &'static str) {
        self.headers
            .insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }

    /// Adds the header with the API key, marked sensitive so that it is not logged.
    pub(crate) fn key(&mut self, name: &'static str, prefix: &str, key: &Secret) -> Result<(), ModelError> {
        let text = [prefix, key.expose()].concat();
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            permanent("the model's API key contains characters that an HTTP header cannot carry")
        })?;
        value.set_sensitive(true);
        self.headers.insert(HeaderName::from_static(name), value);
        self.has_key = true;
        Ok(())
    }

    /// Host and port, as error messages name the server: without a user and a password that stand in the address.
    pub(crate) fn host(&self) -> &str {
        let authority = self.uri.authority().map_or("", Authority::as_str);
        authority.rsplit('@').next().unwrap_or_default()
    }
}

/// A request that got no stream, and whether this client may retry it.
struct FailedAttempt {
    error: ModelError,
    may_retry: bool,
}

impl From<ModelError> for FailedAttempt {
    fn from(error: ModelError) -> Self {
        Self {
            may_retry: error.kind == ModelErrorKind::Retryable,
            error,
        }
    }
}

impl Client {
    pub(crate) fn new(settings: ModelSettings) -> Self {
        Self {
            settings,
            pool: Pool::default(),
            shared: OnceLock::new(),
            sent: AtomicU64::new(0),
        }
    }

    pub(crate) fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    /// Sends until a stream begins, an error is final, or the attempts are used up.
    pub(crate) async fn send(&self, request: &Outgoing) -> Result<(Body<'_>, ContentType), ModelError> {
        let salt = self.sent.fetch_add(1, Ordering::Relaxed);
        let mut attempts_made = 0;
        loop {
            let failed = match self.send_once(request).await {
                Ok(begun) => return Ok(begun),
                Err(failed) => failed,
            };
            attempts_made += 1;
            let wait = failed
                .error
                .retry_after
                .unwrap_or_else(|| backoff(attempts_made, salt));
            if !failed.may_retry || attempts_made >= self.settings.attempts || wait > BACKOFF_MAX {
                return Err(failed.error);
            }
            // Without the error message: the key is not removed from it yet.
            tracing::debug!(
                host = request.host(),
                attempts_made,
                ?wait,
                "retrying the model request"
            );
            tokio::time::sleep(wait).await;
        }
    }

    async fn send_once(&self, request: &Outgoing) -> Result<(Body<'_>, ContentType), FailedAttempt> {
        let wait = self.settings.idle_timeout;
        let Ok(sent) = timeout(wait, self.open(request)).await else {
            // One timeout is long enough for a caller; whether to wait again is the engine's decision.
            let error = retryable(format!(
                "{} did not answer within {wait:?}, vendors.idle_timeout sets the limit",
                request.host()
            ));
            return Err(FailedAttempt {
                error,
                may_retry: false,
            });
        };
        let (head, body) = sent?;
        let content_type = content_type(&head.headers);
        // Some servers report an error as JSON with status 200, and another server than a model's answers with a page.
        let no_stream = NO_STREAM.contains(&content_type.as_str());
        if head.status.is_success() && !no_stream {
            return Ok((body, content_type));
        }
        let words = body.read_error().await;
        Err(response_error(
            request.host(),
            request.has_key,
            head.status,
            &head.headers,
            &words,
        )
        .into())
    }

    async fn open(&self, request: &Outgoing) -> Result<(Parts, Body<'_>), FailedAttempt> {
        if self.settings.direct && request.uri.scheme_str() == Some("http") {
            self.open_direct(request).await
        } else {
            self.open_shared(request).await
        }
        .map_err(|cause| retryable(format!("cannot reach {}: {cause}", request.host())).into())
    }

    async fn open_direct(&self, outgoing: &Outgoing) -> Result<(Parts, Body<'_>), String> {
        let mut request = Request::new(Full::new(outgoing.body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = outgoing.uri.clone();
        *request.headers_mut() = outgoing.headers.clone();
        let host = HeaderValue::from_str(outgoing.host())
            .map_err(|_| "its host name is not a valid header value".to_owned())?;
        request.headers_mut().insert(header::HOST, host);
        let sent = self.pool.send(request, self.settings.connect_timeout).await;
        let (answer, connection) = sent.map_err(|error| root(&error))?;
        let (head, frames) = answer.into_parts();
        Ok((head, Body::direct(frames, connection, &self.pool)))
    }

    async fn open_shared(&self, outgoing: &Outgoing) -> Result<(Parts, Body<'_>), String> {
        let client = self
            .shared
            .get_or_init(|| self.build_shared())
            .as_ref()
            .map_err(String::clone)?;
        let sent = client
            .post(outgoing.uri.to_string())
            .headers(outgoing.headers.clone())
            .body(outgoing.body.clone())
            .send();
        let answer: Response<reqwest::Body> = sent.await.map_err(|error| root(&error.without_url()))?.into();
        let (head, frames) = answer.into_parts();
        let body = Body::shared(frames, head.version);
        Ok((head, body))
    }

    fn build_shared(&self) -> Result<reqwest::Client, String> {
        reqwest::Client::builder()
            .connect_timeout(self.settings.connect_timeout)
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            .no_gzip()
            .build()
            .map_err(|error| root(&error))
    }
}

/// The innermost cause: the layers above it repeat the address.
fn root(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// Exponential back-off with jitter: up to half of it is subtracted, differently for each request.
fn backoff(attempts_made: u32, salt: u64) -> Duration {
    let full = BACKOFF
        .saturating_mul(1 << (attempts_made - 1).min(16))
        .min(BACKOFF_MAX);
    let mixed = (salt ^ u64::from(attempts_made))
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        >> 40;
    full.mul_f64(1.0 - mixed as f64 / (1u64 << 25) as f64)
}
