//! Schemas and values that are small and take long to check together: what could take too long is refused, and what is
//! allowed keeps nobody else waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Answer, Api, Gateway, api_answer, put_agent, soon, worker};

/// Users who send the worst that is allowed, at once.
const USERS: usize = 16;
/// Slowest answer of `/healthz` meanwhile. It is a few milliseconds on a machine that does nothing else, and seconds when
/// a thread of the runtime checks or parses.
const HEALTH_MAX: Duration = Duration::from_secs(1);
const KIB: usize = 1024;

/// The attack: five patterns whose states do not fit into a table.
fn repeats() -> Value {
    let pattern = |repeats: u32| json!({"type": "string", "pattern": format!("a[ab]{{{repeats}}}[^ab]")});
    json!({"anyOf": (900..905).map(pattern).collect::<Vec<_>>()})
}

fn many_bounds() -> Value {
    let bound = |n: i32| json!({"minimum": n - 1_000_000});
    json!({"type": "array", "items": {"allOf": (0..300).map(bound).collect::<Vec<_>>()}})
}

fn probe(schema: &Value) -> Value {
    json!([{"name": "probe", "description": "Looks.", "outputSchema": schema}])
}

/// A gateway whose agent `worker` every user may start.
async fn gateway(models: &ModelServer) -> Gateway {
    let gateway = Gateway::start(&[]).await;
    let mut config = worker(models);
    config["access"] = "public".into();
    put_agent(&gateway.api(), "worker", &config).await;
    gateway
}

