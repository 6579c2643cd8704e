//! The one way from a tool to the world outside: every address is checked, every redirect again, and every answer has an
//! end.

use std::error::Error;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use toolgate_engine::tools::CallFailure;
use toolgate_kernel::call::ErrorCode;
use url::Url;

use crate::guard::{self, AllowList, NotPublic, PublicResolver, Reach};

/// Most redirects that are followed.
pub(crate) const REDIRECTS_MAX: usize = 5;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence in the middle of an answer.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
const USER_AGENT: &str = concat!("toolgate/", env!("CARGO_PKG_VERSION"));

/// Sends requests of tools.
#[derive(Default)]
pub(crate) struct Outside {
    allow: AllowList,
    /// Made when first needed: most gateways never go outside, and root certificates take a while to read.
    clients: OnceLock<Result<Clients, String>>,
}

struct Clients {
    /// Connects to public addresses only.
    public: Client,
    /// For addresses that the operator named.
    allowed: Client,
}

/// A request.
#[derive(Clone)]
pub(crate) struct Ask {
    pub method: Method,
    pub url: Url,
    /// Sent to the host that was asked, and to no other that it may redirect to.
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
    /// What becomes of an answer that is longer.
    pub limit: Limit,
}

/// Most bytes of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    /// A longer one is an error.
    Whole(usize),
    /// The rest of a longer one is left.
    Cut(usize),
    /// Nothing of it is read: the head says enough.
    Head,
}

/// What came back, from the last address of a row of redirects.
pub(crate) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub url: Url,
    pub body: Vec<u8>,
    /// The body goes on.
    pub cut: bool,
}

/// One request of a row of redirects.
pub(crate) enum Step {
    /// Ask this instead. It is not checked yet.
    Onward(Ask),
    There(Answer),
}

/// Why nothing came back. No words of it quote the address, which may hold a secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Missed {
    /// Tools may not go there.
    #[error("{0}")]
    Refused(String),
    /// It was never reached, so nothing has happened there.
    #[error("it cannot be reached: {0}")]
    Unreached(String),
    /// It may have happened.
    #[error("it gave no answer: {0}")]
    Broken(String),
    /// The answer cannot be used.
    #[error("{0}")]
    Unusable(String),
}

impl Missed {
    pub(crate) fn endless() -> Self {
        Self::Unusable(format!("it redirects more than {REDIRECTS_MAX} times"))
    }
}

impl From<Missed> for CallFailure {
    fn from(missed: Missed) -> Self {
        let code = match missed {
            Missed::Refused(_) => ErrorCode::PermissionDenied,
            Missed::Unreached(_) | Missed::Broken(_) => ErrorCode::Unavailable,
            Missed::Unusable(_) => ErrorCode::ExecutionFailed,
        };
        Self::new(code, missed.to_string())
    }
}

impl Outside {
    pub(crate) fn new(allow: AllowList) -> Self {
        Self {
            allow,
            clients: OnceLock::new(),
        }
    }

    /// Sends a request, follows where it leads, and reads the answer.
    pub(crate) async fn send(&self, mut ask: Ask) -> Result<Answer, Missed> {
        for _ in 0..=REDIRECTS_MAX {
            match self.step(ask).await? {
                Step::Onward(next) => ask = next,
                Step::There(answer) => return Ok(answer),
            }
        }
        Err(Missed::endless())
    }

    /// Sends a request, and reads the answer unless it leads elsewhere.
    pub(crate) async fn step(&self, ask: Ask) -> Result<Step, Missed> {
        let response = self.send_once(&ask).await?;
        Ok(match redirect(&ask, &response)? {
            Some(next) => Step::Onward(next),
            None => Step::There(read(response, ask).await?),
        })
    }

    /// Whether a request may go there, as far as the address tells.
    pub(crate) fn check(&self, url: &Url) -> Result<Reach, Missed> {
        guard::check(url, &self.allow).map_err(Missed::Refused)
    }

