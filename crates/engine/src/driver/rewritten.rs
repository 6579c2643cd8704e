//! Words that were deleted while a run is in memory. The store counts what was deleted or rewritten in a space, and the run
//! looks there before each request to its model: a notice may be lost, the count is not.

use toolgate_kernel::event::Seq;
use toolgate_kernel::run::Due;

use super::load::patient;
use super::{Adrift, Driver};

impl Driver {
    /// Before the model is asked: reads the run and its past again when something of its space was deleted since.
    pub(super) async fn forget_rewritten(&mut self) -> Result<(), Adrift> {
        if !self.asks_next() {
            return Ok(());
        }
        let rewrites = self.count_rewrites().await?;
        let known = self.rewrites.replace(rewrites);
        if known.is_none_or(|known| known == rewrites) {
            return Ok(());
        }
        self.past = None;
        // Its log is no longer what was read, as if somebody else had written.
        self.stored_to = Seq(self.version.0 + 1);
        self.settle(Vec::new()).await
    }

    /// How often something of the space was deleted, as it was known before anything was read of its past.
    pub(super) async fn rewrites(&mut self) -> Result<u64, Adrift> {
        match self.rewrites {
            Some(rewrites) => Ok(rewrites),
            None => {
                let rewrites = self.count_rewrites().await?;
                Ok(*self.rewrites.insert(rewrites))
            }
        }
    }

    async fn count_rewrites(&mut self) -> Result<u64, Adrift> {
        let (store, space) = (&self.inner.store, self.space);
        patient(|| store.log_rewrites(space)).await.map_err(|_| Adrift)
    }

    fn asks_next(&self) -> bool {
        // A run of one call has no model.
        let asks = |due: &Due<'_>| matches!(due, Due::Ask { .. });
        self.asking.is_none()
            && self.run.request().is_none()
            && !self.is_guest()
            && self.run.due().iter().any(asks)
    }
}
