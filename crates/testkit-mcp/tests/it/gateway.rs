//! A gateway on a socket that exposes one server as it is.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use toolgate_access::Principal;
use toolgate_door_mcp::Entrance;
use toolgate_door_mcp::through::{Exposed, Limits, Review, Through, Upstreams, UpstreamsError};
use toolgate_fair::{Limits as FairLimits, Queue, Shares, Spare};
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
    /// What is exposed; a test may change it under the gateway.
    pub exposed: Arc<Mutex<Exposed>>,
    _tasks: Vec<AbortOnDropHandle<()>>,
    _world: World,
}

struct One(Arc<Mutex<Exposed>>);

#[async_trait]
impl Upstreams for One {
    async fn find(&self, _who: &Principal, name: &str) -> Result<Option<Exposed>, UpstreamsError> {
        Ok((name == "fixture").then(|| self.0.lock().unwrap().clone()))
    }
}

struct HoldsOne;

impl Review for HoldsOne {
    fn admits(&self, tool: &str, _definition: &Value) -> bool {
        tool != HELD
    }
}

/// The fixture as a program.
pub fn program(eras: Eras) -> Server {
    let era = match eras {
        Eras::Both => "both",
        Eras::Modern => "modern",
        Eras::Legacy => "legacy",
    };
    Server::command("fixture", env!("CARGO_BIN_EXE_mcp-fixture"), ["--era", era])
}

/// Turns for so many at once, of whom nobody waits for long.
pub fn turns(running: Shares) -> Arc<Queue> {
    Queue::new(FairLimits {
        running,
        waiting: Shares::same(64),
        waiting_bytes: Shares::same(1 << 20),
        spare: Spare::NONE,
    })
}

/// A server that is exposed to everybody without limits of its own.
pub fn exposed(server: Server) -> Exposed {
    Exposed {
        server,
        revision: "1".into(),
        turns: turns(Shares::same(64)),
        timeout: PATIENCE,
        processes: None,
        access: Access::Public,
        review: Arc::new(HoldsOne),
        reviewed: "1".into(),
        hide: Arc::new(|_| None),
    }
}

impl Gateway {
    /// A gateway before a fixture that speaks these eras.
    pub async fn before(eras: Eras, by: By) -> Self {
        Self::before_with(eras, by, |_| ()).await
    }

    /// The same, exposed otherwise.
    pub async fn before_with(eras: Eras, by: By, change: impl FnOnce(&mut Exposed)) -> Self {
        let fixture = Fixture::new(eras);
        let mut tasks = Vec::new();
        let server = match by {
            By::Http => {
                let (listener, url) = listen("mcp").await;
                let served = fixture.clone();
                tasks.push(spawn(async move { drop(serve_http(listener, served).await) }));
                Server::http("fixture", url)
            }
            By::Pipe => program(eras),
        };
        let mut exposed = exposed(server);
        change(&mut exposed);
        Self::exposing(exposed, fixture, tasks, Limits::default()).await
    }

    /// A gateway before a server at this address.
    pub async fn before_address(url: &str) -> Self {
        Self::before_server(exposed(Server::http("fixture", url)), Limits::default()).await
    }

    /// A gateway before any server.
    pub async fn before_server(exposed: Exposed, limits: Limits) -> Self {
        Self::exposing(exposed, Fixture::new(Eras::Both), Vec::new(), limits).await
    }

    async fn exposing(
        exposed: Exposed,
        fixture: Fixture,
        mut tasks: Vec<AbortOnDropHandle<()>>,
        limits: Limits,
    ) -> Self {
        let exposed = Arc::new(Mutex::new(exposed));
        let through = Through::new(Arc::new(One(exposed.clone())), limits);
        let entrance = Entrance {
            hosts: vec!["tools.example".into()],
            ..Entrance::default()
        };
        let world = World::new(
            &CONTRACT,
            |_| (),
            |ground| through.router(ground.shared.clone(), entrance),
        )
        .await;
        let (listener, url) = listen("mcp/servers/fixture").await;
        let router = world.router.clone();
        tasks.push(spawn(async move { drop(axum::serve(listener, router).await) }));
        Self {
            url,
            fixture,
            exposed,
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
