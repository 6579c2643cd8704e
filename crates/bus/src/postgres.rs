//! The bus over PostgreSQL's notifications, for deployments without Redis. One connection per node listens and notifies.
//!
//! A notification holds less than 8,000 bytes, so a larger batch is put in a small unlogged table and the notification
//! names its row. Transactions with a notification commit one after the other, on the whole server: what is published
//! while one is under way travels in the next, and none of them waits for the disk.

mod session;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio_postgres::{AsyncMessage, Client};
use tokio_util::task::AbortOnDropHandle;
use toolgate_engine::bus::{Bus, BusHealth, BusListener, Gap, Notice};
use toolgate_kernel::id::NodeId;

use crate::backoff::Backoff;
use crate::link::{Half, Link};
use session::Session;

/// How long a start waits for the server before it goes on without.
const START_TIME: Duration = Duration::from_secs(3);
/// Longest wait for a connection.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Longest wait for the last words of a process that goes.
const LEAVE_TIME: Duration = Duration::from_secs(1);

/// Why a connection could not be made, or broke.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Connects to the database: a direct connection, or a session of a pooler, because a pooler of transactions passes no
/// notifications on.
pub type Dial = Arc<dyn Fn() -> BoxFuture<'static, Result<Dialed, BoxError>> + Send + Sync>;

/// A connection that was made.
pub struct Dialed {
    /// Sends statements.
    pub client: Client,
    /// Does the work of the connection while it is polled, and gives what the server says by itself.
    pub messages: BoxStream<'static, Result<AsyncMessage, tokio_postgres::Error>>,
}

/// Joins nodes over the database that they share.
pub struct PostgresBus {
    link: Arc<Link>,
    dial: Dial,
    _worker: AbortOnDropHandle<()>,
}

impl PostgresBus {
    /// Joins the bus. When the database is away the bus is too, until it comes.
    pub async fn join_by(dial: Dial) -> Self {
        let link = Link::new("postgres");
        let worker = tokio::spawn(run(link.clone(), dial.clone()));
        let bus = Self {
            link,
            dial,
            _worker: AbortOnDropHandle::new(worker),
        };
        bus.link.until_joined(START_TIME).await;
        bus
    }

    /// Tells the others that this process goes, so that they do not wait for signs of life.
    pub async fn leave(&self) {
        let leaving = async {
            self.link.flushed().await;
            let mut session = Session::open(&self.link, &self.dial).await?;
            match self.link.queue.sign_of_life(true) {
                Some(batch) => session.send(&batch).await,
                None => Ok(()),
            }
        };
        // Without it they take this process for gone a while later.
        let _ = tokio::time::timeout(LEAVE_TIME, leaving).await;
    }
}

impl Bus for PostgresBus {
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

/// Listens and sends until it is dropped, over as many connections as it takes.
async fn run(link: Arc<Link>, dial: Dial) {
    let mut backoff = Backoff::default();
    // The batch under way: nobody knows whether a write that failed was done, and listeners know a repeat.
    let mut pending = None;
    let mut is_first = true;
    loop {
        let opened = tokio::time::timeout(CONNECT_TIME, Session::open(&link, &dial)).await;
        let broke = match opened.unwrap_or_else(|_| Err("no connection in time".into())) {
            Ok(mut session) => {
                backoff.reset();
                // What was notified while nobody listened here is gone. At the start there was nothing to be missed.
                let gap = (!is_first).then_some(Gap::Connection);
                link.connected(Half::Hearing, gap);
                link.connected(Half::Sending, None);
                session.serve(&link, &mut pending).await
            }
            Err(error) => error,
        };
        is_first = false;
        link.broken(Half::Hearing, &broke);
        link.broken(Half::Sending, &broke);
        backoff.wait().await;
    }
}
