//! Arrivals into events. Every check comes before the first change, so a rejected arrival leaves no trace.

mod client;
mod clock;
mod delegate;

use serde_json::Value;

use super::pipeline::{Admission, Fate, Judged};
use super::replay::tool_ref;
use super::{Arrival, Phase, Rejected, Reply, ReplyPart, Run};
use crate::agent::History;
use crate::call::{Call, CallState, ErrorCode, Outcome, Settled};
use crate::event::{
    CallRequest, EndReason, Event, FinishReason, ReasoningEnd, RunFinish, RunStart, RunStatus, Said, Seq,
    Status, StepFinish, StepStart, TextEnd, Told, ToolApprovalRequest, ToolExecuting, ToolInputAvailable,
    ToolOutputAvailable, ToolOutputError, ToolSampling, Usage,
};
use crate::id::CallId;
use crate::json::Json;
use crate::message::{Message, Origin};
use crate::schema::Misfit;
use crate::time::Time;
use crate::tool::Spoken;

/// Names the text part that says that the steps were used up.
const STEP_LIMIT_PART: &str = "step-limit";

impl Run {
    /// The first events of a run, which waits to be picked up then. The history of an agent that goes by the log is
    /// that of a new space: whoever starts a run in another one gives none.
    pub fn start(&mut self, mut start: RunStart, message: Message, now: Time) -> Vec<Event> {
        // What a client told counts for one run of an agent that takes its word, and is the past of a new space else.
        let told = match self.agent.history {
            History::Client => Vec::new(),
            History::Server => std::mem::take(&mut start.history),
        };
        let mut log = Log {
            run: self,
            events: Vec::new(),
            now,
        };
        log.emit(start);
        if !told.is_empty() {
            log.emit(Told {
                turns: told,
                from: message.from,
            });
        }
        log.emit(Said { message });
        log.events
    }

    /// The first events of a run that is one call, which no model writes.
    pub fn start_call(&mut self, start: RunStart, request: CallRequest, now: Time) -> Vec<Event> {
        let mut log = Log {
            run: self,
            events: Vec::new(),
            now,
        };
        log.emit(start);
        log.emit(request);
        log.events
    }

    /// Takes one arrival: checks it, changes the run, and gives the events to store, none when there is nothing
    /// to tell. After a failed store the run is ahead of its log and must be thrown away.
    pub fn take(&mut self, arrival: Arrival, now: Time) -> Result<Vec<Event>, Rejected> {
        let mut log = Log {
            run: self,
            events: Vec::new(),
            now,
        };
        log.consider(arrival)?;
        let pauses = log.run.pauses(now);
        log.emit_all(pauses);
        log.tell_status();
        Ok(log.events)
    }
}

/// The run, and what is being told of it.
struct Log<'a> {
    run: &'a mut Run,
    events: Vec<Event>,
    now: Time,
}