    async fn send_once(&self, ask: &Ask) -> Result<Response, Missed> {
        let reach = self.check(&ask.url)?;
        let clients = self.clients.get_or_init(Clients::build).as_ref();
        let clients = clients.map_err(|words| Missed::Unreached(words.clone()))?;
        let client = match reach {
            Reach::Public => &clients.public,
            Reach::Allowed => &clients.allowed,
        };
        let mut request = client
            .request(ask.method.clone(), ask.url.clone())
            .headers(ask.headers.clone());
        if let Some(body) = &ask.body {
            request = request.body(body.clone());
        }
        request.send().await.map_err(missed)
    }
}

impl Clients {
    fn build() -> Result<Self, String> {
        let client = || {
            Client::builder()
                .user_agent(USER_AGENT)
                .connect_timeout(CONNECT_TIMEOUT)
                .read_timeout(READ_TIMEOUT)
                .redirect(Policy::none())
                .retry(reqwest::retry::never())
                .referer(false)
                // A proxy would resolve names itself, and reach what we may not.
                .no_proxy()
        };
        let words = |error: reqwest::Error| error.to_string();
        Ok(Self {
            public: client().dns_resolver(PublicResolver).build().map_err(words)?,
            allowed: client().build().map_err(words)?,
        })
    }
}

/// The request that the answer asks for instead.
fn redirect(ask: &Ask, response: &Response) -> Result<Option<Ask>, Missed> {
    let status = response.status();
    let keeps = match status.as_u16() {
        301 | 302 => ask.method != Method::POST,
        303 => matches!(ask.method, Method::GET | Method::HEAD),
        307 | 308 => true,
        _ => return Ok(None),
    };
    let Some(location) = response.headers().get(header::LOCATION) else {
        return Ok(None);
    };
    let unusable = |words: &str| Err(Missed::Unusable(words.into()));
    let location = location.to_str().ok().and_then(|text| ask.url.join(text).ok());
    let Some(url) = location else {
        return unusable("it redirects to an address that is none");
    };
    if ask.url.scheme() == "https" && url.scheme() != "https" {
        return unusable("it redirects from https:// to an address without encryption");
    }
    let mut next = ask.clone();
    if !keeps {
        next.method = Method::GET;
        next.body = None;
        next.headers.remove(header::CONTENT_TYPE);
    }
    if url.origin() != ask.url.origin() {
        if next.body.is_some() {
            return unusable("it redirects a request with a body to another host");
        }
        // What authorises us here is none of another's business, and any header may.
        let accept = next.headers.remove(header::ACCEPT);
        next.headers.clear();
        next.headers.extend(accept.map(|accept| (header::ACCEPT, accept)));
    }
    next.url = url;
    Ok(Some(next))
}

async fn read(mut response: Response, ask: Ask) -> Result<Answer, Missed> {
    let (body, cut) = body(&mut response, ask.limit).await?;
    Ok(Answer {
        status: response.status(),
        headers: std::mem::take(response.headers_mut()),
        url: ask.url,
        body,
        cut,
    })
}

/// The bytes of an answer, and whether there are more.
async fn body(response: &mut Response, limit: Limit) -> Result<(Vec<u8>, bool), Missed> {
    let (bytes_max, cuts) = match limit {
        Limit::Whole(bytes) => (bytes, false),
        Limit::Cut(bytes) => (bytes, true),
        Limit::Head => return Ok((Vec::new(), true)),
    };
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(missed)? {
        let room = bytes_max - body.len();
        let over = chunk.len() > room;
        if over && !cuts {
            return Err(Missed::Unusable(format!(
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

fn missed(error: reqwest::Error) -> Missed {
    let unreached = error.is_connect();
    let slow = error.is_timeout();
    let error = error.without_url();
    let mut cause: &(dyn Error + 'static) = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    // The resolver's refusal arrives inside of an `io::Error`, which shows no source of its own.
    let words = cause.to_string();
    match (words == NotPublic.to_string(), unreached) {
        (true, _) => Missed::Refused(words),
        (false, true) if slow => Missed::Unreached("no connection in time".into()),
        (false, true) => Missed::Unreached(words),
        (false, false) if slow => Missed::Broken("it fell silent".into()),
        (false, false) => Missed::Broken(words),
    }
}
