//! All connections of the gateway, one for each server of each project.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use toolgate_fair::{Limits, Permit, Queue, Shares, Spare};
use toolgate_kernel::id::ProjectId;

use crate::servers::Inner;
use crate::snapshot::Configured;
use crate::supervisor::Handle;

/// How servers that are programs are run.
#[derive(Debug, Clone, Default)]
pub struct Spawning {
    /// The gateway's own program, which keeps them; without one, they are ended with their process group.
    pub keeper: Option<PathBuf>,
    /// The gateway's environment, of which a server is given what a program needs to find its way.
    pub environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// How many there may be.
    pub limits: ProcessLimits,
}

/// Processes of all projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Most servers that run as a process of the gateway's machine at once. One project may take seven eighths, one user
    /// that reaches servers as they are a quarter.
    pub processes: usize,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self { processes: 64 }
    }
}

/// Connections by project and server.
pub(crate) struct Pool {
    kept: Mutex<HashMap<(ProjectId, String), Kept>>,
    processes: Arc<Queue>,
    processes_max: usize,
    stop: CancellationToken,
}

struct Kept {
    handle: Handle,
    configured: Configured,
    /// Stops the task when dropped: it closes its connection and ends.
    _stop: tokio_util::sync::DropGuard,
}

impl Pool {
    pub fn new(limits: ProcessLimits) -> Self {
        Self {
            kept: Mutex::default(),
            processes: Queue::new(Limits {
                running: Shares::of(limits.processes),
                waiting: Shares::same(0),
                waiting_bytes: Shares::same(0),
                spare: Spare::NONE,
            }),
            processes_max: limits.processes,
            stop: CancellationToken::new(),
        }
    }

    /// The connection to a server as it is configured now. One to the server as it was before is closed.
    pub fn handle(
        &self,
        inner: &Arc<Inner>,
        project: ProjectId,
        key: &str,
        configured: &Configured,
    ) -> Handle {
        let mut kept = self.lock();
        let place = (project, key.to_owned());
        if let Some(known) = kept.get(&place)
            && known.configured == *configured
        {
            return known.handle.clone();
        }
        let stop = self.stop.child_token();
        let handle = Handle::start(inner, project, key.to_owned(), configured.clone(), stop.clone());
        let new = Kept {
            handle: handle.clone(),
            configured: configured.clone(),
            _stop: stop.drop_guard(),
        };
        kept.insert(place, new);
        handle
    }

    /// The connection to a server, if there was a reason to have one.
    pub fn known(&self, project: ProjectId, key: &str) -> Option<Handle> {
        let kept = self.lock();
        kept.get(&(project, key.to_owned()))
            .map(|kept| kept.handle.clone())
    }

    /// Closes connections to servers that the project has no longer.
    pub fn retain(&self, project: ProjectId, has: impl Fn(&str) -> bool) {
        self.lock().retain(|(of, key), _| *of != project || has(key));
    }

    /// The right to run one more process for a project.
    pub fn process(&self, project: ProjectId) -> Result<Permit, String> {
        let share = toolgate_engine::shares::share_of(project, None);
        self.processes.try_turn(share).ok_or_else(|| {
            format!(
                "the gateway runs as many servers as it may already ({} for all projects); the setting \
                 `mcp.processes_max` changes that",
                self.processes_max
            )
        })
    }

    /// Where programs take turns, for whoever starts some beside these connections.
    pub fn processes(&self) -> Arc<Queue> {
        self.processes.clone()
    }

    /// Closes all of them.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(ProjectId, String), Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
