//! What a chat asks people: approvals, also of child runs.

use serde_json::{Value, json};
use toolgate_testkit_http::world::{FAR, PUBLIC, World, agent, project, token};

use crate::talk::{chunks, configure, find, go_on, say, types, words};
use crate::world::world;

#[tokio::test]
async fn a_client_call_that_needs_a_yes_is_offered_after_it() {
    let world = world().await;
    let told = say(&world.backend(), "c", "call:guarded_ask").await;
    assert!(!types(&told).contains(&"tool-input-available"));
    let asked = find(&told, "tool-approval-request");
    let parts = json!([{"type": "step-start"}, {
        "type": "tool-guarded_ask", "toolCallId": asked["toolCallId"], "state": "approval-responded", "input": {},
        "approval": {"id": asked["approvalId"], "approved": true}}]);
    let told = go_on(&world.backend(), "c", parts).await;
    assert_eq!(
        find(&told, "tool-input-available")["toolCallId"],
        asked["toolCallId"]
    );
    assert!(!types(&told).contains(&"start-step"), "it is the same step");
    assert_eq!(find(&told, "finish")["finishReason"], "tool-calls");
}

#[tokio::test]
async fn a_no_is_a_denied_call_or_an_error_where_the_client_knows_no_such_thing() {
    for (dialect, kind) in [
        ("v5", "tool-output-error"),
        ("v6", "tool-output-denied"),
        ("v7", "tool-output-denied"),
    ] {
        let world = world().await;
        let client = world.backend();
        let body = json!({"id": "c", "dialect": dialect, "message": "call:guarded"});
        let told = chunks(&client.post("/api/chat", body).await.expect(200));
        let call = find(&told, "tool-input-start")["toolCallId"].clone();
        let approval = call.as_str().unwrap().replacen("call_", "appr_", 1);
        let asks = told.iter().any(|chunk| chunk["type"] == "tool-approval-request");
        assert_eq!(asks, dialect != "v5");
        let body = json!({"id": "c", "dialect": dialect, "message": {"role": "assistant", "parts": [
            {"type": "tool-guarded", "toolCallId": call, "state": "approval-responded", "input": {},
             "approval": {"id": approval, "approved": false, "reason": "no"}}]}});
        let told = chunks(&client.post("/api/chat", body).await.expect(200));
        assert_eq!(find(&told, kind)["toolCallId"], call);
    }
}

/// Gives the default agent a tool `mail` that asks an agent with the tools of the default agent.
async fn with_mailer(world: &World) {
    let name = "mailer".parse().unwrap();
    let put = world.engine.put_agent(project(1), &name, agent().into()).await;
    put.unwrap();
    let mut config = agent();
    let mail = json!({"name": "mail", "description": "Asks the mail agent.", "executionType": "ai-agent",
        "execution": {"agent": "mailer"}});
    config["tools"].as_array_mut().unwrap().push(mail);
    configure(world, config).await;
}

