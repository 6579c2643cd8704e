//! The agents in `examples/agents`, from their files to their answers.

use std::path::{Path, PathBuf};

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Gateway, binary};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents")
}

async fn gateway(models: &ModelServer) -> Gateway {
    let folder = folder();
    Gateway::start(&[
        ("TOOLGATE_AGENTS", folder.to_str().expect("text")),
        ("TOOLGATE_MODEL_BASE_URL", models.base_url()),
        ("TOOLGATE_MODEL_NAME", "script"),
    ])
    .await
}

/// Lets an agent do what the script says, in a space of its own; gives the last result that its model was shown.
async fn ask(api: &Api, models: &ModelServer, agent: &str, script: &str) -> Value {
    ask_in(None, api, models, agent, script).await.1
}

/// The same in a space that is there, when it is; gives the space too.
async fn ask_in(
    space: Option<&str>,
    api: &Api,
    models: &ModelServer,
    agent: &str,
    script: &str,
) -> (String, Value) {
    let mut body = json!({"agent": agent, "message": script});
    if let Some(space) = space {
        body["spaceId"] = space.into();
    }
    let started = api.post("/v1/runs", &body).await;
    assert!(started.is_success(), "{started:?}");
    api.finished(&started.text("runId")).await;
    let conversations = models.conversations();
    let last = conversations.last().expect("asked");
    let result = last
        .iter()
        .rfind(|message| message["role"] == "tool")
        .expect("a result");
    let text = result["content"].as_str().expect("a text");
    let told = serde_json::from_str(text).unwrap_or_else(|_| text.into());
    (started.text("spaceId"), told)
}

/// A word of a script that calls a tool with this input.
fn call(tool: &str, input: &Value) -> String {
    format!("call:{tool} input:{}", input.to_string().replace(' ', "\\u0020"))
}

#[test]
fn the_examples_are_sound() {
    let files = ["goal-aware-assistant.json", "research-agent.md"].map(|name| folder().join(name));
    let checked = binary()
        .args(["agent", "check"])
        .args(files)
        .output()
        .expect("the binary starts");
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stdout)
    );
}

#[tokio::test]
async fn the_goal_aware_assistant_remembers_its_goals_in_another_space_after_a_crash() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    let api = gateway.api();
    let goals = json!({"goals": [{"description": "rest"}, {"description": "ship", "priority": 2}]});
    let set = ask(
        &api,
        &models,
        "goal-aware-assistant",
        &format!("call:setGoals input:{goals}"),
    )
    .await;
    assert_eq!(set["goalsModified"].as_array().map(Vec::len), Some(2), "{set}");
    gateway.crash().await;
    let read = ask(&api, &models, "goal-aware-assistant", "call:getGoals").await;
    assert_eq!(read["totalGoals"], json!(2), "{read}");
    let ship = &read["currentGoals"][0];
    assert_eq!(ship["description"], json!("ship"), "{read}");
    let done = json!({"goals": [{"id": ship["id"], "description": "ship", "isCompleted": true}]});
    let set = ask(&api, &models, "goal-aware-assistant", &call("setGoals", &done)).await;
    assert_eq!(set["goalsModified"][0]["action"], json!("updated"), "{set}");
    let open = call("getGoals", &json!({"includeCompleted": false}));
    let left = ask(&api, &models, "goal-aware-assistant", &open).await;
    assert_eq!(left["currentGoals"][0]["description"], json!("rest"), "{left}");
}

/// A search engine and the one page that it knows.
async fn web() -> (String, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let page = format!("http://{address}/tides");
    let found = json!({"results": [{"title": "Tides", "url": page, "content": "Twice a day."}]}).to_string();
    let words =
        "<p>The tide comes in twice a day, and with it come the birds that feed on the flats.</p>".repeat(4);
    let tides = format!("<title>Tides</title><article><h1>Tides</h1>{words}</article>");
    let app = Router::new()
        .route(
            "/search",
            get(move || async { ([("content-type", "application/json")], found) }),
        )
        .route("/tides", get(move || async { Html(tides) }));
    let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });
    (address, AbortOnDropHandle::new(task))
}

