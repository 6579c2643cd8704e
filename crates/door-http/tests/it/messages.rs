//! Saying something.

use serde_json::{Value, json};
use toolgate_testkit_http::client::{Sent, of};

use crate::world::World;

async fn space(world: &World) -> String {
    let space = world.backend().post("/v1/spaces", json!({})).await.expect(201);
    space["id"].as_str().unwrap().to_owned()
}

/// The messages of a space, as they are stored.
async fn said(world: &World, space: &str) -> Vec<Value> {
    let told = world
        .backend()
        .get(&format!("/v1/spaces/{space}/events?limit=500"))
        .await
        .expect(200);
    let events = told["events"].as_array().unwrap().iter();
    events
        .filter(|event| event["type"] == "message")
        .map(|event| event["message"].clone())
        .collect()
}

#[tokio::test]
async fn a_message_may_be_written_in_every_usual_form() {
    let world = World::new().await;
    let space = space(&world).await;
    let words = json!([{ "type": "text", "text": "hi" }]);
    for body in [
        json!({ "text": "hi" }),
        json!({ "content": "hi" }),
        json!({ "content": words }),
        json!({ "parts": words }),
        json!({ "message": "hi" }),
        json!({ "message": { "content": "hi", "role": "user" } }),
        json!({ "message": { "parts": words }, "text": null }),
    ] {
        let mut body = body;
        body["respond"] = false.into();
        let path = format!("/v1/spaces/{space}/messages");
        let told = world.backend().post(&path, body).await.expect(202);
        assert_eq!(told["runId"], Value::Null);
        let last = said(&world, &space).await.pop().unwrap();
        assert_eq!((&last["messageId"], &last["parts"]), (&told["messageId"], &words));
    }
    let image = json!({ "parts": [
        { "type": "image", "url": "data:image/png;base64,AAAA", "mediaType": "image/png" },
    ], "metadata": { "from": "camera" }, "messageId": "msg_00000000000000000000000009", "respond": false });
    world
        .backend()
        .post(&format!("/v1/spaces/{space}/messages"), image.clone())
        .await
        .expect(202);
    let last = said(&world, &space).await.pop().unwrap();
    assert_eq!(last["parts"], image["parts"]);
    assert_eq!(last["metadata"], json!({ "from": "camera" }));
    assert_eq!(last["messageId"], image["messageId"]);
}

#[tokio::test]
async fn what_is_wrong_with_a_message_is_told_with_its_place() {
    let world = World::new().await;
    let path = format!("/v1/spaces/{}/messages", space(&world).await);
    for (body, pointer) in [
        (json!({}), ""),
        (json!({ "text": "a", "content": "b" }), ""),
        (json!({ "text": "" }), "/text"),
        (json!({ "text": 5 }), "/text"),
        (json!({ "txt": "a", "text": "b" }), "/txt"),
        (json!({ "parts": [] }), "/parts"),
        (json!({ "parts": [{ "type": "text" }] }), "/parts/0/text"),
        (json!({ "parts": [{ "type": "video" }] }), "/parts/0/type"),
        (
            json!({ "parts": [{ "type": "image", "url": "http://a/b" }] }),
            "/parts/0/url",
        ),
        (
            json!({ "message": { "text": "a", "role": "system" } }),
            "/message/role",
        ),
        (json!({ "text": "a", "agent": "9lives" }), "/agent"),
        (json!({ "text": "a", "messageId": "run_x" }), "/messageId"),
        (json!({ "text": "a", "metadata": 5 }), "/metadata"),
        (
            json!({ "text": "a", "clientTools": [{ "name": "x" }] }),
            "/clientTools/0",
        ),
    ] {
        let told = world.backend().post(&path, body.clone()).await.expect(422);
        let first = told["errors"][0]["pointer"].as_str().unwrap();
        assert!(first.starts_with(pointer), "{body} told {told}");
    }
    let space = path.split('/').nth(3).unwrap();
    assert!(said(&world, space).await.is_empty(), "nothing was stored");
    let told = world
        .backend()
        .post(&path, json!({ "text": "a", "agent": "nobody" }))
        .await
        .expect(404);
    assert_eq!(told["errors"][0]["pointer"], "/agent");
}

