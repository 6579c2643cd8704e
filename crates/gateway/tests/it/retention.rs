//! Retention through the binary: what is too old is archived and deleted, and the file gets smaller.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Gateway, put_worker, soon};

async fn talk(api: &Api, space: &str, words: &str) -> String {
    let body = json!({ "content": words });
    let posted = api.post(&format!("/v1/spaces/{space}/messages"), &body).await;
    assert!(posted.is_success(), "{posted:?}");
    let run = posted.text("runId");
    soon("the end of the run", api.finished(&run)).await;
    run
}

async fn until_gone(api: &Api, run: &str) {
    soon("the end of retention", async {
        while api.get(&format!("/v1/runs/{run}")).await.status != 404 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

fn objects(folder: &Path) -> Vec<PathBuf> {
    let projects = std::fs::read_dir(folder).into_iter().flatten();
    let projects = projects.map(|project| project.expect("an entry").path());
    projects
        .flat_map(|project| std::fs::read_dir(project).expect("a folder"))
        .map(|object| object.expect("an entry").path())
        .collect()
}

fn lines(object: &Path) -> Vec<Value> {
    let mut text = String::new();
    let file = std::fs::File::open(object).expect("the object");
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("gzip");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_runs_are_archived_and_deleted_and_open_ones_stay() {
    let archive = tempfile::tempdir().expect("a folder");
    let models = ModelServer::start().await;
    let gateway = Gateway::start(&[
        ("TOOLGATE_RETENTION_APPLY_EVERY", "100ms"),
        (
            "TOOLGATE_RETENTION_ARCHIVE_FOLDER",
            archive.path().to_str().expect("text"),
        ),
    ])
    .await;
    let api = gateway.api();
    put_worker(&api, &models).await;
    let waiting = api.start("call:ask text:1").await;
    let space = api.post("/v1/spaces", &json!({})).await.text("id");
    let old = talk(&api, &space, "a long time ago").await;
    let refused = json!({"retention": {"archive": {"folder": "/"}}});
    let refused = api.put("/v1/settings", &refused).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    let settings = json!({"retention": {"runs": "3s"}});
    let stored = api.put("/v1/settings", &settings).await;
    assert!(stored.is_success(), "{stored:?}");
    until_gone(&api, &old).await;

    let kept = objects(archive.path());
    assert_eq!(kept.len(), 1, "{kept:?}");
    let archived = lines(&kept[0]);
    assert_eq!(
        (&archived[0]["kind"], &archived[0]["id"]),
        (&json!("run"), &json!(old))
    );
    let text = Value::from(archived).to_string();
    assert!(text.contains("a long time ago"), "{text}");
    let open = waiting["runId"].as_str().expect("a run");
    assert_eq!(
        api.get(&format!("/v1/runs/{open}")).await.body["status"],
        "waiting_tool"
    );
    // The conversation goes on from what is kept, and cursors of before get a snapshot.
    let again = talk(&api, &space, "today").await;
    let gone = api.get(&format!("/v1/spaces/{space}/events?after=1000000")).await;
    assert_eq!(gone.status, 410, "{gone:?}");
    until_gone(&api, &again).await;
    // The figure is counted when the whole batch is done.
    soon("the figure", async {
        loop {
            let metrics = api.request(Method::GET, "/metrics").send().await;
            let metrics = metrics.expect("an answer").text().await.expect("text");
            if metrics.contains("toolgate_retention_runs_total 2") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spaces_that_retention_has_emptied_count_for_no_quota() {
    let gateway = Gateway::start(&[
        ("TOOLGATE_RETENTION_APPLY_EVERY", "50ms"),
        ("TOOLGATE_QUOTAS_SPACES", "2"),
    ])
    .await;
    let api = gateway.api();
    let user = api.as_user("ada");
    let new_space = async || user.post("/v1/spaces", &json!({})).await;
    let (with_file, without) = (new_space().await.text("id"), new_space().await.text("id"));
    let file = format!("/v1/spaces/{with_file}/files/notes.md");
    let written = user.request(Method::PUT, &file).body("kept").send().await;
    assert!(written.expect("an answer").status().is_success());
    let runs = [
        talk(&user, &with_file, "one").await,
        talk(&user, &without, "two").await,
    ];
    let refused = new_space().await;
    assert_eq!(
        (refused.status, refused.text("code").as_str()),
        (429, "QUOTA_EXCEEDED")
    );
    let stored = api
        .put("/v1/settings", &json!({"retention": {"runs": "1ms"}}))
        .await;
    assert!(stored.is_success(), "{stored:?}");
    for run in &runs {
        until_gone(&api, run).await;
    }
    soon("room for a space", async {
        while !new_space().await.is_success() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let refused = new_space().await;
    assert_eq!(refused.status, 429, "one space has a file still: {refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_deleted_while_the_archive_cannot_be_written() {
    let place = tempfile::tempdir().expect("a folder");
    let blocked = place.path().join("file");
    std::fs::write(&blocked, "no folder").expect("a file");
    let gateway = Gateway::start(&[
        ("TOOLGATE_RETENTION_APPLY_EVERY", "50ms"),
        ("TOOLGATE_RETENTION_RUNS", "1ms"),
        (
            "TOOLGATE_RETENTION_ARCHIVE_FOLDER",
            blocked.to_str().expect("text"),
        ),
    ])
    .await;
    let api = gateway.api();
    let space = api.post("/v1/spaces", &json!({})).await.text("id");
    let run = talk(&api, &space, "hello").await;
    soon("a line of the log", async {
        while !gateway.log().contains("the archive did not take it") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(api.get(&format!("/v1/runs/{run}")).await.status, 200);
    let metrics = api.request(Method::GET, "/metrics").send().await;
    let metrics = metrics.expect("an answer").text().await.expect("text");
    assert!(metrics.contains("toolgate_retention_failures_total"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_a_kill_interrupts_is_archived_once_and_deleted() {
    let archive = tempfile::tempdir().expect("a folder");
    let mut gateway = Gateway::start(&[
        ("TOOLGATE_RETENTION_APPLY_EVERY", "1h"),
        ("TOOLGATE_RETENTION_RUNS", "1ms"),
        (
            "TOOLGATE_RETENTION_ARCHIVE_FOLDER",
            archive.path().to_str().expect("text"),
        ),
    ])
    .await;
    let api = gateway.api();
    let mut runs = Vec::new();
    for round in 0..3 {
        let space = api.post("/v1/spaces", &json!({})).await.text("id");
        for _ in 0..6 {
            runs.push(talk(&api, &space, "hello").await);
        }
        // The rules are applied at each start, and the process is killed somewhere in it.
        gateway.crash().await;
        tokio::time::sleep(Duration::from_millis(5 * round)).await;
        gateway.crash().await;
    }
    for run in &runs {
        until_gone(&api, run).await;
    }
    let mut archived: Vec<String> = Vec::new();
    for object in objects(archive.path()) {
        let ids = lines(&object).into_iter().filter(|line| line["kind"] == "run");
        archived.extend(ids.map(|line| line["id"].as_str().expect("an id").to_owned()));
    }
    archived.sort();
    runs.sort();
    assert_eq!(archived, runs, "every run is in one object, and in one only");
}
