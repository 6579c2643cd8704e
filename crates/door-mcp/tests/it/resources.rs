use serde_json::json;
use toolgate_engine::workspace::{NewFile, Only, Place, Workspace, WorkspaceLimits};
use toolgate_kernel::id::SpaceId;
use toolgate_kernel::time::Time;
use toolgate_testkit_http::world::{World, project};

use crate::talk::{Incoming, NOTHING, Session, ask, call, modern, send, world};

async fn write(world: &World, space: SpaceId, name: &str, data: &[u8]) {
    let workspace = Workspace::new(world.store.clone(), WorkspaceLimits::default());
    let place = Place {
        project: project(1),
        space,
    };
    let file = NewFile {
        name: name.parse().unwrap(),
        mime: None,
        data: data.to_vec(),
        only: Only::Always,
    };
    workspace.write(place, file, Time(1)).await.unwrap();
}

/// A space of a user.
async fn space_of(world: &World, subject: &str) -> SpaceId {
    let answer = call(&world.user(subject), "open_mirror", json!({}), NOTHING).await;
    let space = answer.result()["_meta"]["toolgate/space"]
        .as_str()
        .unwrap()
        .to_owned();
    space.parse().unwrap()
}

#[tokio::test]
async fn the_files_of_ones_spaces_are_resources() {
    let world = world().await;
    let (mine, theirs) = (space_of(&world, "ann").await, space_of(&world, "bob").await);
    write(&world, mine, "notes/a b.md", b"# hello").await;
    write(&world, mine, "dot.png", &[0x89, 0xff, 0x00]).await;
    write(&world, theirs, "secret.txt", b"not yours").await;
    let user = world.user("ann");
    let listed = ask(&user, "resources/list", json!({}), NOTHING).await;
    let uris: Vec<&str> = listed.result()["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["uri"].as_str().unwrap())
        .collect();
    let uri = format!("toolgate://spaces/{mine}/files/notes/a%20b.md");
    assert_eq!(
        uris,
        [format!("toolgate://spaces/{mine}/files/dot.png"), uri.clone()]
    );
    let read = ask(&user, "resources/read", json!({"uri": uri}), NOTHING).await;
    assert_eq!(read.result()["contents"][0]["text"], "# hello");
    let read = ask(&user, "resources/read", json!({"uri": uris[0]}), NOTHING).await;
    assert_eq!(read.result()["contents"][0]["blob"], "if8A");
    let foreign = format!("toolgate://spaces/{theirs}/files/secret.txt");
    for wrong in [foreign.as_str(), "file:///etc/passwd"] {
        let told = ask(&user, "resources/read", json!({"uri": wrong}), NOTHING).await;
        assert_eq!(told.error()["code"], -32602, "{wrong}");
    }
    let all = ask(&world.backend(), "resources/list", json!({}), NOTHING).await;
    assert_eq!(all.result()["resources"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_long_list_comes_in_pages() {
    let world = world().await;
    let space = space_of(&world, "ann").await;
    for number in 0..120 {
        write(&world, space, &format!("f{number:03}"), b"x").await;
    }
    let first = ask(&world.user("ann"), "resources/list", json!({}), NOTHING).await;
    assert_eq!(first.result()["resources"].as_array().unwrap().len(), 100);
    let cursor = first.result()["nextCursor"].clone();
    let rest = ask(
        &world.user("ann"),
        "resources/list",
        json!({"cursor": cursor}),
        NOTHING,
    )
    .await;
    assert_eq!(rest.result()["resources"].as_array().unwrap().len(), 20);
    assert_eq!(rest.result().get("nextCursor"), None);
    let wrong = ask(
        &world.user("ann"),
        "resources/list",
        json!({"cursor": "x"}),
        NOTHING,
    )
    .await;
    assert_eq!(wrong.error()["code"], -32602);
}

#[tokio::test]
async fn a_change_of_a_file_is_told_in_both_eras() {
    let world = world().await;
    let space = space_of(&world, "ann").await;
    write(&world, space, "a.txt", b"1").await;
    let uri = format!("toolgate://spaces/{space}/files/a.txt");
    let user = world.user("ann");
    let filter = json!({"notifications": {"resourceSubscriptions": [uri]}});
    let listening = send(&user, &modern("subscriptions/listen", filter, NOTHING)).await;
    let mut modern = Incoming::of(listening);
    let told = modern.next().await.unwrap();
    assert_eq!(
        told["method"], "notifications/subscriptions/acknowledged",
        "{told}"
    );

    let session = Session::begin(&user, json!({})).await;
    session
        .ask("resources/subscribe", json!({"uri": uri}))
        .await
        .result();
    let client = session
        .client()
        .with("accept", "text/event-stream")
        .with("host", "localhost");
    let mut legacy = Incoming::of(
        client
            .raw(http::Method::GET, "/mcp", axum::body::Body::empty())
            .await,
    );
    write(&world, space, "a.txt", b"2").await;
    for stream in [&mut modern, &mut legacy] {
        let told = stream.next().await.unwrap();
        assert_eq!(told["method"], "notifications/resources/updated");
        assert_eq!(told["params"]["uri"], json!(uri));
    }
}

#[tokio::test]
async fn a_task_is_told_of_when_it_moves() {
    let world = world().await;
    let answer = call(&world.backend(), "ask", json!({}), crate::talk::TASKS).await;
    let task = answer.result()["taskId"].clone();
    let filter = json!({"notifications": {"taskIds": [task, "run_none"]}});
    let listening = send(
        &world.backend(),
        &modern("subscriptions/listen", filter, crate::talk::TASKS),
    )
    .await;
    let mut incoming = Incoming::of(listening);
    let told = incoming.next().await.unwrap();
    assert_eq!(told["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(told["params"]["notifications"]["taskIds"], json!([task]));
    let told = incoming.next().await.unwrap();
    assert_eq!(
        (&told["method"], &told["params"]["status"]),
        (&json!("notifications/tasks"), &json!("working"))
    );
    let run: toolgate_kernel::id::RunId = task.as_str().unwrap().parse().unwrap();
    let call = toolgate_kernel::id::CallId { run, number: 0 };
    let output = toolgate_engine::intake::Submission::Output(json!({"a": 1}).into());
    world.engine.submit(call, output, None).await.unwrap();
    loop {
        let told = incoming.next().await.unwrap();
        assert_eq!(told["method"], "notifications/tasks");
        if told["params"]["status"] == "completed" {
            assert_eq!(told["params"]["result"]["structuredContent"], json!({"a": 1}));
            break;
        }
    }
}
