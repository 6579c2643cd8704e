//! Deleting run trees.

use serde::{Deserialize, Serialize};
use toolgate_kernel::id::{RunId, SpaceId};

use super::{DeletionError, Deletions, Held, PORTION, What};
use crate::push_configs;
use crate::records::{Change, Listing, Owner, RecordSet};
use crate::revocation::Revoked;
use crate::store::{RunFilter, RunRecord, StoreError, Trim};
use crate::workspace::{FILE, FileName, Only, Place, WorkspaceError, outputs_of};

/// A run at the top and the runs below it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Tree {
    pub(super) root: RunId,
    /// Space of the run at the top.
    pub(super) space: SpaceId,
    /// The runs below it, each with its own space.
    pub(super) below: Vec<(RunId, SpaceId)>,
}

impl Tree {
    pub(super) fn of(top: &RunRecord, below: &[RunRecord]) -> Self {
        Self {
            root: top.id,
            space: top.space,
            below: below.iter().map(|run| (run.id, run.space)).collect(),
        }
    }
    pub(super) fn runs(&self) -> impl Iterator<Item = RunId> {
        std::iter::once(self.root).chain(self.below.iter().map(|(run, _)| *run))
    }
}

impl Deletions {
    /// What deleting a tree comes to, when every run of it has ended. None of them can go on then, and none be added.
    pub(super) async fn plan_tree(&self, top: &RunRecord) -> Result<What, DeletionError> {
        let below = self.runs_below(top).await?;
        let mut runs = std::iter::once(top).chain(&below);
        if let Some(open) = runs.find(|run| !run.status.is_final()) {
            return Err(DeletionError::Open(open.id));
        }
        let Tree { root, space, below } = Tree::of(top, &below);
        Ok(What::Tree { root, space, below })
    }

    pub(super) async fn runs_below(&self, top: &RunRecord) -> Result<Vec<RunRecord>, StoreError> {
        let (mut below, mut before) = (Vec::new(), None);
        loop {
            let filter = RunFilter {
                root: Some(top.id),
                before,
                limit: PORTION,
                ..RunFilter::default()
            };
            let page = self.engine.inner.store.runs(top.project, filter).await?;
            before = page.next;
            below.extend(page.runs);
            if before.is_none() {
                return Ok(below);
            }
        }
    }

    /// Deletes a tree that somebody asked to delete, with what its calls wanted to be delivered.
    pub(super) async fn erase_with_deliveries(
        &self,
        held: &mut Held,
        tree: &Tree,
    ) -> Result<(), DeletionError> {
        for run in tree.runs() {
            self.remove_deliveries_of_run(held, run).await?;
        }
        self.erase_tree(held, tree).await
    }

    /// Removes the rows first, so that the runs are gone for everybody, then what is stored of them.
    pub(super) async fn erase_tree(&self, held: &mut Held, tree: &Tree) -> Result<(), DeletionError> {
        let inner = &self.engine.inner;
        let runs: Vec<RunId> = tree.runs().collect();
        let count = runs.len() as u64;
        let (root, space) = (tree.root, tree.space);
        let was_there = inner.store.run(root).await?.is_some();
        inner
            .store
            .remove_runs(held.project, runs, inner.clock.now())
            .await?;
        held.plan.count("runs", if was_there { count } else { 0 });
        inner.revoke(Revoked::Words(space));
        for (_, space) in &tree.below {
            self.erase_stored(held, *space).await?;
        }
        self.trim(held, Trim::Run(root)).await?;
        self.remove_push_configs(held, root, space).await?;
        self.remove_outputs(held, root, space).await?;
        // Whoever has read it while it was deleted forgets it again.
        inner.revoke(Revoked::Words(space));
        Ok(())
    }

    async fn remove_push_configs(
        &self,
        held: &mut Held,
        run: RunId,
        space: SpaceId,
    ) -> Result<(), DeletionError> {
        let set = RecordSet {
            project: held.project,
            owner: Owner::Space(space),
            kind: push_configs::KIND,
        };
        let listing = Listing {
            prefix: format!("{run}/"),
            after: None,
            limit: push_configs::CONFIGS_PER_RUN_MAX,
        };
        let found = self.records.list_records(set, listing).await?;
        if found.is_empty() {
            return Ok(());
        }
        let count = found.len() as u64;
        let changes = found
            .into_iter()
            .map(|record| Change::Remove(record.id))
            .collect();
        let now = self.engine.inner.clock.now();
        self.records.change_records(set, Vec::new(), changes, now).await?;
        held.plan.count(push_configs::KIND, count);
        Ok(())
    }

    /// Deletes outputs of the run's calls that were kept as files of its space.
    async fn remove_outputs(&self, held: &mut Held, run: RunId, space: SpaceId) -> Result<(), DeletionError> {
        let place = Place {
            project: held.project,
            space,
        };
        loop {
            let listing = Listing {
                prefix: outputs_of(run),
                after: None,
                limit: PORTION,
            };
            let found = self.workspace.list(place, listing).await.map_err(store_error)?;
            for file in &found {
                let name: FileName = file.path.parse().map_err(|_| unreadable(&file.path))?;
                let now = self.engine.inner.clock.now();
                let deleted = self.workspace.delete(place, &name, Only::Always, now, None).await;
                match deleted {
                    Ok(()) | Err(WorkspaceError::Missing(_)) => {}
                    Err(error) => return Err(store_error(error).into()),
                }
            }
            held.plan.count(FILE, found.len() as u64);
            if found.len() < PORTION {
                return Ok(());
            }
            self.touch(held).await?;
        }
    }
}

fn unreadable(path: &str) -> StoreError {
    StoreError::Corrupt(format!("a file named {path:?}"))
}

/// What a workspace could not do to a file that is deleted whatever its state.
pub(super) fn store_error(error: WorkspaceError) -> StoreError {
    match error {
        WorkspaceError::Store(error) => error,
        other => StoreError::Unavailable(other.to_string()),
    }
}
