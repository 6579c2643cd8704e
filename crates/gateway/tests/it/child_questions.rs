//! A coordinator with a mail agent: what the mail agent asks reaches the people of the coordinator's space, they answer
//! there, and they learn nothing else of it.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Event, EventStream, Gateway, Random, put_agent, soon, tool};

const KILLS: u64 = 12;
/// Longest time from a message to the kill: about what a run tree needs.
const LOAD_MS: u64 = 150;

fn agent(models: &ModelServer, script: &str, tools: Value) -> Value {
    json!({
        "instructions": format!("script: {script}"),
        "access": "public",
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "tools": tools,
    })
}

/// A gateway with a coordinator that asks a mail agent, which does as `script` says.
async fn coordinator(models: &ModelServer, script: &str, approval: Value) -> Gateway {
    coordinator_within(models, script, approval, "2s").await
}

/// The same; its mail agent may work for so long, and wait for as long as it takes.
async fn coordinator_within(models: &ModelServer, script: &str, approval: Value, limit: &str) -> Gateway {
    let gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    let tools = json!([
        tool(
            "send",
            json!({"mode": "pass-through"}),
            json!({ "approval": approval })
        ),
        tool(
            "look_up",
            json!({"mode": "static", "output": "a secret address"}),
            json!({})
        ),
        tool("sign", Value::Null, json!({})),
    ]);
    put_agent(&api, "mailer", &agent(models, script, tools)).await;
    let ask = json!([{
        "name": "mail", "description": "Asks the mail agent.", "executionType": "ai-agent",
        "execution": {"agent": "mailer"}, "timeout": limit,
    }]);
    let chief = r#"call:mail input:{"prompt":"x"} say:done"#;
    put_agent(&api, "chief", &agent(models, chief, ask)).await;
    gateway
}

const SENDS: &str = r#"call:look_up call:send input:{"to":"bob"} say:sent"#;
const SIGNS: &str = r#"call:look_up call:sign input:{"text":"hi"} say:signed"#;

/// A run of the coordinator in a space of these people, started by the first.
async fn start(api: &Api, members: &[&str]) -> (String, String) {
    let space = api
        .post("/v1/spaces", &json!({"agent": "chief", "members": members}))
        .await;
    let space = space.text("id");
    let said = api.as_user(members[0]);
    let said = said
        .post(&format!("/v1/spaces/{space}/messages"), &json!({"content": "go"}))
        .await;
    (said.text("runId"), space)
}

fn is(kind: &'static str) -> impl Fn(&Event) -> bool {
    move |event| event.kind == kind
}

