//! What a posted conversation says of calls that are open: results, and decisions on approvals. The rest of it is the
//! client's claim, and the log is what counts.

use std::collections::{HashMap, HashSet};

use toolgate_access::{AccessError, Principal};
use toolgate_engine::intake::{Decision, IntakeError, Submission};
use toolgate_http::Shared;
use toolgate_http::problem::Refusal;
use toolgate_http::ui_message::{AnyText, CallPart, ChatMessage, ChatRole};
use toolgate_kernel::id::{ApprovalId, CallId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::Problem;

/// What is taken of the words of a tool that failed.
const ERROR_CHARS_MAX: usize = 10_000;

/// What the client says of one call.
#[derive(Debug, Clone, PartialEq)]
enum Update {
    Result(Submission),
    Decision(ApprovalId, Decision),
}

/// What the client says of the calls of the last step of the model that it has seen, and of what child runs asked behind
/// it, in steps of their own.
#[derive(Debug, Default)]
pub(crate) struct ClientUpdates {
    updates: Vec<(CallId, Update)>,
    /// The message that says so of each call, by its place in the conversation.
    pub messages: HashMap<CallId, usize>,
    /// Every call of these steps.
    pub calls: HashSet<CallId>,
    /// Those of the last one.
    pub last_calls: HashSet<CallId>,
}

impl ClientUpdates {
    pub fn of(messages: &[ChatMessage]) -> Self {
        let mut updates = Self::default();
        let Some(last) = messages
            .iter()
            .rposition(|message| message.role == ChatRole::Assistant)
        else {
            return updates;
        };
        for (call, part) in newest_calls(&messages[last]) {
            updates.calls.insert(call);
            updates.messages.insert(call, last);
            let update = update_of(part, call);
            updates.updates.extend(update.map(|update| (call, update)));
        }
        let newest = messages[last].steps_back().next().unwrap_or_default();
        updates.last_calls = newest.into_iter().filter_map(id_of).collect();
        for (index, message) in messages.iter().enumerate().skip(last + 1) {
            let result = message.result().filter(|_| message.role == ChatRole::Tool);
            if let Some((id, output)) = result
                && let Ok(call) = id.parse()
            {
                updates.calls.insert(call);
                updates.last_calls.insert(call);
                updates.messages.insert(call, index);
                updates
                    .updates
                    .push((call, Update::Result(Submission::Output(output))));
            }
        }
        updates
    }

    /// The run that they speak of, when it is one of this space that `who` may reach: of calls of child runs, the run at
    /// the top. An error when that cannot be known now: a result must not be dropped because the store did not answer.
    pub async fn run(
        &self,
        door: &Shared,
        who: &Principal,
        space: SpaceId,
    ) -> Result<Option<RunId>, AccessError> {
        let runs: HashSet<RunId> = self.calls.iter().map(|call| call.run).collect();
        let mut tops = HashSet::new();
        for run in runs {
            match door.access.reach_top(who, run, "run").await {
                Ok(top) if top.space == space => tops.insert(top.run),
                Ok(_) | Err(AccessError::NotFound(_)) => return Ok(None),
                Err(error) => return Err(error),
            };
        }
        let mut tops = tops.into_iter();
        Ok(tops.next().filter(|_| tops.next().is_none()))
    }

    /// The result, when there is nothing but one result for the one call of the step.
    pub fn lone_result(&self) -> Option<(CallId, Submission)> {
        match self.updates.as_slice() {
            [(call, Update::Result(result))] if self.calls.len() == 1 => Some((*call, result.clone())),
            _ => None,
        }
    }

    /// What the client is told when an update of `call` is not taken.
    pub fn refusal(messages: &HashMap<CallId, usize>, call: CallId, error: IntakeError) -> Refusal {
        match error {
            IntakeError::TooLarge { .. } => {
                let message = messages.get(&call).copied().unwrap_or_default();
                Refusal::result_too_large(format!("/messages/{message}"), error.to_string())
            }
            other => other.into(),
        }
    }

    /// Gives them to the run. What is settled already stays as it is: the client learns of it by what follows.
    pub async fn submit(self, door: &Shared, who: &Principal) -> Result<(), Refusal> {
        for (call, update) in self.updates {
            let submitted = match update {
                Update::Result(submission) => submit(door, who, call, submission).await,
                Update::Decision(approval, decision) => {
                    let top = door.access.reach_top(who, approval.run, "approval").await?;
                    let by = door.access.decider(who, top.space).await?;
                    door.engine.decide(approval, decision, by).await.map(|_| ())
                }
            };
            match submitted {
                Ok(()) => {}
                Err(error) if is_too_late(&error) => {}
                Err(error) => return Err(Self::refusal(&self.messages, call, error)),
            }
        }
        Ok(())
    }
}

/// The calls of the newest step, and of those before it back to the last one with a call of the run at the top: what child
/// runs ask stands in steps of its own, behind the step of the model. The first call of an answer is one of the run at the
/// top.
fn newest_calls(message: &ChatMessage) -> Vec<(CallId, &CallPart)> {
    let known = message.steps_back().map(|step| {
        let calls = step.into_iter();
        calls
            .filter_map(|part| Some((id_of(part)?, part)))
            .collect::<Vec<_>>()
    });
    let steps: Vec<Vec<(CallId, &CallPart)>> = known.collect();
    let top = steps.iter().rev().flatten().next().map(|(call, _)| call.run);
    let mut calls = Vec::new();
    for step in steps {
        let is_below = !step.is_empty() && step.iter().all(|(call, _)| Some(call.run) != top);
        calls.extend(step);
        if !is_below {
            break;
        }
    }
    calls
}

fn id_of(part: &CallPart) -> Option<CallId> {
    part.tool_call_id.0.parse().ok()
}

/// Gives a result to its run. One that the tool's output schema refuses is a failure of the tool: the client would send
/// the same for ever otherwise.
async fn submit(
    door: &Shared,
    who: &Principal,
    call: CallId,
    submission: Submission,
) -> Result<(), IntakeError> {
    let refused = match door.engine.submit(call, submission, who.entity()).await {
        Err(error) if is_misfit(&error) => refused(&error),
        other => return other.map(|_| ()),
    };
    door.engine.submit(call, refused, who.entity()).await.map(|_| ())
}

/// Whether a result was refused by the tool's output schema.
pub(crate) fn is_misfit(error: &IntakeError) -> bool {
    matches!(error, IntakeError::Invalid(_) | IntakeError::TooCostly(_))
}

/// What a result becomes that the tool's output schema refuses.
pub(crate) fn refused(error: &IntakeError) -> Submission {
    let problems = match error {
        IntakeError::Invalid(problems) => problems.clone(),
        other => vec![Problem::new("", other.to_string())],
    };
    let problems: Vec<String> = problems
        .iter()
        .map(|p| format!("{} {}", p.pointer, p.message))
        .collect();
    let words = format!("the output was refused: {}", problems.join("; "));
    Submission::Error(words.chars().take(ERROR_CHARS_MAX).collect())
}

/// Whether somebody else was faster, or the call was given up.
pub(crate) fn is_too_late(error: &IntakeError) -> bool {
    match error {
        IntakeError::Unknown(_)
        | IntakeError::NotAClientCall
        | IntakeError::NotApproved
        | IntakeError::Conflict { .. }
        | IntakeError::DecidedOtherwise { .. }
        | IntakeError::RespondedOtherwise { .. }
        | IntakeError::Gone { .. }
        | IntakeError::Ended(_) => true,
        IntakeError::NotAnApprover
        | IntakeError::NotOffered
        | IntakeError::Held { .. }
        | IntakeError::MessageIdReused
        | IntakeError::Invalid(_)
        | IntakeError::TooCostly(_)
        | IntakeError::TooLarge { .. }
        | IntakeError::Busy(_)
        | IntakeError::Store(_) => false,
    }
}

fn update_of(part: &CallPart, call: CallId) -> Option<Update> {
    let state = part.state.as_ref().map_or("", |state| state.0.as_str());
    let ours = part.provider_executed == Some(true);
    match (state, &part.approval) {
        ("approval-responded", Some(approval)) => {
            let reason = approval.reason.as_ref().map(|reason| reason.0.clone());
            let decision = match approval.approved? {
                true => Decision::Approve(None),
                false => Decision::Deny(reason),
            };
            // The question must be about this very call: whether the client may reach its run is asked by the call.
            let approval: ApprovalId = approval.id.0.parse().ok()?;
            (approval.call() == call).then_some(Update::Decision(approval, decision))
        }
        ("output-available", _) if !ours && part.preliminary != Some(true) => {
            let output = part.output.clone().unwrap_or_else(Json::null);
            Some(Update::Result(Submission::Output(output)))
        }
        ("output-error", _) if !ours => {
            let words = part
                .error_text
                .as_ref()
                .map_or("the tool failed", AnyText::as_str);
            let words = words.chars().take(ERROR_CHARS_MAX).collect();
            Some(Update::Result(Submission::Error(words)))
        }
        _ => None,
    }
}
