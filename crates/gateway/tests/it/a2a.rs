//! The A2A door of the real binary: the official clients for Rust and for Python in both versions, AG2 with a tool of its
//! own, kills between pause and resume, two processes that resume one task, and a thousand tasks that wait.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Gateway, SECRET_KEY, put_agent, soon, worker};

/// Tasks that wait at once.
const WAITING: usize = 1_000;
/// Most memory of a gateway with so many of them.
const MEMORY_KIB_MAX: u64 = 512 * 1024;
/// Requests that are under way at once.
const AT_ONCE: usize = 8;
/// Longest run of a client.
const CLIENT_MAX: Duration = Duration::from_secs(120);

/// A gateway whose `default` agent follows the script in a message.
async fn gateway(models: &ModelServer, settings: &[(&str, &str)]) -> Gateway {
    let gateway = Gateway::start(settings).await;
    put_agent(&gateway.api(), "default", &worker(models)).await;
    gateway
}

/// The program that a variable names; `make tests` names it.
fn program(variable: &str) -> OsString {
    std::env::var_os(variable)
        .unwrap_or_else(|| panic!("{variable} names a client of A2A; `make tests` installs it"))
}

/// Runs a script with the Python that a variable names.
async fn python(variable: &str, script: &str, arguments: &[&str]) {
    let script = format!("{}/tests/it/a2a/{script}", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(program(variable));
    command.arg(script);
    client(command, arguments).await;
}

/// Runs a client, which prints ok in the end.
async fn client(mut command: Command, arguments: &[&str]) {
    command
        .args(arguments)
        .env("TOOLGATE_SECRET_KEY", SECRET_KEY)
        .env("NO_PROXY", "*")
        .kill_on_drop(true);
    let done = tokio::time::timeout(CLIENT_MAX, command.output()).await;
    let done = done.expect("the client has ended").expect("a process");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{arguments:?}: {errors}");
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "ok", "{errors}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_python_client_works_on_both_bindings() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models, &[]).await;
    for binding in ["JSONRPC", "HTTP+JSON"] {
        python(
            "TOOLGATE_TEST_A2A_PYTHON",
            "client.py",
            &[&gateway.url(), binding],
        )
        .await;
    }
}

/// The client in the documentation, with the address and the key of a gateway in place of those that it shows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_in_the_documentation_works_as_it_is_written() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models, &[]).await;
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/a2a.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, from_code) = page.split_once("```python\n").expect("a client");
    let (code, _) = from_code.split_once("```").expect("its end");
    let (shown_url, shown_key) = ("http://127.0.0.1:8787", "sk_…");
    assert!(code.contains(shown_url) && code.contains(shown_key), "{code}");
    let code = code
        .replace(shown_url, &gateway.url())
        .replace(shown_key, SECRET_KEY);
    let mut command = Command::new(program("TOOLGATE_TEST_A2A_PYTHON"));
    command
        .args(["-c", &code])
        .env("NO_PROXY", "*")
        .kill_on_drop(true);
    let done = tokio::time::timeout(CLIENT_MAX, command.output()).await;
    let done = done.expect("the client has ended").expect("a process");
    let printed = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(printed.contains("TASK_STATE_COMPLETED"), "{printed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_rust_client_works_on_both_bindings() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models, &[]).await;
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let command = Command::new(program("TOOLGATE_TEST_A2A_RUST"));
        client(command, &[&gateway.url(), binding]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_python_client_of_0_3_works() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models, &[("TOOLGATE_A2A_ADVERTISE_03", "true")]).await;
    python("TOOLGATE_TEST_A2A_PYTHON_03", "client_03.py", &[&gateway.url()]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_ag2_brings_its_own_tool() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models, &[]).await;
    let base = format!("{}/a2a/default", gateway.url());
    python("TOOLGATE_TEST_AG2_PYTHON", "client_ag2.py", &[&base]).await;
}

async fn rpc(api: &Api, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let answer = api.post("/a2a", &body).await;
    assert!(answer.is_success(), "{answer:?}");
    answer.body
}

fn asking(words: &str) -> Value {
    json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": words}]}})
}

/// A task that waits for the client, and the id of its call.
async fn paused(api: &Api) -> (String, String) {
    let task = rpc(api, "SendMessage", asking("call:ask input:{\"q\":1} say:done")).await;
    let task = &task["result"]["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task:#}");
    let id = task["id"].as_str().expect("an id").to_owned();
    let call = format!("call_{}_0", id.strip_prefix("run_").expect("a run"));
    (id, call)
}