async fn waits(stream: &mut EventStream, status: &'static str) {
    let waits = |event: &Event| event.kind == "run-status" && event.data["status"] == status;
    stream.until(status, waits).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_agent_below_a_coordinator_asks_the_members_of_its_space_before_it_sends() {
    let models = ModelServer::start().await;
    let gateway = coordinator(&models, SENDS, json!("always")).await;
    let api = gateway.api();
    let (ada, bob, eve) = (api.as_user("ada"), api.as_user("bob"), api.as_user("eve"));
    let (run, space) = start(&api, &["ada", "bob"]).await;
    let mut stream = bob.follow(&run, 0).await;
    let asked = stream.until("a question", is("tool-approval-request")).await;
    assert_eq!(
        (asked.text("agent"), asked.text("runId")),
        ("mailer", run.as_str())
    );
    assert_eq!(asked.data["input"], json!({"to": "bob"}));
    let child = asked.text("childRunId").to_owned();
    waits(&mut stream, "waiting_approval").await;
    let seen = String::from_utf8(stream.raw.clone()).unwrap();
    assert!(!seen.contains("look_up") && !seen.contains("address"), "{seen}");

    // The same in every list; nothing else of the child run is theirs.
    let approval = asked.text("approvalId");
    let listed = ada.get(&format!("/v1/approvals?space={space}")).await.body["approvals"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(
        [
            &listed[0]["approvalId"],
            &listed[0]["agent"],
            &listed[0]["spaceId"],
            &listed[0]["rootRunId"],
            &listed[0]["runId"]
        ],
        [approval, "mailer", space.as_str(), run.as_str(), child.as_str()],
    );
    let shown = ada.get(&format!("/v1/runs/{run}")).await.body;
    assert_eq!(
        (&shown["status"], &shown["pending"]["approvals"][0]["agent"]),
        (&json!("waiting_approval"), &json!("mailer"))
    );
    for path in [
        format!("/v1/runs/{child}"),
        format!("/v1/runs/{child}/events"),
        format!("/v1/runs?space={}", child.replacen("run_", "space_", 1)),
    ] {
        assert_eq!(ada.get(&path).await.status, 404, "{path}");
    }
    assert_eq!(
        ada.post(&format!("/v1/runs/{child}/cancel"), &json!({}))
            .await
            .status,
        404
    );

    // Who is no member, or no longer one, neither sees nor answers it.
    let path = format!("/v1/approvals/{approval}");
    let removed = api
        .send(
            reqwest::Method::DELETE,
            &format!("/v1/spaces/{space}/members/bob"),
            &json!({}),
        )
        .await;
    assert!(removed.is_success(), "{removed:?}");
    for other in [&eve, &bob] {
        assert_eq!(other.post(&path, &json!({"approved": true})).await.status, 404);
        assert_eq!(other.get("/v1/approvals").await.body["approvals"], json!([]));
    }
    // The coordinator's call has two seconds; waiting for people does not count.
    let decided = ada.post(&path, &json!({"approved": true})).await;
    assert_eq!((decided.status, decided.text("runId")), (200, child));
    let events = ada.finished(&run).await;
    assert_eq!(events.last().unwrap().data["status"], "completed", "{events:#?}");
    assert!(
        events.iter().any(|event| event.data["output"] == "sent")
            || events.iter().any(is("tool-output-available"))
    );
    let text = ada.get(&format!("/v1/runs/{run}")).await.body["text"].clone();
    assert_eq!(text, "done");
    // Own and total: the child run's tokens count for the run at the top.
    let cost = api.get(&format!("/v1/runs/{run}")).await.body;
    let own =
        cost["usage"]["inputTokens"].as_u64().unwrap() + cost["usage"]["outputTokens"].as_u64().unwrap();
    assert!(cost["totalUsage"]["tokens"].as_u64().unwrap() > own, "{cost}");
    assert_eq!(cost["totalUsage"]["childRuns"], 1);
    let seen = ada.get(&format!("/v1/runs/{run}")).await.body["totalUsage"].clone();
    assert_eq!(seen, json!({"tokens": cost["totalUsage"]["tokens"]}));
    assert_eq!(ada.get("/v1/approvals").await.body["approvals"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_tool_of_a_child_run_is_executed_by_a_client_of_the_space() {
    let models = ModelServer::start().await;
    let gateway = coordinator(&models, SIGNS, json!("always")).await;
    let api = gateway.api();
    let (ada, eve) = (api.as_user("ada"), api.as_user("eve"));
    for way in ["root", "child", "space", "claimed"] {
        let (run, space) = start(&api, &["ada"]).await;
        let mut stream = ada.follow(&run, 0).await;
        let offer = stream.offer().await;
        assert_eq!(
            (offer.text("agent"), &offer.data["input"]),
            ("mailer", &json!({"text": "hi"}))
        );
        let child = offer.text("childRunId").to_owned();
        let path = match way {
            "root" => format!("/v1/runs/{run}/tool-results"),
            "child" => format!("/v1/runs/{child}/tool-results"),
            _ => format!("/v1/spaces/{space}/tool-results"),
        };
        let result = json!({"toolCallId": offer.call(), "result": {"signed": way}});
        let claim = format!("/v1/calls/{}/claim", offer.call());
        assert_eq!(eve.post(&path, &result).await.status, 404, "{way}");
        assert_eq!(
            eve.post(&claim, &json!({"holder": "tab"})).await.status,
            404,
            "{way}"
        );
        if way == "claimed" {
            let claimed = ada.post(&claim, &json!({"holder": "tab"})).await;
            assert_eq!(
                (claimed.status, &claimed.body["input"]),
                (200, &json!({"text": "hi"}))
            );
            let held = |event: &Event| event.kind == "tool-executing" && event.call() == offer.call();
            let held = stream.until("the claim", held).await;
            assert_eq!(
                (held.call(), &held.data["claim"]["holder"]),
                (offer.call(), &json!("tab"))
            );
            let progress = format!("/v1/calls/{}/progress", offer.call());
            assert_eq!(ada.post(&progress, &json!({"progress": 1})).await.status, 204);
            assert_eq!(
                stream.until("progress", is("tool-progress")).await.call(),
                offer.call()
            );
        }
        let receipt = ada.post(&path, &result).await;
        assert_eq!(receipt.status, 200, "{way}: {receipt:?}");
        assert_eq!(
            ada.post(&path, &result).await,
            receipt,
            "the same result has the same receipt"
        );
        let other = json!({"toolCallId": offer.call(), "result": 1});
        assert_eq!(ada.post(&path, &other).await.status, 409);
        let events = stream.rest().await;
        assert_eq!(events.last().unwrap().data["status"], "completed", "{events:#?}");
        let told = events
            .iter()
            .find(|event| event.kind == "tool-output-available")
            .unwrap();
        assert_eq!(
            (told.call(), &told.data["output"]),
            (offer.call(), &json!({"signed": way}))
        );
    }
    // With a stream in one: what follows in the run at the top.
    let (run, _) = start(&api, &["ada"]).await;
    let offer = ada.follow(&run, 0).await.offer().await;
    let posted = ada
        .request(reqwest::Method::POST, &format!("/v1/runs/{run}/tool-results"))
        .header("accept", "text/event-stream")
        .json(&json!({"toolCallId": offer.call(), "result": {}}));
    let events = EventStream::of(posted.send().await.unwrap()).rest().await;
    assert_eq!(
        (events[0].kind.as_str(), events[0].call()),
        ("tool-output-available", offer.call())
    );
    assert_eq!(events.last().unwrap().kind, "run-finish");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_wrote_to_the_coordinator_is_the_requester_of_what_the_mail_agent_does() {
    let models = ModelServer::start().await;
    let terms = json!({"notRequester": true});
    let gateway = coordinator(&models, SENDS, terms).await;
    let api = gateway.api();
    let (ada, bob) = (api.as_user("ada"), api.as_user("bob"));
    let (run, _) = start(&api, &["ada", "bob"]).await;
    let mut stream = ada.follow(&run, 0).await;
    let asked = stream.until("a question", is("tool-approval-request")).await;
    assert_eq!(asked.data["input"], Value::Null, "she may not decide");
    let path = format!("/v1/approvals/{}", asked.text("approvalId"));
    assert_eq!(ada.get("/v1/approvals").await.body["approvals"], json!([]));
    let refused = ada.post(&path, &json!({"approved": true})).await;
    assert_eq!(
        (refused.status, &refused.body["code"]),
        (403, &json!("NOT_AN_APPROVER"))
    );
    assert_eq!(
        bob.get("/v1/approvals").await.body["approvals"][0]["input"],
        json!({"to": "bob"})
    );
    assert_eq!(
        bob.post(&path, &json!({"approved": false, "reason": "no"}))
            .await
            .status,
        200
    );
    let events = stream.rest().await;
    assert!(events.iter().any(is("tool-output-denied")), "{events:#?}");
    assert_eq!(events.last().unwrap().data["status"], "completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn saving_a_coordinator_warns_of_an_agent_that_can_never_answer() {
    let models = ModelServer::start().await;
    let gateway = coordinator(&models, SENDS, json!("always")).await;
    let ask = |name: &str| json!({"name": name, "description": "Asks.", "executionType": "ai-agent", "execution": {"agent": name}});
    let mut config = agent(&models, "say:x", json!([ask("mailer"), ask("nobody")]));
    let saved = gateway.api().put("/v1/agents/chief", &config).await;
    assert_eq!(saved.body["warnings"].as_array().unwrap().len(), 1, "{saved:?}");
    assert_eq!(saved.body["warnings"][0]["pointer"], "/tools/1");
    config["tools"] = json!([ask("mailer")]);
    let saved = gateway.api().put("/v1/agents/chief", &config).await;
    assert_eq!(saved.body["warnings"], Value::Null);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_the_coordinator_ends_what_its_mail_agent_asks() {
    let models = ModelServer::start().await;
    let gateway = coordinator(&models, SENDS, json!("always")).await;
    let api = gateway.api();
    let ada = api.as_user("ada");
    let (run, space) = start(&api, &["ada"]).await;
    let asked = ada
        .follow(&run, 0)
        .await
        .until("a question", is("tool-approval-request"))
        .await;
    assert_eq!(
        ada.post(&format!("/v1/runs/{run}/cancel"), &json!({}))
            .await
            .status,
        200
    );
    let followed = ada
        .request(reqwest::Method::GET, &format!("/v1/spaces/{space}/events"))
        .header("accept", "text/event-stream");
    let mut stream = EventStream::of(followed.send().await.unwrap());
    let ends = |event: &Event| {
        event.kind == "tool-output-error" && event.data["toolCallId"] == asked.data["toolCallId"]
    };
    stream.until("the end of the question", ends).await;
    let late = ada
        .post(
            &format!("/v1/approvals/{}", asked.text("approvalId")),
            &json!({"approved": true}),
        )
        .await;
    assert_eq!(late.status, 410, "{late:?}");
    assert_eq!(ada.get("/v1/approvals").await.body["approvals"], json!([]));
    assert_eq!(
        ada.get(&format!("/v1/runs/{run}")).await.body["pending"]["approvals"],
        json!([])
    );
}

/// Answers what is asked in a run until it has ended, over every kill.
async fn answer_all(api: &Api, run: &str) -> Vec<Event> {
    let mut cursor = 0;
    let mut seen = Vec::new();
    let whole = async {
        loop {
            let Ok(mut stream) = api.try_follow(run, cursor).await else {
                tokio::task::yield_now().await;
                continue;
            };
            while let Some(event) = stream.next().await {
                cursor = event.seq;
                if event.kind == "tool-approval-request" {
                    let path = format!("/v1/approvals/{}", event.text("approvalId"));
                    let decided = api.insist(&path, &json!({"approved": true}), None).await;
                    assert_eq!(decided.status, 200, "{decided:?}");
                }
                if event.is_offer() {
                    let path = format!("/v1/runs/{run}/tool-results");
                    let body = json!({"toolCallId": event.call(), "result": 1});
                    let taken = api.insist(&path, &body, None).await;
                    assert_eq!(taken.status, 200, "{taken:?}");
                }
                let is_over = event.kind == "run-finish";
                seen.push(event);
                if is_over {
                    return;
                }
            }
        }
    };
    soon("the end of the run", whole).await;
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_of_a_child_run_and_its_answer_survive_every_kill() {
    let mut random = Random::seeded("child questions");
    let models = ModelServer::start().await;
    let asks = "call:send call:sign delay:2 say:both";
    // The time that a busy machine needs to start a gateway again is time in which the mail agent works.
    let mut gateway = coordinator_within(&models, asks, json!("always"), "60s").await;
    let api = gateway.api();
    for _ in 0..KILLS {
        let started = api
            .post("/v1/runs", &json!({"agent": "chief", "message": "go"}))
            .await;
        let run = started.text("runId");
        let answering = tokio::spawn({
            let (api, run) = (api.clone(), run.clone());
            async move { answer_all(&api, &run).await }
        });
        // Not a wait for anything: the moment of the kill is what is being varied.
        tokio::time::sleep(Duration::from_millis(random.below(LOAD_MS))).await;
        gateway.crash().await;
        let events = answering.await.unwrap();
        let count = |kind: &str| events.iter().filter(|event| event.kind == kind).count();
        assert_eq!(events.last().unwrap().data["status"], "completed", "{events:#?}");
        assert_eq!(
            (count("tool-approval-request"), count("tool-approval-response")),
            (1, 1)
        );
        assert_eq!(
            count("tool-output-available"),
            3,
            "both questions and the mail agent: {events:#?}"
        );
    }
}
