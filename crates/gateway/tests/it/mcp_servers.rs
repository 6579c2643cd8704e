//! MCP servers through the real binary: eight real ones at once, called by an agent, killed, and gone when it is.

mod real;
mod sampling;

use axum::Router;
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Event, Gateway, LOOK, SECRET_KEY, binary, free_port, put_agent, soon};
use real::{RealServers, path, processes, time};

/// An agent with everything of these servers, which does what the script says.
fn agent(models: &ModelServer, script: &str, servers: &[&str]) -> Value {
    json!({
        "access": "public",
        "instructions": format!("script: {script}"),
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "mcp": servers,
    })
}

async fn start(api: &Api, agent: &str) -> String {
    let started = api
        .post("/v1/runs", &json!({"agent": agent, "message": "go"}))
        .await;
    assert!(started.is_success(), "{started:?}");
    started.text("runId")
}

async fn run(api: &Api, agent: &str) -> Vec<Event> {
    let run = start(api, agent).await;
    api.finished(&run).await
}

/// The outcome of the call of a tool: its output, or the code of its error.
fn outcome(events: &[Event], tool: &str) -> Result<Value, String> {
    let of_tool = |event: &&Event| event.data["toolName"] == tool;
    let ended = events
        .iter()
        .filter(of_tool)
        .find_map(|event| match event.kind.as_str() {
            "tool-output-available" => Some(Ok(event.data["output"].clone())),
            "tool-output-error" => Some(Err(event.data["code"].as_str().unwrap_or_default().to_owned())),
            _ => None,
        });
    ended.unwrap_or_else(|| panic!("no outcome of {tool} in {events:#?}"))
}

/// A page for the fetch server.
async fn page() -> (String, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = format!("http://{}/page", listener.local_addr().expect("an address"));
    let app = Router::new().route("/page", axum::routing::get(|| async { "plain words of a page" }));
    let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });
    (address, AbortOnDropHandle::new(task))
}

