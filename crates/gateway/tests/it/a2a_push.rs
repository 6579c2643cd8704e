//! Push notifications of A2A tasks: posted to the webhooks that clients name, over refusals and kills.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use toolgate_kernel::agent::Secret;
use toolgate_testkit::model_server::ModelServer;
use toolgate_tools::notify::signature;

use crate::harness::{Api, Gateway, LOOK, put_worker, soon};

const TOKEN: &str = "a token of the receiver's";

/// A notification that was accepted.
#[derive(Debug, Clone)]
pub struct Posted {
    headers: HeaderMap,
    pub body: String,
}

impl Posted {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
    /// The number of the change.
    fn number(&self) -> u64 {
        self.header("webhook-id")
            .rsplit('.')
            .next()
            .unwrap()
            .parse()
            .unwrap()
    }
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
    pub fn state(&self) -> String {
        let body = self.json();
        let state = [&body["task"], &body["statusUpdate"], &body].map(|of| of["status"]["state"].clone());
        state
            .into_iter()
            .find_map(|state| state.as_str().map(str::to_owned))
            .unwrap_or_default()
    }
}

/// A webhook.
pub struct Receiver {
    pub url: String,
    pub address: String,
    posted: Arc<Mutex<Vec<Posted>>>,
    /// The answer to whatever comes.
    status: Arc<Mutex<StatusCode>>,
    /// Attempts, accepted or not.
    attempts: Arc<Mutex<usize>>,
    _task: AbortOnDropHandle<()>,
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let posted: Arc<Mutex<Vec<Posted>>> = Arc::default();
        let status = Arc::new(Mutex::new(StatusCode::OK));
        let attempts: Arc<Mutex<usize>> = Arc::default();
        let (noted, answers, counted) = (posted.clone(), status.clone(), attempts.clone());
        let app = Router::new().fallback(move |headers: HeaderMap, body: Bytes| async move {
            *counted.lock().unwrap() += 1;
            let answer = *answers.lock().unwrap();
            if answer.is_success() {
                let body = String::from_utf8(body.to_vec()).unwrap();
                noted.lock().unwrap().push(Posted { headers, body });
            }
            answer
        });
        let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });
        Self {
            url: format!("http://{address}/hook"),
            address,
            posted,
            status,
            attempts,
            _task: AbortOnDropHandle::new(task),
        }
    }

    fn answer(&self, status: StatusCode) {
        *self.status.lock().unwrap() = status;
    }

    pub fn posted(&self) -> Vec<Posted> {
        self.posted.lock().unwrap().clone()
    }

    async fn until(&self, what: &str, reached: impl Fn(&Self) -> bool) {
        let reached = async {
            while !reached(self) {
                tokio::time::sleep(LOOK).await;
            }
        };
        soon(what, reached).await;
    }

    pub async fn until_state(&self, state: &str) {
        self.until(state, |receiver| {
            receiver.posted().iter().any(|posted| posted.state() == state)
        })
        .await;
    }
}

impl Receiver {
    /// Waits until the last change of a task was posted.
    pub async fn until_ended(&self, task: &str) {
        let ends = [
            "TASK_STATE_COMPLETED",
            "TASK_STATE_FAILED",
            "TASK_STATE_CANCELED",
            "TASK_STATE_REJECTED",
        ];
        let is_end = |posted: &Posted| posted.body.contains(task) && ends.contains(&posted.state().as_str());
        self.until("the end of a task is posted", |receiver| {
            receiver.posted().iter().any(is_end)
        })
        .await;
    }
}

async fn rpc(api: &Api, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let answer = api.post("/a2a/worker", &body).await.body;
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

fn message(text: &str) -> Value {
    json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]})
}

