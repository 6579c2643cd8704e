//! The MCP door of the real binary: the official Rust and Python clients in both eras, `toolgate mcp`, and a kill in the
//! middle of a task.

mod bridge;

use std::process::Stdio;
use std::time::Duration;

use reqwest::Method;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities,
    ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, GetTaskParams, Implementation,
    JsonObject, ProtocolVersion, TaskStatus,
};
use rmcp::service::{ClientLifecycleMode, RequestContext, RunningService, serve_client_with_lifecycle};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use crate::harness::{Api, Gateway, SECRET_KEY, binary, put_agent, soon, tool};

/// Pause between two looks at a task.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A gateway whose `default` agent has a tool of each kind.
async fn caller() -> Gateway {
    let gateway = Gateway::start(&[]).await;
    let agent = json!({
        "instructions": "Be brief.",
        "model": {"provider": "demo"},
        "tools": [
            tool("echo", json!({"mode": "pass-through"}), json!({"outputSchema": {"type": "object"}})),
            tool("risky", json!({"mode": "pass-through"}), json!({"approval": "always"})),
            tool("ask", Value::Null, json!({"outputSchema": {"type": "object"}})),
        ],
    });
    put_agent(&gateway.api(), "default", &agent).await;
    gateway
}

/// A client that says yes to every question.
#[derive(Clone)]
struct Agreeable {
    tasks: bool,
}

impl ClientHandler for Agreeable {
    fn get_info(&self) -> ClientConfig {
        let capabilities = match self.tasks {
            true => ClientCapabilities::builder()
                .enable_elicitation()
                .enable_tasks()
                .build(),
            false => ClientCapabilities::builder().enable_elicitation().build(),
        };
        ClientConfig::new(capabilities, Implementation::new("test", "1"))
    }
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            return Err(ErrorData::invalid_params("a form is expected", None));
        };
        assert!(message.contains("risky"), "{message}");
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"approve": true})))
    }
}

type Connected = RunningService<RoleClient, Agreeable>;

fn modern() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}

async fn connect(gateway: &Gateway, lifecycle: ClientLifecycleMode, tasks: bool) -> Connected {
    let config = StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", gateway.url()))
        .auth_header(SECRET_KEY);
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let transport = StreamableHttpClientTransport::with_client(http, config);
    let connected = serve_client_with_lifecycle(Agreeable { tasks }, transport, lifecycle);
    soon("the client is connected", connected)
        .await
        .expect("a connection")
}

