//! Access that ends: what hangs on a key, a membership, an agent or a project ends with it, at once.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_kernel::id::NodeId;
use toolgate_testkit::broken_bus::BrokenBus;
use toolgate_testkit_http::client::{Client, Stream, kinds, of};
use toolgate_testkit_http::world::OPERATOR;
use uuid::Uuid;

use crate::world::{FAR, World, token};

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

async fn space_of(client: &Client<'_>) -> String {
    text(&client.post("/v1/spaces", json!({})).await.expect(201)["id"])
}

async fn follow(client: &Client<'_>, space: &str) -> Stream {
    client.follow(&format!("/v1/spaces/{space}/events")).await
}

/// A fresh key, and its id.
async fn key(world: &World, kind: &str) -> (String, String) {
    let made = world
        .backend()
        .post("/v1/keys", json!({ "kind": kind }))
        .await
        .expect(201);
    (text(&made["key"]), text(&made["id"]))
}

/// The stream ends with an error that says why, before any heartbeat could look.
async fn ends(stream: &mut Stream, began: Instant) {
    let last = stream.block().await.expect("last words");
    let data = last
        .strip_prefix("event: error\ndata: ")
        .unwrap_or_else(|| panic!("{last}"));
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["type"], "error");
    assert_eq!(data["code"], "ACCESS_ENDED");
    assert_eq!(stream.block().await, None);
    assert!(began.elapsed().is_zero(), "by a notice, not by a heartbeat");
}

#[tokio::test(start_paused = true)]
async fn a_member_who_is_taken_out_is_sent_nothing_more() {
    let world = World::new().await;
    let (ada, bob) = (world.user("ada"), world.user("bob"));
    let space = space_of(&ada).await;
    let members = format!("/v1/spaces/{space}/members");
    world
        .backend()
        .put(&format!("{members}/bob"), json!({}))
        .await
        .expect(204);
    let (mut first, mut other) = (follow(&ada, &space).await, follow(&bob, &space).await);
    let began = Instant::now();
    world
        .backend()
        .delete(&format!("{members}/ada"))
        .await
        .expect(204);
    ends(&mut first, began).await;
    follow(&ada, &space)
        .await
        .status
        .is_client_error()
        .then_some(())
        .expect("refused");
    let said = json!({"text": "still here", "respond": false});
    bob.post(&format!("/v1/spaces/{space}/messages"), said)
        .await
        .expect(202);
    assert_eq!(other.event().await.unwrap().kind, "message");
}

#[tokio::test(start_paused = true)]
async fn what_was_stored_before_is_not_sent_to_one_who_was_taken_out_meanwhile() {
    let world = World::new().await;
    let ada = world.user("ada");
    let space = space_of(&ada).await;
    for words in ["one", "two"] {
        let said = json!({"text": words, "respond": false});
        ada.post(&format!("/v1/spaces/{space}/messages"), said)
            .await
            .expect(202);
    }
    // Everything is there to be read, so the stream never has to wait.
    let mut stream = follow(&ada, &space).await;
    let began = Instant::now();
    world
        .backend()
        .delete(&format!("/v1/spaces/{space}/members/ada"))
        .await
        .expect(204);
    ends(&mut stream, began).await;
}

/// What happens to the bus between two nodes.
type Trouble = fn(&BrokenBus);

#[tokio::test(start_paused = true)]
async fn one_who_was_taken_out_on_a_node_that_is_not_heard_is_sent_nothing_that_is_said_later() {
    // The node of a new world, on which the member is taken out.
    let cut_off: Trouble = |bus| bus.cut_off(NodeId::new(Uuid::from_u128(1)));
    let away: Trouble = BrokenBus::leave;
    for trouble in [cut_off, away] {
        let bus = Arc::new(BrokenBus::default());
        let elsewhere = World::with(|settings| settings.bus = bus.clone()).await;
        let world = World::with(|settings| settings.beside(&elsewhere)).await;
        let (ada, bob) = (world.user("ada"), world.user("bob"));
        let space = space_of(&ada).await;
        let member = format!("/v1/spaces/{space}/members/bob");
        world.backend().put(&member, json!({})).await.expect(204);
        let mut streams = [follow(&ada, &space).await, follow(&bob, &space).await];
        let say = async |words: &str| {
            let said = json!({"text": words, "respond": false});
            let path = format!("/v1/spaces/{space}/messages");
            ada.post(&path, said).await.expect(202);
        };
        trouble(&bus);
        say("to both").await;
        for stream in &mut streams {
            assert_eq!(stream.event().await.unwrap().kind, "message");
        }
        let [mut of_ada, mut of_bob] = streams;
        elsewhere.backend().delete(&member).await.expect(204);
        say("to ada alone").await;
        ends(&mut of_bob, Instant::now()).await;
        assert_eq!(of_ada.event().await.unwrap().kind, "message");
    }
}