fn result(task: &str, call: &str, value: Value) -> Value {
    json!({"message": {"messageId": "r", "role": "ROLE_USER", "taskId": task, "parts": [
        {"data": value, "metadata": {"https://toolgate.dev/a2a/client-tools/v1": {"toolResult": {"callId": call}}}},
    ]}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_task_is_resumed_after_a_kill_and_its_events_keep_their_numbers() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models, &[]).await;
    let (task, call) = paused(&gateway.api()).await;
    let before = rpc(&gateway.api(), "GetTask", json!({"id": task})).await;
    let seen = subscribed(&gateway, &task, Some(0), "TASK_STATE_INPUT_REQUIRED").await;
    gateway.crash().await;
    let api = gateway.api();
    assert_eq!(rpc(&api, "GetTask", json!({"id": task})).await, before);
    let resumed = rpc(&api, "SendMessage", result(&task, &call, json!({"a": 2}))).await;
    assert_eq!(
        resumed["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED",
        "{resumed:#}"
    );
    gateway.crash().await;
    let all = subscribed(&gateway, &task, Some(0), "TASK_STATE_COMPLETED").await;
    let numbers: Vec<u64> = all.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=all.len() as u64).collect::<Vec<_>>());
    assert_eq!(all[1..seen.len()], seen[1..]);
    let last = seen.last().expect("an event").0;
    let rest = subscribed(&gateway, &task, Some(last), "TASK_STATE_COMPLETED").await;
    assert_eq!(rest[1..], all[last as usize..]);
}

/// The numbered events of a task up to one with this state.
async fn subscribed(gateway: &Gateway, task: &str, after: Option<u64>, state: &str) -> Vec<(u64, Value)> {
    let path = format!("/a2a/default/tasks/{task}:subscribe");
    let mut request = gateway.api().request(reqwest::Method::GET, &path);
    if let Some(after) = after {
        request = request.header("last-event-id", after.to_string());
    }
    let mut response = request.send().await.expect("a response");
    let (mut text, mut events) = (String::new(), Vec::new());
    soon("the task has come to the state", async {
        while let Ok(Some(chunk)) = response.chunk().await {
            text.push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
            while let Some((block, rest)) = text.split_once("\n\n") {
                let field = |name: &str| {
                    block
                        .lines()
                        .find_map(|line| line.strip_prefix(name).map(str::to_owned))
                };
                let event = field("id: ").zip(field("data: "));
                text = rest.to_owned();
                let Some((id, data)) = event else { continue };
                let data: Value = serde_json::from_str(&data).expect("JSON");
                let told = [
                    &data["statusUpdate"]["status"]["state"],
                    &data["task"]["status"]["state"],
                ];
                let is_last = told.contains(&&json!(state));
                events.push((id.parse().expect("a number"), data));
                if is_last && events.len() > 1 {
                    return;
                }
            }
        }
    })
    .await;
    events
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_processes_that_resume_a_task_one_wins_and_the_other_is_told() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models, &[]).await;
    for _ in 0..10 {
        let api = gateway.api();
        let (task, call) = paused(&api).await;
        let answer = |value: u64| {
            let (api, body) = (gateway.api(), result(&task, &call, json!({ "from": value })));
            async move { api.post("/a2a/default/message:send", &body).await }
        };
        let (first, second) = tokio::join!(answer(1), answer(2));
        let (won, lost) = match first.is_success() {
            true => (first, second),
            false => (second, first),
        };
        assert!(won.is_success(), "{won:?} {lost:?}");
        assert_eq!(lost.status, 409, "{lost:?}");
        let details = lost.body["error"]["details"].to_string();
        assert!(details.contains("winner") && details.contains(&call), "{details}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_tasks_wait_in_bounded_memory_and_all_are_resumed() {
    let models = ModelServer::start().await;
    let settings = [
        ("TOOLGATE_HTTP_RATE_PER_SECOND", "10000"),
        ("TOOLGATE_HTTP_RATE_BURST", "10000"),
    ];
    let mut gateway = gateway(&models, &settings).await;
    let mut waiting = Vec::new();
    while waiting.len() < WAITING {
        let api = gateway.api();
        let batch = (0..AT_ONCE).map(|_| paused(&api));
        waiting.extend(futures_util::future::join_all(batch).await);
    }
    assert!(
        gateway.peak_memory_kib() < MEMORY_KIB_MAX,
        "{} KiB",
        gateway.peak_memory_kib()
    );
    let listed = rpc(
        &gateway.api(),
        "ListTasks",
        json!({"status": "TASK_STATE_INPUT_REQUIRED", "pageSize": 100}),
    )
    .await;
    assert_eq!(listed["result"]["totalSize"], json!(waiting.len()), "{listed:#}");
    gateway.crash().await;
    for batch in waiting.chunks(AT_ONCE) {
        let api = gateway.api();
        let resumed = batch
            .iter()
            .map(|(task, call)| rpc(&api, "SendMessage", result(task, call, json!({"a": 1}))));
        for told in futures_util::future::join_all(resumed).await {
            assert_eq!(
                told["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED",
                "{told:#}"
            );
        }
    }
    assert!(
        gateway.peak_memory_kib() < MEMORY_KIB_MAX,
        "{} KiB",
        gateway.peak_memory_kib()
    );
}
