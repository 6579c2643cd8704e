//! One connection of the bus: listens, notifies, and keeps the table of large batches small.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::{AsyncMessage, Client};
use tokio_util::task::AbortOnDropHandle;
use toolgate_engine::bus::Gap;

use super::{BoxError, Dial};
use crate::link::Link;
use crate::peers::BEAT_EVERY;

/// Longest payload of a notification, in bytes; PostgreSQL takes less than 8,000.
const PAYLOAD_BYTES_MAX: usize = 7_900;
/// What a payload begins with that names a row of the table; a batch begins with a brace.
const ROW_MARK: char = '#';
/// Notifications that wait to be handed on, each of at most [`PAYLOAD_BYTES_MAX`].
const PAYLOADS_MAX: usize = 1_024;
/// How long a large batch stays in the table: it is read at once, or not at all.
const ROW_TIME_MAX: Duration = Duration::from_secs(20);
/// Bytes of large batches that one node may have in the table.
const ROW_BYTES_MAX: usize = 32 << 20;
/// Longest wait for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Tells the lock of the table's creation from those of others.
const CREATION_LOCK: i64 = 0x746f_6f6c_6275_7301;

/// A connection that listens.
pub(super) struct Session {
    client: Client,
    payloads: mpsc::Receiver<String>,
    /// When this session put how many bytes into the table, oldest first.
    rows: VecDeque<(Instant, usize)>,
    swept: Instant,
    /// When a sign of life is due.
    beat_at: Instant,
    _driver: AbortOnDropHandle<()>,
}

impl Session {
    /// Connects and listens.
    pub async fn open(link: &Arc<Link>, dial: &Dial) -> Result<Self, BoxError> {
        let mut dialed = dial().await?;
        let (sender, payloads) = mpsc::channel(PAYLOADS_MAX);
        let link = link.clone();
        let driver = tokio::spawn(async move {
            // Ends with the connection: the sender is dropped, and so the session knows.
            while let Some(Ok(message)) = dialed.messages.next().await {
                if let AsyncMessage::Notification(notification) = message
                    && sender.try_send(notification.payload().to_owned()).is_err()
                {
                    link.missed(Gap::Notices);
                }
            }
        });
        let session = Self {
            client: dialed.client,
            payloads,
            rows: VecDeque::new(),
            swept: Instant::now(),
            beat_at: Instant::now(),
            _driver: AbortOnDropHandle::new(driver),
        };
        session.prepare().await?;
        Ok(session)
    }

    async fn prepare(&self) -> Result<(), BoxError> {
        // Two nodes that start together must not both create the table.
        let statements = format!(
            "SET synchronous_commit TO off;
             BEGIN;
             SELECT pg_advisory_xact_lock({CREATION_LOCK});
             CREATE UNLOGGED TABLE IF NOT EXISTS toolgate_bus (
                 id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                 sent timestamptz NOT NULL DEFAULT clock_timestamp(),
                 batch text NOT NULL
             );
             COMMIT;
             LISTEN toolgate_bus;"
        );
        Ok(self.client.batch_execute(&statements).await?)
    }

    /// Hands on what comes and sends what is published, and signs of life, until the connection breaks.
    pub async fn serve(&mut self, link: &Link, pending: &mut Option<String>) -> BoxError {
        loop {
            if let Err(error) = self.serve_once(link, pending).await {
                return error;
            }
        }
    }

    async fn serve_once(&mut self, link: &Link, pending: &mut Option<String>) -> Result<(), BoxError> {
        if pending.is_none() {
            tokio::select! {
                payload = self.payloads.recv() => {
                    let payload = payload.ok_or("the connection was closed")?;
                    return self.receive(link, &payload).await;
                }
                batch = timeout_at(self.beat_at, link.queue.next()) => {
                    *pending = batch.ok().or_else(|| link.queue.sign_of_life(false));
                }
            }
        }
        if let Some(batch) = pending.as_ref() {
            self.send(batch).await?;
            *pending = None;
        }
        self.beat_at = Instant::now() + BEAT_EVERY;
        self.sweep().await
    }

    async fn receive(&mut self, link: &Link, payload: &str) -> Result<(), BoxError> {
        let Some(row) = payload.strip_prefix(ROW_MARK) else {
            link.deliver(payload);
            return Ok(());
        };
        let row: i64 = row.parse().unwrap_or_default();
        let read = "SELECT batch FROM toolgate_bus WHERE id = $1";
        match timeout(ANSWER_TIME, self.client.query_opt(read, &[&row])).await?? {
            Some(row) => link.deliver(row.try_get(0)?),
            None => link.missed(Gap::Notices),
        }
        Ok(())
    }

    /// Notifies of a batch. One that finds no room in the table is dropped: the others miss its number.
    pub async fn send(&mut self, batch: &str) -> Result<(), BoxError> {
        let sent = match batch.len() <= PAYLOAD_BYTES_MAX {
            true => {
                let notify = "SELECT pg_notify('toolgate_bus', $1)";
                timeout(ANSWER_TIME, self.client.execute(notify, &[&batch])).await?
            }
            false if !self.has_room(batch.len()) => {
                metrics::counter!("toolgate_bus_dropped_total", "why" => "full").increment(1);
                return Ok(());
            }
            false => {
                let insert = "WITH kept AS (INSERT INTO toolgate_bus (batch) VALUES ($1) RETURNING id) \
                              SELECT pg_notify('toolgate_bus', '#' || id) FROM kept";
                timeout(ANSWER_TIME, self.client.execute(insert, &[&batch])).await?
            }
        };
        sent?;
        Ok(())
    }

    /// Whether so many more bytes of this node may be in the table.
    fn has_room(&mut self, bytes: usize) -> bool {
        let now = Instant::now();
        while self
            .rows
            .front()
            .is_some_and(|(when, _)| now.duration_since(*when) > ROW_TIME_MAX)
        {
            self.rows.pop_front();
        }
        let held: usize = self.rows.iter().map(|(_, bytes)| bytes).sum();
        let has_room = held + bytes <= ROW_BYTES_MAX;
        if has_room {
            self.rows.push_back((now, bytes));
        }
        has_room
    }

    /// Removes what has been in the table for too long, whoever put it there.
    async fn sweep(&mut self) -> Result<(), BoxError> {
        if self.swept.elapsed() < ROW_TIME_MAX / 2 {
            return Ok(());
        }
        self.swept = Instant::now();
        let seconds = ROW_TIME_MAX.as_secs_f64();
        let old = "DELETE FROM toolgate_bus WHERE sent < clock_timestamp() - make_interval(secs => $1)";
        timeout(ANSWER_TIME, self.client.execute(old, &[&seconds])).await??;
        Ok(())
    }
}