#[tokio::test]
async fn a_message_starts_a_run_and_a_user_speaks_as_itself() {
    let world = World::new().await;
    let ada = world.user("ada");
    let space = ada.post("/v1/spaces", json!({})).await.expect(201);
    let (id, me) = (space["id"].as_str().unwrap(), &space["members"][0]);
    let told = ada
        .post(&format!("/v1/spaces/{id}/messages"), json!({ "text": "hello" }))
        .await
        .expect(202);
    let run = told["runId"].as_str().unwrap();
    let events = ada.follow(&format!("/v1/runs/{run}/events")).await.rest().await;
    assert_eq!(of(&events, "text-end", "text"), "you said hello");
    assert_eq!(said(&world, id).await[0]["from"], *me);
    let after = told["seq"].as_u64().unwrap();
    let list = ada
        .get(&format!("/v1/spaces/{id}/events?after={after}"))
        .await
        .expect(200);
    assert_eq!(
        list["events"][0]["type"], "run-start",
        "the cursor stands before all that the message caused"
    );

    world
        .user("eve")
        .post(&format!("/v1/spaces/{id}/messages"), json!({ "text": "psst" }))
        .await
        .expect(404);
    world
        .stranger()
        .post(&format!("/v1/spaces/{id}/messages"), json!({ "text": "psst" }))
        .await
        .expect(404);
    assert_eq!(said(&world, id).await.len(), 1);
}

#[tokio::test]
async fn a_run_without_a_space_gets_one_that_its_user_is_in() {
    let world = World::new().await;
    let told = world
        .user("ada")
        .post("/v1/runs", json!({ "message": "hello" }))
        .await
        .expect(201);
    let space = told["spaceId"].as_str().unwrap();
    world
        .user("ada")
        .get(&format!("/v1/spaces/{space}"))
        .await
        .expect(200);
    world
        .user("ada")
        .get(&format!("/v1/runs/{}", told["runId"].as_str().unwrap()))
        .await
        .expect(200);
    world
        .user("eve")
        .get(&format!("/v1/runs/{}", told["runId"].as_str().unwrap()))
        .await
        .expect(404);

    let again = json!({ "text": "and now?", "spaceId": space, "agent": "default" });
    assert_eq!(
        world
            .user("ada")
            .post("/v1/runs", again.clone())
            .await
            .expect(201)["spaceId"],
        *space
    );
    world.user("eve").post("/v1/runs", again).await.expect(404);
    let other = json!({ "text": "a", "space": space, "spaceId": "space_00000000000000000000000000" });
    assert_eq!(
        world.user("ada").post("/v1/runs", other).await.expect(422)["errors"][0]["pointer"],
        ""
    );
}

#[tokio::test]
async fn a_request_with_the_same_key_is_done_once() {
    let world = World::new().await;
    let ask = |user: &str, key: &str, words: &str| {
        let client = world.user(user).with("idempotency-key", key);
        let words = words.to_owned();
        async move { client.post("/v1/runs", json!({ "text": words })).await }
    };
    let first = ask("ada", "k1", "hello").await.expect(201);
    let again = ask("ada", "k1", "hello").await.expect(201);
    assert_eq!(first["runId"], again["runId"]);
    assert_eq!(ask("ada", "k1", "bye").await.code(422), "IDEMPOTENCY_KEY_REUSED");
    assert_ne!(
        ask("ada", "k2", "hello").await.expect(201)["runId"],
        first["runId"]
    );
    assert_ne!(
        ask("bob", "k1", "hello").await.expect(201)["runId"],
        first["runId"],
        "users choose apart"
    );
    ask("ada", "no good", "hello").await.expect(400);
    ask("ada", &"x".repeat(256), "hello").await.expect(400);
}

#[tokio::test]
async fn a_message_whose_id_the_sender_chose_is_the_same_message_again() {
    let world = World::new().await;
    let ada = world.user("ada");
    let id = "msg_00000000000000000000000007";
    let bodies = [
        json!({ "text": "hello", "messageId": id }),
        json!({ "message": { "text": "hello", "messageId": "msg_00000000000000000000000008" } }),
    ];
    for body in bodies {
        let first = ada.post("/v1/runs", body.clone()).await.expect(201);
        assert_eq!(
            ada.post("/v1/runs", body.clone()).await.expect(201)["runId"],
            first["runId"]
        );
        let again = ada.say("/v1/runs", body).await.rest().await;
        assert_eq!(of(&again, "text-end", "text"), "you said hello");
        assert_eq!(again[0].data["runId"], first["runId"]);
    }
}

