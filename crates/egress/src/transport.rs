//! The connections. There are three pools, however many policies there are: what keeps policies apart is the check of
//! the address before each request, and that a name is resolved by the rules of the pool.
//!
//! Why sharing is safe: a pool hands a connection only to requests for the host and port it was opened for. In the
//! public pool every connection leads to a public address. Into the direct pool a request comes only if its own policy
//! permits this host and port wherever the name leads, so it never gains a connection that it could not have opened.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect;
use toolgate_fair::{Limits, Queue, Share, Shares, Spare};

use crate::client::{Client, EgressError};
use crate::guard::{NotPublic, is_public};
use crate::policy::Policy;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence in the middle of a response.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
const USER_AGENT: &str = concat!("toolgate/", env!("CARGO_PKG_VERSION"));

/// Requests that wait for their turn, and their bytes.
const WAITING: Shares = Shares::of(8_192);
const WAITING_BYTES: Shares = Shares::of(256 << 20);

/// The gateway's outbound connections. Cheap to clone; clones share them.
#[derive(Clone)]
pub struct Egress {
    pools: Arc<Pools>,
    requests: Arc<Queue>,
    share: Option<Share>,
}

impl Default for Egress {
    fn default() -> Self {
        Self::with_requests(Shares::UNLIMITED)
    }
}

impl Egress {
    /// No connection is made until something is sent.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with so many requests at once, of those that are sent in somebody's share.
    pub fn with_requests(running: Shares) -> Self {
        Self {
            pools: Arc::default(),
            requests: Queue::new(Limits {
                running,
                waiting: WAITING,
                waiting_bytes: WAITING_BYTES,
                spare: Spare::NONE,
            }),
            share: None,
        }
    }

    /// The same connections, for requests in somebody's share: they wait for their turn.
    pub fn within(&self, share: Share) -> Self {
        Self {
            share: Some(share),
            ..self.clone()
        }
    }

    /// Sends what this policy permits.
    pub fn client(&self, policy: Policy) -> Client {
        let turns = self.share.map(|share| (self.requests.clone(), share));
        Client::new(self.pools.clone(), policy, turns)
    }
}

/// Connection pool of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// To public addresses only; names are checked when they are resolved.
    Public,
    /// Wherever the name leads.
    Direct,
    /// As the environment's proxies say.
    Proxied,
}

/// The clients, each made when first needed: most gateways use one, and root certificates take a while to read.
#[derive(Default)]
pub(crate) struct Pools {
    public: Made,
    direct: Made,
    proxied: Made,
    lookup: Lookup,
}

type Made = OnceLock<Result<reqwest::Client, String>>;

impl Pools {
    pub(crate) fn get(&self, route: Route) -> Result<&reqwest::Client, EgressError> {
        let made = match route {
            Route::Public => &self.public,
            Route::Direct => &self.direct,
            Route::Proxied => &self.proxied,
        };
        let client = made.get_or_init(|| self.build(route)).as_ref();
        client.map_err(|reason| EgressError::Unreached(reason.clone()))
    }

    fn build(&self, route: Route) -> Result<reqwest::Client, String> {
        let builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            // Each hop is checked before it is made, which a client that follows by itself does not do.
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .dns_resolver(Resolver {
                lookup: self.lookup.clone(),
                public_only: route == Route::Public,
            });
        let builder = match route {
            Route::Public | Route::Direct => builder.no_proxy(),
            Route::Proxied => builder,
        };
        builder.build().map_err(|error| error.to_string())
    }
}

/// Where addresses of names come from.
#[derive(Clone, Default)]
enum Lookup {
    #[default]
    System,
    /// One address for every name.
    #[cfg(test)]
    Always(SocketAddr),
}