#[tokio::test]
async fn what_a_child_run_asks_is_answered_in_the_chat() {
    for (who, dialect) in [("backend", "v6"), ("ada", "v6"), ("ada", "v7")] {
        let world = world().await;
        with_mailer(&world).await;
        let client = match who {
            "backend" => world.backend(),
            user => world.user(user),
        };
        let mail = |tool: &str| format!("call:mail={}", json!({ "prompt": format!("call:{tool}") }));
        let turn = |words: String| json!({"id": "c", "dialect": dialect, "message": words});
        let told = chunks(&client.post("/api/chat", turn(mail("guarded"))).await.expect(200));
        assert_eq!(find(&told, "finish")["finishReason"], "tool-calls", "{told:?}");
        let asked = find(&told, "tool-approval-request").clone();
        let own = told.iter().find(|chunk| chunk["toolName"] == "mail").unwrap()["toolCallId"].clone();
        assert_ne!(own, asked["toolCallId"]);
        // As the client keeps the step: the coordinator's own call, and what its child run asks.
        let parts = json!([{"type": "step-start"},
            {"type": "tool-mail", "toolCallId": own, "state": "input-available", "input": {}, "providerExecuted": true},
            {"type": "tool-guarded", "toolCallId": asked["toolCallId"], "state": "approval-responded", "input": {},
             "approval": {"id": asked["approvalId"], "approved": true}}]);
        let go_on = |parts: Value| json!({"id": "c", "dialect": dialect, "message": {"role": "assistant", "parts": parts}});
        let told = chunks(&client.post("/api/chat", go_on(parts)).await.expect(200));
        assert!(words(&told).contains("got"), "{told:?}");
        assert_eq!(find(&told, "finish")["finishReason"], "stop");
        for call in [&own, &asked["toolCallId"]] {
            let settled =
                |chunk: &Value| chunk["type"] == "tool-output-available" && chunk["toolCallId"] == *call;
            assert!(told.iter().any(settled), "{told:?}");
        }

        let told = chunks(&client.post("/api/chat", turn(mail("ask"))).await.expect(200));
        assert_eq!(find(&told, "finish")["finishReason"], "tool-calls", "{told:?}");
        let offer = told
            .iter()
            .find(|chunk| chunk["toolName"] == "ask" && chunk["type"] == "tool-input-available");
        let offer = offer.unwrap_or_else(|| panic!("{told:?}"));
        assert_eq!(offer["providerExecuted"], Value::Null, "the client executes it");
        let parts = json!([{"type": "step-start"},
            {"type": "tool-ask", "toolCallId": offer["toolCallId"], "state": "output-available", "input": {}, "output": {"n": 7}}]);
        let told = chunks(&client.post("/api/chat", go_on(parts.clone())).await.expect(200));
        assert!(words(&told).contains('7'), "{told:?}");

        // The past of the chat shows the questions with what became of them.
        let past = client.get("/api/chat/c").await.expect(200).to_string();
        assert!(
            past.contains("tool-guarded") && past.contains("output-available"),
            "{past}"
        );
        assert!(!past.contains("approval-requested"), "{past}");
    }
}

/// The default agent whose tool `guarded` has these terms.
fn guarded(approval: Value) -> Value {
    let mut config = agent();
    for tool in config["tools"].as_array_mut().unwrap() {
        if tool["name"] == "guarded" {
            tool["approval"] = approval.clone();
        }
    }
    config
}

