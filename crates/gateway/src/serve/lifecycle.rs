//! What runs until a signal comes, and how it is taken down.

use std::time::Duration;

use anyhow::anyhow;
use futures_util::FutureExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How much longer than the engine everything together may take to drain.
const DRAIN_SLACK: Duration = Duration::from_secs(2);

/// What runs side by side. All of it stops when one part ends.
pub struct Parts {
    tasks: JoinSet<anyhow::Result<()>>,
    stop: CancellationToken,
}

impl Parts {
    pub fn new(stop: CancellationToken) -> Self {
        Self {
            tasks: JoinSet::new(),
            stop,
        }
    }

    /// Starts a part that works until it is told to stop, and cannot fail.
    pub fn start<W: Future<Output = ()> + Send + 'static>(
        &mut self,
        work: impl FnOnce(CancellationToken) -> W,
    ) {
        self.tasks.spawn(work(self.stop.clone()).map(Ok));
    }

    /// Waits until a signal comes or a part ends, then drains the others. A second signal ends the wait.
    pub async fn until_signalled(
        mut self,
        notice: Notice,
        mut signals: Signals,
        limit: Duration,
    ) -> anyhow::Result<()> {
        let ended = tokio::select! {
            name = signals.next() => {
                tracing::info!(signal = name, notice = ?notice.lasts, "draining");
                notice.leaving.cancel();
                // A second signal ends the notice.
                let _ = tokio::time::timeout(notice.lasts, signals.next()).await;
                Ok(())
            }
            part = self.tasks.join_next() => Err(early_end(part)),
        };
        self.stop.cancel();
        let drained = tokio::select! {
            drained = self.drain(limit + DRAIN_SLACK) => drained,
            name = signals.next() => Err(anyhow!("stopped at once by a second {name}; what was acknowledged is stored")),
        };
        ended.and(drained)
    }

    /// Waits for every part, but no longer than `limit`.
    async fn drain(mut self, limit: Duration) -> anyhow::Result<()> {
        let all = async {
            let mut first = Ok(());
            while let Some(ended) = self.tasks.join_next().await {
                first = first.and(ended.map_err(anyhow::Error::from).flatten());
            }
            first
        };
        tokio::time::timeout(limit, all).await.unwrap_or_else(|_| {
            tracing::warn!(?limit, "some requests did not end in time and are cut");
            Ok(())
        })
    }
}

/// Tells balancers that the gateway goes.
pub struct Notice {
    pub leaving: CancellationToken,
    /// How long requests are still served.
    pub lasts: Duration,
}

fn early_end(part: Option<Result<anyhow::Result<()>, tokio::task::JoinError>>) -> anyhow::Error {
    match part {
        Some(Err(panic)) => anyhow!(panic).context("a part of the gateway failed"),
        Some(Ok(Err(error))) => error,
        Some(Ok(Ok(()))) | None => anyhow!("a part of the gateway ended by itself"),
    }
}

/// The signals that ask the process to stop.
pub struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    /// From now on they no longer end the process by themselves.
    pub fn listen() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for one and gives its name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
