//! Reads what the others say from the stream, from where it was.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::streams::{StreamRangeReply, StreamReadReply};
use redis::{Client, RedisError, Value};
use toolgate_engine::bus::Gap;

use super::stream_id::StreamId;
use super::{ANSWER_TIME, BATCH, STREAM, connect};
use crate::backoff::Backoff;
use crate::link::{Half, Link};

/// Longest wait of one read.
const BLOCK_TIME: Duration = Duration::from_secs(5);
/// Entries read at once: each has at most a batch of notices.
const ENTRIES_AT_ONCE: usize = 32;

/// Reads until it is dropped, over as many connections as it takes.
pub(super) async fn run(link: Arc<Link>, client: Client) {
    let mut backoff = Backoff::default();
    let mut place = None;
    let mut is_first = true;
    loop {
        let broke = match resume(&client, &mut place).await {
            Ok((connection, gap)) => {
                // At the start there is nothing that could have been missed.
                link.connected(Half::Hearing, gap.filter(|_| !is_first));
                backoff.reset();
                read_all(&link, connection, &mut place).await
            }
            Err(error) => error,
        };
        is_first = false;
        link.broken(Half::Hearing, &broke);
        backoff.wait().await;
    }
}

/// Connects, and decides where to go on: where it was, or at the beginning of a stream that was lost meanwhile.
async fn resume(
    client: &Client,
    place: &mut Option<StreamId>,
) -> Result<(MultiplexedConnection, Option<Gap>), RedisError> {
    let mut connection = connect(client, BLOCK_TIME + ANSWER_TIME).await?;
    let mut newest = redis::cmd("XREVRANGE");
    newest.arg(STREAM).arg("+").arg("-").arg("COUNT").arg(1);
    let newest: StreamRangeReply = newest.query_async(&mut connection).await?;
    let newest = newest.ids.first().and_then(|entry| entry.id.parse().ok());
    let gap = match (*place, newest) {
        (Some(read), Some(newest)) if newest >= read => Gap::Notices,
        (Some(_), _) => {
            *place = Some(StreamId::default());
            Gap::Connection
        }
        (None, newest) => {
            *place = Some(newest.unwrap_or_default());
            Gap::Connection
        }
    };
    Ok((connection, Some(gap)))
}

/// Hands on what comes until the connection breaks.
async fn read_all(
    link: &Link,
    mut connection: MultiplexedConnection,
    place: &mut Option<StreamId>,
) -> RedisError {
    loop {
        let mut read = redis::cmd("XREAD");
        read.arg("COUNT").arg(ENTRIES_AT_ONCE);
        read.arg("BLOCK").arg(BLOCK_TIME.as_millis() as u64);
        read.arg("STREAMS").arg(STREAM);
        read.arg(place.unwrap_or_default().to_string());
        let reply: Option<StreamReadReply> = match read.query_async(&mut connection).await {
            Ok(reply) => reply,
            Err(error) => return error,
        };
        let entries = reply
            .into_iter()
            .flat_map(|reply| reply.keys)
            .flat_map(|key| key.ids);
        for entry in entries {
            if let Some(Value::BulkString(batch)) = entry.map.get(BATCH)
                && let Ok(batch) = std::str::from_utf8(batch)
            {
                link.deliver(batch);
            }
            *place = entry.id.parse().ok().or(*place);
        }
    }
}
