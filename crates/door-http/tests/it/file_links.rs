//! Links to files that work without a key.

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use toolgate_access::{Rate, Rates};
use toolgate_testkit_http::client::{Client, Told};

use crate::world::{LINKS, World};

/// The path of a new space of Ada's.
async fn space_of_ada(world: &World) -> String {
    let space = world
        .backend()
        .post("/v1/spaces", json!({ "members": ["ada"] }))
        .await;
    format!("/v1/spaces/{}", space.expect(201)["id"].as_str().unwrap())
}

async fn write(client: &Client<'_>, space: &str, path: &str, mime: &str) {
    let path = format!("{space}/files/{path}");
    let typed = client.with("content-type", mime);
    let told = typed
        .send(Method::PUT, &path, Body::from("<script>1</script>"))
        .await;
    assert!(matches!(told.status.as_u16(), 200 | 201));
}

async fn link(client: &Client<'_>, space: &str, body: Value) -> Value {
    client
        .post(&format!("{space}/file-links"), body)
        .await
        .expect(201)
}

/// What somebody without a key gets.
async fn open(world: &World, link: &Value) -> Told {
    world.nobody().get(link["url"].as_str().unwrap()).await
}

#[tokio::test]
async fn whoever_has_a_link_reads_that_version_until_it_expires() {
    let world = World::new().await;
    let space = space_of_ada(&world).await;
    let ada = world.user("ada");
    write(&ada, &space, "a/%C3%BCber.png", "image/png").await;
    let made = link(&ada, &space, json!({ "path": "a/über.png", "expiresIn": 30 })).await;
    assert_eq!((&made["version"], &made["inline"]), (&json!(1), &json!(true)));
    // A later version is another file to whoever has the link.
    write(&ada, &space, "a/%C3%BCber.png", "text/html").await;
    let read = open(&world, &made).await;
    for (header, value) in [
        ("content-type", "image/png"),
        ("content-disposition", "inline; filename*=UTF-8''%C3%BCber.png"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(read.header(header), value, "{header}");
    }
    let cache = read.header("cache-control").strip_prefix("private, max-age=");
    let seconds: u64 = cache.unwrap().parse().unwrap();
    assert!(seconds <= 30, "no cache keeps it longer than the link works");
    assert_eq!(read.expect(200), "<script>1</script>");
    world.clock.jump(30_000);
    open(&world, &made).await.expect(404);
    let usual = link(
        &world.backend(),
        &space,
        json!({ "path": "a/über.png", "version": 1 }),
    )
    .await;
    world.clock.jump(LINKS.lifetime.as_millis() as i64);
    open(&world, &usual).await.expect(404);
}

#[tokio::test]
async fn what_a_browser_could_run_is_saved() {
    let world = World::new().await;
    let space = space_of_ada(&world).await;
    for mime in ["text/html", "image/svg+xml", "application/xml", "text/javascript"] {
        write(&world.backend(), &space, "x", mime).await;
        let made = link(&world.user("ada"), &space, json!({ "path": "x" })).await;
        assert_eq!(made["inline"], false, "{mime}");
        let read = open(&world, &made).await;
        assert_eq!(read.header("content-type"), "application/octet-stream");
        assert_eq!(
            read.header("content-disposition"),
            "attachment; filename*=UTF-8''x"
        );
        assert!(read.header("content-security-policy").contains("sandbox"));
        read.expect(200);
    }
    write(&world.backend(), &space, "x", "text/markdown").await;
    let made = link(&world.user("ada"), &space, json!({ "path": "x" })).await;
    assert_eq!(
        open(&world, &made).await.header("content-type"),
        "text/plain; charset=utf-8"
    );
}

#[tokio::test]
async fn a_link_ends_with_its_file_its_makers_membership_and_all_links() {
    let world = World::new().await;
    let space = space_of_ada(&world).await;
    let (backend, ada) = (world.backend(), world.user("ada"));
    for path in ["a", "b"] {
        write(&ada, &space, path, "text/plain").await;
    }
    let [a, hers, theirs] = [
        link(&ada, &space, json!({ "path": "a" })).await,
        link(&ada, &space, json!({ "path": "b" })).await,
        link(&backend, &space, json!({ "path": "b" })).await,
    ];
    for link in [&a, &hers, &theirs] {
        open(&world, link).await.expect(200);
    }
    backend.delete(&format!("{space}/files/a")).await.expect(204);
    open(&world, &a).await.expect(404);
    write(&ada, &space, "a", "text/plain").await;
    open(&world, &a).await.expect(404);
    backend.delete(&format!("{space}/members/ada")).await.expect(204);
    open(&world, &hers).await.expect(404);
    open(&world, &theirs).await.expect(200);
    ada.delete("/v1/file-links").await.expect(403);
    backend.delete("/v1/file-links").await.expect(204);
    open(&world, &theirs).await.expect(404);
    let again = link(&backend, &space, json!({ "path": "b" })).await;
    open(&world, &again).await.expect(200);
}

#[tokio::test]
async fn links_are_for_members_and_tell_of_no_other_file() {
    let world = World::new().await;
    let space = space_of_ada(&world).await;
    write(&world.backend(), &space, "a", "text/plain").await;
    let links = format!("{space}/file-links");
    for other in [world.user("eve"), world.stranger()] {
        let there = other.post(&links, json!({ "path": "a" })).await.expect(404);
        let not_there = other.post(&links, json!({ "path": "b" })).await.expect(404);
        assert_eq!(there, not_there);
    }
    let ada = world.user("ada");
    ada.post(&links, json!({ "path": "b" })).await.expect(404);
    ada.post(&links, json!({ "path": "a", "version": 2 }))
        .await
        .expect(404);
    ada.post(&links, json!({ "path": "outputs/x.txt" }))
        .await
        .expect(404);
    ada.post(&links, json!({ "path": "../a" })).await.expect(400);
    let long = ada.post(&links, json!({ "path": "a", "expiresIn": 601 })).await;
    assert_eq!(long.expect(422)["errors"][0]["pointer"], "/expiresIn");
    // A forged link to a file that is there, one to a file that is not, and rubbish read the same.
    let made = link(&ada, &space, json!({ "path": "a" })).await;
    let url = made["url"].as_str().unwrap();
    let forged = url.replacen("/v1/file-links/A", "/v1/file-links/B", 1);
    assert_ne!(forged, url);
    let cut = &url[..url.len() - 4];
    let told = world.nobody().get(&forged).await.expect(404);
    assert_eq!(world.nobody().get(cut).await.expect(404), told);
    assert_eq!(
        world.nobody().get("/v1/file-links/rubbish").await.expect(404),
        told
    );
    open(&world, &made).await.expect(200);
}

#[tokio::test]
async fn many_links_of_one_maker_have_one_rate() {
    // Refilled so slowly that a slow machine makes no difference.
    let rate = |burst| Rate { per_second: 1, burst };
    let rates = Rates {
        secret: rate(1_000),
        public: rate(20),
    };
    let world = World::with(|settings| settings.rate = rates).await;
    let space = space_of_ada(&world).await;
    let (ada, backend) = (world.user("ada"), world.backend());
    write(&ada, &space, "a.txt", "text/plain").await;
    let (mut hers, mut its) = (Vec::new(), Vec::new());
    for seconds in 50..60 {
        let body = json!({ "path": "a.txt", "expiresIn": seconds });
        its.push(link(&backend, &space, body.clone()).await);
        hers.push(link(&ada, &space, body).await);
    }
    assert!(answered(&world, &hers).await < 80, "one rate for all of hers");
    ada.get(&space).await.expect(200);
    assert_eq!(
        answered(&world, &its).await,
        80,
        "a backend's links have its rate"
    );
}

/// How many of eight requests with each of these links are answered.
async fn answered(world: &World, links: &[Value]) -> usize {
    let mut answered = 0;
    for _ in 0..8 {
        for link in links {
            match open(world, link).await {
                told if told.status == 200 => answered += 1,
                told => assert_eq!(told.code(429), "RATE_LIMITED"),
            }
        }
    }
    answered
}