#[tokio::test]
async fn the_research_agent_searches_reads_keeps_checks_and_reports_over_a_crash() {
    let (models, (web, _serving)) = (ModelServer::start().await, web().await);
    let folder = folder();
    let mut gateway = Gateway::start(&[
        ("TOOLGATE_AGENTS", folder.to_str().expect("text")),
        ("TOOLGATE_MODEL_BASE_URL", models.base_url()),
        ("TOOLGATE_MODEL_NAME", "script"),
        ("TOOLGATE_SEARCH_ENGINE", "searxng"),
        ("TOOLGATE_SEARCH_BASE_URL", &format!("http://{web}")),
        ("TOOLGATE_OUTSIDE_ALLOW", &web),
    ])
    .await;
    let api = gateway.api();
    let step = async |space: Option<&str>, tool: &str, input: Value| {
        ask_in(space, &api, &models, "research-agent", &call(tool, &input)).await
    };

    let (space, found) = step(None, "web_search", json!({"query": "tides"})).await;
    let place = &found["results"][0];
    assert_eq!(place["title"], "Tides", "{found}");
    let space = Some(space.as_str());
    let (_, page) = step(space, "web_fetch", json!({"url": place["url"]})).await;
    assert_eq!(
        (&page["url"], &page["title"]),
        (&place["url"], &json!("Tides")),
        "{page}"
    );
    let content = page["content"].as_str().expect("text");
    assert!(
        content.contains("twice a day") && !content.contains("<p>"),
        "{page}"
    );

    let source = format!("{}\n\n{content}", place["url"].as_str().expect("text"));
    let (_, kept) = step(
        space,
        "vfs_write",
        json!({"path": "sources/tides.md", "content": source}),
    )
    .await;
    assert_eq!(kept["version"], 1, "{kept}");
    gateway.crash().await;
    let (_, read) = step(space, "vfs_read", json!({"path": "sources/tides.md"})).await;
    assert_eq!(read["content"], source.as_str(), "{read}");

    // The tool's own run is given the claim and the source; this source says what to answer.
    let verdict = json!({"verdict": "supported", "quote": "twice"});
    let claim = json!({"claim": "Tides come twice.", "source": format!("say:{verdict}")});
    let (_, checked) = step(space, "check_claim", claim).await;
    assert_eq!(checked, verdict);
    let claim = json!({"claim": "Tides come twice.", "source": "say:{\"verdict\":\"maybe\"}"});
    let (_, checked) = step(space, "check_claim", claim).await;
    assert!(checked.to_string().contains("check_claim failed"), "{checked}");
}

#[tokio::test]
async fn the_research_agent_sums_up_with_a_tool_made_of_words() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let api = gateway.api();
    let input = json!({"text": "say:{\"bullets\":[\"short\"]}"});
    let told = ask(
        &api,
        &models,
        "research-agent",
        &format!("call:summarize input:{input}"),
    )
    .await;
    assert_eq!(told, json!({"bullets": ["short"]}));
    let input = json!({"text": "say:nonsense"});
    let told = ask(
        &api,
        &models,
        "research-agent",
        &format!("call:summarize input:{input}"),
    )
    .await;
    assert!(told.to_string().contains("summarize failed"), "{told}");
}

#[tokio::test]
async fn the_research_agent_hands_work_to_another_and_hears_of_it() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let api = gateway.api();
    let signal = json!({"message": "found"});
    let input =
        json!({"agent": "research-agent", "prompt": format!("call:signal_parent input:{signal} text:1")});
    let told = ask(&api, &models, "research-agent", &call("spawn_agent", &input)).await;
    assert_eq!(told["signals"], json!([{"message": "found"}]), "{told}");
    assert_eq!(told["answer"], json!("w0 "), "{told}");
}