fn asking(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let arguments: JsonObject = serde_json::from_value(arguments).expect("an object");
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

fn text(result: &CallToolResult) -> String {
    let content = serde_json::to_value(&result.content).expect("JSON");
    content[0]["text"].as_str().expect("a text").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_lists_calls_and_approves_in_both_eras() {
    let gateway = caller().await;
    for lifecycle in [modern(), ClientLifecycleMode::Initialize] {
        let client = connect(&gateway, lifecycle, false).await;
        let tools = client.peer().list_all_tools().await.expect("tools");
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        for expected in ["echo", "risky", "ask", "ask_default", "web_fetch"] {
            assert!(names.contains(&expected), "{expected} in {names:?}");
        }
        let echoed = client
            .call_tool(asking("echo", json!({"n": 1})))
            .await
            .expect("an answer");
        assert_eq!(echoed.structured_content, Some(json!({"n": 1})));
        let approved = client
            .call_tool(asking("risky", json!({"n": 2})))
            .await
            .expect("an answer");
        assert_eq!(text(&approved), "{\"n\":2}");
        let prompts = client.peer().list_all_prompts().await.expect("prompts");
        assert_eq!(prompts[0].name, "default");
        let asked = client
            .call_tool(asking("ask_default", json!({"message": "hello"})))
            .await
            .expect("an answer");
        assert!(asked.structured_content.expect("data")["answer"].is_string());
        client.cancel().await.expect("an end");
    }
}

async fn task(client: &Connected, id: &str) -> rmcp::model::DetailedTask {
    let got = client.peer().get_task(GetTaskParams::new(id)).await;
    got.expect("a task").task
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_another_client_executes_survives_a_kill() {
    let mut gateway = caller().await;
    let client = connect(&gateway, modern(), true).await;
    let answer = client.peer().call_tool_once(asking("ask", json!({"q": 1}))).await;
    let CallToolResponse::Task(created) = answer.expect("an answer") else {
        panic!("a call that a client executes is a task");
    };
    let id = created.task.task_id;
    gateway.crash().await;
    // Another client: the task belongs to no connection.
    let client = connect(&gateway, modern(), true).await;
    assert_eq!(task(&client, &id).await.status(), TaskStatus::Working);
    let call = format!("call_{}_0", id.strip_prefix("run_").expect("a run"));
    let given = gateway.api().result(&id, &call, &json!({"a": 2})).await;
    assert!(given.is_success(), "{given:?}");
    let done = soon("the task has ended", async {
        loop {
            let task = task(&client, &id).await;
            if task.status().is_terminal() {
                break task;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    })
    .await;
    let done = serde_json::to_value(&done).expect("JSON");
    assert_eq!(done["result"]["structuredContent"], json!({"a": 2}), "{done}");

    let answer = client.peer().call_tool_once(asking("ask", json!({}))).await;
    let CallToolResponse::Task(created) = answer.expect("an answer") else {
        panic!("a call that a client executes is a task");
    };
    let id = created.task.task_id;
    let cancelled = client
        .peer()
        .cancel_task(CancelTaskParams::new(id.as_str()))
        .await;
    cancelled.expect("an acknowledgement");
    assert_eq!(task(&client, &id).await.status(), TaskStatus::Cancelled);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_waits_is_resumed_with_its_state_after_a_kill() {
    let mut gateway = caller().await;
    let client = connect(&gateway, modern(), false).await;
    let request = asking("risky", json!({"n": 3}));
    let answer = client.peer().call_tool_once(request.clone()).await;
    let CallToolResponse::InputRequired(asked) = answer.expect("an answer") else {
        panic!("a call that needs an approval asks for it");
    };
    gateway.crash().await;
    let client = connect(&gateway, modern(), false).await;
    let key = asked
        .input_requests
        .expect("questions")
        .into_keys()
        .next()
        .expect("one");
    let yes = json!({"action": "accept", "content": {"approve": true}});
    let again = request
        .with_request_state(asked.request_state.expect("a state"))
        .with_input_responses([(key, yes)].into());
    for _ in 0..2 {
        let answer = client.peer().call_tool_once(again.clone()).await;
        let CallToolResponse::Complete(result) = answer.expect("an answer") else {
            panic!("an approved call ends");
        };
        assert_eq!(text(&result), "{\"n\":3}");
    }
}

/// `toolgate mcp` and its two pipes.
struct Bridge {
    child: tokio::process::Child,
    input: tokio::process::ChildStdin,
    output: tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
}

impl Bridge {
    fn start(url: &str) -> Self {
        let mut command = Command::from(binary());
        command
            .args(["mcp", "--url", url])
            .env("TOOLGATE_SECRET_KEY", SECRET_KEY)
            .env("NO_PROXY", "*")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("a process");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, input, output }
    }
    async fn say(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).await.expect("a reader");
    }
    async fn hear(&mut self) -> Value {
        let line = soon("a line", self.output.next_line()).await;
        serde_json::from_str(&line.expect("a pipe").expect("a line")).expect("JSON")
    }
    async fn ask(&mut self, message: Value) -> Value {
        self.say(message).await;
        self.hear().await
    }
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }})
}

fn call(id: u32, meta: Value) -> Value {
    let mut message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "echo", "arguments": {"n": id},
    }});
    if !meta.is_null() {
        message["params"]["_meta"] = meta;
    }
    message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_starts_its_servers_uses_a_running_gateway() {
    let mut gateway = caller().await;
    let mut bridge = Bridge::start(&gateway.url());
    let begun = bridge.ask(initialize()).await;
    assert_eq!(begun["result"]["serverInfo"]["name"], "toolgate", "{begun}");
    bridge
        .say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await;
    let answer = bridge.ask(call(2, Value::Null)).await;
    assert_eq!(answer["result"]["structuredContent"], json!({"n": 2}), "{answer}");
    // A client on a pipe does not know that the gateway was started anew, and need not.
    gateway.crash().await;
    let answer = bridge.ask(call(3, Value::Null)).await;
    assert_eq!(answer["result"]["structuredContent"], json!({"n": 3}), "{answer}");
    drop(bridge.input);
    assert!(
        soon("the bridge ends with its input", bridge.child.wait())
            .await
            .expect("a status")
            .success()
    );

    let mut bridge = Bridge::start(&gateway.url());
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let answer = bridge.ask(call(4, meta)).await;
    assert_eq!(answer["result"]["structuredContent"], json!({"n": 4}), "{answer}");
    assert_eq!(answer["result"]["resultType"], "complete");
    let wrong = bridge.ask(json!("no message")).await;
    assert_eq!(wrong["error"]["code"], -32700);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_is_not_there_is_told_with_how_to_start_it() {
    let mut bridge = Bridge::start("http://127.0.0.1:9");
    let answer = bridge.ask(initialize()).await;
    let words = answer["error"]["message"].as_str().expect("words").to_owned();
    assert!(words.contains("toolgate serve"), "{words}");
}

/// Runs the official Python client against the gateway.
async fn python(gateway: &Gateway, mode: &str) {
    let Some(python) = std::env::var_os("TOOLGATE_TEST_PYTHON") else {
        eprintln!("not tested: `make tests` names a Python with the MCP SDK in TOOLGATE_TEST_PYTHON");
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp_door/client.py");
    let mut command = Command::new(python);
    command
        .args([script, &format!("{}/mcp", gateway.url()), mode])
        .env("TOOLGATE_SECRET_KEY", SECRET_KEY)
        .env("NO_PROXY", "*")
        .kill_on_drop(true);
    let done = soon("the Python client has ended", command.output())
        .await
        .expect("a process");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{mode}: {errors}");
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "ok", "{errors}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_python_client_works_in_both_eras() {
    let gateway = caller().await;
    let api: Api = gateway.api();
    let space = api.post("/v1/spaces", &json!({})).await.text("id");
    let written = api
        .request(Method::PUT, &format!("/v1/spaces/{space}/files/notes.md"))
        .body("# hello")
        .send()
        .await;
    assert!(written.expect("an answer").status().is_success());
    for mode in ["2026-07-28", "legacy"] {
        python(&gateway, mode).await;
    }
}
