//! Leases on claimed calls, renewed apart from the program's own runtime.
//!
//! The renewals run on a thread, a runtime and HTTP connections of their own: a tool that blocks its thread, or
//! every thread of the program's runtime, keeps its lease, and no other client executes the call a second time.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use toolgate_protocol::id::CallId;

use crate::error::Error;
use crate::http::{Http, RetryPolicy};
use crate::resources::{claim_call, release_call};

/// Lease on a claimed call: when a client dies, the call is open again after this.
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// How often the lease is renewed: two renewals may be lost.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long the releases of dropped calls may take after the client itself is dropped.
const LAST_RELEASES_MAX: Duration = Duration::from_secs(5);

/// Renews and releases the leases of one client.
#[derive(Debug)]
pub(crate) struct LeaseKeeper {
    http: Arc<Http>,
    holder: String,
    runtime: Handle,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl LeaseKeeper {
    /// Starts the thread. Must be called within a runtime: where there can be no thread, the leases are kept by
    /// that one.
    pub fn start(http: &Arc<Http>, holder: &str) -> Self {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let apart = own_runtime(tasks.clone(), stop.clone());
        let apart = apart.map(|runtime| (runtime, Arc::new(http.fork())));
        let (runtime, http) = apart.unwrap_or_else(|error| {
            tracing::warn!(
                %error,
                "no thread for leases, a tool that blocks may lose its call"
            );
            (Handle::current(), http.clone())
        });
        Self {
            http,
            holder: holder.to_owned(),
            runtime,
            tasks,
            stop,
        }
    }

    /// The lease of a call that is about to be claimed.
    pub fn lease(self: &Arc<Self>, call: CallId) -> Lease {
        Lease {
            keeper: self.clone(),
            call,
            renewing: None,
            is_open: true,
        }
    }

    async fn renew_until_lost(&self, call: CallId) {
        loop {
            tokio::time::sleep(HEARTBEAT).await;
            let claim = claim_call(&self.http, &self.holder, call, LEASE, RetryPolicy::Brief);
            match tokio::time::timeout(HEARTBEAT, claim).await {
                Ok(Err(error)) if is_elsewhere(&error) => return,
                // The gateway is unavailable for a moment: the tool keeps executing, because a result is accepted
                // without a lease too.
                Ok(_) | Err(_) => {}
            }
        }
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A runtime on a thread of its own, until `stop`; then it waits for the `tasks` under way.
fn own_runtime(tasks: TaskTracker, stop: CancellationToken) -> std::io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    // Not joined: whoever drops the last client must not wait for the network.
    std::thread::Builder::new()
        .name("toolgate-leases".into())
        .spawn(move || {
            runtime.block_on(async {
                stop.cancelled().await;
                tasks.close();
                // Too late means that the leases expire by themselves.
                let _ = tokio::time::timeout(LAST_RELEASES_MAX, tasks.wait()).await;
            });
        })?;
    Ok(handle)
}

/// A lease. Dropping it releases the call to other clients, also when the claim was under way.
#[derive(Debug)]
pub(crate) struct Lease {
    keeper: Arc<LeaseKeeper>,
    call: CallId,
    renewing: Option<AbortOnDropHandle<()>>,
    is_open: bool,
}

impl Lease {
    /// Renews the lease from now on. `lost` fires when the call is no longer this client's.
    pub fn renew(&mut self, lost: CancellationToken) {
        let (keeper, call) = (self.keeper.clone(), self.call);
        let renewing = async move {
            keeper.renew_until_lost(call).await;
            lost.cancel();
        };
        self.renewing = Some(AbortOnDropHandle::new(self.keeper.runtime.spawn(renewing)));
    }

    /// Releases the call, and waits until it is.
    pub async fn release(mut self) {
        self.is_open = false;
        self.renewing = None;
        // An error means that the runtime is gone: the lease expires.
        let _ = self.spawn_release().await;
    }

    /// Releases the call unless it has its outcome.
    pub async fn give_up(self, settled: &CancellationToken) {
        match settled.is_cancelled() {
            true => self.forget(),
            false => self.release().await,
        }
    }

    /// Forgets the lease of a call that has its outcome, or that another client has: there is nothing to release.
    pub fn forget(mut self) {
        self.is_open = false;
    }

    fn spawn_release(&self) -> JoinHandle<()> {
        let (keeper, call) = (self.keeper.clone(), self.call);
        let release = async move {
            let released = release_call(&keeper.http, &keeper.holder, call, RetryPolicy::Brief).await;
            if let Err(error) = released {
                tracing::debug!(%call, %error, "the call was not released, a lease on it expires");
            }
        };
        self.keeper.tasks.spawn_on(release, &self.keeper.runtime)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewing = None;
        if self.is_open {
            // Tracked by the keeper, which waits for it.
            drop(self.spawn_release());
        }
    }
}

/// Whether the error means that the call is not this client's: held, ended, unknown, or not approved yet.
pub(crate) fn is_elsewhere(error: &Error) -> bool {
    matches!(error.status(), Some(404 | 409 | 410))
}