/// A task that waits for its client, with a webhook; gives its id.
async fn task(api: &Api, receiver: &Receiver) -> String {
    let push = json!({
        "url": receiver.url, "token": TOKEN, "authentication": {"scheme": "Bearer", "credentials": "of the receiver's"},
    });
    let params = json!({
        "message": message("call:ask text:1"), "configuration": {"taskPushNotificationConfig": push},
    });
    let task = rpc(api, "SendMessage", params).await;
    assert_eq!(
        task["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED",
        "{task}"
    );
    task["task"]["id"].as_str().unwrap().to_owned()
}

/// Gives the result that a task waits for.
async fn finish(api: &Api, task: &str) {
    let run = api.get(&format!("/v1/runs/{task}")).await.body;
    let call = run["pending"]["calls"][0]["toolCallId"].as_str();
    let call = call.unwrap_or_else(|| panic!("nothing is pending: {run}"));
    assert!(api.result(task, call, &json!("done")).await.is_success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_posted_in_order_and_signed_over_refusals_and_kills() {
    let (models, receiver) = (ModelServer::start().await, Receiver::start().await);
    receiver.answer(StatusCode::SERVICE_UNAVAILABLE);
    let mut gateway = Gateway::start(&[("TOOLGATE_OUTSIDE_ALLOW", &receiver.address)]).await;
    put_worker(&gateway.api(), &models).await;
    let task = task(&gateway.api(), &receiver).await;
    receiver
        .until("an attempt", |receiver| *receiver.attempts.lock().unwrap() > 0)
        .await;
    gateway.crash().await;
    receiver.answer(StatusCode::OK);
    receiver.until_state("TASK_STATE_INPUT_REQUIRED").await;
    gateway.crash().await;
    finish(&gateway.api(), &task).await;
    receiver.until_state("TASK_STATE_COMPLETED").await;

    let posted = receiver.posted();
    let mut numbers: Vec<u64> = posted.iter().map(Posted::number).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    numbers.dedup();
    let all: Vec<u64> = (1..=*numbers.last().unwrap()).collect();
    assert_eq!(numbers, all, "every change, without a gap");
    for posted in &posted {
        assert_eq!(posted.header("authorization"), "Bearer of the receiver's");
        assert_eq!(posted.header("x-a2a-notification-token"), TOKEN);
        let seconds = posted.header("webhook-timestamp").parse().unwrap();
        let signed = signature(
            &Secret::new(TOKEN),
            posted.header("webhook-id"),
            seconds,
            &posted.body,
        );
        assert_eq!(posted.header("webhook-signature"), signed);
        assert!(posted.header("webhook-id").starts_with(&task));
        assert_eq!(
            posted.json().as_object().unwrap().len(),
            1,
            "one member: {}",
            posted.body
        );
    }
    assert!(
        posted
            .iter()
            .any(|posted| posted.json().get("artifactUpdate").is_some())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_nobody_allowed_is_posted_nothing() {
    let (models, receiver) = (ModelServer::start().await, Receiver::start().await);
    let allowed = Receiver::start().await;
    let gateway = Gateway::start(&[("TOOLGATE_OUTSIDE_ALLOW", &allowed.address)]).await;
    let api = gateway.api();
    put_worker(&api, &models).await;
    let refused = task(&api, &receiver).await;
    let taken = task(&api, &allowed).await;
    for task in [&refused, &taken] {
        finish(&api, task).await;
    }
    allowed.until_state("TASK_STATE_COMPLETED").await;
    assert_eq!(*receiver.attempts.lock().unwrap(), 0);
    assert!(
        allowed
            .posted()
            .iter()
            .all(|posted| !posted.body.contains(&refused))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_configuration_is_posted_nothing_more_and_a_new_one_what_is_new() {
    let (models, receiver) = (ModelServer::start().await, Receiver::start().await);
    let later = Receiver::start().await;
    let allow = format!("{},{}", receiver.address, later.address);
    let gateway = Gateway::start(&[("TOOLGATE_OUTSIDE_ALLOW", &allow)]).await;
    let api = gateway.api();
    put_worker(&api, &models).await;
    let task = task(&api, &receiver).await;
    receiver.until_state("TASK_STATE_INPUT_REQUIRED").await;
    let listed = rpc(&api, "ListTaskPushNotificationConfigs", json!({"taskId": task})).await;
    let id = listed["configs"][0]["id"].clone();
    rpc(
        &api,
        "DeleteTaskPushNotificationConfig",
        json!({"taskId": task, "id": id}),
    )
    .await;
    rpc(
        &api,
        "CreateTaskPushNotificationConfig",
        json!({"taskId": task, "url": later.url}),
    )
    .await;
    finish(&api, &task).await;
    later.until_state("TASK_STATE_COMPLETED").await;
    let states = |receiver: &Receiver| receiver.posted().iter().map(Posted::state).collect::<Vec<_>>();
    assert!(!states(&receiver).contains(&"TASK_STATE_COMPLETED".to_owned()));
    assert!(
        !states(&later).contains(&"TASK_STATE_INPUT_REQUIRED".to_owned()),
        "{:?}",
        states(&later)
    );
}

/// More tasks than a gateway works on at once for one project.
const WAITING: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_wait_hold_up_no_notification_of_others() {
    let (models, receiver) = (ModelServer::start().await, Receiver::start().await);
    let settings = [
        ("TOOLGATE_OUTSIDE_ALLOW", receiver.address.as_str()),
        ("TOOLGATE_HTTP_RATE_PER_SECOND", "10000"),
        ("TOOLGATE_HTTP_RATE_BURST", "10000"),
    ];
    let gateway = Gateway::start(&settings).await;
    let api = gateway.api();
    put_worker(&api, &models).await;
    let mut tasks = Vec::new();
    while tasks.len() < WAITING {
        let batch = (0..8).map(|_| task(&api, &receiver));
        tasks.extend(futures_util::future::join_all(batch).await);
    }
    let waiting = |receiver: &Receiver| {
        let posted = receiver.posted();
        let waits = posted
            .iter()
            .filter(|posted| posted.state() == "TASK_STATE_INPUT_REQUIRED");
        waits.count()
    };
    receiver
        .until("every task is told to wait", |receiver| {
            waiting(receiver) == tasks.len()
        })
        .await;
    // Also the change of a task that nobody has looked at for a while.
    finish(&api, &tasks[0]).await;
    receiver.until_ended(&tasks[0]).await;
    let all = receiver.posted();
    let mut ids: Vec<&str> = all.iter().map(|posted| posted.header("webhook-id")).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "each change is posted once");
}
