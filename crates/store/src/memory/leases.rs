//! Who drives a run.

use toolgate_engine::store::{Lease, LeaseWrite, RunRecord};
use toolgate_kernel::event::Status;
use toolgate_kernel::id::{NodeId, RunId};
use toolgate_kernel::time::Time;

use super::state::{RunRow, State};

impl State {
    pub(super) fn claimable(&self, now: Time, limit: usize) -> Vec<RunId> {
        let waits_for_somebody = |run: &&RunRecord| match run.lease {
            Some(lease) => !self.lives(lease.node, now),
            None => {
                matches!(run.status, Status::Queued | Status::Running)
                    || run.wake_at.is_some_and(|at| at <= now)
            }
        };
        let open = self
            .runs
            .values()
            .map(|row| &row.record)
            .filter(|run| !run.status.is_final());
        open.filter(waits_for_somebody)
            .map(|run| run.id)
            .take(limit)
            .collect()
    }

    pub(super) fn claim(&mut self, run: RunId, node: NodeId, now: Time) -> Option<RunRecord> {
        let record = &self.runs.get(&run)?.record;
        let held = record
            .lease
            .is_some_and(|lease| lease.node != node && self.lives(lease.node, now));
        if held || record.status.is_final() {
            return None;
        }
        let row = self.runs.get_mut(&run)?;
        row.epoch += 1;
        row.record.lease = Some(Lease {
            node,
            epoch: row.epoch,
        });
        Some(row.record.clone())
    }

    pub(super) fn release(&mut self, run: RunId, epoch: u64) {
        let held = |row: &&mut RunRow| row.record.lease.is_some_and(|lease| lease.epoch == epoch);
        if let Some(row) = self.runs.get_mut(&run).filter(held) {
            row.record.lease = None;
        }
    }

    fn lives(&self, node: NodeId, now: Time) -> bool {
        self.nodes.get(&node).is_some_and(|&until| until >= now)
    }
}

impl RunRow {
    pub(super) fn write_lease(&mut self, lease: LeaseWrite) {
        match lease {
            LeaseWrite::Keep => {}
            LeaseWrite::Release => self.record.lease = None,
        }
    }
}
