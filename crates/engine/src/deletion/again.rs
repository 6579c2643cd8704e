//! Repeated requests for deletions whose subject is gone already, while the rest of it may still be deleted.

use toolgate_kernel::event::Seq;
use toolgate_kernel::id::ProjectId;

use super::{DeletionError, Deletions, PORTION, Plan, Removed, What, record_set};
use crate::records::{Listing, Record};
use crate::store::Deleted;

impl Deletions {
    /// Repeats a deletion. None if it was not deleted in the last days, an empty report if that had already
    /// finished, the full report if this call finishes it, `UnderWay` if another node or another deletion works on it.
    pub async fn delete_again(
        &self,
        project: ProjectId,
        deleted: Deleted,
    ) -> Result<Option<Removed>, DeletionError> {
        let id = match deleted {
            Deleted::Run(run) => format!("run {run}"),
            Deleted::Space(space) => format!("space {space}"),
            Deleted::Entity(entity) => format!("entity {entity}"),
        };
        if let Some(left) = self.records.record(record_set(project), &id).await? {
            let held = self.take_over(project, left).await?;
            return self.carry_out(held).await.map(Some);
        }
        if !self.was_deleted(project, deleted).await? {
            return Ok(None);
        }
        // It may go with another deletion: of its space, of a person, of what is old.
        let store = &self.engine.inner.store;
        let is_left = match deleted {
            Deleted::Run(run) => store.run_bytes(run).await? > 0,
            Deleted::Space(space) => store.space_tail(space).await? > Seq(0),
            // It goes with no other deletion.
            Deleted::Entity(_) => false,
        };
        match is_left {
            true => Err(DeletionError::UnderWay),
            false => Ok(Some(Removed::new())),
        }
    }

    /// Finishes the deletion of a person, named by subject or id, whose entity is gone. None if no such deletion is left, the full
    /// report if this call finishes it, `UnderWay` if another node works on it.
    pub async fn delete_entity_again(
        &self,
        project: ProjectId,
        named: &str,
    ) -> Result<Option<Removed>, DeletionError> {
        let is_theirs = |record: &Record| {
            let plan = record.body.read::<Plan>();
            plan.is_ok_and(|plan| match &plan.what {
                What::Entity { entity, subject, .. } => {
                    subject.as_deref() == Some(named) || entity.to_string() == named
                }
                What::Tree { .. } | What::Space { .. } | What::Expired(_) => false,
            })
        };
        let mut after = None;
        loop {
            let listing = Listing {
                prefix: "entity ".into(),
                after,
                limit: PORTION,
            };
            let page = self.records.list_records(record_set(project), listing).await?;
            let last = page.last().filter(|_| page.len() == PORTION);
            after = last.map(|record| record.id.clone());
            if let Some(left) = page.into_iter().find(is_theirs) {
                let held = self.take_over(project, left).await?;
                return self.carry_out(held).await.map(Some);
            }
            if after.is_none() {
                return Ok(None);
            }
        }
    }
}
