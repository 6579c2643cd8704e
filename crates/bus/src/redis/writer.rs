//! Appends what this node says to the stream, and keeps the stream short.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Client, RedisError};
use tokio::time::Instant;

use super::stream_id::StreamId;
use super::{ANSWER_TIME, BATCH, STREAM, connect};
use crate::backoff::Backoff;
use crate::link::{Half, Link};
use crate::peers::BEAT_EVERY;

/// How long an entry stays: who is away for longer looks in the store.
const ENTRY_TIME_MAX: Duration = Duration::from_secs(60);
/// Bytes of memory that the stream may take.
const STREAM_BYTES_MAX: u64 = 64 << 20;
/// How often its size is looked at.
const SIZE_EVERY: Duration = Duration::from_secs(1);

/// Sends until it is dropped, over as many connections as it takes.
pub(super) async fn run(link: Arc<Link>, client: Client) {
    let mut backoff = Backoff::default();
    // The batch under way: nobody knows whether a write that failed was done, and readers know a repeat.
    let mut pending = None;
    loop {
        let broke = match connect(&client, ANSWER_TIME).await {
            Ok(connection) => {
                link.connected(Half::Sending, None);
                backoff.reset();
                let mut writer = Writer::new(connection);
                writer.send_all(&link, &mut pending).await
            }
            Err(error) => error,
        };
        link.broken(Half::Sending, &broke);
        backoff.wait().await;
    }
}

/// Says that this process goes.
pub(super) async fn send_last(link: &Link, connection: &mut MultiplexedConnection) -> Result<(), RedisError> {
    let Some(batch) = link.queue.sign_of_life(true) else {
        return Ok(());
    };
    Writer::new(connection.clone()).append(&batch).await
}

struct Writer {
    connection: MultiplexedConnection,
    /// Where the last entry stands: how late it is on the server's clock.
    last: StreamId,
    size_seen: Instant,
}

impl Writer {
    fn new(connection: MultiplexedConnection) -> Self {
        Self {
            connection,
            last: StreamId::default(),
            size_seen: Instant::now(),
        }
    }

    /// Sends what comes, and signs of life, until the connection breaks.
    async fn send_all(&mut self, link: &Link, pending: &mut Option<String>) -> RedisError {
        loop {
            if pending.is_none() {
                let next = tokio::time::timeout(BEAT_EVERY, link.queue.next()).await;
                *pending = next.ok().or_else(|| link.queue.sign_of_life(false));
            }
            let Some(batch) = pending.as_ref() else { continue };
            let sent = async {
                self.append(batch).await?;
                self.keep_short().await
            };
            match sent.await {
                Ok(()) => *pending = None,
                Err(error) => return error,
            }
        }
    }

    async fn append(&mut self, batch: &str) -> Result<(), RedisError> {
        let oldest = self.last.millis.saturating_sub(ENTRY_TIME_MAX.as_millis() as u64);
        let mut append = redis::cmd("XADD");
        append.arg(STREAM).arg("MINID").arg("~").arg(oldest);
        append.arg("*").arg(BATCH).arg(batch);
        let place: String = append.query_async(&mut self.connection).await?;
        self.last = place.parse().unwrap_or_default();
        Ok(())
    }

    /// Cuts the oldest entries off when the stream takes too much memory.
    async fn keep_short(&mut self) -> Result<(), RedisError> {
        if self.size_seen.elapsed() < SIZE_EVERY {
            return Ok(());
        }
        self.size_seen = Instant::now();
        let mut usage = redis::cmd("MEMORY");
        let usage: Option<u64> = usage
            .arg("USAGE")
            .arg(STREAM)
            .query_async(&mut self.connection)
            .await?;
        let Some(bytes) = usage.filter(|bytes| *bytes > STREAM_BYTES_MAX) else {
            return Ok(());
        };
        let entries: u64 = redis::cmd("XLEN")
            .arg(STREAM)
            .query_async(&mut self.connection)
            .await?;
        let kept = (entries as u128 * u128::from(STREAM_BYTES_MAX) / u128::from(bytes)) as u64;
        let mut trim = redis::cmd("XTRIM");
        trim.arg(STREAM).arg("MAXLEN").arg("~").arg(kept);
        trim.query_async(&mut self.connection).await
    }
}
