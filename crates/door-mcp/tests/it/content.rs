use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolgate_engine::workspace::{NewFile, Only, Place, Workspace, WorkspaceLimits};
use toolgate_kernel::id::SpaceId;
use toolgate_kernel::time::Time;
use toolgate_testkit_http::client::Client;
use toolgate_testkit_http::world::{World, project};

use crate::talk::{NOTHING, Session, TASKS, ask, world};

const PIXEL: &[u8] = &[0x89, 0x50, 0x4e, 0x47, 0xff, 0x00];

async fn write(world: &World, space: SpaceId, name: &str, mime: &str, data: Vec<u8>) {
    let workspace = Workspace::new(world.store.clone(), WorkspaceLimits::default());
    let place = Place {
        project: project(1),
        space,
    };
    let file = NewFile {
        name: name.parse().unwrap(),
        mime: Some(mime.parse().unwrap()),
        data,
        only: Only::Always,
    };
    workspace.write(place, file, Time(1)).await.unwrap();
}

/// A space of this user, made by a call in it.
async fn space_of(client: &Client<'_>) -> SpaceId {
    let params = json!({"name": "open_mirror", "arguments": {}});
    let answer = ask(client, "tools/call", params, NOTHING).await;
    let space = &answer.result()["_meta"]["toolgate/space"];
    space.as_str().unwrap().parse().unwrap()
}

/// The content of a result whose tool gave this output.
async fn content(client: &Client<'_>, space: SpaceId, output: Value) -> Value {
    let params =
        json!({"name": "open_mirror", "arguments": output, "_meta": {"toolgate/space": space.to_string()}});
    let answer = ask(client, "tools/call", params, NOTHING).await;
    answer.result()["content"].clone()
}

#[tokio::test]
async fn files_of_an_output_are_content_of_their_kind() {
    let world = world().await;
    let user = world.user("ann");
    let space = space_of(&user).await;
    write(&world, space, "dot.png", "image/png", PIXEL.to_vec()).await;
    write(&world, space, "beep.wav", "audio/wav", vec![1, 2, 0xff]).await;
    write(&world, space, "plan.pdf", "application/pdf", vec![0xff]).await;
    write(&world, space, "big.png", "image/png", vec![0xff; 3 << 20]).await;
    let file = |path: &str, kind: &str| json!({"type": "file", "path": path, "mediaType": kind});
    let link = |path: &str, kind: &str| {
        let uri = format!("toolgate://spaces/{space}/files/{path}");
        json!({"type": "resource_link", "uri": uri, "name": path, "mimeType": kind})
    };
    let image = json!({"type": "image", "data": STANDARD.encode(PIXEL), "mimeType": "image/png"});
    let one = content(&user, space, file("dot.png", "image/png")).await;
    assert_eq!(one, json!([image]));
    let several = json!({"structuredContent": {"n": 1}, "content": [
        "look", file("beep.wav", "audio/wav"), file("plan.pdf", "application/pdf"),
        file("big.png", "image/png"), file("gone.png", "image/png")]});
    assert_eq!(
        content(&user, space, several).await,
        json!([
            {"type": "text", "text": "{\"n\":1}"},
            {"type": "text", "text": "look"},
            {"type": "audio", "data": STANDARD.encode([1, 2, 0xff]), "mimeType": "audio/wav"},
            link("plan.pdf", "application/pdf"),
            link("big.png", "image/png"),
            {"type": "text", "text": file("gone.png", "image/png").to_string()},
        ])
    );
    // A generated image has an address too.
    let made = json!({"url": "https://files.example/dot.png", "path": "dot.png", "mediaType": "image/png"});
    let shown = content(&user, space, made.clone()).await;
    assert_eq!(shown, json!([{"type": "text", "text": made.to_string()}, image]));
}

#[tokio::test]
async fn an_output_shows_no_file_that_its_reader_may_not_read() {
    let world = world().await;
    let (ann, bob) = (world.user("ann"), world.user("bob"));
    let theirs = space_of(&bob).await;
    write(&world, theirs, "secret.png", "image/png", PIXEL.to_vec()).await;
    let mine = space_of(&ann).await;
    for path in ["secret.png", "../secret.png"] {
        let output = json!({"type": "file", "path": path, "mediaType": "image/png"});
        let shown = content(&ann, mine, output).await;
        assert_eq!(shown[0]["type"], "text", "{shown}");
    }
}

#[tokio::test]
async fn sessions_and_tasks_have_the_same_content() {
    let world = world().await;
    let user = world.user("ann");
    let space = space_of(&user).await;
    write(&world, space, "dot.png", "image/png", PIXEL.to_vec()).await;
    let output = json!({"type": "file", "path": "dot.png", "mediaType": "image/png"});
    let params =
        json!({"name": "open_mirror", "arguments": output, "_meta": {"toolgate/space": space.to_string()}});
    let session = Session::begin(&user, json!({})).await;
    let answer = session.ask("tools/call", params.clone()).await;
    assert_eq!(answer.result()["content"][0]["type"], "image");
    let done = ask(&user, "tools/call", params, TASKS).await;
    let run = done.result()["_meta"]["toolgate/run"].clone();
    let task = ask(&user, "tasks/get", json!({ "taskId": run }), TASKS).await;
    assert_eq!(task.result()["result"]["content"][0]["type"], "image");
}
