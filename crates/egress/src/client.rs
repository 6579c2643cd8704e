//! Sends requests: every address is checked, every redirect again, and every response has an end.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use toolgate_fair::{Full, Permit, Queue, Share};
use toolgate_kernel::call::ErrorCode;
use url::Url;

use crate::guard::{self, NotPublic};
use crate::policy::{Destinations, Policy, Proxy};
use crate::transport::{Pools, Route};

/// Sends what its policy permits. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    pools: Arc<Pools>,
    policy: Policy,
    /// Where its requests wait for their turn, and in whose share.
    turns: Option<(Arc<Queue>, Share)>,
}

/// An HTTP request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Address.
    pub url: Url,
    /// Sent to the host in `url`, and to no other that it may redirect to.
    pub headers: HeaderMap,
    /// Body.
    pub body: Option<Bytes>,
    /// How much of the response is read.
    pub limit: BodyLimit,
}

impl Request {
    /// A `GET` without headers of its own.
    pub fn get(url: Url, limit: BodyLimit) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: None,
            limit,
        }
    }
}

/// How much of a response is read. The policy may say less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLimit {
    /// So many bytes; a longer response is an error.
    Whole(usize),
    /// So many bytes; the rest of a longer response is left.
    Cut(usize),
    /// Nothing: status and headers say enough.
    Head,
}

/// The response of the last server in a chain of redirects.
#[derive(Debug)]
pub struct Response {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Address that responded.
    pub url: Url,
    /// As much of the body as the limit lets through.
    pub body: Vec<u8>,
    /// The body goes on.
    pub cut: bool,
}

/// What one request of a chain of redirects led to.
#[derive(Debug)]
pub enum Hop {
    /// The server redirects: this is the request to send instead. It has not been checked yet.
    Redirect(Request),
    /// The server responded.
    Response(Response),
}

/// Why there is no response. No message quotes the address, which may hold a secret.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The policy does not permit the address.
    #[error("{0}")]
    Refused(String),
    /// No connection was made, so the server has done nothing.
    #[error("it cannot be reached: {0}")]
    Unreached(String),
    /// The request was sent, so the server may have acted on it.
    #[error("it gave no answer: {0}")]
    Broken(String),
    /// The policy's time limit ran out. The server may have acted.
    #[error("it gave no answer in time")]
    TimedOut,
    /// The response is too long, or redirects where it must not.
    #[error("{0}")]
    Unusable(String),
}

impl EgressError {
    /// A server redirected more often than permitted.
    pub fn redirects(most: usize) -> Self {
        Self::Unusable(match most {
            0 => "it redirects, which is not followed".into(),
            most => format!("it redirects more than {most} times"),
        })
    }

    /// The error code of a tool call that failed for this reason.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused(_) => ErrorCode::PermissionDenied,
            Self::Unreached(_) | Self::Broken(_) | Self::TimedOut => ErrorCode::Unavailable,
            Self::Unusable(_) => ErrorCode::ExecutionFailed,
        }
    }
}

impl Client {
    pub(crate) fn new(pools: Arc<Pools>, policy: Policy, turns: Option<(Arc<Queue>, Share)>) -> Self {
        Self { pools, policy, turns }
    }

    /// Policy of the client.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Sends a request, follows redirects as the policy says, and reads the response.
    pub async fn send(&self, request: Request) -> Result<Response, EgressError> {
        let _turn = self.turn(&request).await?;
        self.in_time(self.follow(request)).await
    }

    /// Sends a request once; a redirect is not followed.
    pub async fn hop(&self, request: Request) -> Result<Hop, EgressError> {
        let _turn = self.turn(&request).await?;
        self.in_time(self.send_once(request)).await
    }

    /// Whether the policy permits the address itself. A name is checked again when it is resolved.
    pub fn check(&self, url: &Url) -> Result<(), EgressError> {
        self.route(url).map(drop)
    }

    /// A client for a protocol that drives HTTP by itself, for requests to this address only: they are not checked again.
    /// Names are resolved by the rules of the policy, and redirects are not followed. The policy's time and size limits
    /// do not apply.
    pub fn streaming(&self, url: &Url) -> Result<reqwest::Client, EgressError> {
        self.pools.get(self.route(url)?).cloned()
    }

    /// Waits for a turn, held until the response is read. The policy's time begins after it.
    async fn turn(&self, request: &Request) -> Result<Option<Permit>, EgressError> {
        let Some((queue, share)) = &self.turns else {
            return Ok(None);
        };
        let bytes = request.body.as_ref().map_or(0, Bytes::len);
        match queue.turn(*share, bytes).await {
            Ok(turn) => Ok(Some(turn)),
            Err(Full) => Err(EgressError::Unreached(
                "too many requests wait already, try again in a moment".into(),
            )),
        }
    }

