//! What a project knows.

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use toolgate_testkit_http::client::{Client, Told};

use crate::world::World;

const DOCUMENTS: &str = "/v1/knowledge/documents";

async fn put(client: &Client<'_>, kind: &str, path: &str, data: impl Into<Body>) -> Told {
    let client = client.with("content-type", kind);
    client
        .send(Method::PUT, &format!("{DOCUMENTS}/{path}"), data.into())
        .await
}

fn ids(told: &Value) -> Vec<&str> {
    let documents = told["documents"].as_array().unwrap();
    documents
        .iter()
        .map(|document| document["id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_document_is_kept_shown_listed_and_removed() {
    let world = World::new().await;
    let backend = world.backend();
    let kept = put(
        &backend,
        "text/markdown",
        "tea?source=https://tea.example",
        "# Tea\n\nBoil water.",
    )
    .await
    .expect(200);
    assert_eq!(
        (&kept["title"], &kept["passages"], &kept["embedded"]),
        (&json!("Tea"), &json!(1), &json!(false))
    );
    let page = "<title>Rice</title><body><p>Wash <b>rice</b>.<script>x</script>";
    put(&backend, "text/html; charset=utf-8", "rice", page)
        .await
        .expect(200);
    put(&backend, "text/plain", "own?agent=default&title=Own", "words")
        .await
        .expect(200);
    let rice = backend.get(&format!("{DOCUMENTS}/rice")).await.expect(200);
    assert_eq!(
        (&rice["title"], &rice["text"]),
        (&json!("Rice"), &json!("Wash **rice**."))
    );
    assert_eq!(ids(&backend.get(DOCUMENTS).await.expect(200)), ["rice", "tea"]);
    let first = backend.get(&format!("{DOCUMENTS}?limit=1")).await.expect(200);
    assert_eq!(
        (ids(&first), &first["nextCursor"]),
        (vec!["rice"], &json!("rice"))
    );
    assert_eq!(
        ids(&backend.get(&format!("{DOCUMENTS}?after=rice")).await.expect(200)),
        ["tea"]
    );
    assert_eq!(
        ids(&backend
            .get(&format!("{DOCUMENTS}?agent=default"))
            .await
            .expect(200)),
        ["own"]
    );
    backend.delete(&format!("{DOCUMENTS}/own")).await.expect(404);
    backend
        .delete(&format!("{DOCUMENTS}/own?agent=default"))
        .await
        .expect(204);
    backend.delete(&format!("{DOCUMENTS}/tea")).await.expect(204);
    backend.get(&format!("{DOCUMENTS}/tea")).await.expect(404);
}

#[tokio::test]
async fn documents_are_for_the_backends_of_the_project() {
    let world = World::new().await;
    put(&world.backend(), "text/plain", "tea", "water")
        .await
        .expect(200);
    let ada = world.user("ada");
    put(&ada, "text/plain", "tea", "mine").await.expect(403);
    ada.get(DOCUMENTS).await.expect(403);
    ada.get(&format!("{DOCUMENTS}/tea")).await.expect(403);
    ada.delete(&format!("{DOCUMENTS}/tea")).await.expect(403);
    let stranger = world.stranger();
    stranger.get(&format!("{DOCUMENTS}/tea")).await.expect(404);
    stranger.delete(&format!("{DOCUMENTS}/tea")).await.expect(404);
    assert_eq!(ids(&stranger.get(DOCUMENTS).await.expect(200)), [""; 0]);
}

#[tokio::test]
async fn what_cannot_be_read_is_refused() {
    let world = World::new().await;
    let backend = world.backend();
    assert_eq!(
        put(&backend, "image/png", "a", "PNG").await.code(415),
        "UNSUPPORTED_MEDIA_TYPE"
    );
    put(&backend, "application/pdf", "a", "%PDF").await.expect(422);
    assert_eq!(
        put(&backend, "text/plain", "a", vec![0xff]).await.code(422),
        "VALIDATION_FAILED"
    );
    put(&backend, "text/plain", "a", " ").await.expect(422);
    put(&backend, "text/html", "a", "<div>".repeat(5_000))
        .await
        .expect(422);
    put(&backend, "text/plain", "a%2Fb", "x").await.expect(422);
    put(&backend, "text/plain", "a?agent=nobody", "x")
        .await
        .expect(404);
    put(
        &backend,
        "text/plain",
        &format!("a?title={}", "x".repeat(501)),
        "x",
    )
    .await
    .expect(400);
    assert_eq!(ids(&backend.get(DOCUMENTS).await.expect(200)), [""; 0]);
}

#[tokio::test]
async fn many_documents_are_stored_at_once_and_searched_in_their_languages() {
    let world = World::new().await;
    let backend = world.backend();
    let document = |id: &str, text: &str| json!({"id": id, "text": text, "source": "https://example.com"});
    let body = json!({"documents": [
        document("houses", "Die Häuser in der Straße sind gelb."),
        document("disk", "磁盘空间不足时如何清理"),
        document("a/b", "an id with a slash"),
        {"id": "page", "mimeType": "text/html", "text": "<title>Coast</title><p>The lighthouse.</p>"},
        {"id": "image", "mimeType": "image/png", "text": "PNG"},
        {"id": "empty", "text": " "},
    ]});
    let told = backend.post(DOCUMENTS, body).await.expect(200);
    let outcome = |one: &Value| match one["document"]["title"].as_str() {
        Some(title) => title.to_owned(),
        None => one["error"]["code"].as_str().unwrap().to_owned(),
    };
    let outcomes: Vec<String> = told["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(outcome)
        .collect();
    assert_eq!(
        outcomes,
        [
            "houses",
            "disk",
            "VALIDATION_FAILED",
            "Coast",
            "UNSUPPORTED_MEDIA_TYPE",
            "VALIDATION_FAILED"
        ]
    );
    for (query, id) in [
        ("Wo%20steht%20das%20Haus%3F", "houses"),
        ("STRASSE", "houses"),
        ("%E7%A3%81%E7%9B%98", "disk"),
        ("lighthouses&limit=1", "page"),
    ] {
        let found = backend
            .get(&format!("/v1/knowledge/search?query={query}"))
            .await
            .expect(200);
        let best = &found["results"][0];
        assert_eq!(
            (&best["documentId"], &best["score"]),
            (&json!(id), &json!(1.0)),
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_search_is_for_backends_and_sees_an_agents_own_only_when_asked() {
    let world = World::new().await;
    let backend = world.backend();
    put(&backend, "text/plain", "own?agent=default", "The lighthouse key.")
        .await
        .expect(200);
    let ids = |told: Value| told["results"].as_array().unwrap().len();
    let search = "/v1/knowledge/search?query=lighthouse";
    assert_eq!(ids(backend.get(search).await.expect(200)), 0);
    assert_eq!(
        ids(backend.get(&format!("{search}&agent=default")).await.expect(200)),
        1
    );
    assert_eq!(
        ids(world
            .stranger()
            .get(&format!("{search}&agent=default"))
            .await
            .expect(200)),
        0
    );
    world.user("ada").get(search).await.expect(403);
    backend.get("/v1/knowledge/search").await.expect(400);
    backend.get(&format!("{search}&limit=21")).await.expect(400);
    backend
        .post(DOCUMENTS, json!({"documents": []}))
        .await
        .expect(422);
    let own = json!({"documents": [{"id": "a", "text": "x"}]});
    backend
        .post(&format!("{DOCUMENTS}?agent=nobody"), own)
        .await
        .expect(404);
}
