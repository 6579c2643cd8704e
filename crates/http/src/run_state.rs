//! Runs as they stand, for readers. A run's state may be as large as its log, so it is counted among the bytes in
//! flight for as long as it is in memory.

use std::ops::Deref;

use toolgate_access::Principal;
use toolgate_kernel::id::RunId;
use toolgate_kernel::run::RunState;
use toolgate_kernel::tool::Decider;

use crate::Shared;
use crate::in_flight::too_much;
use crate::meter::Metered;
use crate::problem::Refusal;

/// The state of a run, and the part of the bytes in flight that it takes.
pub struct CountedState {
    state: RunState,
    bytes: Metered,
}

impl CountedState {
    /// The state as this reader sees it. Read the run's row before.
    pub async fn read(door: &Shared, who: &Principal, run: RunId, reader: &Decider) -> Result<Self, Refusal> {
        let mut bytes = door.in_flight.open(Some(who));
        let count = |more| bytes.take(more).map_err(|over| too_much(door, over));
        let state = door.engine.run_state(run, reader, count).await?;
        Ok(Self { state, bytes })
    }

    /// The state, and what keeps it counted.
    pub fn into_parts(self) -> (RunState, Metered) {
        (self.state, self.bytes)
    }
}

impl Deref for CountedState {
    type Target = RunState;
    fn deref(&self) -> &RunState {
        &self.state
    }
}
