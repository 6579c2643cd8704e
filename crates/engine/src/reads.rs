//! What doors read: the stored facts as a reader wants to know them.

use toolgate_kernel::id::RunId;
use toolgate_kernel::run::RunState;
use toolgate_kernel::view::Audience;

use crate::Engine;
use crate::store::{LogRange, Pages, StoreError};

impl Engine {
    /// A run's log as `audience` may see it, folded into the run's state. Read the run's row before: what the row says
    /// has happened is then in the state.
    pub async fn run_state(&self, run: RunId, audience: Audience) -> Result<RunState, StoreError> {
        let mut state = RunState::default();
        let mut pages = Pages::of_run(run, LogRange::default());
        while let Some(page) = pages.next(&**self.store()).await? {
            page.entries
                .iter()
                .for_each(|entry| state.extend(entry, audience));
        }
        Ok(state)
    }
}
