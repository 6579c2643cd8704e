//! Events into state. Everything that a run knows, it learned here; `take` checks, this changes.

use std::sync::Arc;

use super::{DecisionRecord, Phase, Run, Verdict};
use crate::agent::{Agent, History};
use crate::call::{Call, CallState, ErrorCode, Outcome, Settled};
use crate::event::{
    Budget, Entry, Event, Seq, Status, ToolApprovalResponse, ToolInputAvailable, ToolRef, Usage,
};
use crate::history::{self, Transcript};
use crate::id::{CallId, RunId};
use crate::json::Json;
use crate::time::Time;
use crate::tool::{Placement, Toolbox};

impl Run {
    /// A run to which nothing has happened. `tools` are the agent's and the caller's together.
    pub fn new(id: RunId, agent: Arc<Agent>, tools: Arc<Toolbox>) -> Self {
        let limits = &agent.limits;
        let budget = Budget {
            tokens: limits.tokens,
            descendants: limits.descendants,
        };
        Self {
            id,
            agent,
            tools,
            depth: 0,
            revision: 0,
            budget,
            phase: Phase::Queued,
            told: Status::Queued,
            step: 0,
            steps_since_message: 0,
            calls: Vec::new(),
            decisions: Vec::new(),
            messages: Vec::new(),
            speaker: None,
            transcript: Transcript::default(),
            told_before: None,
            usage: Usage::default(),
        }
    }

    /// Rebuilds a run from its log.
    pub fn replay(id: RunId, agent: Arc<Agent>, tools: Arc<Toolbox>, log: &[Entry]) -> Self {
        let mut run = Self::new(id, agent, tools);
        for entry in log {
            for (seq, event) in entry.placed() {
                run.apply(event, seq, entry.time);
            }
        }
        run
    }

    /// Tells the run where its latest events were stored, for the receipts it gives.
    pub fn stored(&mut self, entry: &Entry) {
        for (seq, event) in entry.placed() {
            match event {
                Event::ToolOutputAvailable(e) => self.place(e.tool_call_id, seq),
                Event::ToolOutputError(e) => self.place(e.tool_call_id, seq),
                Event::ToolOutputDenied(e) => self.place(e.tool_call_id, seq),
                Event::ToolApprovalResponse(e) => {
                    if let Some(record) = self.decisions.iter_mut().find(|r| r.approval == e.approval_id) {
                        record.seq = seq;
                    }
                }
                _ => {}
            }
        }
    }

    fn place(&mut self, call: CallId, place: Seq) {
        if let Some(Call {
            state: CallState::Settled(settled),
            ..
        }) = self.calls.get_mut(call.number as usize)
        {
            settled.seq = place;
        }
    }

