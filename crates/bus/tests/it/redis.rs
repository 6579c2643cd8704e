use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use toolgate_bus::RedisBus;
use toolgate_engine::bus::{Bus, BusListener, Gap, Notice};
use toolgate_kernel::id::{NodeId, SpaceId};
use toolgate_testkit::bus_conformance::{Carrier, all, outages};
use toolgate_testkit::redis_server::RedisServer;

/// Longest wait for a notice that must come.
const PATIENCE: Duration = Duration::from_secs(20);

async fn join(address: &str) -> Arc<dyn Bus> {
    Arc::new(
        RedisBus::join_at(address)
            .await
            .expect("the address of the server"),
    )
}

async fn three(address: &str) -> [Arc<dyn Bus>; 3] {
    [join(address).await, join(address).await, join(address).await]
}

struct Server(RedisServer);

impl Carrier for Server {
    fn stop(&mut self) {
        self.0.stop();
    }
    async fn start(&mut self) {
        self.0.start_again().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bus_over_redis_keeps_every_promise() {
    let server = RedisServer::start().await;
    let address = server.address();
    all(async || three(&address).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_goes_away_and_comes_back_is_joined_again() {
    let mut server = Server(RedisServer::start().await);
    let address = server.0.address();
    outages(&mut server, async || three(&address).await).await;
}

#[tokio::test]
async fn a_bad_address_is_refused_without_its_password() {
    for address in ["http://:hunter2@127.0.0.1:6379", "redis://:hunter2@:bad/x/y", ""] {
        let refused = RedisBus::join_at(address).await.err().expect("it is no address");
        let words = refused.to_string();
        assert!(
            words.contains("rediss://") && !words.contains("hunter2"),
            "{words}"
        );
    }
}

/// A batch of a version to come, with notices that nobody knows yet beside one that all do.
fn newer(space: SpaceId) -> String {
    let node = NodeId::from_bytes([9; 16]);
    format!(
        r#"{{"node":"{node}","life":9,"number":0,"colour":"red","notices":[{{"type":"eclipse"}},{{"type":"poke","run":7}},{{"type":"wanted","space":"{space}"}}]}}"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn notices_of_a_newer_version_are_skipped() {
    let server = RedisServer::start().await;
    let bus = join(&server.address()).await;
    let (heard, mut notices) = unbounded_channel();
    bus.join(NodeId::from_bytes([1; 16]), Arc::new(Ear(heard)));
    let space = SpaceId::from_bytes([7; 16]);
    let mut connection = connection(&server).await;
    for batch in ["{\"form\":\"of tomorrow\"}".to_owned(), newer(space)] {
        let mut append = ::redis::cmd("XADD");
        append.arg("toolgate:bus").arg("*").arg("batch").arg(batch);
        let _: String = append.query_async(&mut connection).await.unwrap();
    }
    let notice = timeout(PATIENCE, notices.recv()).await.unwrap();
    assert!(
        matches!(notice, Some(Notice::Wanted { space: wanted }) if wanted == space),
        "{notice:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_connection_breaks_goes_on_where_it_was() {
    let server = RedisServer::start().await;
    let (a, b) = (join(&server.address()).await, join(&server.address()).await);
    let (heard, mut notices) = unbounded_channel();
    b.join(NodeId::from_bytes([2; 16]), Arc::new(Ear(heard)));
    let mut connection = connection(&server).await;
    for number in 1..=200 {
        let from = NodeId::from_bytes([1; 16]);
        let space = SpaceId::from_bytes([number; 16]);
        a.publish(from, &Notice::Wanted { space });
        if number % 50 == 0 {
            let mut kill = ::redis::cmd("CLIENT");
            kill.arg("KILL")
                .arg("TYPE")
                .arg("normal")
                .arg("SKIPME")
                .arg("yes");
            let _: u32 = kill.query_async(&mut connection).await.unwrap();
        }
        let notice = timeout(PATIENCE, notices.recv()).await.unwrap();
        assert!(
            matches!(notice, Some(Notice::Wanted { space: wanted }) if wanted == space),
            "{number}: {notice:?}"
        );
    }
}

async fn connection(server: &RedisServer) -> ::redis::aio::MultiplexedConnection {
    let client = ::redis::Client::open(server.address()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

struct Ear(UnboundedSender<Notice>);

impl BusListener for Ear {
    fn heard(&self, notice: &Notice) {
        // The test may have ended.
        let _ = self.0.send(notice.clone());
    }
    fn missed(&self, _: Gap) {}
}
