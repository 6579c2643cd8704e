//! When the tools and agents of a project may have changed. The store tells nobody, so a project whose lists somebody
//! follows is looked at every few seconds: once for all of its clients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use toolgate_engine::store::StoreError;
use toolgate_http::Shared;
use toolgate_kernel::agent::Catalog;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::name::AgentName;

/// How often the lists of a project are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// The projects whose lists somebody follows.
#[derive(Default)]
pub(crate) struct ListChanges {
    projects: Mutex<HashMap<ProjectId, Weak<Followed>>>,
}

/// A project that is looked at for as long as somebody holds this.
struct Followed {
    changes: watch::Receiver<u64>,
    _looking: AbortOnDropHandle<()>,
}

/// Changes of one project's lists, from now on.
#[derive(Clone)]
pub(crate) struct Changes {
    seen: watch::Receiver<u64>,
    _followed: Arc<Followed>,
}

impl Changes {
    /// Ends at the next change.
    pub async fn next(&mut self) {
        // The sender lives as long as what is followed.
        let _ = self.seen.changed().await;
    }
}

/// What the lists are made of. The catalog is the same value for as long as sources offer the same.
struct Lists {
    catalog: Arc<Catalog>,
    agents: Vec<(AgentName, u32)>,
}

impl Lists {
    async fn read(door: &Shared, project: ProjectId) -> Result<Self, StoreError> {
        let agents = door.engine.agent_records(project).await?;
        Ok(Self {
            catalog: door.engine.sources().catalog(project).await,
            agents: agents
                .into_iter()
                .map(|agent| (agent.name, agent.revision))
                .collect(),
        })
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.catalog, &other.catalog) && self.agents == other.agents
    }
}

impl ListChanges {
    /// Follows the lists of a project; what changes after this has returned is told.
    pub async fn follow(&self, door: &Shared, project: ProjectId) -> Result<Changes, StoreError> {
        if let Some(followed) = self.known(project) {
            return Ok(Changes::of(followed));
        }
        let known = Lists::read(door, project).await?;
        let (changed, changes) = watch::channel(0);
        let looking = tokio::spawn(look(door.clone(), project, known, changed));
        let followed = Arc::new(Followed {
            changes,
            _looking: AbortOnDropHandle::new(looking),
        });
        let mut projects = self.projects.lock().unwrap_or_else(PoisonError::into_inner);
        projects.retain(|_, followed| followed.strong_count() > 0);
        projects.insert(project, Arc::downgrade(&followed));
        Ok(Changes::of(followed))
    }

    fn known(&self, project: ProjectId) -> Option<Arc<Followed>> {
        let projects = self.projects.lock().unwrap_or_else(PoisonError::into_inner);
        projects.get(&project).and_then(Weak::upgrade)
    }
}

impl Changes {
    fn of(followed: Arc<Followed>) -> Self {
        let mut seen = followed.changes.clone();
        seen.mark_unchanged();
        Self {
            seen,
            _followed: followed,
        }
    }
}

async fn look(door: Shared, project: ProjectId, mut known: Lists, changed: watch::Sender<u64>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        // A store that does not answer now is asked again.
        if let Ok(now) = Lists::read(&door, project).await
            && !now.is(&known)
        {
            known = now;
            changed.send_modify(|count| *count += 1);
        }
    }
}
