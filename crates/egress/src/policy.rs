//! What a request may reach, and what it may cost.

use std::time::Duration;

use url::Url;

use crate::guard::AllowList;

/// Redirects that are followed unless a policy says otherwise.
pub const REDIRECTS_MAX: usize = 5;
/// Largest response unless a policy says otherwise.
const RESPONSE_BYTES_MAX: usize = 64 << 20;

/// What a request may reach, and what it may cost. Cheap to clone and to build: whoever sends resolves it for the
/// project and the call at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Addresses that may be connected to.
    pub destinations: Destinations,
    /// Redirects that are followed. Each is checked like the first address. With 0, a redirect is an error.
    pub redirects_max: usize,
    /// Time for all of it: connecting, redirects, and the body of the response. Without one, a server that goes on
    /// sending is read for as long as the caller waits.
    pub timeout: Option<Duration>,
    /// Upper bound on the response, whatever the request itself asks for.
    pub response_bytes_max: usize,
}

/// Addresses that may be connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destinations {
    /// The public internet, and what the operator has allowed besides. For every address that a model, an agent, a page
    /// or a response names. Never through a proxy: it would resolve names itself and reach what we may not.
    Public(AllowList),
    /// Any address. For those that come from the operator's own settings alone.
    Trusted(Proxy),
}

/// Whether the proxies that the environment names are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proxy {
    /// Connections are direct.
    Ignored,
    /// `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` count.
    Environment,
}

impl Policy {
    /// The public internet, and what is allowed besides.
    pub fn public(allow: AllowList) -> Self {
        Self::to(Destinations::Public(allow))
    }

    /// The public internet, and the one server that the operator has named by its address.
    pub fn server(url: &Url) -> Self {
        Self::public(AllowList::only(url))
    }

    /// Any address, for requests to what the operator's settings name.
    pub fn trusted(proxy: Proxy) -> Self {
        Self::to(Destinations::Trusted(proxy))
    }

    fn to(destinations: Destinations) -> Self {
        Self {
            destinations,
            redirects_max: REDIRECTS_MAX,
            timeout: None,
            response_bytes_max: RESPONSE_BYTES_MAX,
        }
    }

    /// The same with a time limit for each request.
    pub fn within(self, timeout: Duration) -> Self {
        Self {
            timeout: Some(timeout),
            ..self
        }
    }

    /// The same without redirects: one is an error.
    pub fn without_redirects(self) -> Self {
        Self {
            redirects_max: 0,
            ..self
        }
    }
}
