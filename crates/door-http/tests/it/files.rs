//! The files of a space.

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use toolgate_engine::records::Receipt;
use toolgate_engine::workspace::{FileInfo, Place};
use toolgate_kernel::id::CallId;
use toolgate_kernel::time::Time;
use toolgate_testkit_http::client::{Client, Told};

use crate::world::{FILE_BYTES_MAX, World, project};

async fn put(client: &Client<'_>, path: &str, data: impl Into<Body>) -> Told {
    client.send(Method::PUT, path, data.into()).await
}

/// Where the files of a new space of Ada's are.
async fn files_of_ada(world: &World) -> String {
    let space = world
        .backend()
        .post("/v1/spaces", json!({ "members": ["ada"] }))
        .await;
    format!("/v1/spaces/{}/files", space.expect(201)["id"].as_str().unwrap())
}

fn paths(told: &Value) -> Vec<&str> {
    let files = told["files"].as_array().unwrap();
    files.iter().map(|file| file["path"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_file_is_written_read_listed_and_deleted() {
    let world = World::new().await;
    let files = files_of_ada(&world).await;
    let ada = world.user("ada");
    let made = put(&ada, &format!("{files}/notes/%C3%BCber.md"), "# one")
        .await
        .expect(201);
    assert_eq!(
        (&made["path"], &made["mimeType"], &made["version"]),
        (&json!("notes/über.md"), &json!("text/markdown"), &json!(1))
    );
    let typed = ada.with("content-type", "Text/Plain; charset=utf-8");
    assert_eq!(
        put(&typed, &format!("{files}/notes/%C3%BCber.md"), "# two")
            .await
            .expect(200)["version"],
        2
    );
    let read = world.backend().get(&format!("{files}/notes/%C3%BCber.md")).await;
    assert_eq!(
        (
            read.header("content-type"),
            read.header("etag"),
            read.header("x-content-type-options")
        ),
        ("text/plain", "\"2\"", "nosniff")
    );
    assert_eq!(read.expect(200), "# two");
    assert_eq!(
        ada.get(&format!("{files}/notes/%C3%BCber.md?version=1"))
            .await
            .expect(200),
        "# one"
    );
    put(&ada, &format!("{files}/a"), "").await.expect(201);
    let listed = ada.get(&files).await.expect(200);
    assert_eq!(
        (paths(&listed), &listed["totalBytes"]),
        (vec!["a", "notes/über.md"], &json!(10))
    );
    let page = ada.get(&format!("{files}?limit=1")).await.expect(200);
    assert_eq!((paths(&page), &page["nextCursor"]), (vec!["a"], &json!("a")));
    assert_eq!(
        paths(
            &ada.get(&format!("{files}?after=a&prefix=notes/"))
                .await
                .expect(200)
        ),
        ["notes/über.md"]
    );
    ada.delete(&format!("{files}/a")).await.expect(204);
    ada.delete(&format!("{files}/a")).await.expect(404);
    ada.get(&format!("{files}/a")).await.expect(404);
}

#[tokio::test]
async fn files_are_for_members_and_backends_of_the_project() {
    let world = World::new().await;
    let files = files_of_ada(&world).await;
    let file = format!("{files}/a");
    put(&world.backend(), &file, "secret").await.expect(201);
    for other in [world.user("eve"), world.stranger()] {
        other.get(&files).await.expect(404);
        other.get(&file).await.expect(404);
        other.delete(&file).await.expect(404);
        put(&other, &file, "mine").await.expect(404);
    }
    assert_eq!(world.user("ada").get(&file).await.expect(200), "secret");
}

#[tokio::test]
async fn what_a_tool_gave_is_for_backends_and_nobody_writes_it() {
    let world = World::new().await;
    let files = files_of_ada(&world).await;
    let (backend, ada) = (world.backend(), world.user("ada"));
    let call: CallId = "call_01m7har765ebd89j8k9jdvs3t8_1".parse().unwrap();
    let place = Place {
        project: project(1),
        space: files.split('/').nth(3).unwrap().parse().unwrap(),
    };
    let output = ("txt", b"private".to_vec());
    let receipt = |_: &FileInfo| Receipt {
        key: call.to_string(),
        answer: json!(null).into(),
        time: Time(0),
    };
    let kept = world
        .workspace
        .keep_output(place, call, output, Time(0), receipt)
        .await;
    let path = format!("{files}/{}", kept.unwrap().path);
    assert_eq!(backend.get(&path).await.expect(200), "private");
    assert_eq!(paths(&backend.get(&files).await.expect(200)).len(), 1);
    let listed = ada.get(&files).await.expect(200);
    assert_eq!(paths(&listed), [""; 0]);
    assert_eq!(
        (&listed["totalFiles"], &listed["totalBytes"]),
        (&json!(0), &json!(0))
    );
    for name in ["a", "out", "outputs.txt", "z"] {
        put(&ada, &format!("{files}/{name}"), "x").await.expect(201);
    }
    // Neither a short page nor a cursor nor a total tells that something is hidden.
    let mut pages = Vec::new();
    let mut cursor = String::new();
    for _ in 0..3 {
        let page = ada.get(&format!("{files}?limit=2{cursor}")).await.expect(200);
        assert_eq!((&page["totalFiles"], &page["totalBytes"]), (&json!(4), &json!(4)));
        pages.push(paths(&page).into_iter().map(str::to_owned).collect::<Vec<_>>());
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(pages, [vec!["a", "out"], vec!["outputs.txt", "z"], vec![]]);
    assert_eq!(
        paths(&ada.get(&format!("{files}?prefix=outputs/")).await.expect(200)),
        [""; 0]
    );
    ada.get(&path).await.expect(404);
    ada.delete(&path).await.expect(404);
    put(&ada, &path, "forged").await.expect(404);
    put(&backend, &path, "forged").await.expect(400);
    put(&backend, &format!("{files}/./outputs/new"), "forged")
        .await
        .expect(400);
    assert_eq!(backend.get(&path).await.expect(200), "private");
}

#[tokio::test]
async fn a_name_cannot_leave_the_space() {
    let world = World::new().await;
    let files = files_of_ada(&world).await;
    let backend = world.backend();
    for path in [
        "../x",
        "%2e%2e/x",
        "a/..%2fb",
        "%2Fetc/passwd",
        "a%5Cb",
        "a%00b",
        "%01",
        "%02a%01000000000001",
        "a%E2%88%95b",
        "..%ef%bc%8fx",
        "%252e%252e/x",
    ] {
        assert_eq!(
            put(&backend, &format!("{files}/{path}"), "x").await.code(400),
            "MALFORMED",
            "{path}"
        );
        backend.get(&format!("{files}/{path}")).await.expect(400);
        backend.delete(&format!("{files}/{path}")).await.expect(400);
    }
    assert_eq!(paths(&backend.get(&files).await.expect(200)), [""; 0]);
}

#[tokio::test]
async fn a_stale_write_and_one_without_room_are_refused() {
    let world = World::new().await;
    let files = files_of_ada(&world).await;
    let backend = world.backend();
    let file = format!("{files}/a");
    let new = backend.with("if-none-match", "*");
    put(&new, &file, "1").await.expect(201);
    assert_eq!(put(&new, &file, "2").await.code(412), "CHANGED");
    put(&backend.with("if-match", "\"1\""), &file, "2")
        .await
        .expect(200);
    assert_eq!(
        put(&backend.with("if-match", "\"1\""), &file, "3")
            .await
            .code(412),
        "CHANGED"
    );
    backend.with("if-match", "\"1\"").delete(&file).await.expect(412);
    put(&backend.with("if-match", "soon"), &file, "3")
        .await
        .expect(400);
    put(&backend.with("content-type", "soon"), &file, "3")
        .await
        .expect(415);
    assert_eq!(
        put(&backend, &file, vec![0; FILE_BYTES_MAX + 1]).await.code(413),
        "BODY_TOO_LARGE"
    );
    for name in ["b", "c", "d", "e"] {
        put(&backend, &format!("{files}/{name}"), "x").await.expect(201);
    }
    assert_eq!(
        put(&backend, &format!("{files}/f"), "x").await.code(507),
        "LIMIT_EXCEEDED"
    );
}

#[tokio::test]
async fn an_etag_names_one_version_for_good() {
    let world = World::new().await;
    let files = files_of_ada(&world).await;
    let backend = world.backend();
    let file = format!("{files}/a");
    let any = backend.with("if-match", "*");
    assert_eq!(put(&any, &file, "0").await.code(412), "CHANGED");
    let made = put(&backend, &file, "1").await;
    let tag = made.header("etag").to_owned();
    made.expect(201);
    let knows = backend.with("if-none-match", &tag);
    let same = knows.get(&file).await;
    assert_eq!(same.header("etag"), tag);
    same.expect(304);
    let weak = format!("\"77\", W/{tag}");
    backend.with("if-none-match", &weak).get(&file).await.expect(304);
    put(&any, &file, "2").await.expect(200);
    assert_eq!(knows.get(&file).await.expect(200), "2");
    backend.delete(&file).await.expect(204);
    let anew = put(&backend, &file, "3").await;
    assert_ne!(anew.header("etag"), tag);
    anew.expect(201);
    assert_eq!(
        put(&backend.with("if-match", &tag), &file, "4").await.code(412),
        "CHANGED"
    );
    assert_eq!(knows.get(&file).await.expect(200), "3");
}
