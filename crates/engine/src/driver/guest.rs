//! A run that another node drives, in memory for the letters that came here.

use std::time::Duration;

use toolgate_kernel::event::Seq;
use toolgate_kernel::run::Arrival;

use super::commit::respond_all;
use super::{Driver, Lease, Pending, Watch};
use crate::deliver::Fate;

/// How often a guest looks whether the step has ended that an early result waits for, if no notice comes.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How often it looks before the result is sent back: a step takes no longer than this.
const LOOKS_MAX: u32 = 300;

impl Driver {
    pub(super) fn is_guest(&self) -> bool {
        matches!(self.lease, Lease::Other(_))
    }

    /// Whether somebody else has written since the run was last read.
    pub(super) fn is_behind(&self) -> bool {
        self.stored_to > self.version
    }

    /// What a guest may store: what came from outside. What it did itself while it held the lease is the business
    /// of the node that holds it now.
    pub(super) fn keep_only_letters(&mut self, pending: &mut Vec<Pending>) {
        pending.retain(|one| one.respond.is_some());
        self.watch = Watch::default();
        self.stop_undue();
    }

    /// Whether a guest stays in memory: a result has come here before the step ended, on the node that drives the
    /// run, that announces its call.
    pub(super) fn waits_for_step(&self) -> bool {
        self.is_guest() && !self.early.is_empty()
    }

    pub(super) fn past_deadline(&mut self) -> Vec<Pending> {
        if !self.is_guest() {
            self.check_delegated();
            return vec![Pending::own(Arrival::Tick)];
        }
        self.looks += 1;
        if self.looks > LOOKS_MAX {
            respond_all(std::mem::take(&mut self.early), || Fate::Busy);
        }
        self.stored_to = Seq(self.version.0 + 1);
        Vec::new()
    }
}
