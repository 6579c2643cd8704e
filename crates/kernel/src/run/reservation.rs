//! Client calls that are offered to the sender of the message before anybody else.

use std::time::Duration;

use super::{Run, RunState};
use crate::call::{CallState, ErrorCode};
use crate::event::{Claim, Event};
use crate::id::CallId;
use crate::message::{Executor, Message};
use crate::time::Time;

/// How long a call waits for the client that sent the message. Long enough for a busy tab to claim it, short enough that
/// another client takes over before a person gives up.
pub const RESERVATION: Duration = Duration::from_secs(5);

/// What the log tells of the reservations of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Reservations {
    /// Calls that are reserved and not claimed yet.
    unclaimed: Vec<CallId>,
    /// Whether a reservation came to nothing since the last message, and the sender has claimed no call after it.
    sender_is_away: bool,
}

impl Run {
    /// For whom a call of this client tool is reserved: for the client that sent the newest message, if it executes the tool
    /// and has not let an earlier reservation go by. Claiming it and going away are what every claim knows, so a reservation
    /// is a claim that nobody has asked for yet.
    pub(super) fn reservation(&self, tool: &str, now: Time) -> Option<Claim> {
        let (message, executor) = self.state.sender()?;
        let given = self.tools.get(tool)?.given_name.as_deref().unwrap_or(tool);
        let is_executor = match &executor.tools {
            Some(tools) => tools.iter().any(|name| name == given),
            None => true,
        };
        let is_offered =
            self.offered_to.is_none() || self.offered_to == message.from || message.from.is_none();
        let is_here = !self.state.reservations.sender_is_away;
        (is_executor && is_offered && is_here).then(|| Claim {
            holder: executor.holder.clone(),
            until: now.after(RESERVATION),
            by: message.from,
        })
    }
}

impl RunState {
    /// Whether a call is reserved for a client that has not claimed it yet.
    pub(super) fn is_reserved(&self, call: CallId) -> bool {
        self.reservations.unclaimed.contains(&call)
    }

    /// Updates the reservations from a stored event. Called before the event changes the call.
    pub(super) fn note_reservation(&mut self, event: &Event, time: Time) {
        match event {
            Event::Said(_) => self.reservations.sender_is_away = false,
            Event::ToolInputAvailable(e) if e.reserved.is_some() => {
                self.reservations.unclaimed.push(e.tool_call_id);
            }
            Event::ToolApprovalResponse(e) if e.reserved.is_some() => {
                self.reservations.unclaimed.push(e.tool_call_id);
            }
            Event::ToolExecuting(e) => {
                if let Some(claim) = &e.claim {
                    let is_sender = self.is_sender(claim);
                    self.end_reservation(e.tool_call_id, !is_sender);
                    self.reservations.sender_is_away &= !is_sender;
                }
            }
            Event::ToolReleased(e) => {
                // Before the reservation lapses only its holder releases the call, so it is there.
                let lapsed = self.call(e.tool_call_id).is_some_and(|call| {
                    matches!(&call.state, CallState::Open { claim: Some(claim), .. } if claim.until <= time)
                });
                self.end_reservation(e.tool_call_id, lapsed);
            }
            // Who posts a result is not in the log. The sender claims a call before it executes it.
            Event::ToolOutputAvailable(e) => self.end_reservation(e.tool_call_id, true),
            Event::ToolOutputError(e) => {
                let code = e.code.unwrap_or(ErrorCode::ExecutionFailed);
                let was_waited_for = matches!(code, ErrorCode::ExecutionFailed | ErrorCode::Timeout);
                self.end_reservation(e.tool_call_id, was_waited_for);
            }
            _ => {}
        }
    }

    /// A reservation ends. `sender_is_away`: without its holder having shown that it is there.
    fn end_reservation(&mut self, call: CallId, sender_is_away: bool) {
        if let Some(index) = self.reservations.unclaimed.iter().position(|id| *id == call) {
            self.reservations.unclaimed.swap_remove(index);
            self.reservations.sender_is_away |= sender_is_away;
        }
    }

    /// The newest message and the client that sent it, if that executes tools.
    fn sender(&self) -> Option<(&Message, &Executor)> {
        let message = &self.messages.last()?.message;
        Some((message, message.sender.as_ref()?.executor.as_ref()?))
    }

    fn is_sender(&self, claim: &Claim) -> bool {
        self.sender()
            .is_some_and(|(message, executor)| (&executor.holder, message.from) == (&claim.holder, claim.by))
    }
}
