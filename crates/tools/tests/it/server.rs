//! A server on a free loopback port that answers as a test says and keeps what it was asked; and a toolkit that may reach
//! it.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolgate_egress::{AllowList, Egress, Secrets};
use toolgate_engine::call_log::CallLog;
use toolgate_engine::clock::SystemClock;
use toolgate_engine::outbox::Outbox;
use toolgate_engine::sources::Sources;
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_engine::user_tokens::NoToken;
use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
use toolgate_kernel::agent::{Agent, Defaults, Missing, ModelName, ModelSpec, Provider, Secret};
use toolgate_kernel::id::{CallId, EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::problem::Problem;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{Execution, SourceTool};
use toolgate_store::MemoryStore;
use toolgate_tools::knowledge::Library;
use toolgate_tools::notify::{Channels, Deliveries};
use toolgate_tools::readable::Reader;
use toolgate_tools::{OutboundSettings, Parts, Toolkit};

/// Most bytes of a request that a test sends.
const BODY_BYTES_MAX: usize = 1 << 20;

/// What the server was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: String,
    /// Path and query, as they came over the wire.
    pub target: String,
    pub headers: HeaderMap,
    pub body: String,
}

impl Asked {
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().expect("text"))
    }
}

type Answers = dyn Fn(&Asked, usize) -> Response + Send + Sync;

struct Shared {
    asked: Mutex<Vec<Asked>>,
    answers: Box<Answers>,
}

/// A running server; ends with this value.
pub struct Server {
    /// `127.0.0.1:port`.
    pub address: String,
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

impl Server {
    /// `answers` is given each request and how many there were before it.
    pub async fn start(answers: impl Fn(&Asked, usize) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let shared = Arc::new(Shared {
            asked: Mutex::default(),
            answers: Box::new(answers),
        });
        let app = Router::new().fallback(answer).with_state(shared.clone());
        let task = tokio::spawn(async move {
            axum::serve(listener, app)
                .await
                .expect("serving needs no more than the port");
        });
        Self {
            address,
            shared,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// One that always answers with this JSON.
    pub async fn with(body: Value) -> Self {
        Self::start(move |_, _| json_answer(200, &body)).await
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().expect("no panic while locked").clone()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, BODY_BYTES_MAX).await.expect("a small body");
    let asked = Asked {
        method: head.method.to_string(),
        target: head.uri.to_string(),
        headers: head.headers,
        body: String::from_utf8(body.to_vec()).expect("text"),
    };
    let before = {
        let mut all = shared.asked.lock().expect("no panic while locked");
        all.push(asked.clone());
        all.len() - 1
    };
    (shared.answers)(&asked, before)
}

pub fn json_answer(status: u16, body: &Value) -> Response {
    typed(status, "application/json", body.to_string())
}

pub fn typed(status: u16, kind: &str, body: impl Into<Body>) -> Response {
    let answer = Response::builder().status(status).header("content-type", kind);
    answer.body(body.into()).expect("an answer")
}

pub fn redirect(status: u16, to: &str) -> Response {
    let answer = Response::builder().status(status).header("location", to);
    answer.body(Body::empty()).expect("an answer")
}

/// The sources of a gateway that may reach these servers and has the secret `TOKEN`.
pub fn toolkit(servers: &[&Server]) -> Sources {
    toolkit_in(world(servers))
}

/// The sources of a gateway with this way outside.
pub fn toolkit_in(world: OutboundSettings) -> Sources {
    let store = Arc::new(MemoryStore::new());
    let reader = Arc::new(Reader::here());
    let egress = Egress::new();
    Toolkit::standard(Parts {
        reader: reader.clone(),
        store: store.clone(),
        records: store.clone(),
        workspace: Workspace::new(store.clone(), WorkspaceLimits::default()),
        knowledge: Arc::new(Library::new(store.clone(), reader.clone())),
        deliveries: Arc::new(Deliveries::new(
            Arc::new(Outbox::new(store, Arc::new(SystemClock))),
            Channels::default(),
            &egress,
        )),
        plans: toolgate_tools::PlanLimits::default(),
        egress,
        outbound: Arc::new(world),
    })
    .sources()
}

pub const TOKEN: &str = "tok-4f1c/+secret";

pub fn world(servers: &[&Server]) -> OutboundSettings {
    let allow: Vec<String> = servers.iter().map(|server| server.address.clone()).collect();
    OutboundSettings {
        allow: AllowList::new(&allow).expect("addresses"),
        secrets: Secrets::new([("TOKEN".to_owned(), Secret::new(TOKEN))]).expect("a secret"),
        ..OutboundSettings::default()
    }
}

/// Runs a `request` tool as an agent's author would write it.
pub async fn request(toolkit: &Sources, execution: Value, input: Value) -> Result<Value, CallFailure> {
    run(toolkit, "request", execution, input).await
}

/// Runs a tool with this execution.
pub async fn run(
    toolkit: &Sources,
    kind: &str,
    execution: Value,
    input: Value,
) -> Result<Value, CallFailure> {
    let tool = parse(toolkit, kind, execution).await;
    let called = toolkit.run(&tool, &input.into(), &context()).await?;
    Ok(called.output().expect("these tools end").to_value())
}

/// What runs a tool that an agent's author wrote so.
pub async fn parse(toolkit: &Sources, kind: &str, execution: Value) -> Arc<SourceTool> {
    let config = json!({"tools": [{
        "name": "t", "description": "A tool.", "executionType": kind, "execution": execution,
    }]});
    let agent = read(toolkit, &config).await.expect("a sound configuration");
    match &agent.tools.values().next().expect("one tool").execution {
        Execution::Source(tool) => tool.clone(),
        other => panic!("not of a source: {other:?}"),
    }
}

/// Reads an agent's configuration that is about to be stored.
pub async fn read(toolkit: &Sources, config: &Value) -> Result<Agent, Vec<Problem>> {
    read_with(toolkit, config, Missing::Refused).await
}

/// Reads an agent's configuration.
pub async fn read_with(toolkit: &Sources, config: &Value, missing: Missing) -> Result<Agent, Vec<Problem>> {
    let defaults = Defaults {
        model: ModelSpec {
            name: ModelName {
                provider: Provider::Demo,
                name: "demo".into(),
            },
            base_url: None,
            api_key: None,
            temperature: None,
            top_p: None,
            max_output_tokens: None,
            reasoning_tokens: None,
        },
        catalog: &*toolkit.catalog(context().project).await,
        missing,
    };
    let name = "worker".parse().expect("a name");
    toolgate_kernel::agent::parse(&name, config, &defaults)
}

/// The call that every test makes.
pub fn call() -> CallId {
    CallId {
        run: RunId::from_bytes([3; 16]),
        number: 7,
    }
}

pub fn context() -> CallContext {
    CallContext {
        project: ProjectId::from_bytes([1; 16]),
        space: SpaceId::from_bytes([2; 16]),
        run: RunId::from_bytes([3; 16]),
        root: RunId::from_bytes([3; 16]),
        agent: "worker".parse().expect("a name"),
        entity: EntityId::from_bytes([4; 16]),
        depth: 0,
        call: call(),
        profile: None,
        works_for: None,
        user_token: Err(NoToken::Absent),
        turns: Vec::new(),
        tools: Vec::new(),
        grants: Vec::new(),
        deadline: Time(60_000),
        now: Time(0),
        cancel: CancellationToken::new(),
        progress: Arc::new(|_| {}),
        log: CallLog::default(),
        sampling: Default::default(),
    }
}
