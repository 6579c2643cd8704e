//! A gateway on a socket that exposes one server as it is.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use toolgate_access::Principal;
use toolgate_door_mcp::through::{Exposed, Limits, Review, Through, Upstreams, UpstreamsError};
use toolgate_http::describe::document;
use toolgate_kernel::agent::Access;
use toolgate_mcp::Server;
use toolgate_testkit_http::contract::Contract;
use toolgate_testkit_http::world::World;
use toolgate_testkit_mcp::{Eras, Fixture, serve_http};

// MCP describes itself: nothing of it stands in the document.
static CONTRACT: LazyLock<Contract> = LazyLock::new(|| Contract::new(&document([])));

/// Longest time that a test waits for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// A tool that is held for review.
pub const HELD: &str = "test_audio_content";

/// How the gateway reaches its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Http,
    Pipe,
}

/// A gateway and the server behind it.
pub struct Gateway {
    /// Where the server is exposed.
    pub url: String,
    /// The server, where it runs in this process.
    pub fixture: Fixture,
    _tasks: Vec<AbortOnDropHandle<()>>,
    _world: World,
}

struct One(Exposed);

#[async_trait]
impl Upstreams for One {
    async fn find(&self, _who: &Principal, name: &str) -> Result<Option<Exposed>, UpstreamsError> {
        Ok((name == "fixture").then(|| self.0.clone()))
    }
}

struct HoldsOne;

impl Review for HoldsOne {
    fn admits(&self, tool: &str, _definition: &Value) -> bool {
        tool != HELD
    }
}

impl Gateway {
    /// A gateway before a fixture that speaks these eras.
    pub async fn before(eras: Eras, by: By) -> Self {
        let fixture = Fixture::new(eras);
        let mut tasks = Vec::new();
        let server = match by {
            By::Http => {
                let (listener, url) = listen("mcp").await;
                let served = fixture.clone();
                tasks.push(spawn(async move { drop(serve_http(listener, served).await) }));
                Server::http("fixture", url)
            }
            By::Pipe => {
                let era = match eras {
                    Eras::Both => "both",
                    Eras::Modern => "modern",
                    Eras::Legacy => "legacy",
                };
                Server::command("fixture", env!("CARGO_BIN_EXE_mcp-fixture"), ["--era", era])
            }
        };
        Self::exposing(server, fixture, tasks).await
    }

    /// A gateway before a server at this address.
    pub async fn before_address(url: &str) -> Self {
        Self::exposing(Server::http("fixture", url), Fixture::new(Eras::Both), Vec::new()).await
    }

    async fn exposing(server: Server, fixture: Fixture, mut tasks: Vec<AbortOnDropHandle<()>>) -> Self {
        let exposed = Exposed {
            server,
            revision: "1".into(),
            access: Access::Backend,
            review: Arc::new(HoldsOne),
            reviewed: "1".into(),
        };
        let through = Through::new(Arc::new(One(exposed)), Limits::default());
        let world = World::new(&CONTRACT, |_| (), |ground| through.router(ground.shared.clone())).await;
        let (listener, url) = listen("mcp/servers/fixture").await;
        let router = world.router.clone();
        tasks.push(spawn(async move { drop(axum::serve(listener, router).await) }));
        Self {
            url,
            fixture,
            _tasks: tasks,
            _world: world,
        }
    }
}

/// Serves on a free port, and what is served at that path.
pub async fn listen(path: &str) -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, format!("http://{address}/{path}"))
}

/// Runs until it is dropped.
pub fn spawn(task: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(task))
}

/// What must happen soon.
pub async fn soon<T>(what: &str, happening: impl Future<Output = T>) -> T {
    let happened = tokio::time::timeout(PATIENCE, happening).await;
    happened.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
}
