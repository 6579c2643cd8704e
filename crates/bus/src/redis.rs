//! The bus over Redis: one stream that every node appends to and reads from its own place, so that a node whose
//! connection breaks goes on where it was. The stream is bounded in bytes and time; who comes back later than that looks
//! in the store.
//!
//! One stream for all, so that each node hears another's notices in their order. Needs Redis 6.2 or Valkey.

mod reader;
mod stream_id;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError};
use tokio_util::task::AbortOnDropHandle;
use toolgate_engine::bus::{Bus, BusHealth, BusListener, Notice};
use toolgate_kernel::id::NodeId;

use crate::link::Link;

/// The stream's key.
const STREAM: &str = "toolgate:bus";
/// The member of an entry that holds a batch.
const BATCH: &str = "batch";
/// Longest wait for a connection.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// Longest wait for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// How long a start waits for Redis before it goes on without.
const START_TIME: Duration = Duration::from_secs(3);
/// Longest wait for the last words of a process that goes.
const LEAVE_TIME: Duration = Duration::from_secs(1);

/// Why an address of Redis cannot be used. Does not quote it: it may hold a password.
#[derive(Debug, thiserror::Error)]
#[error("expected an address like redis://:PASSWORD@127.0.0.1:6379/0, or rediss:// for TLS: {0}")]
pub struct BadRedisAddress(String);

/// Joins nodes over a Redis stream.
pub struct RedisBus {
    link: Arc<Link>,
    client: Client,
    _writer: AbortOnDropHandle<()>,
    _reader: AbortOnDropHandle<()>,
}

impl RedisBus {
    /// Joins the bus at `address`. When Redis is away the bus is too, until it comes.
    pub async fn join_at(address: &str) -> Result<Self, BadRedisAddress> {
        let client = Client::open(address).map_err(|error| BadRedisAddress(error.category().into()))?;
        let link = Link::new("redis");
        let writer = tokio::spawn(writer::run(link.clone(), client.clone()));
        let reader = tokio::spawn(reader::run(link.clone(), client.clone()));
        let bus = Self {
            link,
            client,
            _writer: AbortOnDropHandle::new(writer),
            _reader: AbortOnDropHandle::new(reader),
        };
        bus.link.until_joined(START_TIME).await;
        Ok(bus)
    }

    /// Tells the others that this process goes, so that they do not wait for signs of life.
    pub async fn leave(&self) {
        let leaving = async {
            self.link.flushed().await;
            let mut connection = connect(&self.client, ANSWER_TIME).await?;
            writer::send_last(&self.link, &mut connection).await
        };
        // Without it they take this process for gone a while later.
        let _ = tokio::time::timeout(LEAVE_TIME, leaving).await;
    }
}

impl Bus for RedisBus {
    fn join(&self, node: NodeId, listener: Arc<dyn BusListener>) {
        self.link.join(node, listener);
    }
    fn publish(&self, from: NodeId, notice: &Notice) {
        self.link.publish(from, notice);
    }
    fn health(&self) -> BusHealth {
        self.link.health()
    }
    fn others(&self, node: NodeId) -> Vec<NodeId> {
        self.link.others(node)
    }
}

async fn connect(client: &Client, answer_time: Duration) -> Result<MultiplexedConnection, RedisError> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIME))
        .set_response_timeout(Some(answer_time));
    client.get_multiplexed_async_connection_with_config(&config).await
}
