//! A worker: serves a client's tools to every run of a space, whoever started it.

use std::collections::HashSet;
use std::num::NonZero;
use std::sync::Arc;

use futures_util::StreamExt as _;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::SpaceId;

use crate::client::Client;
use crate::desk::{CONCURRENCY_DEFAULT, Desk, Offer, Sign, sign};
use crate::error::Error;
use crate::resources::RunFilter;
use crate::tool::ToolResult;
use crate::work::{Handler, Told, Worked};

/// Runs that are listed at once.
const RUNS_PAGE: usize = 100;
/// Most pages of runs that are looked through for open calls, newest first.
const RUNS_PAGES_MAX: usize = 10;
/// Tellings that may wait to be written down.
const TOLD_WAITING_MAX: usize = 64;

type OnResult = Arc<dyn Fn(&ToolResult) + Send + Sync>;

/// Sets a worker up; see [`Client::serve`].
#[must_use = "a worker serves once it is started"]
pub struct Serve {
    client: Client,
    space: SpaceId,
    only: Option<Arc<HashSet<String>>>,
    after: Option<Seq>,
    concurrency: NonZero<usize>,
    on_result: Option<OnResult>,
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
        }
    }

    /// Serves these tools and leaves the rest to others.
    pub fn only<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.only = Some(Arc::new(tools.into_iter().map(Into::into).collect()));
        self
    }

    /// Leaves out what happened up to this place; otherwise the runs that have not ended are asked once for calls
    /// that are still open.
    pub fn after(mut self, seq: Seq) -> Self {
        self.after = Some(seq);
        self
    }

    /// Executes at most so many calls at a time and leaves the rest to others until there is room; 16 unless said
    /// otherwise.
    pub fn concurrency(mut self, calls: NonZero<usize>) -> Self {
        self.concurrency = calls;
        self
    }

    /// Called with every result, before it is handed in.
    pub fn on_result(mut self, told: impl Fn(&ToolResult) + Send + Sync + 'static) -> Self {
        self.on_result = Some(Arc::new(told));
        self
    }

    /// Starts it: claims what is offered, keeps the claims alive, executes, hands in. It goes on over cuts and
    /// restarts of the gateway.
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
        let (tell, mut told) = mpsc::channel(TOLD_WAITING_MAX);
        let handler = Handler {
            client: self.client.clone(),
            first: None,
            only: self.only.clone(),
        };
        let mut desk = Desk::new(handler, tell, self.concurrency);
        let cursor = match self.after {
            Some(seq) => seq,
            None => self.catch_up(&mut desk, &stop).await?,
        };
        let mut events = self.client.spaces().subscribe(self.space, cursor);
        loop {
            open.send_replace(desk.open());
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(told) = told.recv() => self.write_down(&told),
                Some((call, worked)) = desk.next(), if desk.is_busy() => match worked {
                    Ok(Worked::Stored { name, ok }) => tracing::debug!(%call, name, ok, "call answered"),
                    Ok(Worked::Elsewhere | Worked::Declined) => tracing::debug!(%call, "call left to others"),
                    Err(error) => tracing::warn!(%call, %error, "call not answered"),
                },
                event = events.next() => match event {
                    Some(Ok(event)) => match sign(&event) {
                        Some(Sign::Settled(call)) => desk.settle(call),
                        Some(Sign::Offered(offer)) => take_if_wanted(&mut desk, offer),
                        None => {}
                    },
                    // A worker outlasts a gateway that is away for long.
                    Some(Err(error)) if error.is_retryable() => {
                        tracing::warn!(%error, "waiting for the gateway");
                        events = self.client.spaces().subscribe(self.space, events.cursor());
                    }
                    Some(Err(error)) => return Err(error),
                    None => break,
                },
            }
        }
        // Nobody reads what is told any more, and nothing may wait for that.
        drop(told);
        desk.close().await;
        open.send_replace(0);
        Ok(())
    }

    /// Takes the calls that are open, and gives the place up to which they are known. One that is seen again after
    /// that place is taken once.
    async fn catch_up(&self, desk: &mut Desk, stop: &CancellationToken) -> Result<Seq, Error> {
        let mut cursor = None;
        let mut filter = RunFilter {
            space: Some(self.space),
            limit: Some(RUNS_PAGE),
            ..RunFilter::default()
        };
        for _ in 0..RUNS_PAGES_MAX {
            let page = self.client.runs().list(&filter).await?;
            // From the first page, before any run is asked: what happens meanwhile is read again.
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
                    take_if_wanted(desk, offer);
                }
            }
            match page.next_cursor {
                Some(next) => filter.before = Some(next),
                None => break,
            }
        }
        Ok(cursor.unwrap_or_default())
    }

    fn write_down(&self, told: &Told) {
        match told {
            Told::Began(call) => tracing::debug!(call = %call.id, name = call.name, "call claimed"),
            Told::Ran(result) => {
                if let Some(on_result) = &self.on_result {
                    on_result(result);
                }
            }
        }
    }
}

fn take_if_wanted(desk: &mut Desk, offer: Offer) {
    if desk.wants(&offer) {
        desk.take(offer);
    }
}

/// A worker that serves. Stops when dropped; [`ToolServer::close`] stops it in order.
pub struct ToolServer {
    stop: CancellationToken,
    working: watch::Receiver<usize>,
    task: AbortOnDropHandle<Result<(), Error>>,
}

impl ToolServer {
    /// Waits until no call is being worked on.
    pub async fn idle(&mut self) {
        // A worker that has ended is idle.
        let _ = self.working.wait_for(|open| *open == 0).await;
    }

    /// Stops it: what is not done is given back for others.
    pub async fn close(self) -> Result<(), Error> {
        self.stop.cancel();
        self.ended().await
    }

    /// Waits until it ends by itself: only when the gateway does not let it in.
    pub async fn ended(self) -> Result<(), Error> {
        match self.task.await {
            Ok(ended) => ended,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}