    /// Takes one event as a fact.
    pub(super) fn apply(&mut self, event: &Event, seq: Seq, time: Time) {
        self.transcript.apply(event);
        match event {
            Event::RunStart(e) => {
                self.depth = e.depth;
                self.revision = e.revision;
                self.budget = e.budget.unwrap_or(self.budget);
                self.told_before = match self.agent.history {
                    History::Client => Some(history::told(self.id, &e.history).into()),
                    History::Server => None,
                };
            }
            Event::Said(e) => {
                self.messages.push(e.message.message_id);
                self.speaker = e.message.from.or(self.speaker);
                self.steps_since_message = 0;
            }
            Event::StepStart(e) => {
                self.step = e.step;
                self.steps_since_message += 1;
                if self.told == Status::Queued {
                    self.told = Status::Running;
                }
                self.phase = Phase::Asking {
                    failures: 0,
                    not_before: None,
                };
            }
            Event::StepRetry(e) => {
                self.phase = Phase::Asking {
                    failures: e.attempt,
                    not_before: Some(e.not_before),
                };
            }
            Event::ToolInputAvailable(e) => self.announce(e, time),
            Event::ToolApprovalRequest(e) => {
                let (approval, expires_at) = (e.approval_id, e.expires_at);
                self.set(e.tool_call_id, CallState::AwaitsApproval { approval, expires_at });
                if let Some(call) = self.calls.get_mut(e.tool_call_id.number as usize) {
                    call.asked = true;
                }
            }
            Event::ToolApprovalResponse(e) => self.note_decision(e, seq, time),
            Event::ToolExecuting(e) => match (&e.claim, e.pause) {
                (Some(claim), _) => self.hold(e.tool_call_id, Some(claim.clone())),
                (None, Some(pause)) => self.set(e.tool_call_id, CallState::Paused(pause)),
                (None, None) => {
                    self.set(e.tool_call_id, CallState::Executing { child: e.child });
                    if let Some(call) = self.calls.get_mut(e.tool_call_id.number as usize) {
                        call.since = time;
                    }
                }
            },
            Event::ToolReleased(e) => self.hold(e.tool_call_id, None),
            Event::ToolOutputAvailable(e) => {
                let outcome = Outcome::Output(e.output.clone().unwrap_or_else(Json::null));
                self.settle(
                    e.tool_call_id,
                    Settled {
                        outcome,
                        answered: true,
                        seq,
                        time,
                    },
                );
            }
            Event::ToolOutputError(e) => {
                let code = e.code.unwrap_or(ErrorCode::ExecutionFailed);
                let outcome = Outcome::error(code, e.error_text.clone().unwrap_or_default());
                let answered = code == ErrorCode::ExecutionFailed;
                self.settle(
                    e.tool_call_id,
                    Settled {
                        outcome,
                        answered,
                        seq,
                        time,
                    },
                );
            }
            Event::ToolOutputDenied(e) => {
                let outcome = Outcome::error(ErrorCode::Denied, e.reason.clone().unwrap_or_default());
                self.settle(
                    e.tool_call_id,
                    Settled {
                        outcome,
                        answered: false,
                        seq,
                        time,
                    },
                );
            }
            Event::StepFinish(e) => {
                self.usage.input_tokens += e.usage.input_tokens;
                self.usage.output_tokens += e.usage.output_tokens;
                self.usage.reasoning_tokens += e.usage.reasoning_tokens;
                self.usage.cached_tokens += e.usage.cached_tokens;
                if matches!(self.phase, Phase::Asking { .. }) {
                    // A reply without calls: what follows in the same entry says how the run goes on.
                    self.phase = Phase::Calling {
                        first: self.calls.len() as u32,
                    };
                }
            }
            Event::RunStatus(e) => self.told = e.status,
            Event::RunFinish(e) => {
                self.told = e.status;
                self.phase = Phase::Ended(e.status);
            }
            Event::TextStart(_)
            | Event::TextDelta(_)
            | Event::TextEnd(_)
            | Event::ReasoningStart(_)
            | Event::ReasoningDelta(_)
            | Event::ReasoningEnd(_)
            | Event::ToolInputStart(_)
            | Event::ToolInputDelta(_)
            | Event::ToolProgress(_)
            | Event::Notification(_) => {}
        }
    }

    fn announce(&mut self, e: &ToolInputAvailable, time: Time) {
        if matches!(self.phase, Phase::Asking { .. }) {
            self.phase = Phase::Calling {
                first: self.calls.len() as u32,
            };
        }
        let state = match e.deadline {
            Some(deadline) => CallState::Open {
                deadline,
                claim: None,
            },
            None => CallState::Ready,
        };
        self.calls.push(Call {
            tool: e.tool(),
            definition: self.tools.get(e.tool_name.as_ref()).cloned(),
            input: e.input.clone().unwrap_or_else(Json::null),
            signature: e.signature.clone(),
            asked: false,
            since: time,
            state,
        });
    }

    fn note_decision(&mut self, e: &ToolApprovalResponse, seq: Seq, time: Time) {
        let verdict = match e.approved {
            true => Verdict::Approve(e.input.clone()),
            false => Verdict::Deny(e.reason.clone()),
        };
        let answered = !e.expired;
        self.decisions.push(DecisionRecord {
            approval: e.approval_id,
            verdict,
            seq,
            time,
            answered,
        });
        if !e.approved {
            return;
        }
        let Some(call) = self.calls.get_mut(e.tool_call_id.number as usize) else {
            return;
        };
        if let Some(input) = &e.input {
            call.input = input.clone();
        }
        call.since = time;
        call.state = match e.deadline {
            Some(deadline) => CallState::Open {
                deadline,
                claim: None,
            },
            None => CallState::Ready,
        };
    }

    fn set(&mut self, call: CallId, state: CallState) {
        if let Some(call) = self.calls.get_mut(call.number as usize) {
            call.state = state;
        }
    }

    fn hold(&mut self, call: CallId, by: Option<crate::event::Claim>) {
        if let Some(Call {
            state: CallState::Open { claim, .. },
            ..
        }) = self.calls.get_mut(call.number as usize)
        {
            *claim = by;
        }
    }

    fn settle(&mut self, call: CallId, settled: Settled) {
        self.set(call, CallState::Settled(settled));
    }
}

/// What the events of a call carry that the model made under `name`.
pub fn tool_ref(call: CallId, name: &Arc<str>, tools: &Toolbox) -> ToolRef {
    let tool = tools.get(name.as_ref());
    ToolRef {
        call,
        name: name.clone(),
        placement: tool.map_or(Placement::Server, |tool| tool.placement()),
        shown: tool.is_some_and(|tool| tool.visibility == crate::tool::Visibility::Public),
    }
}
