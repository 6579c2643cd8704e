//! `fetch` for code with permissions: to the hosts that they name, and to nothing that the SSRF guard refuses.

use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use toolgate_egress::{BodyLimit, Client, EgressError, Hop, REDIRECTS_MAX, Request};
use toolgate_package::HostPattern;
use url::Url;

use crate::host::{FetchRequest, FetchResponse};

/// Largest response.
const RESPONSE_BYTES_MAX: usize = 2 << 20;
/// Time for a request with all of its redirects.
const TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes of all headers of a response that the code is given.
const HEADER_BYTES_MAX: usize = 64 << 10;
const METHODS: [Method; 6] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
];
/// Headers that say how a request is carried, which is not for the code to say.
const OWN_HEADERS: [&str; 9] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "keep-alive",
];

/// Sends requests of code: the hosts that its permissions name, and of those only what the client's policy permits. No
/// request carries anything that the code did not write.
#[derive(Clone)]
pub struct GuardedFetch {
    client: Client,
    hosts: Vec<HostPattern>,
}

impl GuardedFetch {
    /// Sends through this client, whose policy is for addresses of strangers, to these hosts.
    pub fn new(client: Client, hosts: Vec<HostPattern>) -> Self {
        Self { client, hosts }
    }

    /// Sends a request. Each redirect is checked like the first address.
    pub async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, String> {
        let sent = tokio::time::timeout(TIME_MAX, self.follow(read(request)?));
        sent.await.unwrap_or_else(|_| {
            Err(format!(
                "there was no answer within {} seconds",
                TIME_MAX.as_secs()
            ))
        })
    }

    async fn follow(&self, mut request: Request) -> Result<FetchResponse, String> {
        for _ in 0..=REDIRECTS_MAX {
            self.check(&request.url)?;
            match self
                .client
                .hop(request)
                .await
                .map_err(|error| error.to_string())?
            {
                Hop::Redirect(next) => request = next,
                Hop::Response(response) => {
                    return Ok(FetchResponse {
                        status: response.status.as_u16(),
                        url: response.url.into(),
                        headers: shown(&response.headers),
                        body: response.body,
                    });
                }
            }
        }
        Err(EgressError::redirects(REDIRECTS_MAX).to_string())
    }

    fn check(&self, url: &Url) -> Result<(), String> {
        if self.hosts.iter().any(|host| host.matches(url)) {
            return Ok(());
        }
        let host = url.host_str().unwrap_or_default();
        Err(match self.hosts.is_empty() {
            true => format!(
                "fetch is not permitted: expected the permission \"fetch:{host}\", there is none for fetch"
            ),
            false => format!("fetch of {host} is not permitted: expected the permission \"fetch:{host}\""),
        })
    }
}

/// The request, if it is one.
fn read(request: FetchRequest) -> Result<Request, String> {
    let url = Url::parse(&request.url).map_err(|error| format!("the address cannot be read: {error}"))?;
    let method = METHODS.iter().find(|method| method.as_str() == request.method);
    let method = method.ok_or("expected the method GET, HEAD, POST, PUT, PATCH or DELETE")?;
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let name: HeaderName = name
            .parse()
            .map_err(|_| "a header has no name that can be sent")?;
        let value: HeaderValue = value
            .parse()
            .map_err(|_| format!("the header {name} cannot be sent"))?;
        if OWN_HEADERS.contains(&name.as_str()) || name.as_str().starts_with("proxy-") {
            return Err(format!("the header {name} is set by the gateway"));
        }
        headers.append(name, value);
    }
    Ok(Request {
        method: method.clone(),
        url,
        headers,
        body: request.body.map(Into::into),
        limit: BodyLimit::Whole(RESPONSE_BYTES_MAX),
    })
}

/// The headers that the code is given: text, no cookies, and not without end.
fn shown(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut left = HEADER_BYTES_MAX;
    let pairs = headers
        .iter()
        .filter(|(name, _)| *name != http::header::SET_COOKIE);
    let pairs = pairs.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
    let fits = |(name, value): &(String, String)| {
        let size = name.len() + value.len();
        left = left.saturating_sub(size);
        left > 0
    };
    pairs.take_while(fits).collect()
}

/// The fetch half of a host.
#[async_trait]
impl crate::host::Host for GuardedFetch {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, String> {
        GuardedFetch::fetch(self, request).await
    }
    async fn storage(
        &self,
        operation: crate::StorageOp,
    ) -> Result<Option<toolgate_kernel::json::Json>, String> {
        crate::NoHost.storage(operation).await
    }
    fn log(&self, _: crate::LogLevel, _: &str) {}
}
