//! Files, documents and signals through the SDK.

use serde_json::json;
use toolgate_client::{Error, NewDocument, NewSpace, Only};
use toolgate_kernel::id::CallId;

use super::World;
use crate::harness::{put_agent, soon, worker};

fn code(error: Error) -> String {
    match error {
        Error::Refused(problem) => problem.code,
        other => format!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_written_read_listed_and_deleted() {
    let world = World::new().await;
    let space = world
        .client
        .spaces()
        .create(&NewSpace::default())
        .await
        .unwrap()
        .id;
    let files = world.client.files(space);
    let written = files
        .write("notes/größe 1.md", "# Größe", Only::New)
        .await
        .unwrap();
    assert_eq!(
        (written.mime_type.as_str(), written.version),
        ("text/markdown", 1)
    );
    files
        .write("notes/größe 1.md", "2", Only::Version(1))
        .await
        .unwrap();
    let refused = files.write("notes/größe 1.md", "3", Only::Version(1)).await;
    assert_eq!(code(refused.unwrap_err()), "CHANGED");
    let read = files.read("notes/größe 1.md").await.unwrap();
    assert_eq!((read.version, read.data), (2, b"2".to_vec()));
    files.write("a.txt", "a", Only::Always).await.unwrap();
    let page = files.list("notes/", None).await.unwrap();
    assert_eq!(
        (page.files.len(), page.files[0].path.as_str()),
        (1, "notes/größe 1.md")
    );
    files.delete("a.txt", Only::Always).await.unwrap();
    assert_eq!(code(files.read("a.txt").await.unwrap_err()), "NOT_FOUND");
    for name in ["../../agents/worker", "a/./b", "", "a//b"] {
        assert!(matches!(files.read(name).await, Err(Error::Setup(_))), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_are_put_listed_and_deleted_the_projects_and_an_agents_apart() {
    let world = World::new().await;
    let (all, own) = (
        world.client.knowledge(),
        world.client.knowledge().of_agent("worker"),
    );
    let tea = NewDocument {
        data: "# Tea\n\nBoil water.".into(),
        mime_type: Some("text/markdown".into()),
        source: Some("https://example.com/?a=1&b=2".into()),
        ..NewDocument::default()
    };
    let put = all.put("guide", tea.clone()).await.unwrap();
    assert_eq!((put.title.as_str(), &put.source), ("Tea", &tea.source));
    own.put(
        "salt",
        NewDocument {
            title: Some("Salt".into()),
            ..tea
        },
    )
    .await
    .unwrap();
    let ids = async |knowledge: toolgate_client::Knowledge<'_>| {
        let page = knowledge.list(None).await.unwrap();
        page.documents
            .into_iter()
            .map(|document| document.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (ids(all).await, ids(own).await),
        (vec!["guide".to_owned()], vec!["salt".to_owned()])
    );
    all.delete("guide").await.unwrap();
    assert_eq!(code(all.delete("guide").await.unwrap_err()), "NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_ends_a_wait_once() {
    let world = World::new().await;
    let api = world.gateway.api();
    let mut config = worker(&world.models);
    config["tools"] = json!([{"name": "delivery", "description": "Waits.", "executionType": "waiting",
        "execution": {"signal": true}}]);
    put_agent(&api, "worker", &config).await;
    let run = api.start("call:delivery text:2").await["runId"]
        .as_str()
        .unwrap()
        .to_owned();
    let call: CallId = soon("the wait", async {
        let mut stream = api.follow(&run, 0).await;
        loop {
            let event = stream.next().await.expect("the run goes on");
            if event.kind == "tool-executing" {
                return event.call().parse().unwrap();
            }
        }
    })
    .await;
    let calls = world.client.calls();
    let receipt = calls.signal(call, json!({"at": "the door"})).await.unwrap();
    assert_eq!(
        calls.signal(call, json!({"at": "the door"})).await.unwrap(),
        receipt
    );
    assert!(
        matches!(calls.signal(call, "lost").await, Err(Error::Refused(problem)) if problem.status == 409)
    );
    soon("the end of the run", api.finished(&run)).await;
    assert_eq!(world.results(), [r#"{"signal":{"at":"the door"}}"#]);
}
