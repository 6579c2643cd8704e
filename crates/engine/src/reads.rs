//! What doors read: the stored facts as a reader wants to know them.

use toolgate_kernel::id::RunId;
use toolgate_kernel::run::RunState;
use toolgate_kernel::view::Audience;

use crate::Engine;
use crate::store::StoreError;

impl Engine {
    /// A run's log as `audience` may see it, folded into the run's state. Read the run's row before: what the row says
    /// has happened is then in the state.
    pub async fn run_state(&self, run: RunId, audience: Audience) -> Result<RunState, StoreError> {
        let log = self.store().run_log(run).await?;
        Ok(RunState::of(&log, audience))
    }
}