async fn add_all(api: &Api, servers: &Map<String, Value>) {
    for (name, config) in servers {
        let put = api.put(&format!("/v1/mcp/servers/{name}"), config).await;
        assert!(put.is_success(), "{put:?}");
    }
    for name in servers.keys() {
        let tested = soon(
            name,
            api.post(&format!("/v1/mcp/servers/{name}/test"), &json!({})),
        )
        .await;
        assert_eq!(tested.body["status"], "ready", "{tested:?}");
        assert_eq!(
            tested.body["held"], 0,
            "nothing in a real server looks like an attack: {tested:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_real_servers_serve_an_agent_at_once() {
    let (models, real) = (ModelServer::start().await, RealServers::new());
    let (page, _server) = page().await;
    let (variable, value) = path();
    let gateway = Gateway::start(&[(variable, &value)]).await;
    let api = gateway.api();
    let servers = real.all();
    add_all(&api, &servers).await;
    let listed = api.get("/v1/mcp/servers").await;
    let eras: Map<String, Value> = listed.body["servers"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|server| {
            (
                server["name"].as_str().expect("a name").to_owned(),
                server["protocol"].clone(),
            )
        })
        .collect();
    for (server, era) in [
        ("everything", "2025-11-25"),
        ("filesystem", "2025-11-25"),
        ("memory", "2025-11-25"),
        ("thinking", "2025-11-25"),
        ("sqlite", "2025-11-25"),
        ("time", "2026-07-28"),
        ("git", "2026-07-28"),
        ("fetch", "2026-07-28"),
    ] {
        assert_eq!(eras[server], era, "{server}");
    }

    let calls = [
        ("mcp_everything_echo", json!({"message": "hi"})),
        ("mcp_everything_get-tiny-image", json!({})),
        (
            "mcp_filesystem_read_text_file",
            json!({"path": real.files().join("note.txt")}),
        ),
        (
            "mcp_memory_create_entities",
            json!({"entities": [{"name": "Ada", "entityType": "person", "observations": ["writes"]}]}),
        ),
        (
            "mcp_thinking_sequentialthinking",
            json!({"thought": "hm", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}),
        ),
        (
            "mcp_time_convert_time",
            json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
        ),
        ("mcp_git_git_status", json!({"repo_path": real.repository()})),
        ("mcp_sqlite_list_tables", json!({})),
        ("mcp_fetch_fetch", json!({"url": page})),
    ];
    let script: Vec<String> = calls
        .iter()
        .map(|(tool, input)| format!("call:{tool} input:{input}"))
        .collect();
    let names: Vec<&str> = servers.keys().map(String::as_str).collect();
    let script = format!("{} text:1", script.join(" "));
    put_agent(&api, "all", &agent(&models, &script, &names)).await;
    let events = soon("the run", run(&api, "all")).await;
    let output =
        |tool: &str| outcome(&events, tool).unwrap_or_else(|code| panic!("{tool}: {code} {events:#?}"));
    assert_eq!(output("mcp_everything_echo"), "Echo: hi");
    let image = output("mcp_everything_get-tiny-image");
    let file = image
        .as_array()
        .expect("several parts")
        .iter()
        .find(|part| part["type"] == "file");
    assert_eq!(
        file.expect("the image is a file")["mediaType"],
        "image/png",
        "{image}"
    );
    assert!(
        output("mcp_filesystem_read_text_file")
            .to_string()
            .contains("remember the milk")
    );
    assert!(output("mcp_memory_create_entities").to_string().contains("Ada"));
    assert!(
        output("mcp_thinking_sequentialthinking")
            .to_string()
            .contains("thoughtNumber")
    );
    assert!(output("mcp_time_convert_time").to_string().contains("21:00"));
    assert!(
        output("mcp_git_git_status")
            .to_string()
            .contains("Repository status")
    );
    output("mcp_sqlite_list_tables");
    assert!(
        output("mcp_fetch_fetch")
            .to_string()
            .contains("plain words of a page")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_in_a_call_leaves_the_others_alone() {
    let (models, real) = (ModelServer::start().await, RealServers::new());
    let (variable, value) = path();
    let gateway = Gateway::start(&[(variable, &value)]).await;
    let api = gateway.api();
    let mut servers = real.all();
    // One that no other test starts: its process is found by its directory.
    let mark = real.directory.path().display().to_string();
    servers.retain(|name, _| ["everything", "time"].contains(&name.as_str()));
    servers["everything"]["args"] = json!(["stdio", mark]);
    add_all(&api, &servers).await;
    let long = json!({"duration": 600, "steps": 6000});
    let script = format!(
        "call:mcp_everything_trigger-long-running-operation input:{long} call:mcp_time_get_current_time \
         input:{{\"timezone\":\"UTC\"}} text:1"
    );
    put_agent(&api, "both", &agent(&models, &script, &["everything", "time"])).await;
    let run = start(&api, "both").await;
    let mut events = api.follow(&run, 0).await;
    events
        .until("progress of the call", |event| event.kind == "tool-progress")
        .await;
    for id in processes(&mark) {
        // The keeper ends by itself when its server does.
        let line = std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        if !line.contains("keep-server") {
            kill_process(Pid::from_raw(id).expect("a process"), Signal::KILL).expect("it can be killed");
        }
    }
    let events = soon("the run", api.finished(&run)).await;
    assert_eq!(
        outcome(&events, "mcp_everything_trigger-long-running-operation"),
        Err("INTERRUPTED".into())
    );
    assert!(
        outcome(&events, "mcp_time_get_current_time").is_ok(),
        "{events:#?}"
    );
    soon("its processes to end", async {
        while processes(&mark).iter().any(|id| processes_parent_is_dead(*id)) {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    let tested = soon(
        "everything",
        api.post("/v1/mcp/servers/everything/test", &json!({})),
    )
    .await;
    assert_eq!(tested.body["status"], "ready", "it is started again: {tested:?}");
}

/// Whether a process belongs to nobody any more.
fn processes_parent_is_dead(id: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let parent = stat
        .rsplit_once(')')
        .and_then(|(_, fields)| fields.split_whitespace().nth(1)?.parse().ok());
    parent == Some(1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_gateway_leaves_no_server_behind_and_goes_on() {
    let (models, real) = (ModelServer::start().await, RealServers::new());
    let (variable, value) = path();
    let mut gateway = Gateway::start(&[(variable, &value)]).await;
    let api = gateway.api();
    let mut servers = real.all();
    let mark = real.directory.path().display().to_string();
    servers.retain(|name, _| ["everything", "filesystem", "git"].contains(&name.as_str()));
    servers["everything"]["args"] = json!(["stdio", mark]);
    add_all(&api, &servers).await;
    let before = processes(&mark);
    assert!(before.len() >= 6, "three servers and their keepers: {before:?}");
    let long = json!({"duration": 600, "steps": 6000});
    let script = format!("call:mcp_everything_trigger-long-running-operation input:{long} text:1");
    put_agent(&api, "long", &agent(&models, &script, &["everything"])).await;
    let run = start(&api, "long").await;
    let mut events = api.follow(&run, 0).await;
    events
        .until("progress of the call", |event| event.kind == "tool-progress")
        .await;
    gateway.kill();
    soon("the end of every server of the killed gateway", async {
        while !processes(&mark).is_empty() {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    gateway.spawn();
    gateway.ready().await;
    let events = soon("the run", api.finished(&run)).await;
    let long = outcome(&events, "mcp_everything_trigger-long-running-operation");
    assert_eq!(long, Err("INTERRUPTED".into()), "nobody knows how far it came");
    let script = "call:mcp_everything_echo input:{\"message\":\"again\"} text:1";
    put_agent(&api, "again", &agent(&models, script, &["everything"])).await;
    let events = soon("the run", self::run(&api, "again")).await;
    assert_eq!(outcome(&events, "mcp_everything_echo"), Ok("Echo: again".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_adds_tests_lists_and_removes_a_server_that_an_agent_uses() {
    let models = ModelServer::start().await;
    let (variable, value) = path();
    let gateway = Gateway::start(&[(variable, &value)]).await;
    let api = gateway.api();
    let config = time();
    let program = config["command"].as_str().expect("a program").to_owned();
    let toolgate = async |arguments: &[&str]| {
        let mut command = tokio::process::Command::from(binary());
        command.args(["mcp", "servers"]).args(arguments);
        command
            .env("TOOLGATE_URL", gateway.url())
            .env("TOOLGATE_SECRET_KEY", SECRET_KEY);
        let ran = soon("the command", command.output()).await.expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (ran.status.success(), text(ran.stdout), text(ran.stderr))
    };
    let (ok, shown, error) = toolgate(&["add", "time", "--", &program, "--local-timezone", "UTC"]).await;
    assert!(
        ok && shown.contains("mcp_time_get_current_time"),
        "{shown}{error}"
    );
    let (ok, shown, _) = toolgate(&["list"]).await;
    assert!(
        ok && shown.starts_with("time  ready  2 tools  MCP 2026-07-28"),
        "{shown}"
    );
    let (ok, _, error) = toolgate(&["add", "none", "--", "/no/such/program"]).await;
    assert!(!ok, "{error}");

    let mut config = agent(&models, "call:now input:{\"timezone\":\"UTC\"} text:1", &[]);
    config["tools"] = json!([{"name": "now", "executionType": "mcp",
        "execution": {"server": "time", "tool": "get_current_time"}}, "mcp_time_convert_time"]);
    put_agent(&api, "clock", &config).await;
    let events = soon("the run", run(&api, "clock")).await;
    assert!(outcome(&events, "now").is_ok(), "{events:#?}");

    let (ok, shown, error) = toolgate(&["remove", "time"]).await;
    assert!(ok, "{shown}{error}");
    let left = api.get("/v1/mcp/servers/time").await;
    assert_eq!(left.status, 404);
    config["tools"] = json!(["mcp_time_convert_time"]);
    let refused = api.put("/v1/agents/clock", &config).await;
    assert_eq!(refused.status, 422, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_come_from_the_settings_and_from_an_agent() {
    let models = ModelServer::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let config = time();
    let file = directory.path().join("toolgate.toml");
    let text = format!(
        "[mcp.servers.clock]\ncommand = {}\nargs = {}\napprove = \"none\"\ntrust_annotations = true\n",
        config["command"], config["args"]
    );
    std::fs::write(&file, text).expect("a file");
    let (variable, value) = path();
    let file = file.display().to_string();
    let gateway = Gateway::start(&[(variable, &value), ("TOOLGATE_CONFIG", &file)]).await;
    let api = gateway.api();
    let tested = soon("the server", api.post("/v1/mcp/servers/clock/test", &json!({}))).await;
    assert_eq!(
        (&tested.body["status"], &tested.body["origin"]),
        (&json!("ready"), &json!("settings")),
        "{tested:?}"
    );
    let changed = api.put("/v1/mcp/servers/clock", &config).await;
    assert_eq!(
        (changed.status, changed.text("code").as_str()),
        (409, "SET_BY_OPERATOR")
    );

    let script = "call:mcp_own_get_current_time input:{\"timezone\":\"UTC\"} call:mcp_clock_get_current_time \
                  input:{\"timezone\":\"UTC\"} text:1";
    let mut both = agent(&models, script, &["clock"]);
    let mut own = config.clone();
    own["env"] = json!({"SOME_KEY": "not to be shown"});
    both["mcpServers"] = json!({ "own": own });
    put_agent(&api, "both", &both).await;
    let shown = api.get("/v1/agents/both").await;
    assert!(!shown.body.to_string().contains("not to be shown"), "{shown:?}");
    let events = soon("the run", run(&api, "both")).await;
    for tool in ["mcp_own_get_current_time", "mcp_clock_get_current_time"] {
        assert!(outcome(&events, tool).is_ok(), "{tool} {events:#?}");
    }
    let other = agent(&models, "text:1", &["own"]);
    let refused = api.put("/v1/agents/other", &other).await;
    assert_eq!(refused.status, 422, "an agent's server is its own: {refused:?}");
    let removed = api.send(Method::DELETE, "/v1/agents/both", &Value::Null).await;
    assert!(removed.is_success(), "{removed:?}");
    let left = api.get("/v1/mcp/servers").await;
    assert_eq!(left.body["servers"].as_array().map(Vec::len), Some(1), "{left:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_of_a_real_server_is_answered_by_a_member_of_the_space() {
    let (models, real) = (ModelServer::start().await, RealServers::new());
    let (variable, value) = path();
    let gateway = Gateway::start(&[(variable, &value)]).await;
    let api = gateway.api();
    let mut servers = real.all();
    servers.retain(|name, _| name == "everything");
    add_all(&api, &servers).await;
    let script = "call:mcp_everything_trigger-elicitation-request text:1";
    put_agent(&api, "asks", &agent(&models, script, &["everything"])).await;
    let ada = gateway.api().as_user("ada");
    let started = ada
        .post("/v1/runs", &json!({"agent": "asks", "message": "go"}))
        .await;
    assert!(started.is_success(), "{started:?}");
    let run = started.text("runId");
    let mut events = ada.follow(&run, 0).await;
    let asked = events
        .until("the question", |event| event.kind == "tool-question")
        .await;
    assert!(asked.text("message").contains("provide inputs"), "{asked:?}");
    let question = format!("/v1/questions/{}", asked.text("questionId"));
    let wrong = ada
        .post(&question, &json!({"action": "accept", "content": {"name": 7}}))
        .await;
    assert_eq!(wrong.status, 422, "{wrong:?}");
    let answered = ada
        .post(
            &question,
            &json!({"action": "accept", "content": {"name": "Ada Lovelace"}}),
        )
        .await;
    assert!(answered.is_success(), "{answered:?}");
    let events = soon("the run", api.finished(&run)).await;
    let output = outcome(&events, "mcp_everything_trigger-elicitation-request");
    assert!(
        output.expect("it goes on").to_string().contains("Ada Lovelace"),
        "{events:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_at_an_address_serves_an_agent() {
    let (models, real) = (ModelServer::start().await, RealServers::new());
    let port = free_port();
    let everything = real.all()["everything"]["command"]
        .as_str()
        .expect("a program")
        .to_owned();
    let (variable, value) = path();
    let server = tokio::process::Command::new(everything)
        .arg("streamableHttp")
        .env_clear()
        .env(variable, &value)
        .env("PORT", port.to_string())
        .kill_on_drop(true)
        .spawn();
    let _server = server.expect("it starts");
    let file = real.directory.path().join("toolgate.toml");
    let text = format!(
        "[mcp.servers.web]\nurl = \"http://127.0.0.1:{port}/mcp\"\nheaders = {{ Authorization = \"Bearer ${{secret.WEB}}\" }}\n\
         [secrets]\nWEB = \"hush-hush-hush\"\n"
    );
    std::fs::write(&file, text).expect("a file");
    let gateway = Gateway::start(&[("TOOLGATE_CONFIG", &file.display().to_string())]).await;
    let api = gateway.api();
    soon("the server", async {
        loop {
            let tested = api.post("/v1/mcp/servers/web/test", &json!({})).await;
            assert!(!tested.body.to_string().contains("hush-hush"), "{tested:?}");
            if tested.body["status"] == "ready" {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    let script = "call:mcp_web_echo input:{\"message\":\"far\"} call:mcp_web_get-structured-content \
                  input:{\"location\":\"Chicago\"} text:1";
    put_agent(&api, "far", &agent(&models, script, &["web"])).await;
    let events = soon("the run", run(&api, "far")).await;
    assert_eq!(outcome(&events, "mcp_web_echo"), Ok("Echo: far".into()));
    let structured = outcome(&events, "mcp_web_get-structured-content").expect("it matches its schema");
    assert!(structured["temperature"].is_number(), "{structured}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_that_may_not_starts_no_program_and_reaches_nothing_inside() {
    let gateway = Gateway::start(&[("TOOLGATE_MCP_COMMANDS", "none")]).await;
    let api = gateway.api();
    let refused = api.put("/v1/mcp/servers/sh", &json!({"command": "sh"})).await;
    assert_eq!(
        (refused.status, refused.text("code").as_str()),
        (403, "COMMAND_NOT_PERMITTED"),
        "{refused:?}"
    );
    assert!(refused.text("detail").contains("mcp.commands"), "{refused:?}");
    let inside = api
        .put("/v1/mcp/servers/x", &json!({"url": "http://127.0.0.1:1/mcp"}))
        .await;
    assert_eq!(inside.status, 422, "{inside:?}");
    let user = gateway.api().as_user("ada");
    assert_eq!(user.get("/v1/mcp/servers").await.status, 403);
}
