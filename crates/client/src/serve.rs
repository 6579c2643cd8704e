//! A worker: serves a client's tools to every run of a space, whoever started it.

use std::collections::HashSet;
use std::io::Write as _;
use std::num::NonZero;
use std::sync::Arc;

use futures_util::StreamExt as _;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolgate_protocol::event::Seq;
use toolgate_protocol::id::SpaceId;

use crate::call_executor::{CONCURRENCY_DEFAULT, CallExecutor, CallUpdate, Offer, call_update};
use crate::client::Client;
use crate::error::Error;
use crate::http::Backoff;
use crate::resources::RunFilter;
use crate::stream::Connection;
use crate::tool::ToolResult;
use crate::work::{Handler, WorkEvent, WorkOutcome};

/// Runs per page when looking for open calls.
const RUNS_PAGE: usize = 100;
/// Most pages of runs that are searched for open calls, newest first.
const RUNS_PAGES_MAX: usize = 10;
/// Work events that may be queued for logging.
const WORK_EVENTS_MAX: usize = 64;

type OnResult = Arc<dyn Fn(&ToolResult) + Send + Sync>;
type OnConnection = Arc<dyn Fn(&Connection) + Send + Sync>;

/// Builder of a worker; see [`Client::serve`].
#[must_use = "a worker serves once it is started"]
pub struct Serve {
    client: Client,
    space: SpaceId,
    only: Option<Arc<HashSet<String>>>,
    after: Option<Seq>,
    concurrency: NonZero<usize>,
    on_result: Option<OnResult>,
    on_connection: Option<OnConnection>,
}

impl Serve {
    pub(crate) fn new(client: Client, space: SpaceId) -> Self {
        Self {
            client,
            space,
            only: None,
            after: None,
            concurrency: CONCURRENCY_DEFAULT,
            on_result: None,
            on_connection: None,
        }
    }

    /// Serves only these tools and leaves the others to other clients.
    pub fn only<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.only = Some(Arc::new(tools.into_iter().map(Into::into).collect()));
        self
    }

    /// Ignores events up to this cursor. By default the worker first reads the runs that have not ended, and
    /// executes their open calls.
    pub fn after(mut self, seq: Seq) -> Self {
        self.after = Some(seq);
        self
    }

    /// Executes at most this many calls at once and leaves others unclaimed until there is room; 16 by
    /// default.
    pub fn concurrency(mut self, calls: NonZero<usize>) -> Self {
        self.concurrency = calls;
        self
    }

    /// Called with every result, before it is submitted.
    pub fn on_result(mut self, observe: impl Fn(&ToolResult) + Send + Sync + 'static) -> Self {
        self.on_result = Some(Arc::new(observe));
        self
    }

    /// Called when the worker listens, when the gateway does not answer, and when it answers again. Without it a line on
    /// the standard error says that the worker waits, and when that is over. `tracing` has the same.
    pub fn on_connection(mut self, observe: impl Fn(&Connection) + Send + Sync + 'static) -> Self {
        self.on_connection = Some(Arc::new(observe));
        self
    }

    /// Starts the worker: it claims offered calls, renews their leases, executes them and submits results. It
    /// waits for a gateway that is not there yet, and continues over disconnects and restarts.
    pub fn start(self) -> ToolServer {
        let stop = CancellationToken::new();
        let (open, working) = watch::channel(0);
        let task = tokio::spawn(self.run(stop.clone(), open));
        ToolServer {
            stop,
            working,
            task: AbortOnDropHandle::new(task),
        }
    }

    async fn run(self, stop: CancellationToken, open: watch::Sender<usize>) -> Result<(), Error> {
        let (sender, mut work_events) = mpsc::channel(WORK_EVENTS_MAX);
        let handler = Handler {
            client: self.client.clone(),
            first: None,
            only: self.only.clone(),
        };
        let mut executor = CallExecutor::new(handler, sender, self.concurrency);
        let mut reported = None;
        let cursor = match self.after {
            Some(seq) => Some(seq),
            None => {
                self.wait_and_catch_up(&mut executor, &stop, &mut reported)
                    .await?
            }
        };
        // None means that it was closed before there was a gateway.
        let Some(cursor) = cursor else { return Ok(()) };
        let mut events = self.client.spaces().subscribe(self.space, cursor);
        let mut connection = events.connection();
        loop {
            open.send_replace(executor.open());
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Ok(()) = connection.changed() => {
                    let now = connection.borrow_and_update().clone();
                    self.report(&mut reported, now);
                }
                Some(work_event) = work_events.recv() => self.handle_work_event(&work_event),
                Some((call, worked)) = executor.next(), if executor.is_busy() => match worked {
                    Ok(WorkOutcome::Stored { name, ok }) => tracing::debug!(%call, name, ok, "result stored"),
                    Ok(WorkOutcome::Elsewhere | WorkOutcome::Declined) => tracing::debug!(%call, "call left to others"),
                    Err(error) => tracing::warn!(%call, %error, "no result stored"),
                },
                event = events.next() => match event {
                    Some(Ok(event)) => match call_update(&event) {
                        Some(CallUpdate::Settled(call)) => executor.end_call(call),
                        Some(CallUpdate::Offered(offer)) => start_if_wanted(&mut executor, offer),
                        None => {}
                    },
                    // A worker keeps running while the gateway is unavailable or fails, however long.
                    Some(Err(error)) if error.is_passing() => {
                        events = self.client.spaces().subscribe(self.space, events.cursor());
                        connection = events.connection();
                    }
                    Some(Err(error)) => return Err(error),
                    None => break,
                },
            }
        }
        // Dropped first: nobody reads work events any more, and closing must not wait for a full channel.
        drop(work_events);
        executor.close().await;
        open.send_replace(0);
        Ok(())
    }

    /// Reports a connection that is not as it was reported last.
    fn report(&self, reported: &mut Option<Connection>, now: Option<Connection>) {
        let Some(now) = now.filter(|now| !reported.as_ref().is_some_and(|last| last.is_like(now))) else {
            return;
        };
        let space = self.space;
        match &now {
            Connection::Up => tracing::info!(%space, "serving tools"),
            Connection::Lost { reason } => {
                tracing::warn!(%space, reason, "waiting for the gateway, which does not answer");
            }
        }
        match &self.on_connection {
            Some(on_connection) => on_connection(&now),
            None => print_connection(&now, reported.is_some()),
        }
        *reported = Some(now);
    }

    /// Begins the open calls as soon as the gateway answers; `None` if the worker is closed before that.
    async fn wait_and_catch_up(
        &self,
        executor: &mut CallExecutor,
        stop: &CancellationToken,
        reported: &mut Option<Connection>,
    ) -> Result<Option<Seq>, Error> {
        let mut backoff = Backoff::default();
        loop {
            let error = tokio::select! {
                caught_up = self.catch_up(executor, stop) => match caught_up {
                    Ok(cursor) => return Ok(Some(cursor)),
                    Err(error) if error.is_passing() => error,
                    Err(error) => return Err(error),
                },
                () = stop.cancelled() => return Ok(None),
            };
            self.report(reported, Some(Connection::lost(&error)));
            tokio::select! {
                () = tokio::time::sleep(backoff.step()) => {}
                () = stop.cancelled() => return Ok(None),
            }
        }
    }

    /// Begins the open calls of the space's runs, and returns the cursor up to which they are known. A call
    /// that an event after that cursor announces again is begun only once.
    async fn catch_up(&self, executor: &mut CallExecutor, stop: &CancellationToken) -> Result<Seq, Error> {
        let mut cursor = None;
        let mut filter = RunFilter {
            space: Some(self.space),
            limit: Some(RUNS_PAGE),
            ..RunFilter::default()
        };
        for _ in 0..RUNS_PAGES_MAX {
            let page = self.client.runs().list(&filter).await?;
            // The cursor is taken from the first page, before any run is read: events that happen meanwhile
            // are then read again rather than missed.
            let newest = page.runs.iter().map(|run| run.seq).max();
            let known = *cursor.get_or_insert(newest.unwrap_or_default());
            for run in page.runs.iter().filter(|run| !run.status.is_final()) {
                if stop.is_cancelled() {
                    return Ok(known);
                }
                for call in self.client.runs().get(run.id).await?.pending.calls {
                    let offer = Offer {
                        call: call.tool_call_id,
                        name: call.tool_name,
                    };
                    start_if_wanted(executor, offer);
                }
            }
            match page.next_cursor {
                Some(next) => filter.before = Some(next),
                None => break,
            }
        }
        Ok(cursor.unwrap_or_default())
    }

    fn handle_work_event(&self, work_event: &WorkEvent) {
        match work_event {
            WorkEvent::Began(call) => tracing::debug!(call = %call.id, name = call.name, "call claimed"),
            WorkEvent::Ran(result) => {
                if let Some(on_result) = &self.on_result {
                    on_result(result);
                }
            }
        }
    }
}