/// A space of two people, and the path of its messages.
async fn shared_space(world: &World) -> String {
    let members = json!({ "members": ["ada", "bob"] });
    let space = world.backend().post("/v1/spaces", members).await.expect(201);
    format!("/v1/spaces/{}/messages", space["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_message_id_names_one_message_of_one_sender() {
    let world = World::new().await;
    let path = shared_space(&world).await;
    let (ada, bob) = (world.user("ada"), world.user("bob"));
    // The run waits at first and has ended at last: the id stays taken.
    for (n, words) in ["call:ask", "hello"].into_iter().enumerate() {
        let id = format!("msg_0000000000000000000000000{n}");
        let body = json!({ "text": words, "messageId": id });
        let first = ada.post(&path, body.clone()).await.expect(202);
        assert_eq!(ada.post(&path, body.clone()).await.expect(202), first);
        let keyed = ada.with("idempotency-key", &format!("k{n}"));
        assert_eq!(keyed.post(&path, body.clone()).await.expect(202), first);
        let run = first["runId"].as_str().unwrap();
        if words == "hello" {
            ada.follow(&format!("/v1/runs/{run}/events")).await.rest().await;
        }
        assert_eq!(bob.post(&path, body).await.code(409), "MESSAGE_ID_REUSED");
        let other = json!({ "text": "other words", "messageId": id });
        for who in [&ada, &bob, &keyed] {
            assert_eq!(
                who.post(&path, other.clone()).await.code(409),
                "MESSAGE_ID_REUSED"
            );
        }
        let agent = json!({ "text": words, "messageId": id, "respond": false });
        assert_eq!(ada.post(&path, agent).await.code(409), "MESSAGE_ID_REUSED");
    }
    let quiet = json!({ "text": "psst", "messageId": "msg_00000000000000000000000009", "respond": false });
    let first = ada.post(&path, quiet.clone()).await.expect(202);
    assert_eq!(ada.post(&path, quiet.clone()).await.expect(202), first);
    assert_eq!(bob.post(&path, quiet).await.code(409), "MESSAGE_ID_REUSED");
}

#[tokio::test]
async fn a_repeated_message_is_followed_from_where_it_stands() {
    let world = World::new().await;
    let path = shared_space(&world).await;
    let ada = world.user("ada");
    let asked = ada.say(&path, json!({ "text": "call:ask" })).await.rest().await;
    assert_eq!(asked.last().unwrap().data["status"], "waiting_tool");
    let body = json!({ "text": "never mind", "messageId": "msg_00000000000000000000000007" });
    let first = ada.say(&path, body.clone()).await.rest().await;
    assert_eq!(first[0].kind, "message");
    assert_eq!(of(&first, "text-end", "text"), "you said ada: never mind");
    let again = ada.say(&path, body.clone()).await.rest().await;
    let stored = |events: &[Sent]| -> Vec<(u64, String)> {
        let durable = events.iter().filter(|event| event.id % 1_000_000 == 0);
        durable.map(|event| (event.id, event.kind.clone())).collect()
    };
    assert_eq!(stored(&again), stored(&first));
    assert_eq!(ada.post(&path, body).await.expect(202)["seq"], first[0].id - 1);
}

#[tokio::test]
async fn a_caller_brings_its_own_tools_but_never_takes_the_name_of_another() {
    let world = World::new().await;
    let tool =
        |name: &str| json!({ "name": name, "description": "Beeps.", "parameters": { "type": "object" } });
    let body = json!({ "text": "call:beep={\"times\":2}", "clientTools": [tool("beep")] });
    let events = world.user("ada").say("/v1/runs", body).await.rest().await;
    let offered = events
        .iter()
        .find(|event| event.kind == "tool-input-available")
        .unwrap();
    assert_eq!(offered.data["input"], json!({ "times": 2 }));
    assert_eq!(offered.data["placement"], "client");
    let shadow = json!({ "text": "hi", "clientTools": [tool("mirror")] });
    let told = world.user("ada").post("/v1/runs", shadow).await.expect(422);
    assert_eq!(told["errors"][0]["pointer"], "/clientTools/0");
}

#[tokio::test]
async fn runs_are_listed_newest_first_and_a_user_names_a_space() {
    let world = World::new().await;
    let ada = world.user("ada");
    let mut made = Vec::new();
    let space = ada.post("/v1/spaces", json!({})).await.expect(201)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    for _ in 0..3 {
        let events = ada
            .say("/v1/runs", json!({ "text": "hello", "space": space }))
            .await
            .rest()
            .await;
        made.insert(0, events[0].data["runId"].clone());
    }
    world.user("bob").run("hello").await;
    let listed = |told: Value| -> Vec<Value> {
        told["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["id"].clone())
            .collect()
    };
    assert_eq!(
        listed(ada.get(&format!("/v1/spaces/{space}/runs")).await.expect(200)),
        made
    );
    assert_eq!(
        listed(
            ada.get(&format!("/v1/runs?space={space}&status=completed"))
                .await
                .expect(200)
        ),
        made
    );
    let page = ada
        .get(&format!("/v1/runs?space={space}&limit=2"))
        .await
        .expect(200);
    let next = page["nextCursor"].as_str().unwrap();
    assert_eq!(
        listed(
            ada.get(&format!("/v1/runs?space={space}&before={next}"))
                .await
                .expect(200)
        ),
        made[2..]
    );
    assert_eq!(ada.get("/v1/runs").await.code(403), "FORBIDDEN");
    world
        .user("eve")
        .get(&format!("/v1/runs?space={space}"))
        .await
        .expect(404);
    assert_eq!(listed(world.backend().get("/v1/runs").await.expect(200)).len(), 4);
    assert!(listed(world.backend().get("/v1/runs?status=failed").await.expect(200)).is_empty());
    world.backend().get("/v1/runs?status=odd").await.expect(400);
}
