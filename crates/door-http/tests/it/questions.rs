//! Questions that tools ask in the middle of a call.

use serde_json::{Value, json};
use toolgate_testkit_http::client::{Client, of};

use crate::world::{World, agent_with_tasks};

async fn world() -> World {
    let world = World::new().await;
    let backend = world.backend();
    backend
        .put("/v1/agents/default", agent_with_tasks())
        .await
        .expect(200);
    world
}

/// A space of the default agent with these members.
async fn space_of(world: &World, members: Value) -> String {
    let body = json!({ "agent": "default", "members": members });
    let made = world.backend().post("/v1/spaces", body).await.expect(201);
    made["id"].as_str().unwrap().to_owned()
}

/// A run that waits for an answer: its id and the question's.
async fn asked(who: &Client<'_>, space: &str, plan: Value) -> (String, String) {
    let body = json!({ "content": format!("call:work={}", json!({ "plan": plan })) });
    let stream = who.say(&format!("/v1/spaces/{space}/messages"), body).await;
    let events = stream.rest().await;
    assert_eq!(events.last().unwrap().data["status"], "waiting_approval");
    (
        of(&events, "run-start", "runId"),
        of(&events, "tool-question", "questionId"),
    )
}

async fn open(who: &Client<'_>) -> Vec<Value> {
    let told = who.get("/v1/questions?status=open").await.expect(200);
    told["questions"].as_array().unwrap().clone()
}

fn seat(seat: &str) -> Value {
    json!({ "action": "accept", "content": { "seat": seat } })
}

#[tokio::test]
async fn members_are_asked_and_one_of_them_answers() {
    let world = world().await;
    let (ada, bob, backend) = (world.user("ada"), world.user("bob"), world.backend());
    let space = space_of(&world, json!(["ada", "bob"])).await;
    let (run, question) = asked(&ada, &space, json!(["ask", "end"])).await;
    let path = format!("/v1/questions/{question}");

    for who in [&ada, &bob, &backend] {
        let waits = open(who).await;
        assert_eq!(waits.len(), 1, "{waits:?}");
        assert_eq!(waits[0]["questionId"], *question);
        assert_eq!(waits[0]["message"], "Which seat?");
        assert_eq!(waits[0]["schema"]["required"], json!(["seat"]));
        let state = who.get(&format!("/v1/runs/{run}")).await.expect(200);
        assert_eq!(state["pending"]["questions"][0]["questionId"], *question);
    }
    assert_eq!(open(&world.user("eve")).await, [] as [Value; 0]);
    assert_eq!(
        world.user("eve").post(&path, seat("1A")).await.code(404),
        "NOT_FOUND"
    );

    let wrong = bob.post(&path, seat("far too long")).await.expect(422);
    assert_eq!(wrong["errors"][0]["pointer"], "/content/seat");
    bob.post(&path, json!({ "action": "maybe" })).await.expect(422);
    let answered = bob.post(&path, seat("12A")).await.expect(200);
    assert_eq!(
        (&answered["action"], &answered["runId"]),
        (&json!("accept"), &json!(run))
    );
    assert_eq!(bob.post(&path, seat("12A")).await.expect(200), answered);
    let other = ada.post(&path, json!({ "action": "decline" })).await.expect(409);
    assert_eq!(other["winner"], answered);
    assert_eq!(open(&backend).await, [] as [Value; 0]);

    let events = backend
        .follow(&format!("/v1/runs/{run}/events"))
        .await
        .rest()
        .await;
    assert!(of(&events, "text-end", "text").contains("12A"));
    // What was filled in is for backends and for whoever did.
    for (who, sees) in [(&ada, false), (&bob, true), (&backend, true)] {
        let events = who.get(&format!("/v1/runs/{run}/events")).await.expect(200);
        let events = events["events"].as_array().unwrap();
        let response = events
            .iter()
            .find(|event| event["type"] == "tool-question-response")
            .unwrap();
        assert_eq!(response.get("content").is_some(), sees, "{response}");
    }
}

#[tokio::test]
async fn a_question_ends_with_the_run_and_with_membership() {
    let world = world().await;
    let (ada, backend) = (world.user("ada"), world.backend());
    let space = space_of(&world, json!(["ada", "bob"])).await;
    let (run, question) = asked(&ada, &space, json!(["ask", "end"])).await;
    let path = format!("/v1/questions/{question}");
    let member = format!("/v1/spaces/{space}/members/bob");
    backend.delete(&member).await.expect(204);
    assert_eq!(
        world.user("bob").post(&path, seat("1A")).await.code(404),
        "NOT_FOUND"
    );
    assert_eq!(open(&world.user("bob")).await, [] as [Value; 0]);
    let cancel = format!("/v1/runs/{run}/cancel");
    backend.post(&cancel, json!({})).await.expect(200);
    assert_eq!(ada.post(&path, seat("1A")).await.code(410), "CANCELLED");
    let unknown = path.replace("_0", "_7");
    assert_eq!(ada.post(&unknown, seat("1A")).await.code(404), "NOT_FOUND");
    let (_, question) = asked(&ada, &space, json!(["ask", "end"])).await;
    let message = json!({ "content": "never mind" });
    let said = ada.post(&format!("/v1/spaces/{space}/messages"), message).await;
    assert!(said.status.is_success(), "{}", said.body);
    let path = format!("/v1/questions/{question}");
    assert_eq!(ada.post(&path, seat("1A")).await.code(410), "SUPERSEDED");
}

#[tokio::test]
async fn a_call_without_a_model_names_its_question_and_goes_on_while_one_waits() {
    let world = world().await;
    let backend = world.backend();
    let body = json!({ "arguments": { "plan": ["ask", "end"] } });
    let waits = backend.post("/v1/tools/work/call", body).await.expect(202);
    assert_eq!(waits["status"], "waiting_approval");
    let question = waits["pending"]["questions"][0]["questionId"]
        .as_str()
        .unwrap()
        .to_owned();
    let told = backend
        .with("prefer", "wait=30")
        .post(&format!("/v1/questions/{question}"), seat("3C"))
        .await
        .expect(200);
    assert_eq!(
        (&told["action"], &told["run"]["status"]),
        (&json!("accept"), &json!("completed"))
    );
}