#[tokio::test(start_paused = true)]
async fn a_removed_key_ends_its_streams_and_no_others() {
    let world = World::new().await;
    let space = space_of(&world.user("ada")).await;
    let (secret, secret_id) = key(&world, "secret").await;
    let (public, public_id) = key(&world, "public").await;
    let bearer = |value: &str| format!("Bearer {value}");
    let backend = world.nobody().with("authorization", &bearer(&secret));
    let ada = world.nobody().with("x-public-key", &public);
    let ada = ada.with(
        "authorization",
        &bearer(&token(json!({"sub": "ada", "exp": FAR}))),
    );
    let mut of_secret = follow(&backend, &space).await;
    let mut of_public = follow(&ada, &space).await;
    let mut of_other = follow(&world.user("ada"), &space).await;
    let began = Instant::now();
    for (id, stream) in [(secret_id, &mut of_secret), (public_id, &mut of_public)] {
        world
            .backend()
            .delete(&format!("/v1/keys/{id}"))
            .await
            .expect(204);
        ends(stream, began).await;
    }
    backend.get("/v1/spaces").await.expect(401);
    ada.get("/v1/spaces").await.expect(401);
    let said = json!({"text": "still here", "respond": false});
    world
        .backend()
        .post(&format!("/v1/spaces/{space}/messages"), said)
        .await
        .expect(202);
    assert_eq!(of_other.event().await.unwrap().kind, "message");
}

#[tokio::test(start_paused = true)]
async fn a_removed_project_ends_its_streams() {
    let world = World::new().await;
    let operator = world
        .nobody()
        .with("authorization", &format!("Bearer {OPERATOR}"));
    let made = operator
        .post("/v1/projects", json!({"name": "brief"}))
        .await
        .expect(201);
    let secret = text(&made["secretKey"]);
    let backend = world.nobody().with("authorization", &format!("Bearer {secret}"));
    let space = space_of(&backend).await;
    let mut stream = follow(&backend, &space).await;
    let began = Instant::now();
    operator.delete("/v1/projects/brief").await.expect(204);
    ends(&mut stream, began).await;
}

#[tokio::test]
async fn a_receipt_is_for_those_who_may_still_read_it() {
    let world = World::new().await;
    let ada = world.user("ada").with("idempotency-key", "once");
    let body = json!({"text": "hello"});
    let posted = ada.post("/v1/runs", body.clone()).await.expect(201);
    assert_eq!(
        ada.post("/v1/runs", body.clone()).await.expect(201)["runId"],
        posted["runId"]
    );
    let space = text(&posted["spaceId"]);
    world
        .backend()
        .delete(&format!("/v1/spaces/{space}/members/ada"))
        .await
        .expect(204);
    assert_eq!(ada.post("/v1/runs", body.clone()).await.code(404), "NOT_FOUND");
    assert_eq!(ada.say("/v1/runs", body).await.status, 404);
}

#[tokio::test]
async fn a_removed_agent_ends_its_runs() {
    let world = World::new().await;
    let backend = world.backend();
    backend
        .put("/v1/agents/brief", crate::world::agent())
        .await
        .expect(201);
    let mut runs = Vec::new();
    for agent in ["brief", "default"] {
        let body = json!({"text": "call:ask", "agent": agent});
        let events = backend.say("/v1/runs", body).await.rest().await;
        runs.push(of(&events, "run-start", "runId"));
    }
    backend.delete("/v1/agents/brief").await.expect(204);
    let events = backend
        .follow(&format!("/v1/runs/{}/events", runs[0]))
        .await
        .rest()
        .await;
    assert_eq!(*kinds(&events).last().unwrap(), "run-finish");
    assert_eq!(of(&events, "run-finish", "status"), "cancelled");
    let other = backend.get(&format!("/v1/runs/{}", runs[1])).await.expect(200);
    assert_eq!(other["status"], "waiting_tool");
}

#[tokio::test]
async fn what_a_former_member_has_claimed_is_offered_again() {
    let world = World::new().await;
    let (ada, bob) = (world.user("ada"), world.user("bob"));
    let events = ada.run("call:ask").await;
    let space = of(&events, "run-start", "spaceId");
    let path = format!(
        "/v1/calls/{}/claim",
        of(&events, "tool-input-available", "toolCallId")
    );
    let members = format!("/v1/spaces/{space}/members");
    let backend = world.backend();
    backend
        .put(&format!("{members}/bob"), json!({}))
        .await
        .expect(204);
    let claim = |holder: &str| json!({"holder": holder, "leaseSeconds": 60});
    bob.post(&path, claim("bob's tab")).await.expect(200);
    assert_eq!(ada.post(&path, claim("ada's tab")).await.code(409), "HELD");
    backend.delete(&format!("{members}/bob")).await.expect(204);
    ada.post(&path, claim("ada's tab")).await.expect(200);
}
