//! Calls on the gateway's side: how they end, and how they are handed to somebody else.

use super::{Log, gone, misfits};
use crate::call::{Call, CallState, Handle, Outcome};
use crate::event::{ChildStatus, RemoteTask, RunStatus, ToolExecuting};
use crate::id::CallId;
use crate::question::Question;
use crate::run::Rejected;
use crate::run::approve::refused_output;
use crate::run::question::ask;
use crate::time::Time;

impl Log<'_> {
    /// The gateway's side executed a call, or whoever it was delegated to did.
    pub(super) fn output(
        &mut self,
        id: CallId,
        leg: u32,
        outcome: Outcome,
        log: Option<String>,
    ) -> Result<(), Rejected> {
        let call = self.on_leg(id, leg)?;
        let outcome = match misfits(call, &outcome) {
            Some(misfit) => refused_output(misfit),
            None => outcome,
        };
        self.settle_with_log(id, outcome, log);
        self.go_on();
        Ok(())
    }

    /// Somebody else carries a call on from here, or still does.
    pub(super) fn delegate(
        &mut self,
        id: CallId,
        leg: u32,
        handle: Handle,
        check_at: Option<Time>,
        child_status: Option<ChildStatus>,
    ) -> Result<(), Rejected> {
        let call = self.on_leg(id, leg)?;
        if matches!(&call.state, CallState::Delegated { handle: known, .. } if *known != handle) {
            return Err(Rejected::OutOfTurn);
        }
        let (child, task) = match handle {
            Handle::Run(child) => (Some(child), None),
            Handle::Task { source, task } => {
                let task = RemoteTask {
                    source,
                    task,
                    check_at,
                };
                (None, Some(task))
            }
        };
        let tool = call.tool.clone();
        self.emit(ToolExecuting::of(&tool, None, child, None, task, child_status));
        if child_status.is_some() {
            // Also when it is the same as before: whoever has answered a question of the child waits for it.
            let status = self.run.status();
            self.emit(RunStatus { status });
        }
        Ok(())
    }

    /// Asks people what a call that was just delegated wants to know.
    pub(super) fn ask(&mut self, id: CallId, questions: Vec<Question>) {
        if let Some(call) = self.run.call(id) {
            let events = ask(call, questions, self.now);
            self.emit_all(events);
        }
    }

    /// A call on the gateway's side that is under way, if it is still on this leg.
    fn on_leg(&self, id: CallId, leg: u32) -> Result<&Call, Rejected> {
        let call = self.run.call(id).ok_or(Rejected::Unknown)?;
        match &call.state {
            CallState::Ready | CallState::Executing | CallState::Delegated { .. } if call.leg == leg => {
                Ok(call)
            }
            CallState::Settled(settled) => Err(gone(settled)),
            CallState::Ready
            | CallState::Executing
            | CallState::Delegated { .. }
            | CallState::AwaitsApproval { .. }
            | CallState::Open { .. }
            | CallState::Paused(_) => Err(Rejected::OutOfTurn),
        }
    }
}