    async fn follow(&self, mut request: Request) -> Result<Response, EgressError> {
        for _ in 0..=self.policy.redirects_max {
            match self.send_once(request).await? {
                Hop::Redirect(next) => request = next,
                Hop::Response(response) => return Ok(response),
            }
        }
        Err(EgressError::redirects(self.policy.redirects_max))
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T, EgressError>>) -> Result<T, EgressError> {
        match self.policy.timeout {
            Some(limit) => tokio::time::timeout(limit, work)
                .await
                .unwrap_or(Err(EgressError::TimedOut)),
            None => work.await,
        }
    }

    /// How a request to this address travels, if the policy permits it.
    fn route(&self, url: &Url) -> Result<Route, EgressError> {
        let route = match &self.policy.destinations {
            Destinations::Public(allow) => guard::check(url, allow),
            Destinations::Trusted(Proxy::Ignored) => guard::parts(url).map(|_| Route::Direct),
            Destinations::Trusted(Proxy::Environment) => guard::parts(url).map(|_| Route::Proxied),
        };
        route.map_err(EgressError::Refused)
    }

    async fn send_once(&self, request: Request) -> Result<Hop, EgressError> {
        let client = self.pools.get(self.route(&request.url)?)?;
        let mut sent = client
            .request(request.method.clone(), request.url.clone())
            .headers(request.headers.clone());
        if let Some(body) = &request.body {
            sent = sent.body(body.clone());
        }
        let response = sent.send().await.map_err(failure)?;
        Ok(match redirect(&request, &response)? {
            Some(next) => Hop::Redirect(next),
            None => Hop::Response(self.read(response, request).await?),
        })
    }

    async fn read(&self, mut response: reqwest::Response, request: Request) -> Result<Response, EgressError> {
        let most = self.policy.response_bytes_max;
        let limit = match request.limit {
            BodyLimit::Whole(bytes) => BodyLimit::Whole(bytes.min(most)),
            BodyLimit::Cut(bytes) => BodyLimit::Cut(bytes.min(most)),
            BodyLimit::Head => BodyLimit::Head,
        };
        let (body, cut) = body(&mut response, limit).await?;
        Ok(Response {
            status: response.status(),
            headers: std::mem::take(response.headers_mut()),
            url: request.url,
            body,
            cut,
        })
    }
}

/// The request that the server redirects to, if it does.
fn redirect(request: &Request, response: &reqwest::Response) -> Result<Option<Request>, EgressError> {
    let status = response.status();
    let keeps_method = match status.as_u16() {
        301 | 302 => request.method != Method::POST,
        303 => matches!(request.method, Method::GET | Method::HEAD),
        307 | 308 => true,
        _ => return Ok(None),
    };
    let Some(location) = response.headers().get(header::LOCATION) else {
        return Ok(None);
    };
    let unusable = |reason: &str| Err(EgressError::Unusable(reason.into()));
    let location = location
        .to_str()
        .ok()
        .and_then(|text| request.url.join(text).ok());
    let Some(url) = location else {
        return unusable("it redirects to an address that is none");
    };
    if request.url.scheme() == "https" && url.scheme() != "https" {
        return unusable("it redirects from https:// to an address without encryption");
    }
    let mut next = request.clone();
    if !keeps_method {
        next.method = Method::GET;
        next.body = None;
        next.headers.remove(header::CONTENT_TYPE);
    }
    if url.origin() != request.url.origin() {
        if next.body.is_some() {
            return unusable("it redirects a request with a body to another host");
        }
        // Any header may authorise us, and that is for the first host only.
        let accept = next.headers.remove(header::ACCEPT);
        next.headers.clear();
        next.headers.extend(accept.map(|accept| (header::ACCEPT, accept)));
    }
    next.url = url;
    Ok(Some(next))
}

/// The bytes of a response, and whether there are more.
async fn body(response: &mut reqwest::Response, limit: BodyLimit) -> Result<(Vec<u8>, bool), EgressError> {
    let (bytes_max, cuts) = match limit {
        BodyLimit::Whole(bytes) => (bytes, false),
        BodyLimit::Cut(bytes) => (bytes, true),
        BodyLimit::Head => return Ok((Vec::new(), true)),
    };
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failure)? {
        let room = bytes_max - body.len();
        let over = chunk.len() > room;
        if over && !cuts {
            return Err(EgressError::Unusable(format!(
                "its answer is longer than {bytes_max} bytes"
            )));
        }
        body.extend_from_slice(&chunk[..room.min(chunk.len())]);
        if over {
            return Ok((body, true));
        }
    }
    Ok((body, false))
}

fn failure(error: reqwest::Error) -> EgressError {
    let unreached = error.is_connect();
    let slow = error.is_timeout();
    let error = error.without_url();
    let mut cause: &(dyn Error + 'static) = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    // The resolver's refusal arrives inside of an `io::Error`, which shows no source of its own.
    let reason = cause.to_string();
    match (reason == NotPublic.to_string(), unreached) {
        (true, _) => EgressError::Refused(reason),
        (false, true) if slow => EgressError::Unreached("no connection in time".into()),
        (false, true) => EgressError::Unreached(reason),
        (false, false) if slow => EgressError::Broken("it fell silent".into()),
        (false, false) => EgressError::Broken(reason),
    }
}
