//! What doors stand on, with a door made for the test.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::Method;
use toolgate_access::Auth;
use toolgate_http::Shared;
use toolgate_http::caller::{Backend, Operator};
use toolgate_testkit_http::contract::Contract;
use toolgate_testkit_http::world::{OPERATOR, SECRET, World, project};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static CONTRACT: LazyLock<Contract> = LazyLock::new(|| Contract::new("{}"));

fn door(shared: Shared) -> Router {
    Router::new()
        .route("/projects", get(async |_: Operator| "managed"))
        .route("/data", get(async |_: Backend| "seen"))
        .with_state(shared)
}

#[tokio::test]
async fn the_operator_manages_projects_and_sees_nothing_in_them() {
    for auth in [Auth::Keys, Auth::Open(project(1))] {
        let world = World::new(
            &CONTRACT,
            |settings| settings.auth = auth,
            |ground| door(ground.shared.clone()),
        );
        let world = world.await;
        let asks = async |path: &str, key: Option<&str>| {
            let mut client = world.nobody();
            if let Some(key) = key {
                client = client.with("authorization", &format!("Bearer {key}"));
            }
            let answer = client.raw(Method::GET, path, Body::empty()).await;
            answer.status().as_u16()
        };
        assert_eq!(asks("/projects", Some(OPERATOR)).await, 200, "{auth:?}");
        assert_eq!(asks("/projects", Some(SECRET)).await, 403, "{auth:?}");
        assert_eq!(asks("/projects", None).await, 401, "{auth:?}");
        if let Auth::Keys = auth {
            assert_eq!(asks("/data", Some(SECRET)).await, 200);
            assert_eq!(asks("/data", Some(OPERATOR)).await, 401);
        }
    }
}

/// Counts the lines of the log that name an origin.
#[derive(Clone, Default)]
struct OriginsNamed(Arc<AtomicUsize>);

impl Subscriber for OriginsNamed {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        if event.metadata().fields().field("origin").is_some() {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn the_log_names_an_origin_whose_pages_may_not_read_answers() {
    let named = OriginsNamed::default();
    let _default = tracing::subscriber::set_default(named.clone());
    let world = World::new(&CONTRACT, |_| (), |ground| door(ground.shared.clone())).await;
    let get = async |lines: &[(&str, &str)]| {
        let client = world
            .nobody()
            .with("authorization", &format!("Bearer {SECRET}"))
            .with("host", "gate.example");
        let client = lines
            .iter()
            .fold(client, |client, (name, value)| client.with(name, value));
        let answer = client.raw(Method::GET, "/data", Body::empty()).await;
        (
            answer.status().as_u16(),
            answer.headers().contains_key("access-control-allow-origin"),
            named.0.load(Ordering::Relaxed),
        )
    };
    assert_eq!(get(&[]).await, (200, false, 0));
    assert_eq!(
        get(&[("origin", "https://gate.example")]).await,
        (200, false, 0),
        "its own page"
    );
    assert_eq!(get(&[("origin", "https://app.example")]).await, (200, true, 0));
    for _ in 0..2 {
        // As an `EventSource` asks, which sends no preflight.
        assert_eq!(get(&[("origin", "https://evil.example")]).await, (200, false, 1));
    }
    assert_eq!(get(&[("origin", "https://other.example")]).await, (200, false, 2));
}