/// Says that a worker waits for its gateway, and when that is over. That a first connection stands goes without saying.
fn print_connection(now: &Connection, was_lost: bool) {
    let words = match now {
        Connection::Lost { reason } => format!("toolgate: the worker waits: {reason}"),
        Connection::Up if was_lost => "toolgate: the gateway answers again".to_owned(),
        Connection::Up => return,
    };
    // A program without a standard error has nobody to tell.
    let _ = writeln!(std::io::stderr(), "{words}");
}

fn start_if_wanted(executor: &mut CallExecutor, offer: Offer) {
    if executor.wants(&offer) {
        executor.start(offer);
    }
}

/// A running worker. Dropping it stops it; [`ToolServer::close`] stops it gracefully.
pub struct ToolServer {
    stop: CancellationToken,
    working: watch::Receiver<usize>,
    task: AbortOnDropHandle<Result<(), Error>>,
}

impl ToolServer {
    /// Waits until no call is being executed.
    pub async fn idle(&mut self) {
        // An error means that the worker has ended, so it is idle.
        let _ = self.working.wait_for(|open| *open == 0).await;
    }

    /// Stops the worker and releases its open calls to others.
    pub async fn close(self) -> Result<(), Error> {
        self.stop.cancel();
        self.ended().await
    }

    /// Waits until the worker ends by itself, which it does only if the gateway rejects it: its credentials, or a space that
    /// does not exist.
    pub async fn ended(self) -> Result<(), Error> {
        match self.task.await {
            Ok(ended) => ended,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::scripted::{Reply, Scripted};

    #[tokio::test]
    async fn a_worker_goes_on_after_an_error_of_the_gateway() {
        let fails = Reply::json(500, r#"{"status":500,"code":"INTERNAL","detail":"a bug"}"#);
        let runs = Reply::json(200, r#"{"runs":[],"nextCursor":null}"#);
        let gateway = Scripted::start([fails, runs, fails, Reply::events(": beat\n\n")]);
        let (told, mut hears) = mpsc::unbounded_channel();
        let worker = gateway
            .client()
            .serve(SpaceId::new(Uuid::now_v7()))
            .on_connection(move |now| {
                // An error means that the test has heard enough.
                let _ = told.send(now.clone());
            })
            .start();
        while hears.recv().await.expect("the worker goes on") != Connection::Up {}
        worker.close().await.unwrap();
    }
}