#[tokio::test]
async fn who_consents_to_a_call_is_shown_it_and_who_may_not_decide_is_neither_shown_nor_heard() {
    let world = world().await;
    let ada = world.user("ada");
    let asks = "call:guarded={\"to\":\"bob\",\"iban\":\"Zq7-hidden\"}";
    let input = |told: &[Value]| -> String {
        told.iter()
            .filter_map(|chunk| chunk["inputTextDelta"].as_str())
            .collect()
    };

    configure(&world, guarded(json!({"hide": ["/iban"]}))).await;
    let told = say(&ada, "consent", asks).await;
    assert_eq!(input(&told), r#"{"to":"bob"}"#, "{told:?}");
    assert!(!format!("{told:?}").contains("Zq7-hidden"), "{told:?}");

    configure(&world, guarded(json!({"notRequester": true}))).await;
    let told = say(&ada, "control", asks).await;
    assert_eq!(input(&told), "", "{told:?}");
    let asked = find(&told, "tool-approval-request");
    let body = json!({"id": "control", "message": {"role": "assistant", "parts": [
        {"type": "tool-guarded", "toolCallId": asked["toolCallId"], "state": "approval-responded", "input": {},
         "approval": {"id": asked["approvalId"], "approved": true}}]}});
    assert_eq!(ada.post("/api/chat", body).await.code(403), "NOT_AN_APPROVER");
    let told = say(&ada, "control", "never mind").await;
    assert_eq!(words(&told), "you said never mind", "the call was not run");

    configure(&world, guarded(json!({"approvers": {"roles": ["chief"]}}))).await;
    assert_eq!(input(&say(&ada, "role", asks).await), "");
    let token = token(json!({"sub": "bob", "exp": FAR, "roles": ["chief"]}));
    let chief = world
        .nobody()
        .with("x-public-key", PUBLIC)
        .with("authorization", &format!("Bearer {token}"));
    let told = say(&chief, "role", asks).await;
    assert!(input(&told).contains("Zq7-hidden"), "{told:?}");
}

#[tokio::test]
async fn a_call_that_awaits_a_yes_is_not_taken_for_done_beside_one_that_is_settled() {
    // Otherwise the client would find nothing open, and send again, for ever.
    let world = world().await;
    let told = say(&world.backend(), "c", "call:guarded call:ask").await;
    let asked = &find(&told, "tool-approval-request")["toolCallId"];
    let about = |chunk: &&Value| chunk["toolCallId"] == *asked;
    for chunk in told.iter().filter(about) {
        assert_eq!(chunk.get("providerExecuted"), None, "{chunk}");
        assert_ne!(chunk["type"], "tool-input-available");
    }
}

#[tokio::test]
async fn nobody_decides_for_others_by_naming_their_question() {
    let world = world().await;
    let (ada, bob) = (world.user("ada"), world.user("bob"));
    let told = say(&ada, "a", "call:guarded").await;
    let asked = find(&told, "tool-approval-request")["approvalId"].clone();
    let told = say(&bob, "b", "call:ask").await;
    let own = find(&told, "tool-input-available")["toolCallId"].clone();
    let parts = json!([{"type": "step-start"}, {"type": "tool-ask", "toolCallId": own, "state": "approval-responded",
        "input": {}, "approval": {"id": asked, "approved": true}}]);
    go_on(&bob, "b", parts).await;
    let run = find(&say(&ada, "a2", "hello").await, "data-run")["data"]["runId"].clone();
    assert!(run.is_string());
    let open = ada.get("/api/chat/a/stream").await.expect(200);
    let told = chunks(&open);
    assert!(
        types(&told).contains(&"tool-approval-request"),
        "it is still open: {told:?}"
    );
    assert!(!types(&told).contains(&"tool-output-available"));
}

/// The names of the tools in each step of these chunks.
fn steps(chunks: &[Value]) -> Vec<Vec<&str>> {
    let mut steps = Vec::new();
    for chunk in chunks {
        match (chunk["type"].as_str(), chunk["toolName"].as_str()) {
            (Some("start-step"), _) => steps.push(Vec::new()),
            (Some("tool-input-start" | "tool-input-available"), Some(name)) => {
                let step = steps.last_mut().expect("a step is open");
                if step.last() != Some(&name) {
                    step.push(name);
                }
            }
            _ => {}
        }
    }
    steps
}

#[tokio::test]
async fn what_child_runs_ask_stands_in_one_step_behind_the_calls_that_wait_for_it() {
    let world = world().await;
    with_mailer(&world).await;
    let client = world.backend();
    let mail = |tool: &str| format!("call:mail={}", json!({ "prompt": format!("call:{tool}") }));
    let told = say(&client, "one", &mail("guarded")).await;
    assert_eq!(steps(&told), [vec!["mail"], vec!["guarded"]], "{told:?}");
    // A page that comes back is told the same.
    let again = client.get("/api/chat/one/stream").await.expect(200);
    assert_eq!(steps(&chunks(&again)), [vec!["mail"], vec!["guarded"]]);
    // Two questions that are open together stand together: a client sends the answers of its last step.
    let told = say(
        &client,
        "two",
        &format!("{} {}", mail("guarded"), mail("guarded")),
    )
    .await;
    let steps = steps(&told);
    assert_eq!(steps.len(), 2, "{told:?}");
    let asked = told
        .iter()
        .filter(|chunk| chunk["type"] == "tool-approval-request");
    assert_eq!(asked.count(), 2, "{told:?}");
}
