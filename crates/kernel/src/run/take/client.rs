//! Client calls: results, claims and releases, by the intake contract.

use super::{Log, gone, misfits};
use crate::call::{Call, CallState, Outcome};
use crate::event::{Claim, ToolExecuting, ToolReleased};
use crate::id::{CallId, EntityId};
use crate::run::{Phase, Rejected};
use crate::time::Time;
use crate::tool::Placement;

impl Log<'_> {
    /// A client says that it executed a call: the intake contract.
    pub(super) fn result(
        &mut self,
        id: CallId,
        outcome: Outcome,
        by: Option<EntityId>,
    ) -> Result<(), Rejected> {
        let call = self.find_client_call(id, by)?;
        match &call.state {
            CallState::Open { .. } => {}
            CallState::AwaitsApproval { .. } => return Err(Rejected::NotApproved),
            CallState::Settled(settled) if !settled.answered => return Err(gone(settled)),
            CallState::Settled(settled) if settled.outcome == outcome => return Err(Rejected::Repeated),
            CallState::Settled(_) => return Err(Rejected::Different),
            CallState::Ready | CallState::Executing | CallState::Delegated { .. } | CallState::Paused(_) => {
                return Err(Rejected::OutOfTurn);
            }
        }
        if let Some(misfit) = misfits(call, &outcome) {
            return Err(misfit.into());
        }
        self.settle(id, outcome);
        self.go_on();
        Ok(())
    }

    /// A client wants to execute a call, or says that it still does.
    pub(super) fn claim(&mut self, id: CallId, claim: Claim) -> Result<(), Rejected> {
        let call = self.find_client_call(id, claim.by)?;
        let held = match &call.state {
            CallState::Open { claim, .. } => claim,
            CallState::AwaitsApproval { .. } => return Err(Rejected::NotApproved),
            CallState::Settled(settled) => return Err(gone(settled)),
            CallState::Ready | CallState::Executing | CallState::Delegated { .. } | CallState::Paused(_) => {
                return Err(Rejected::OutOfTurn);
            }
        };
        match held {
            Some(other) if !is_same(other, &claim) && other.until > self.now => {
                return Err(Rejected::Held(other.clone()));
            }
            // A heartbeat is worth a line in the log only when it adds much to what is there. The first claim of a reserved
            // call always is: it shows that the client is there.
            Some(own)
                if is_same(own, &claim)
                    && enough(own.until, claim.until, self.now)
                    && !self.run.state.is_reserved(id) =>
            {
                return Ok(());
            }
            Some(_) | None => {}
        }
        self.emit(ToolExecuting::of(
            &call.tool.clone(),
            Some(claim),
            None,
            None,
            None,
            None,
        ));
        Ok(())
    }

    /// A client gives a call back.
    pub(super) fn release(&mut self, id: CallId, holder: &str, by: Option<EntityId>) -> Result<(), Rejected> {
        let call = self.find_client_call(id, by)?;
        match &call.state {
            CallState::Open {
                claim: Some(claim), ..
            } if (claim.holder.as_str(), claim.by) == (holder, by) => {
                self.emit(ToolReleased::of(&call.tool.clone()));
                Ok(())
            }
            CallState::Open {
                claim: Some(claim), ..
            } => Err(Rejected::Held(claim.clone())),
            CallState::Open { claim: None, .. } => Ok(()),
            CallState::Settled(settled) => Err(gone(settled)),
            CallState::AwaitsApproval { .. }
            | CallState::Ready
            | CallState::Executing
            | CallState::Delegated { .. }
            | CallState::Paused(_) => Err(Rejected::NotAClientCall),
        }
    }

    /// A client call that a client names and may execute; of any other it learns nothing.
    fn find_client_call(&self, id: CallId, by: Option<EntityId>) -> Result<&Call, Rejected> {
        let call = self.find(id)?;
        match call.tool.placement {
            Placement::Client if call.tool.is_offered_to(by) => Ok(call),
            Placement::Client => Err(Rejected::NotOffered),
            // Of a child run people learn what it asks, not which other calls it makes.
            Placement::Server | Placement::Plugin | Placement::Mcp if self.run.depth > 0 => {
                Err(Rejected::Unknown)
            }
            Placement::Server | Placement::Plugin | Placement::Mcp => Err(Rejected::NotAClientCall),
        }
    }

    /// A call that a client names. While the model is still replying, the next few may be announced already.
    fn find(&self, id: CallId) -> Result<&Call, Rejected> {
        if let Some(call) = self.run.call(id) {
            return Ok(call);
        }
        let next = self.run.state.calls.len() as u32;
        let soon = next..next.saturating_add(self.run.agent.limits.calls_per_step);
        match self.run.state.phase {
            Phase::Asking { .. } if id.run == self.run.id && soon.contains(&id.number) => {
                Err(Rejected::NotYet)
            }
            Phase::Queued | Phase::Asking { .. } | Phase::Calling { .. } | Phase::Ended(_) => {
                Err(Rejected::Unknown)
            }
        }
    }
}

/// Whether two claims are of one client of one principal.
fn is_same(one: &Claim, other: &Claim) -> bool {
    (&one.holder, one.by) == (&other.holder, other.by)
}

/// Whether what is left of a lease is more than half of what is asked for.
fn enough(until: Time, wanted: Time, now: Time) -> bool {
    until.since(now) * 2 > wanted.since(now)
}