impl Log<'_> {
    fn emit(&mut self, event: impl Into<Event>) {
        let event = event.into();
        self.run.apply(&event, Seq(0), self.now);
        self.events.push(event);
    }

    fn emit_all(&mut self, events: Vec<Event>) {
        events.into_iter().for_each(|event| self.emit(event));
    }

    fn consider(&mut self, arrival: Arrival) -> Result<(), Rejected> {
        let ended = self.run.state.end().map(|end| end.status);
        match (arrival, ended) {
            // These find their answer in what the run remembers, also after its end.
            (Arrival::Result { call, outcome, by }, _) => self.result(call, outcome, by),
            (
                Arrival::Decide {
                    approval,
                    verdict,
                    remember,
                    by,
                },
                _,
            ) => {
                let events = self.run.decide(approval, verdict, remember, &by, self.now)?;
                self.emit_all(events);
                self.go_on();
                Ok(())
            }
            (
                Arrival::Answer {
                    question,
                    response,
                    by,
                },
                _,
            ) => {
                let event = self.run.respond(question, response, &by)?;
                self.emit(event);
                Ok(())
            }
            (Arrival::Signal { call, value }, _) => {
                let outcome = self.run.signalled(call, &value)?;
                self.settle(call, outcome);
                self.go_on();
                Ok(())
            }
            (Arrival::Claim { call, claim }, _) => self.claim(call, claim),
            (Arrival::Release { call, holder, by }, _) => self.release(call, &holder, by),
            (Arrival::Message(message), _) if self.run.state.message(message.message_id).is_some() => {
                let known = self.run.state.message(message.message_id);
                let same = known.is_some_and(|known| known.message.is_same(&message));
                Err(if same {
                    Rejected::Repeated
                } else {
                    Rejected::Different
                })
            }
            (Arrival::Tick | Arrival::Recovered, Some(_)) => Ok(()),
            (_, Some(status)) => Err(Rejected::Ended(status)),
            (Arrival::Begin, None) => self.begin(),
            // It is one call, and nobody reads what is said to it.
            (Arrival::Message(_), None) if self.run.request.is_some() => Err(Rejected::OutOfTurn),
            (Arrival::Message(message), None) => {
                let why = match &message.origin {
                    None => "the user said something new instead",
                    Some(Origin::Plan { .. }) => "a plan was due, and has waited for this long enough",
                };
                self.emit(Said { message });
                self.supersede(why);
                self.go_on();
                Ok(())
            }
            (Arrival::Reply(reply), None) => self.reply(reply),
            (Arrival::Exhausted(words), None) => {
                self.finish(Status::Failed, EndReason::Limit, Some(words));
                Ok(())
            }
            (
                Arrival::Broke {
                    step,
                    failures,
                    error,
                    retryable,
                    retry_after,
                },
                None,
            ) => {
                let asked =
                    matches!(self.run.state.phase, Phase::Asking { failures: seen, .. } if seen == failures);
                if step != self.run.state.step || !asked {
                    return Err(Rejected::OutOfTurn);
                }
                self.broke(failures, error, retryable, retry_after);
                Ok(())
            }
            (Arrival::Cut(cut), None) => {
                // The same again leaves out nothing more: its first write was stored although nobody could tell, and what
                // its summary cost must not count twice.
                if !matches!(self.run.state.phase, Phase::Asking { .. }) || self.run.is_cut_so(&cut) {
                    return Err(Rejected::OutOfTurn);
                }
                self.emit(*cut);
                Ok(())
            }
            (Arrival::Started { call }, None) => {
                let known = self.run.call(call).ok_or(Rejected::Unknown)?;
                if known.state != CallState::Ready {
                    return Err(Rejected::OutOfTurn);
                }
                let known = known.tool.clone();
                self.emit(ToolExecuting::of(&known, None, None, None, None, None));
                Ok(())
            }
            (
                Arrival::Delegated {
                    call,
                    leg,
                    handle,
                    check_at,
                    child,
                    questions,
                },
                None,
            ) => {
                self.delegate(call, leg, handle, check_at, child)?;
                self.ask(call, questions);
                Ok(())
            }
            (
                Arrival::Output {
                    call,
                    leg,
                    outcome,
                    log,
                },
                None,
            ) => self.output(call, leg, outcome, log),
            (Arrival::Sampled { call, number, usage }, None) => {
                let known = self.run.call(call).ok_or(Rejected::Unknown)?;
                if number != known.samplings + 1 {
                    return Err(Rejected::OutOfTurn);
                }
                let tool = known.tool.clone();
                self.emit(ToolSampling::of(&tool, number, usage));
                Ok(())
            }
            (Arrival::Tick, None) => {
                self.tick();
                Ok(())
            }
            (Arrival::Cancel, None) => {
                self.cancel();
                Ok(())
            }
            (Arrival::Recovered, None) => {
                self.recover();
                Ok(())
            }
        }
    }

    fn tell_status(&mut self) {
        let status = self.run.status();
        // The start and the end of a run have events of their own.
        if status != self.run.state.status && !status.is_final() && !self.events.is_empty() {
            self.emit(RunStatus { status });
        }
    }

    fn begin(&mut self) -> Result<(), Rejected> {
        if self.run.state.phase != Phase::Queued {
            return Err(Rejected::OutOfTurn);
        }
        self.next_step();
        Ok(())
    }

    fn reply(&mut self, reply: Reply) -> Result<(), Rejected> {
        if reply.step != self.run.state.step || !matches!(self.run.state.phase, Phase::Asking { .. }) {
            return Err(Rejected::OutOfTurn);
        }
        let mut in_step = 0;
        for part in reply.parts {
            match part {
                ReplyPart::Text { id, text } => self.emit(TextEnd { id, text }),
                ReplyPart::Reasoning { id, text, signature } => {
                    self.emit(ReasoningEnd { id, text, signature })
                }
                ReplyPart::Call {
                    name,
                    arguments,
                    signature,
                } => {
                    let id = self.run.next_call(0);
                    let by = Judged {
                        person_grants: &reply.person_grants,
                        earlier: &reply.earlier,
                        consents: &reply.consents,
                        now: self.now,
                    };
                    let Admission { input, fate, consent } =
                        self.run.admit(id, in_step, &name, &arguments, by);
                    in_step += 1;
                    let tool = tool_ref(id, &name, &self.run.tools, self.run.offered_to);
                    let deadline = match fate {
                        Fate::Offer { deadline } => Some(deadline),
                        Fate::Run | Fate::Ask { .. } | Fate::Refused { .. } => None,
                    };
                    let reserved = deadline.and_then(|_| self.run.reservation(&name, self.now));
                    self.emit(ToolInputAvailable::of(
                        &tool,
                        Some(input.clone()),
                        deadline,
                        signature,
                        reserved,
                        consent,
                    ));
                    match fate {
                        Fate::Refused { code, message } => {
                            self.emit(ToolOutputError::of(&tool, Some(code), Some(message), None));
                        }
                        Fate::Ask { approval, expires_at } => {
                            let terms = self.run.terms(&name);
                            let voice = self.run.proposal(&name, &input);
                            let input = Some(input);
                            // Who may decide is said to each reader.
                            let request = ToolApprovalRequest::of(
                                &tool, approval, input, expires_at, terms, voice, None, None,
                            );
                            self.emit(request);
                        }
                        Fate::Run | Fate::Offer { .. } => {}
                    }
                }
            }
        }
        self.emit(StepFinish {
            step: self.run.state.step,
            reason: reply.reason,
            usage: reply.usage,
        });
        if in_step == 0 {
            self.answered(reply.reason);
        } else {
            self.go_on();
        }
        Ok(())
    }

    /// The model asked for nothing: the run is over, unless somebody has spoken meanwhile.
    fn answered(&mut self, reason: FinishReason) {
        if self.run.state.transcript.has_unread() {
            return self.next_step();
        }
        if let Some(misfit) = self.run.misfit() {
            let Some(message) = self.run.correction(&misfit) else {
                return self.finish(Status::Failed, EndReason::InvalidOutput, Some(misfit));
            };
            self.emit(Said { message });
            return self.next_step();
        }
        let reason = match reason {
            FinishReason::Length => EndReason::Length,
            FinishReason::ContentFilter => EndReason::ContentFilter,
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Error | FinishReason::Other => {
                EndReason::Stop
            }
        };
        self.finish(Status::Completed, reason, None);
    }

    /// Once every call of the step has settled, the next step.
    fn go_on(&mut self) {
        let Phase::Calling { first } = self.run.state.phase else {
            return;
        };
        let calls = &self.run.state.calls[first as usize..];
        if calls
            .iter()
            .all(|call| matches!(call.state, CallState::Settled(_)))
        {
            self.next_step();
        }
    }

    fn next_step(&mut self) {
        if self.run.request.is_some() && self.run.state.step > 0 {
            return self.finish_call();
        }
        let limits = &self.run.agent.limits;
        if self.run.state.usage.total() > limits.tokens {
            let used = format!("the run used more than {} tokens", limits.tokens);
            return self.finish(Status::Failed, EndReason::Limit, Some(used));
        }
        let fresh = self.run.state.transcript.has_unread();
        if !fresh && self.run.state.steps_since_message >= limits.steps {
            return self.stop_at_step_limit();
        }
        self.emit(StepStart {
            step: self.run.state.step + 1,
        });
    }

    /// The steps are used up. Whoever reads the answer is told so where the model has given none.
    fn stop_at_step_limit(&mut self) {
        let steps = self.run.agent.limits.steps;
        let is_silent = self.run.state.answer().trim().is_empty();
        let words = is_silent.then(|| {
            format!("The agent stopped at its limit of {steps} steps (loop.maxSteps) without an answer.")
        });
        if let Some(text) = words.clone() {
            let id = STEP_LIMIT_PART.into();
            self.emit(TextEnd { id, text });
        }
        self.finish(Status::Completed, EndReason::MaxSteps, words);
    }

    /// The one call that the run was for has settled: the run ends as the call did.
    fn finish_call(&mut self) {
        let outcome = self.run.state.calls.first().and_then(|call| match &call.state {
            CallState::Settled(settled) => Some(&settled.outcome),
            _ => None,
        });
        match outcome {
            Some(Outcome::Error { code, message }) => {
                let error = format!("{}: {message}", code.as_str());
                self.finish(Status::Failed, EndReason::ToolError, Some(error));
            }
            Some(Outcome::Output(_)) | None => self.finish(Status::Completed, EndReason::Stop, None),
        }
    }

    fn finish(&mut self, status: Status, reason: EndReason, error: Option<String>) {
        let usage: Usage = self.run.state.usage;
        self.emit(RunFinish {
            status,
            reason,
            usage,
            error,
        });
    }

    fn cancel(&mut self) {
        for index in self.open_calls() {
            let id = self.run.state.calls[index].tool.call;
            self.settle(id, Outcome::error(ErrorCode::Cancelled, "the run was cancelled"));
        }
        self.finish(Status::Cancelled, EndReason::Cancelled, None);
    }

    /// Somebody spoke: settles what may be long in coming, which is whatever waits for a client, a person, a moment or
    /// a signal, and delegated calls. What a tool does on the gateway's side goes on: it ends soon, and the model
    /// should know what it did.
    fn supersede(&mut self, why: &str) {
        for index in self.open_calls() {
            let call = &self.run.state.calls[index];
            let is_run = call
                .definition
                .as_ref()
                .is_some_and(|tool| tool.execution.is_run());
            let goes_on = matches!(call.state, CallState::Ready | CallState::Executing) && !is_run;
            if !goes_on {
                self.settle(call.tool.call, Outcome::error(ErrorCode::Superseded, why));
            }
        }
    }

    fn open_calls(&self) -> Vec<usize> {
        let Phase::Calling { first } = self.run.state.phase else {
            return Vec::new();
        };
        (first as usize..self.run.state.calls.len())
            .filter(|&index| !matches!(self.run.state.calls[index].state, CallState::Settled(_)))
            .collect()
    }

    fn settle(&mut self, id: CallId, outcome: Outcome) {
        self.settle_with_log(id, outcome, None);
    }

    fn settle_with_log(&mut self, id: CallId, outcome: Outcome, log: Option<String>) {
        let call = &self.run.state.calls[id.number as usize];
        let tool = call.tool.clone();
        let deprecated = call.definition.as_ref().and_then(|tool| tool.deprecated.clone());
        match outcome {
            Outcome::Output(output) => {
                let voice = completion(call, &output);
                self.emit(ToolOutputAvailable::of(
                    &tool,
                    Some(output),
                    deprecated,
                    log,
                    voice,
                ))
            }
            Outcome::Error { code, message } => {
                self.emit(ToolOutputError::of(&tool, Some(code), Some(message), log))
            }
        }
    }
}

/// What an arrival for a call is told that was settled without its executor.
pub(super) fn gone(settled: &Settled) -> Rejected {
    match &settled.outcome {
        Outcome::Output(_) => Rejected::Different,
        Outcome::Error { code, message } => Rejected::Gone {
            code: *code,
            message: message.clone(),
        },
    }
}

/// What is said aloud of a call that gave this output. Of a tool that says itself that it failed, nothing is confirmed.
fn completion(call: &Call, output: &Json) -> Option<Spoken> {
    let tool = call.definition.as_ref()?;
    let voice = tool.voice.as_ref().filter(|voice| voice.feedback.is_some())?;
    let output = output.to_value();
    if output.get("success") == Some(&Value::Bool(false)) {
        return None;
    }
    voice.completion(tool.display_name(), &call.input().to_value(), &output)
}

/// What is wrong with an output that must fit a schema.
fn misfits(call: &Call, outcome: &Outcome) -> Option<Misfit> {
    let schema = call.definition.as_ref()?.output.as_ref()?;
    let Outcome::Output(output) = outcome else {
        return None;
    };
    schema.verify(&output.to_value()).err()
}
