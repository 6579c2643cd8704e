//! The official Rust client against every operation: `a2a-rust-client BASE_URL BINDING`, prints ok.

use std::sync::Arc;
use std::time::Duration;

use a2a::{AgentCard, SendMessageRequest, StreamResponse, Task, TaskState};
use a2a_client::auth::AuthInterceptor;
use a2a_client::{A2AClient, A2AClientFactory, Transport};
use futures::StreamExt as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const EXT: &str = "https://toolgate.dev/a2a/client-tools/v1";
/// Longest wait for an event of a stream.
const EVENT_MAX: Duration = Duration::from_secs(60);

type Client = A2AClient<Box<dyn Transport>>;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, base, binding] = arguments.as_slice() else {
        panic!("expected BASE_URL BINDING");
    };
    let client = connect(base, binding).await;
    whole_task(&client).await;
    client_tool(&client).await;
    streams(&client).await;
    webhooks(&client).await;
    lists_and_cards(&client).await;
    errors(&client).await;
    println!("ok");
}

/// The client for one binding of the card. The card is fetched with the key, since the agent is not a public one.
async fn connect(base: &str, binding: &str) -> Client {
    let key = std::env::var("TOOLGATE_SECRET_KEY").expect("a key");
    let card = format!("{base}/.well-known/agent-card.json");
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let answer = http.get(card).bearer_auth(&key).send().await.expect("a card");
    let mut card: AgentCard = read(serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap());
    card.supported_interfaces
        .retain(|interface| interface.protocol_binding == binding);
    let factory = A2AClientFactory::builder()
        .with_interceptor(Arc::new(AuthInterceptor::bearer(key)))
        .build();
    factory
        .create_from_card(&card)
        .await
        .expect("the binding is offered")
}

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

fn request(message: Value) -> SendMessageRequest {
    let mut whole = json!({"messageId": "m", "role": "ROLE_USER"});
    let members = whole.as_object_mut().unwrap();
    members.extend(message.as_object().unwrap().clone());
    read(json!({ "message": whole }))
}

/// A message that makes the agent call a tool of this client.
fn call() -> SendMessageRequest {
    let words = "call:get_location input:{\"accuracy_m\":10} say:there";
    let tools = json!([{
        "name": "get_location", "description": "Where the client is.",
        "inputSchema": {"type": "object", "properties": {"accuracy_m": {"type": "integer"}}},
    }]);
    request(json!({"parts": [{"text": words}], "extensions": [EXT], "metadata": {EXT: {"tools": tools}}}))
}

/// The result that a task waits for.
fn result(task: &Task) -> SendMessageRequest {
    let told = serde_json::to_value(task).unwrap();
    let parts = told["status"]["message"]["parts"]
        .as_array()
        .expect("parts")
        .clone();
    let call = parts.iter().map(|part| &part["metadata"][EXT]["toolCall"]);
    let call = call.into_iter().find(|call| call.is_object()).expect("a call");
    assert_eq!(call["argumentsJson"], "{\"accuracy_m\":10}");
    let tag = json!({EXT: {"toolResult": {"callId": call["callId"]}}});
    request(json!({"taskId": task.id, "parts": [{"data": {"lat": 52.52, "floor": 3}, "metadata": tag}]}))
}

async fn sent(client: &Client, request: &SendMessageRequest) -> Task {
    let answer = client.send_message(request).await.expect("an answer");
    read(serde_json::to_value(answer).unwrap()["task"].clone())
}

