//! Deleting runs, spaces and people over HTTP, with the process killed in the middle.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Gateway, gateway, soon};

async fn delete(api: &Api, path: &str) -> (u16, Value) {
    let answer = api.send(Method::DELETE, path, &Value::Null).await;
    (answer.status, answer.body)
}

async fn new_space(api: &Api) -> String {
    api.post("/v1/spaces", &json!({})).await.text("id")
}

/// Posts a message and waits for the end of the run that answers it.
async fn talk(api: &Api, space: &str, words: &str) -> String {
    let body = json!({ "content": words });
    let posted = api.post(&format!("/v1/spaces/{space}/messages"), &body).await;
    assert!(posted.is_success(), "{posted:?}");
    let run = posted.text("runId");
    soon("the end of the run", api.finished(&run)).await;
    run
}

async fn status(api: &Api, path: &str) -> u16 {
    api.get(path).await.status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_run_is_gone_and_old_cursors_get_a_snapshot() {
    let gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    let space = new_space(&api).await;
    let first = talk(&api, &space, "one").await;
    let second = talk(&api, &space, "two").await;
    let events = format!("/v1/spaces/{space}/events");
    let before = api.get(&format!("{events}?limit=500")).await.body;
    let cursor = before["events"][0]["seq"].as_u64().unwrap();
    let user = api.as_user("ada");
    assert_eq!(delete(&user, &format!("/v1/runs/{first}")).await.0, 403);

    let (code, report) = delete(&api, &format!("/v1/runs/{first}")).await;
    assert_eq!(code, 200, "{report}");
    assert_eq!(report["removed"]["runs"], 1, "{report}");
    assert!(report["removed"]["entries"].as_u64().unwrap() > 1, "{report}");
    assert_eq!(status(&api, &format!("/v1/runs/{first}")).await, 404);
    assert_eq!(status(&api, &format!("/v1/runs/{first}/events")).await, 404);
    let gone = api.get(&format!("/v1/runs/{first}/events?after=1")).await;
    assert_eq!((gone.status, gone.text("code").as_str()), (410, "DELETED"));
    assert_eq!(status(&api, &format!("/v1/runs/{second}")).await, 200);
    let again = delete(&api, &format!("/v1/runs/{first}")).await;
    assert_eq!(again, (200, json!({"removed": {}})));

    let gone = api.get(&format!("{events}?after={cursor}")).await;
    assert_eq!((gone.status, gone.text("code").as_str()), (410, "PAST_RETENTION"));
    let snapshot = &gone.body["snapshot"];
    assert_eq!(snapshot["space"]["id"], space.as_str());
    let seq = snapshot["seq"].as_u64().expect("a place to go on from");
    let rest = api.get(&format!("{events}?after={seq}")).await;
    assert_eq!(rest.body["events"], json!([]));
    let kept = api.get(&events).await.body.to_string();
    assert!(kept.contains("two") && !kept.contains("\"one\""), "{kept}");
    // The conversation goes on from what is kept.
    let third = talk(&api, &space, "three").await;
    let rest = api.get(&format!("{events}?after={seq}")).await.body.to_string();
    assert!(rest.contains(&third), "{rest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_run_is_not_deleted_until_it_is_cancelled_and_a_space_takes_it_along() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let api = gateway.api();
    let started = api.start("call:ask text:1").await;
    let (run, space) = (
        started["runId"].as_str().unwrap(),
        started["spaceId"].as_str().unwrap(),
    );
    soon("the offer", async { api.follow(run, 0).await.offer().await }).await;
    let stream = api.request(Method::GET, &format!("/v1/spaces/{space}/events"));
    let stream = stream.header("accept", "text/event-stream").send().await;
    let stream = stream.expect("a stream");
    let (code, refused) = delete(&api, &format!("/v1/runs/{run}")).await;
    assert_eq!(
        (code, refused["code"].as_str()),
        (409, Some("RUN_OPEN")),
        "{refused}"
    );

    let (code, report) = delete(&api, &format!("/v1/spaces/{space}")).await;
    assert_eq!(code, 200, "{report}");
    assert_eq!(
        (&report["removed"]["spaces"], &report["removed"]["runs"]),
        (&json!(1), &json!(1))
    );
    let told = soon("the end of the stream", stream.text()).await;
    assert!(told.expect("its text").contains("ACCESS_ENDED"));
    for path in [
        format!("/v1/spaces/{space}"),
        format!("/v1/spaces/{space}/events"),
        format!("/v1/spaces/{space}/files"),
        format!("/v1/runs/{run}"),
    ] {
        assert_eq!(status(&api, &path).await, 404, "{path}");
    }
    assert_eq!(
        status(&api, &format!("/v1/spaces/{space}/events?after=5")).await,
        410
    );
    let late = json!({"content": "hello"});
    let late = api.post(&format!("/v1/spaces/{space}/messages"), &late).await;
    assert_eq!(late.status, 404, "{late:?}");
    assert_eq!(
        delete(&api, &format!("/v1/spaces/{space}")).await.0,
        200,
        "it stays so"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_exported_and_deleted_and_the_others_keep_their_words() {
    let gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    let (ada, bob) = (api.as_user("ada"), api.as_user("bob"));
    let own = new_space(&ada).await;
    talk(&ada, &own, "my secret plan").await;
    let shared = json!({"members": ["ada", "bob"]});
    let shared = api.post("/v1/spaces", &shared).await.text("id");
    let run = talk(&ada, &shared, "adas address").await;
    talk(&bob, &shared, "bobs words").await;
    let entity = api.get("/v1/entities/ada").await.text("id");

    assert_eq!(status(&bob, "/v1/entities/ada/export").await, 403);
    let export = api
        .request(Method::GET, "/v1/entities/ada/export")
        .send()
        .await
        .unwrap();
    let lines = export.text().await.unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["subject"], "ada");
    let exported = Value::from(lines).to_string();
    assert!(exported.contains("my secret plan") && exported.contains("adas address"));
    assert!(!exported.contains("bobs words"));

    assert_eq!(delete(&ada, "/v1/entities/ada").await.0, 403);
    let (code, report) = delete(&api, "/v1/entities/ada").await;
    assert_eq!(code, 200, "{report}");
    let removed = &report["removed"];
    assert_eq!(
        (&removed["entities"], &removed["spaces"]),
        (&json!(1), &json!(1)),
        "{report}"
    );
    assert!(removed["messages"].as_u64().unwrap() >= 1, "{report}");
    assert_eq!(status(&api, "/v1/entities/ada").await, 404);
    assert_eq!(status(&api, &format!("/v1/spaces/{own}")).await, 404);
    assert_eq!(status(&api, "/v1/entities/ada/export").await, 404);
    let left = api
        .get(&format!("/v1/spaces/{shared}/events?limit=500"))
        .await
        .body
        .to_string();
    assert!(
        left.contains("bobs words") && left.contains("(removed)"),
        "{left}"
    );
    assert!(!left.contains(&entity), "{left}");
    let summary = api.get(&format!("/v1/runs/{run}")).await.body;
    assert_eq!(
        (&summary["userId"], &summary["title"]),
        (&Value::Null, &Value::Null),
        "{summary}"
    );
    // A token of the same subject is a new person, who is a member of nothing.
    assert_eq!(status(&ada, &format!("/v1/spaces/{shared}")).await, 404);
    assert_ne!(api.get("/v1/entities/ada").await.body["id"], entity.as_str());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_of_another_project_do_not_exist() {
    let gateway = Gateway::start(&[("TOOLGATE_OPERATOR_KEY", "operator-key-of-the-tests-0123456789")]).await;
    let api = gateway.api();
    let space = new_space(&api).await;
    let run = talk(&api, &space, "one").await;
    api.put("/v1/entities/ada", &json!({})).await;
    let operator = api.with_key("operator-key-of-the-tests-0123456789");
    let made = operator.post("/v1/projects", &json!({"name": "other"})).await;
    assert!(made.is_success(), "{made:?}");
    let other = api.with_key(made.body["secretKey"].as_str().expect("a key"));
    let paths = [
        format!("/v1/runs/{run}"),
        format!("/v1/spaces/{space}"),
        "/v1/entities/ada".to_owned(),
    ];
    for path in &paths {
        assert_eq!(delete(&other, path).await.0, 404, "{path}");
        assert_eq!(
            delete(&operator, path).await.0,
            401,
            "the operator sees no project's data: {path}"
        );
    }
    for path in &paths {
        assert_eq!(status(&api, path).await, 200, "{path}");
    }
    delete(&api, &paths[0]).await;
    let foreign = status(&other, &format!("{}/events?after=5", paths[0])).await;
    assert_eq!(foreign, 404, "that it was there is not told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_a_kill_interrupts_is_finished_after_the_start() {
    let mut gateway = Gateway::start(&[]).await;
    for round in 0..4u64 {
        let api = gateway.api();
        let space = new_space(&api).await;
        let mut runs = Vec::new();
        for number in 0..12 {
            runs.push(talk(&api, &space, &format!("message {number}")).await);
        }
        let path = format!("/v1/spaces/{space}");
        let deleting = api.send_or_cut(Method::DELETE, &path, &Value::Null);
        let kill = async {
            tokio::time::sleep(Duration::from_millis(round * 7)).await;
            gateway.kill();
        };
        let (answer, ()) = tokio::join!(deleting, kill);
        gateway.spawn();
        gateway.ready().await;
        if answer.is_none() && status(&api, &path).await == 200 {
            // Nothing was done: the kill came before the first write.
            assert_eq!(status(&api, &format!("/v1/runs/{}", runs[0])).await, 200);
            continue;
        }
        let finished = async {
            loop {
                let (code, answer) = delete(&api, &path).await;
                if code == 200 {
                    return;
                }
                assert_eq!((code, &answer["code"]), (409, &json!("UNDER_WAY")), "{answer}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        soon("the rest of the deletion", finished).await;
        assert_eq!(entries(&gateway, &space), 0, "it says so when all is gone");
        for run in &runs {
            assert_eq!(status(&api, &format!("/v1/runs/{run}")).await, 404);
        }
    }
}

/// Entries that the database holds of a space.
fn entries(gateway: &Gateway, space: &str) -> u64 {
    let id: toolgate_kernel::id::SpaceId = space.parse().expect("a space");
    let database = rusqlite::Connection::open(gateway.database()).expect("the database");
    let sql = "SELECT count(*) FROM log WHERE space = ?1";
    database
        .query_row(sql, [id.to_bytes()], |row| row.get::<_, i64>(0))
        .expect("a count") as u64
}
