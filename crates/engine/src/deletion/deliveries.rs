//! Deleting deliveries of runs and spaces: what agents wanted to tell others outside.

use serde::Deserialize;
use toolgate_kernel::id::{CallId, ProjectId, RunId, SpaceId};

use super::{DeletionError, Deletions, Held, PORTION};
use crate::outbox;
use crate::records::{Change, Listing, Owner, Record, RecordSet};

/// The part of a stored delivery that says where it comes from.
#[derive(Deserialize)]
struct Parcel {
    payload: Payload,
}

#[derive(Deserialize)]
struct Payload {
    data: Origin,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Origin {
    space_id: SpaceId,
}

impl Deletions {
    /// Removes what the calls of a run have queued. The id of a delivery begins with that of its call.
    pub(super) async fn remove_deliveries_of_run(
        &self,
        held: &mut Held,
        run: RunId,
    ) -> Result<(), DeletionError> {
        self.remove_deliveries(held, CallId::prefix_of(run), |_| true)
            .await
    }

    /// Removes deliveries that name one of these spaces, also those of runs that are gone. Reads all deliveries of the project.
    pub(super) async fn remove_deliveries_of_spaces(
        &self,
        held: &mut Held,
        spaces: &[SpaceId],
    ) -> Result<(), DeletionError> {
        let is_of_space = |record: &Record| {
            let parcel = record.body.read::<Parcel>();
            parcel.is_ok_and(|parcel| spaces.contains(&parcel.payload.data.space_id))
        };
        self.remove_deliveries(held, String::new(), is_of_space).await
    }

    async fn remove_deliveries(
        &self,
        held: &mut Held,
        prefix: String,
        is_it: impl Fn(&Record) -> bool,
    ) -> Result<(), DeletionError> {
        let set = deliveries(held.project);
        let mut after = None;
        loop {
            let listing = Listing {
                prefix: prefix.clone(),
                after,
                limit: PORTION,
            };
            let page = self.records.list_records(set, listing).await?;
            let (is_last, last) = (page.len() < PORTION, page.last().map(|record| record.id.clone()));
            let found = page.into_iter().filter(&is_it);
            let changes: Vec<Change> = found.map(|record| Change::Remove(record.id)).collect();
            if !changes.is_empty() {
                let (count, now) = (changes.len() as u64, self.engine.inner.clock.now());
                self.records.change_records(set, Vec::new(), changes, now).await?;
                held.plan.count(outbox::KIND, count);
            }
            self.touch(held).await?;
            if is_last {
                return Ok(());
            }
            after = last;
        }
    }
}

pub(super) fn deliveries(project: ProjectId) -> RecordSet {
    RecordSet {
        project,
        owner: Owner::Project,
        kind: outbox::KIND,
    }
}
