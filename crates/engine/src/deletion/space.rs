//! Deleting spaces.

use toolgate_kernel::id::SpaceId;

use super::tree::Tree;
use super::{DeletionError, Deletions, Held, PORTION, unless_ended};
use crate::records::Owner;
use crate::revocation::Revoked;
use crate::store::{RunFilter, RunRecord, Trim};

impl Deletions {
    /// Removes the row first: nothing begins in the space any more, and everybody who follows it is told. Then its runs
    /// are cancelled and deleted with their trees, and what else is stored of it, but for deliveries that name it.
    pub(super) async fn erase_space(&self, held: &mut Held, space: SpaceId) -> Result<(), DeletionError> {
        let inner = &self.engine.inner;
        let was_there = inner.store.space(space).await?.is_some();
        inner
            .store
            .remove_space(held.project, space, inner.clock.now())
            .await?;
        held.plan.count("spaces", was_there.into());
        inner.revoke(Revoked::Space(space));
        loop {
            let filter = RunFilter {
                space: Some(space),
                limit: PORTION,
                ..RunFilter::default()
            };
            let runs = inner.store.runs(held.project, filter).await?.runs;
            if runs.is_empty() {
                break;
            }
            for run in &runs {
                self.end_and_erase(held, run).await?;
                self.touch(held).await?;
            }
        }
        self.erase_stored(held, space).await?;
        inner.revoke(Revoked::Space(space));
        Ok(())
    }

    /// Cancels a run at the top and all below it, and deletes the tree.
    pub(super) async fn end_and_erase(&self, held: &mut Held, run: &RunRecord) -> Result<(), DeletionError> {
        let below = self.runs_below(run).await?;
        for open in std::iter::once(run).chain(&below) {
            if !open.status.is_final() {
                unless_ended(self.engine.cancel(open.id).await)?;
            }
        }
        // Runs below may have been added until the last one was cancelled.
        let below = self.runs_below(run).await?;
        let tree = Tree::of(run, &below);
        // Noted first: once its rows are gone, nothing else would find the rest of it after a crash.
        held.plan.tree_begun = Some(tree.clone());
        self.note(held).await?;
        self.erase_with_deliveries(held, &tree).await?;
        held.plan.tree_begun = None;
        Ok(())
    }

    /// Deletes what is stored of a space without looking for runs.
    pub(super) async fn erase_stored(&self, held: &mut Held, space: SpaceId) -> Result<(), DeletionError> {
        let inner = &self.engine.inner;
        inner
            .store
            .remove_space(held.project, space, inner.clock.now())
            .await?;
        self.trim(held, Trim::Space(space)).await?;
        self.remove_records(held, Owner::Space(space)).await
    }
}
