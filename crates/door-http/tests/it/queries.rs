//! Query parameters that a route does not know.

use crate::world::World;

#[tokio::test]
async fn a_query_parameter_that_is_not_known_is_refused_with_the_right_name() {
    let world = World::new().await;
    let backend = world.backend();
    for (path, words) in [
        ("/v1/runs?agnt=default", r#"did you mean "agent"?"#),
        ("/v1/runs?limit=5&nonsense=1", "known here: "),
        ("/v1/approvals?state=open", r#""state": is not known here"#),
        ("/v1/agents/default?verbose=1", "has no query parameters"),
    ] {
        let told = backend.get(path).await.expect(400);
        assert_eq!(told["code"], "MALFORMED");
        let detail = told["detail"].as_str().unwrap();
        assert!(detail.contains(words), "{path}: {detail}");
    }
    backend.get("/v1/runs?agent=default&limit=5").await.expect(200);
    // Other methods of the same path have parameters of their own.
    backend.delete("/v1/agents/nobody?purge=true").await.expect(404);
}

#[tokio::test]
async fn a_value_that_a_filter_does_not_take_is_refused_with_what_would_be_right() {
    let world = World::new().await;
    for (path, words) in [
        ("/v1/runs?status=open", r#"must be queued, running, "#),
        (
            "/v1/runs?since=yesterday",
            r#""yesterday" is not a time, expected one like "2026-11-16T08:30:00Z""#,
        ),
        ("/v1/approvals?status=done", r#"must be open, got "done";"#),
    ] {
        let told = world.backend().get(path).await.expect(400);
        assert_eq!(told["code"], "MALFORMED");
        let detail = told["detail"].as_str().unwrap();
        assert!(detail.contains(words), "{path}: {detail}");
    }
}

#[tokio::test]
async fn credentials_in_the_address_are_no_unknown_parameters() {
    let world = World::new().await;
    let told = world
        .nobody()
        .get("/v1/runs?key=pk_0123456789abcdef&token=x")
        .await;
    assert_eq!(told.code(401), "UNAUTHENTICATED");
}
