//! Calls under way: who executes one, what its tool asks, and how its time is counted meanwhile.

use super::RunState;
use crate::call::{Asks, CallState, Handle};
use crate::event::{Claim, Seq, ToolExecuting, ToolQuestion, ToolQuestionResponse};
use crate::id::CallId;
use crate::question::Questions;
use crate::time::Time;

impl RunState {
    pub(super) fn execute(&mut self, e: &ToolExecuting, time: Time) {
        match (&e.claim, e.pause) {
            (Some(claim), _) => self.hold(e.tool_call_id, Some(claim.clone())),
            (None, Some(pause)) => self.change(e.tool_call_id, |call| call.state = CallState::Paused(pause)),
            (None, None) => self.change(e.tool_call_id, |call| {
                // The tool's timeout counts from the first delegation, however often the task is asked after, without
                // the time in which a person or a client was asked.
                call.since = match &call.state {
                    CallState::Delegated { asks: None, .. } => call.since,
                    CallState::Delegated {
                        asks: Some((_, since)),
                        ..
                    } => call.since.after(time.since(*since)),
                    _ if call.resumes.is_some() => call.since,
                    _ => time,
                };
                let state = under_way(e, &call.questions, time);
                if state != CallState::Executing {
                    call.leg += 1;
                    if !matches!(call.state, CallState::Delegated { .. }) {
                        call.questions.go_on();
                        call.resumes = None;
                    }
                }
                call.state = state;
            }),
        }
    }

    pub(super) fn question_asked(&mut self, e: &ToolQuestion, time: Time) {
        self.change(e.tool_call_id, |call| {
            call.questions.ask(e);
            if let CallState::Delegated { asks, .. } = &mut call.state {
                asks.get_or_insert((Asks::People, time));
            }
        });
    }

    /// With the last answer the call is free to run again, with the task that it was delegated to.
    pub(super) fn question_answered(&mut self, e: &ToolQuestionResponse, seq: Seq, time: Time) {
        self.change(e.tool_call_id, |call| {
            call.questions.respond(e, seq, time);
            let CallState::Delegated {
                handle,
                asks: Some((Asks::People, since)),
                ..
            } = &call.state
            else {
                return;
            };
            if call.questions.open().next().is_none() {
                call.since = call.since.after(time.since(*since));
                call.resumes = Some(handle.clone());
                call.leg += 1;
                call.state = CallState::Ready;
            }
        });
    }

    pub(super) fn hold(&mut self, call: CallId, by: Option<Claim>) {
        self.change(call, |call| {
            if let CallState::Open { claim, .. } = &mut call.state {
                *claim = by;
            }
        });
    }
}

/// The state of a call on the gateway's side that is under way, here or elsewhere.
fn under_way(e: &ToolExecuting, questions: &Questions, time: Time) -> CallState {
    let child = e.child_status.filter(|child| child.status.asks());
    let people = questions.open().next().map(|_| Asks::People);
    let asks = child.map(Asks::Child).or(people).map(|asks| (asks, time));
    match (e.child, &e.task) {
        (Some(child), _) => CallState::Delegated {
            handle: Handle::Run(child),
            check_at: None,
            asks,
        },
        (None, Some(task)) => CallState::Delegated {
            handle: Handle::Task {
                source: task.source.clone(),
                task: task.task.clone(),
            },
            check_at: task.check_at,
            asks,
        },
        (None, None) => CallState::Executing,
    }
}
