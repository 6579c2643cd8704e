//! Outbound requests in shares: one user's slow requests do not hold up another's.

use axum::Router;
use axum::extract::Request as Asked;
use tokio::net::TcpListener;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::task::AbortOnDropHandle;
use toolgate_egress::{BodyLimit, Egress, Policy, Request};
use toolgate_fair::{Share, Shares};
use url::Url;

const RUNNING: Shares = Shares {
    all: 2,
    tenant: 2,
    user: 1,
};

#[tokio::test]
async fn another_users_request_is_sent_while_one_users_requests_hang() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base: Url = format!("http://{}", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let (sender, mut asked) = unbounded_channel();
    // Says what it is asked for, and never answers.
    let app = Router::new().fallback(async move |request: Asked| {
        sender.send(request.uri().path().to_owned()).unwrap();
        std::future::pending::<()>().await
    });
    let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let _serving = AbortOnDropHandle::new(serving);
    let egress = Egress::with_requests(RUNNING);
    let send = |user: u128, path: &str| {
        let share = Share {
            tenant: 1,
            user: Some(user),
        };
        let client = egress.within(share).client(Policy::server(&base));
        let request = Request::get(base.join(path).unwrap(), BodyLimit::Head);
        AbortOnDropHandle::new(tokio::spawn(async move { client.send(request).await.map(drop) }))
    };
    let first = send(1, "/a/1");
    assert_eq!(asked.recv().await.unwrap(), "/a/1");
    let _second = send(1, "/a/2");
    let _other = send(2, "/b/1");
    assert_eq!(asked.recv().await.unwrap(), "/b/1");
    drop(first);
    assert_eq!(asked.recv().await.unwrap(), "/a/2");
}
