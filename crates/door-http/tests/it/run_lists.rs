//! Lists of runs for people who look after a project: filters, trees, another's eyes, figures, and rows as they change.

use serde_json::{Value, json};

use toolgate_testkit_http::client::Client;

use crate::world::World;

async fn found(client: &Client<'_>, query: &str) -> Vec<String> {
    let list = client.get(&format!("/v1/runs?{query}")).await.expect(200);
    let runs = list["runs"].as_array().unwrap().iter();
    runs.map(|run| run["title"].as_str().unwrap_or("-").to_owned())
        .collect()
}

fn run_id(events: &[toolgate_testkit_http::client::Sent]) -> String {
    events[0].data["runId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_backend_finds_runs_by_agent_user_text_and_time() {
    let world = World::new().await;
    let backend = world.backend();
    backend
        .put("/v1/agents/other", crate::world::agent())
        .await
        .expect(201);
    backend.run("Book a flight").await;
    world.user("ada").run("book a train").await;
    world.clock.jump(60_000);
    let other = json!({ "text": "Another thing", "agent": "other" });
    backend.say("/v1/runs", other).await.rest().await;
    assert_eq!(
        found(&backend, "").await,
        ["Another thing", "book a train", "Book a flight"]
    );
    assert_eq!(found(&backend, "agent=other").await, ["Another thing"]);
    assert_eq!(found(&backend, "status=failed").await, [""; 0]);
    assert_eq!(found(&backend, "status=failed,completed").await.len(), 3);
    assert_eq!(found(&backend, "user=ada").await, ["book a train"]);
    assert_eq!(found(&backend, "text=BOOK&limit=1").await, ["book a train"]);
    assert_eq!(
        found(&backend, "text=book+a").await,
        ["book a train", "Book a flight"]
    );
    let list = backend.get("/v1/runs?agent=other").await.expect(200);
    let run = &list["runs"][0];
    let since = run["createdAt"].as_str().unwrap();
    assert_eq!(
        found(&backend, &format!("since={since}")).await,
        ["Another thing"]
    );
    assert_eq!(found(&backend, &format!("until={since}")).await.len(), 2);
    assert_eq!((&run["rootId"], &run["userId"]), (&run["id"], &Value::Null));
    assert!(run["tokens"].as_u64().is_some());
    for odd in [
        "since=yesterday",
        "agent=no%20name",
        "root=x",
        "top=maybe",
        "status=odd",
        "status=failed,odd",
        "status=failed,",
    ] {
        assert_eq!(
            backend.get(&format!("/v1/runs?{odd}")).await.code(400),
            "MALFORMED",
            "{odd}"
        );
    }
    backend.get("/v1/runs?user=nobody").await.expect(404);
}

#[tokio::test]
async fn a_user_learns_nothing_more_of_runs_than_before() {
    let world = World::new().await;
    let ada = world.user("ada");
    let events = ada.run("hello").await;
    let space = events[0].data["spaceId"].as_str().unwrap();
    let list = ada.get(&format!("/v1/runs?space={space}")).await.expect(200);
    for hidden in ["title", "tokens", "userId", "rootId"] {
        assert!(list["runs"][0].get(hidden).is_none(), "{hidden}");
    }
    for filter in ["text=h", "user=ada", "agent=default", "top=true", "tool=ask"] {
        let told = ada.get(&format!("/v1/runs?space={space}&{filter}")).await;
        assert_eq!(told.code(403), "FORBIDDEN", "{filter}");
    }
    let run = run_id(&events);
    assert_eq!(
        ada.get(&format!("/v1/runs/{run}/tree")).await.code(403),
        "FORBIDDEN"
    );
    assert_eq!(
        ada.get(&format!("/v1/runs/{run}?view=public")).await.code(403),
        "FORBIDDEN"
    );
    for path in [
        "/v1/runs/events",
        "/v1/overview",
        "/v1/prices",
        "/v1/agents/default/revisions",
    ] {
        assert_eq!(ada.get(path).await.code(403), "FORBIDDEN", "{path}");
    }
}

#[tokio::test]
async fn a_backend_sees_a_run_through_a_members_eyes() {
    let world = World::new().await;
    let (ada, backend) = (world.user("ada"), world.backend());
    let events = ada.run("hide:mirror").await;
    let path = format!("/v1/runs/{}/events", run_id(&events));
    let hers = ada.get(&path).await.expect(200);
    let own = backend.get(&path).await.expect(200);
    assert!(own.to_string().contains("hidden") && !hers.to_string().contains("hidden"));
    for query in ["view=public", "view=public&user=ada"] {
        assert_eq!(
            backend.get(&format!("{path}?{query}")).await.expect(200),
            hers,
            "{query}"
        );
    }
    let run = format!("/v1/runs/{}", run_id(&events));
    let hers = ada.get(&run).await.expect(200);
    assert_eq!(backend.get(&format!("{run}?view=public")).await.expect(200), hers);
    assert_eq!(
        backend.get(&format!("{path}?view=odd")).await.code(400),
        "MALFORMED"
    );
    let stream = backend.follow(&format!("{path}?view=public")).await;
    assert_eq!(stream.status, 400);
    let theirs = world.stranger().get(&format!("{run}?view=public")).await;
    theirs.expect(404);
}

#[tokio::test]
async fn a_tree_is_told_from_the_top_whichever_run_is_named() {
    let world = World::new().await;
    let backend = world.backend();
    let events = backend.run("alone").await;
    let run = run_id(&events);
    let tree = backend.get(&format!("/v1/runs/{run}/tree")).await.expect(200);
    assert_eq!(
        (&tree["runs"][0]["id"], &tree["truncated"]),
        (&json!(run), &json!(false))
    );
    assert_eq!(tree["runs"].as_array().unwrap().len(), 1);
    world
        .stranger()
        .get(&format!("/v1/runs/{run}/tree"))
        .await
        .expect(404);
}

#[tokio::test]
async fn the_overview_counts_what_the_project_did_and_nothing_of_others() {
    let world = World::new().await;
    let backend = world.backend();
    backend.run("call:mirror={}").await;
    backend.run("call:fail={}").await;
    backend
        .say("/v1/runs", json!({ "text": "call:ask={}" }))
        .await
        .until("tool-input-available")
        .await;
    backend.run("call:guarded={}").await;
    world.stranger().run("theirs").await;
    let told = backend.get("/v1/overview").await.expect(200);
    assert_eq!(
        (&told["waiting"]["approvals"], &told["runs"]["waiting_approval"]),
        (&json!(1), &json!(1))
    );
    let hours = told["hours"].as_array().unwrap();
    assert_eq!(hours.len(), 24);
    let now = hours.last().unwrap();
    assert_eq!((&now["started"], &now["completed"]), (&json!(4), &json!(2)));
    assert_eq!(
        (&told["tools"]["calls"], &told["tools"]["failed"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(told["health"]["store"], "ok");
    assert_eq!(told["health"]["sandboxMissing"], json!(["landlock"]));
    assert_eq!(backend.get("/v1/prices").await.expect(200)["models"], json!({}));
}

#[tokio::test]
async fn revisions_of_an_agent_are_listed() {
    let world = World::new().await;
    let backend = world.backend();
    for text in ["one", "two"] {
        let config = json!({ "instructions": text, "model": {"provider": "demo"} });
        backend.put("/v1/agents/revised", config).await;
    }
    let page = backend
        .get("/v1/agents/revised/revisions?limit=1")
        .await
        .expect(200);
    assert_eq!(
        (&page["revisions"][0]["revision"], &page["nextCursor"]),
        (&json!(2), &json!(2))
    );
    let page = backend
        .get("/v1/agents/revised/revisions?before=2")
        .await
        .expect(200);
    assert_eq!(
        (&page["revisions"][0]["revision"], &page["nextCursor"]),
        (&json!(1), &Value::Null)
    );
    backend.get("/v1/agents/none/revisions").await.expect(404);
}

/// The row of the next `run` event of a list's stream.
async fn row(stream: &mut toolgate_testkit_http::client::Stream) -> Value {
    loop {
        let block = stream.block().await.expect("the stream goes on");
        if let Some(data) = block.strip_prefix("event: run\ndata: ") {
            // Several rows may come in one frame, and each is a block.
            return serde_json::from_str(data).unwrap();
        }
    }
}

#[tokio::test]
async fn a_list_is_told_of_its_projects_runs_as_they_change() {
    let world = World::new().await;
    let backend = world.backend();
    let mut stream = backend.follow("/v1/runs/events").await;
    assert_eq!(stream.block().await.as_deref(), Some(": watching"));
    assert_eq!(backend.get("/v1/runs/events").await.code(400), "MALFORMED");
    world.stranger().run("theirs").await;
    let run = run_id(&backend.run("call:guarded={}").await);
    let mut told = row(&mut stream).await;
    while told["status"] != "waiting_approval" {
        told = row(&mut stream).await;
    }
    assert_eq!(
        (&told["id"], &told["title"]),
        (&json!(run), &json!("call:guarded={}"))
    );
    let path = format!("/v1/runs/{run}/cancel");
    backend.post(&path, json!({})).await.expect(200);
    while told["status"] != "cancelled" {
        told = row(&mut stream).await;
        assert_eq!(told["id"], json!(run), "nothing of others");
    }
    world.stop.cancel();
    while stream.block().await.is_some() {}
}
