//! Projects: the tenants of a gateway. Settings of a project are resolved on every use, so that a change holds from the
//! next request on.

use std::sync::Arc;

use async_trait::async_trait;
use toolgate_kernel::agent::ModelSpec;
use toolgate_kernel::event::Status;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::tool::{ClientToolLimits, Conflict};

use crate::budget::BudgetLimits;
use crate::intake::IntakeError;
use crate::price::Prices;
use crate::revocation::Revoked;
use crate::store::{ProjectRecord, RunFilter, RunRecord, StoreError};
use crate::{Engine, Inner};

/// Runs of a project that are read at a time when all of them are cancelled.
const CANCELLED_AT_ONCE: usize = 100;

/// Settings of one project that the engine goes by.
#[derive(Debug, Clone)]
pub struct ProjectSettings {
    /// The model of agents that name none.
    pub default_model: ModelSpec,
    /// Limits on the tools that requests bring.
    pub client_tools: ClientToolLimits,
    /// What becomes of a request's tool that has the name of a more trusted one.
    pub conflict: Conflict,
    /// What the project, its users and its agents may consume.
    pub budgets: BudgetLimits,
    /// What models cost.
    pub prices: Arc<Prices>,
}

/// The settings of projects. Asked on every use, so an implementation remembers what it has read.
#[async_trait]
pub trait Projects: Send + Sync {
    /// The settings of a project; the gateway's defaults for one that has none of its own.
    async fn settings(&self, project: ProjectId) -> Result<Arc<ProjectSettings>, StoreError>;
    /// What is wrong with settings that are to be stored for a project, by JSON pointers into them.
    fn check(&self, settings: &Json) -> Vec<Problem>;
    /// The settings of a project have changed on this node.
    fn changed(&self, project: ProjectId);
}

/// The same settings for every project.
#[async_trait]
impl Projects for ProjectSettings {
    async fn settings(&self, _: ProjectId) -> Result<Arc<ProjectSettings>, StoreError> {
        Ok(Arc::new(self.clone()))
    }
    fn check(&self, _: &Json) -> Vec<Problem> {
        Vec::new()
    }
    fn changed(&self, _: ProjectId) {}
}

impl Inner {
    /// The settings of a project as they are now.
    pub(crate) async fn project_settings(
        &self,
        project: ProjectId,
    ) -> Result<Arc<ProjectSettings>, StoreError> {
        self.settings.projects.settings(project).await
    }

    fn project_changed(&self, project: ProjectId) {
        self.settings.projects.changed(project);
        self.agents.forget_project(project);
    }
}

impl Engine {
    /// Every project, by name.
    pub async fn projects(&self) -> Result<Vec<ProjectRecord>, StoreError> {
        self.inner.store.projects().await
    }
    /// A project by id.
    pub async fn project(&self, id: ProjectId) -> Result<Option<ProjectRecord>, StoreError> {
        self.inner.store.project(id).await
    }
    /// A project by name.
    pub async fn project_named(&self, name: &str) -> Result<Option<ProjectRecord>, StoreError> {
        self.inner.store.project_named(name).await
    }
    /// Creates a project, or changes everything but the name of the one with its id; `Exists` when another has its name.
    pub async fn put_project(&self, project: ProjectRecord) -> Result<(), StoreError> {
        let id = project.id;
        self.inner.store.put_project(project).await?;
        self.inner.project_changed(id);
        Ok(())
    }
    /// What is wrong with settings that are to be stored for a project.
    pub fn check_project_settings(&self, settings: &Json) -> Vec<Problem> {
        self.inner.settings.projects.check(settings)
    }

    /// Removes a project with everything in it. Its keys go first, so that nothing new begins while its runs are
    /// cancelled; what is asked again after a failure in the middle goes on from there.
    pub async fn remove_project(&self, id: ProjectId) -> Result<bool, IntakeError> {
        let store = &self.inner.store;
        for key in store.keys(id).await? {
            self.remove_key(id, key.id).await?;
        }
        self.cancel_all(id, |_| true).await?;
        let removed = store.remove_project(id).await?;
        self.inner.project_changed(id);
        self.inner.revoke(Revoked::Project(id));
        Ok(removed)
    }

    /// Cancels those open runs of a project that `is_it`.
    pub(crate) async fn cancel_all(
        &self,
        project: ProjectId,
        is_it: impl Fn(&RunRecord) -> bool,
    ) -> Result<(), IntakeError> {
        // A run may move from one status to another while they are read, so there is one more look than needed.
        while self.cancel_open(project, &is_it).await? > 0 {}
        Ok(())
    }

    /// Cancels those that it finds open, and says how many.
    async fn cancel_open(
        &self,
        project: ProjectId,
        is_it: &impl Fn(&RunRecord) -> bool,
    ) -> Result<usize, IntakeError> {
        let (mut cancelled, mut before) = (0, None);
        loop {
            let filter = RunFilter {
                statuses: Status::OPEN.to_vec(),
                limit: CANCELLED_AT_ONCE,
                before,
                ..RunFilter::default()
            };
            let open = self.inner.store.runs(project, filter).await?;
            for run in open.runs.iter().filter(|run| is_it(run)) {
                self.cancel(run.id).await?;
                cancelled += 1;
            }
            before = open.next;
            if before.is_none() {
                return Ok(cancelled);
            }
        }
    }
}