/// Resolves names, in the public pool to public addresses or to none. An address that was checked is the one that is
/// connected to, so a name that changes in between (DNS rebinding) gains nothing.
struct Resolver {
    lookup: Lookup,
    public_only: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, public_only) = (self.lookup.clone(), self.public_only);
        Box::pin(async move {
            let mut found: Vec<SocketAddr> = match lookup {
                Lookup::System => tokio::net::lookup_host((name.as_str(), 0)).await?.collect(),
                #[cfg(test)]
                Lookup::Always(address) => vec![address],
            };
            if public_only {
                found.retain(|to| is_public(to.ip()));
                if found.is_empty() {
                    return Err(io::Error::other(NotPublic).into());
                }
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::serve::ListenerExt as _;
    use tokio::net::TcpListener;
    use tokio_util::task::AbortOnDropHandle;
    use url::Url;

    use super::*;
    use crate::{AllowList, BodyLimit, Destinations, Proxy, Request, Response};

    /// A loopback server that counts connections and requests.
    struct Server {
        address: SocketAddr,
        connections: Arc<AtomicUsize>,
        requests: Arc<AtomicUsize>,
        _task: AbortOnDropHandle<()>,
    }

    impl Server {
        async fn start() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (connections, requests) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
            let (opened, asked) = (connections.clone(), requests.clone());
            let listener = listener.tap_io(move |_| {
                opened.fetch_add(1, Ordering::SeqCst);
            });
            let app = Router::new().fallback(async move || {
                asked.fetch_add(1, Ordering::SeqCst);
                "0123456789"
            });
            let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
            Self {
                address,
                connections,
                requests,
                _task: AbortOnDropHandle::new(task),
            }
        }
        /// An egress for which every name leads to this server.
        fn egress(&self) -> Egress {
            Egress {
                pools: Arc::new(Pools {
                    lookup: Lookup::Always(self.address),
                    ..Pools::default()
                }),
                ..Egress::default()
            }
        }
        fn url(&self, host: &str) -> Url {
            format!("http://{host}:{}/", self.address.port()).parse().unwrap()
        }
        fn allow(&self, host: &str) -> AllowList {
            AllowList::new(&[format!("{host}:{}", self.address.port())]).unwrap()
        }
        fn counted(&self) -> (usize, usize) {
            let count = |of: &AtomicUsize| of.load(Ordering::SeqCst);
            (count(&self.connections), count(&self.requests))
        }
    }

    async fn get(client: &Client, url: Url, limit: BodyLimit) -> Result<Response, EgressError> {
        client.send(Request::get(url, limit)).await
    }

    #[tokio::test]
    async fn a_policy_never_reuses_a_connection_that_it_may_not_open() {
        let server = Server::start().await;
        let egress = server.egress();
        // The name passes for a public one; where it leads is on this machine.
        let url = server.url("rebound.example");
        let lax = egress.client(Policy::public(server.allow("rebound.example")));
        let trusted = egress.client(Policy::trusted(Proxy::Ignored));
        let strict = egress.client(Policy::public(AllowList::default()));
        for client in [&lax, &trusted] {
            get(client, url.clone(), BodyLimit::Whole(99)).await.unwrap();
        }
        assert_eq!(
            server.counted(),
            (1, 2),
            "policies that may both go there share the connection"
        );
        let refused = get(&strict, url.clone(), BodyLimit::Whole(99)).await.unwrap_err();
        assert!(
            matches!(&refused, EgressError::Refused(why) if why.contains("public internet")),
            "{refused}"
        );
        let elsewhere = egress.client(Policy::public(server.allow("other.example")));
        assert!(matches!(
            get(&elsewhere, url, BodyLimit::Whole(99)).await,
            Err(EgressError::Refused(_))
        ));
        assert_eq!(server.counted(), (1, 2), "what is refused is not sent");
    }

    #[tokio::test]
    async fn a_policy_bounds_the_response_whatever_the_request_wants() {
        let server = Server::start().await;
        let policy = Policy {
            response_bytes_max: 4,
            ..Policy::trusted(Proxy::Ignored)
        };
        let client = server.egress().client(policy);
        let url = server.url("name.example");
        let whole = get(&client, url.clone(), BodyLimit::Whole(99)).await;
        assert!(matches!(whole, Err(EgressError::Unusable(_))));
        let cut = get(&client, url, BodyLimit::Cut(99)).await.unwrap();
        assert_eq!((cut.body.as_slice(), cut.cut), (&b"0123"[..], true));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_limit_of_a_policy_ends_a_request() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/", silent.local_addr().unwrap())).unwrap();
        let client = Egress::new().client(Policy::server(&url).within(Duration::from_secs(3)));
        assert!(matches!(client.policy().destinations, Destinations::Public(_)));
        let ended = get(&client, url, BodyLimit::Head).await;
        assert!(matches!(ended, Err(EgressError::TimedOut)));
    }

    #[tokio::test]
    async fn a_client_for_streaming_is_given_out_for_permitted_addresses_only() {
        let server = Server::start().await;
        let egress = server.egress();
        let strict = egress.client(Policy::public(AllowList::default()));
        assert!(strict.streaming(&server.url("127.0.0.1")).is_err());
        let public = strict.streaming(&server.url("rebound.example")).unwrap();
        assert!(public.get(server.url("rebound.example")).send().await.is_err());
        assert_eq!(server.counted(), (0, 0));
        let lax = egress.client(Policy::server(&server.url("rebound.example")));
        let client = lax.streaming(&server.url("rebound.example")).unwrap();
        assert!(client.get(server.url("rebound.example")).send().await.is_ok());
    }

    #[tokio::test]
    async fn a_name_that_leads_inside_is_not_resolved() {
        let resolver = Resolver {
            lookup: Lookup::System,
            public_only: true,
        };
        let resolved = resolver.resolve("localhost".parse().expect("a name")).await;
        let error = resolved.err().expect("refused").to_string();
        assert!(error.contains("public internet"), "{error}");
    }
}
