//! What doors stand on, with a door made for the test.

use std::sync::LazyLock;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::Method;
use toolgate_access::Auth;
use toolgate_http::Shared;
use toolgate_http::caller::{Backend, Operator};
use toolgate_testkit_http::contract::Contract;
use toolgate_testkit_http::world::{OPERATOR, SECRET, World, project};

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