/// A run that waits for the result of a client tool with this output schema: its id, and the call's.
async fn waiting(user: &Api, schema: &Value) -> (String, String) {
    let body = json!({"agent": "worker", "message": "call:probe text:2", "clientTools": probe(schema)});
    let started = user.post("/v1/runs", &body).await;
    assert!(started.is_success(), "{started:?}");
    let run = started.text("runId");
    let offer = soon("an offer", user.follow(&run, 0).await.offer()).await;
    (run, offer.call().to_owned())
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str, pointer: &str) {
    assert_eq!((answer.status, answer.text("code")), (status, code.into()));
    assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_could_take_long_to_check_is_refused_unchecked() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let ada = gateway.api().as_user("ada");

    let (run, call) = waiting(&ada, &repeats()).await;
    let text = |bytes: usize| json!("ab".repeat(bytes / 2));
    let large = ada.result(&run, &call, &text(400 * KIB)).await;
    refused(&large, 413, "CONTENT_TOO_LARGE", "/result");
    let costly = ada.result(&run, &call, &text(200 * KIB)).await;
    refused(&costly, 422, "TOO_COSTLY", "");
    let checked = ada.result(&run, &call, &text(KIB)).await;
    refused(&checked, 422, "VALIDATION_FAILED", "");
    let fits = ada
        .result(&run, &call, &json!(format!("a{}c", "b".repeat(900))))
        .await;
    assert_eq!(fits.status, 200, "{fits:?}");

    let (run, call) = waiting(&ada, &many_bounds()).await;
    let costly = ada.result(&run, &call, &json!(vec![1; 100_000])).await;
    refused(&costly, 422, "TOO_COSTLY", "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_in_a_chat_has_the_same_limits() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let ada = gateway.api().as_user("ada");
    let chat = async |messages: Value| {
        let body = json!({"id": "c", "messages": messages, "clientTools": probe(&repeats())});
        ada.post("/v1/agents/worker/chat", &body).await
    };
    let said = json!({"id": "m", "role": "user", "content": "call:probe text:2"});
    let offered = chat(json!([said])).await;
    let stream = offered.body.as_str().expect("a stream");
    let call = stream
        .split_once("\"toolCallId\":\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .expect("a call")
        .0;
    let result = |bytes: usize| {
        json!({"id": "a", "role": "assistant", "parts": [{"type": "tool-probe", "toolCallId": call,
            "state": "output-available", "input": {}, "output": "ab".repeat(bytes / 2)}]})
    };
    let large = chat(json!([said, result(400 * KIB)])).await;
    refused(&large, 413, "CONTENT_TOO_LARGE", "/messages/1");
    // What the schema refuses is a failure of the tool: the run goes on.
    let costly = chat(json!([said, result(200 * KIB)])).await;
    let told = costly.body.as_str().expect("a stream");
    assert!(told.contains("steps to check"), "{told:.2000}");
}

/// The worst that a user may send.
#[derive(Clone, Copy)]
enum Attack {
    /// Results that take almost as many steps as are allowed: of patterns, and of subschemas.
    Patterns,
    Subschemas,
    /// A definition whose patterns take long to compile.
    Definition,
    /// A body that takes long to parse.
    Body,
}

/// A request that is ready to be sent: nothing is left to do for the client while others are measured.
struct Prepared {
    user: Api,
    path: String,
    body: String,
    status: u16,
}

impl Attack {
    async fn prepare(self, user: Api) -> Prepared {
        let results = |run: &str| format!("/v1/runs/{run}/tool-results");
        let (path, body, status) = match self {
            Self::Patterns => {
                let (run, call) = waiting(&user, &repeats()).await;
                let result = "ab".repeat(1_800);
                (results(&run), json!({"toolCallId": call, "result": result}), 422)
            }
            Self::Subschemas => {
                let (run, call) = waiting(&user, &many_bounds()).await;
                let mut numbers = vec![1; 16_000];
                numbers.push(-2_000_000);
                (results(&run), json!({"toolCallId": call, "result": numbers}), 422)
            }
            Self::Definition => {
                let pattern = |n: u32| json!({"pattern": format!("a[ab]{{1{n}00}}[^ab]")});
                let patterns: Vec<Value> = (0..10).map(pattern).collect();
                let schema = json!({"type": "object", "properties": {"x": {"anyOf": patterns}}});
                let tool = json!({"name": "look", "description": "Looks.", "parameters": schema});
                ("/v1/tools/validate".into(), json!({"tools": [tool]}), 200)
            }
            Self::Body => {
                let numbers = vec![1; 4_000_000];
                let body = json!({"toolCallId": "none", "result": numbers});
                (results("run_00000000000000000000000000"), body, 404)
            }
        };
        let body = body.to_string();
        Prepared {
            user,
            path,
            body,
            status,
        }
    }
}

impl Prepared {
    async fn send(&self) {
        let request = self.user.request(Method::POST, &self.path);
        let request = request
            .header("content-type", "application/json")
            .body(self.body.clone());
        let told = api_answer(request).await.expect("the gateway answers");
        assert_eq!(told.status, self.status, "{told:?}");
    }
}

/// Asks for `/healthz` until `over`, from a thread that does nothing else: the slowest answer, and how many there were.
fn probe_health(api: Api, over: Arc<AtomicBool>) -> (Duration, u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let (mut slowest, mut asked) = (Duration::ZERO, 0);
        while !over.load(Ordering::Acquire) {
            let began = Instant::now();
            let told = soon("health", api.get("/healthz")).await;
            assert_eq!(told.status, 200, "{told:?}");
            slowest = slowest.max(began.elapsed());
            asked += 1;
        }
        (slowest, asked)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_is_answered_while_sixteen_users_send_the_worst_that_is_allowed() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let kinds = [
        Attack::Patterns,
        Attack::Subschemas,
        Attack::Definition,
        Attack::Body,
    ];
    let mut prepared = Vec::new();
    for (number, attack) in kinds.into_iter().cycle().take(USERS).enumerate() {
        let user = gateway.api().as_user(&format!("user-{number}"));
        prepared.push(attack.prepare(user).await);
    }
    let over = Arc::new(AtomicBool::new(false));
    let (api, ends) = (Api::secret(gateway.address().port()), over.clone());
    let probing = tokio::task::spawn_blocking(move || probe_health(api, ends));
    futures_util::future::join_all(prepared.iter().map(Prepared::send)).await;
    over.store(true, Ordering::Release);
    let (slowest, asked) = probing.await.expect("the probe");
    eprintln!("/healthz took {slowest:?} at most, of {asked} times, while {USERS} users attacked");
    assert!(asked > 0 && slowest < HEALTH_MAX, "{slowest:?} of {asked}");
}
