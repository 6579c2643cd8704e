//! What doors read of runs and logs. Whether the caller may is the door's question to `toolgate_access`, asked before.

use toolgate_kernel::id::{ProjectId, RunId, SpaceId};
use toolgate_kernel::run::RunState;
use toolgate_kernel::tool::Decider;
use toolgate_kernel::view::Audience;

use crate::Engine;
use crate::store::{AskingFilter, LogPage, LogRange, Pages, RunFilter, RunRecord, StoreError};

impl Engine {
    /// A run's row.
    pub async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        self.inner.store.run(run).await
    }
    /// The rows of a project's runs that fit `filter`, newest first.
    pub async fn runs(&self, project: ProjectId, filter: RunFilter) -> Result<Vec<RunRecord>, StoreError> {
        self.inner.store.runs(project, filter).await
    }
    /// A page of a run's log.
    pub async fn run_log(&self, run: RunId, range: LogRange) -> Result<LogPage, StoreError> {
        self.inner.store.run_log(run, range).await
    }
    /// A page of a space's log.
    pub async fn space_log(&self, space: SpaceId, range: LogRange) -> Result<LogPage, StoreError> {
        self.inner.store.space_log(space, range).await
    }
    /// Whether the store gives what runs need and takes a write; as of a second ago at most.
    pub async fn is_ready(&self) -> bool {
        self.inner.readiness.get(self.inner.store.ready()).await
    }
    /// Rows of a project's runs that may wait for an approval, newest first.
    pub async fn asking(
        &self,
        project: ProjectId,
        filter: AskingFilter,
    ) -> Result<Vec<RunRecord>, StoreError> {
        self.inner.store.asking(project, filter).await
    }
    /// A run's log as somebody who may be asked to decide sees it, folded into the run's state. As with
    /// [`Engine::run_state`], read the run's row before.
    pub async fn run_state_for(&self, run: RunId, who: &Decider) -> Result<RunState, StoreError> {
        let mut state = RunState::default();
        let mut pages = Pages::of_run(run, LogRange::default());
        while let Some(page) = pages.next(&*self.inner.store).await? {
            page.entries.iter().for_each(|entry| state.extend_for(entry, who));
        }
        Ok(state)
    }
    /// A run's log as `audience` may see it, folded into the run's state. Read the run's row before: what the row says
    /// has happened is then in the state.
    pub async fn run_state(&self, run: RunId, audience: Audience) -> Result<RunState, StoreError> {
        let mut state = RunState::default();
        let mut pages = Pages::of_run(run, LogRange::default());
        while let Some(page) = pages.next(&*self.inner.store).await? {
            page.entries
                .iter()
                .for_each(|entry| state.extend(entry, audience));
        }
        Ok(state)
    }
}
