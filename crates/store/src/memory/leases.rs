//! Leases: which node drives a run.

use toolgate_engine::store::{LeaseWrite, RunRecord, Wake};
use toolgate_kernel::event::Status;
use toolgate_kernel::id::{NodeId, RunId};
use toolgate_kernel::time::Time;

use super::state::State;

impl State {
    pub(super) fn claimable(&self, now: Time, limit: usize) -> Vec<RunId> {
        let waits_for_somebody = |run: &&RunRecord| match run.node {
            Some(node) => !self.lives(node, now),
            None => run.status == Status::Queued || run.wakes > 0 || run.wake_at.is_some_and(|at| at <= now),
        };
        let open = self.runs.values().filter(|run| !run.status.is_final());
        let mut found: Vec<&RunRecord> = open.filter(waits_for_somebody).collect();
        found.sort_by_key(|run| run.node.is_none() && run.status == Status::Queued);
        found.iter().map(|run| run.id).take(limit).collect()
    }

    pub(super) fn claim(&mut self, run: RunId, node: NodeId, now: Time) -> Option<RunRecord> {
        let record = self.runs.get(&run)?;
        let held = record
            .node
            .is_some_and(|holder| holder != node && self.lives(holder, now));
        if held || record.status.is_final() {
            return None;
        }
        let record = self.runs.get_mut(&run)?;
        record.epoch += 1;
        record.node = Some(node);
        Some(record.clone())
    }

    pub(super) fn release(&mut self, run: RunId, epoch: u64, wakes: i32) {
        if let Some(record) = self.runs.get_mut(&run).filter(|record| record.epoch == epoch) {
            record.node = None;
            record.epoch += u64::from(wakes < 0);
            self.wake(Wake { run, change: wakes });
        }
    }

    pub(super) fn wake(&mut self, wake: Wake) {
        if let Some(record) = self.runs.get_mut(&wake.run) {
            record.wakes = record.wakes.saturating_add_signed(wake.change);
        }
    }

    fn lives(&self, node: NodeId, now: Time) -> bool {
        self.nodes.get(&node).is_some_and(|&until| until >= now)
    }
}

/// Applies an append's change of the lease.
pub(super) fn write(record: &mut RunRecord, lease: LeaseWrite) {
    match lease {
        LeaseWrite::Keep => {}
        LeaseWrite::Release => record.node = None,
        LeaseWrite::Take(node) => {
            record.node = Some(node);
            record.epoch += 1;
        }
    }
}