fn text(task: &Task) -> String {
    let told = serde_json::to_value(task).unwrap();
    told["artifacts"][0]["parts"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

async fn whole_task(client: &Client) {
    let done = sent(client, &request(json!({"parts": [{"text": "say:hello"}]}))).await;
    assert_eq!(
        (done.status.state.clone(), text(&done)),
        (TaskState::Completed, "hello".into())
    );
    let again = client
        .get_task(&read(json!({"id": done.id})))
        .await
        .expect("the task");
    assert_eq!(again, done);
    let none = client
        .get_task(&read(json!({"id": done.id, "historyLength": 0})))
        .await
        .expect("the task");
    assert!(none.history.unwrap_or_default().is_empty());
}

async fn client_tool(client: &Client) {
    let paused = sent(client, &call()).await;
    assert_eq!(paused.status.state, TaskState::InputRequired);
    let resumed = sent(client, &result(&paused)).await;
    assert_eq!(
        (resumed.id.clone(), text(&resumed)),
        (paused.id, "there".to_owned())
    );
    assert_eq!(resumed.status.state, TaskState::Completed);
}

/// The events of a stream up to its end, and the task that comes first.
async fn events(
    stream: impl futures::Stream<Item = Result<StreamResponse, a2a::A2AError>>,
) -> (Task, Vec<StreamResponse>) {
    let all = tokio::time::timeout(EVENT_MAX, stream.collect::<Vec<_>>()).await;
    let all: Vec<StreamResponse> = all
        .expect("the stream ends")
        .into_iter()
        .map(|event| event.expect("an event"))
        .collect();
    let Some(StreamResponse::Task(task)) = all.first() else {
        panic!("a stream begins with the task: {all:?}");
    };
    (task.clone(), all)
}

fn state(event: Option<&StreamResponse>) -> TaskState {
    match event {
        Some(StreamResponse::StatusUpdate(update)) => update.status.state.clone(),
        other => panic!("not a status: {other:?}"),
    }
}

async fn streams(client: &Client) {
    let stream = client.send_streaming_message(&call()).await.expect("a stream");
    let (task, told) = events(stream).await;
    assert_eq!(state(told.last()), TaskState::InputRequired);
    let paused = client
        .get_task(&read(json!({"id": task.id})))
        .await
        .expect("the task");
    // Stays open through the pause, and ends with the task.
    let mut followed = client
        .subscribe_to_task(&read(json!({"id": task.id})))
        .await
        .expect("a stream");
    let first = followed.next().await.expect("an event").expect("an event");
    assert!(matches!(&first, StreamResponse::Task(task) if task.status.state == TaskState::InputRequired));
    let resumed = client
        .send_streaming_message(&result(&paused))
        .await
        .expect("a stream");
    let (task, told) = events(resumed).await;
    assert_eq!(task.status.state, TaskState::Working);
    assert_eq!(state(told.last()), TaskState::Completed);
    let rest = tokio::time::timeout(EVENT_MAX, followed.collect::<Vec<_>>())
        .await
        .expect("it ends");
    assert_eq!(
        state(rest.last().map(|event| event.as_ref().unwrap())),
        TaskState::Completed
    );
}

async fn webhooks(client: &Client) {
    let paused = sent(client, &call()).await;
    let hook = json!({"taskId": paused.id, "id": "h1", "url": "http://127.0.0.1:9/hook", "token": "t"});
    let made = client
        .create_push_config(&read(hook))
        .await
        .expect("a configuration");
    assert_eq!(serde_json::to_value(made).unwrap()["id"], "h1");
    let of = json!({"taskId": paused.id, "id": "h1"});
    let found = client
        .get_push_config(&read(of.clone()))
        .await
        .expect("a configuration");
    assert_eq!(serde_json::to_value(found).unwrap()["token"], "t");
    let all = json!({"taskId": paused.id});
    let count = async || {
        let listed = client
            .list_push_configs(&read(all.clone()))
            .await
            .expect("a list");
        serde_json::to_value(listed).unwrap()["configs"]
            .as_array()
            .map_or(0, Vec::len)
    };
    assert_eq!(count().await, 1);
    client.delete_push_config(&read(of)).await.expect("no error");
    assert_eq!(count().await, 0);
    let canceled = client
        .cancel_task(&read(json!({"id": paused.id})))
        .await
        .expect("the task");
    assert_eq!(canceled.status.state, TaskState::Canceled);
}

async fn lists_and_cards(client: &Client) {
    let mut of = json!({"pageSize": 2});
    let (mut seen, mut pages) = (std::collections::BTreeSet::new(), 0);
    loop {
        let page = client.list_tasks(&read(of.clone())).await.expect("a page");
        let page = serde_json::to_value(page).unwrap();
        pages += 1;
        for task in page["tasks"].as_array().into_iter().flatten() {
            assert!(seen.insert(task["id"].to_string()), "told twice: {task}");
        }
        match page["nextPageToken"].as_str() {
            None | Some("") => break,
            Some(token) => of["pageToken"] = json!(token),
        }
    }
    assert!(seen.len() >= 4 && pages >= 2, "{seen:?} on {pages}");
    let card = client
        .get_extended_agent_card(&read(json!({})))
        .await
        .expect("a card");
    assert_eq!(card.name, "default");
}

async fn errors(client: &Client) {
    let missing = json!({"id": "run_00000000000000000000000000"});
    let error = client.get_task(&read(missing)).await.expect_err("there is none");
    assert_eq!(error.code, -32001, "{error:?}");
    let done = sent(client, &request(json!({"parts": [{"text": "say:hello"}]}))).await;
    let error = client
        .cancel_task(&read(json!({"id": done.id})))
        .await
        .expect_err("it has ended");
    assert_eq!(error.code, -32002, "{error:?}");
    let more = request(json!({"taskId": done.id, "parts": [{"text": "more"}]}));
    let error = client.send_message(&more).await.expect_err("it has ended");
    assert_eq!(error.code, -32004, "{error:?}");
}
