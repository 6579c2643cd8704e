//! A person's answer to a question, and the silence that becomes a no.

use super::pipeline::{Fate, release, sentences};
use super::{Rejected, Run, Verdict};
use crate::call::{Call, CallState, ErrorCode, Outcome, Settled};
use crate::event::{Event, ToolApprovalResponse, ToolOutputDenied};
use crate::id::{ApprovalId, EntityId};
use crate::json::Json;
use crate::message::WorksFor;
use crate::problem::Problem;
use crate::schema::Misfit;
use crate::time::Time;
use crate::tool::{ApprovalTerms, Decider, Remember, Spoken, definition};
use crate::view::hidden;

/// What is wrong with a changed input that the tool does not allow.
const NOT_EDITABLE: &str = "the input of this tool may not be changed; decide on it as it is, or let its author set \"editable\" in its \"approval\"";
/// What is wrong with a wish to remember a yes that the tool does not remember.
const NOT_REMEMBERED: &str =
    "this tool asks for every call; leave out \"remember\", or let its author set it in its \"approval\"";
/// What is wrong with a wish to remember a yes to a changed input.
const EDITED: &str = "a yes to a changed input is for this call alone; leave out \"remember\" or \"input\"";
/// What is wrong with a wish to remember the yes of somebody who may decide by a token alone.
const KNOWN_BY_TOKEN: &str = "your role is known from your token alone, so a remembered yes would outlive it; leave out \"remember\", or be given the role in the space";
/// What is wrong with a wish to remember a yes for somebody who is not known.
const NOBODY_KNOWN: &str = "the run works for nobody whom the gateway knows, so the yes is for this call alone; leave out \"remember\", or let a secret key decide";
/// What the model reads when nobody answered.
const EXPIRED: &str = "nobody answered the request for approval in time";

impl Run {
    pub(super) fn decide(
        &self,
        approval: ApprovalId,
        verdict: Verdict,
        remember: Option<bool>,
        by: &Decider,
        now: Time,
    ) -> Result<Vec<Event>, Rejected> {
        // Before anything else: whoever may not decide does not learn what others decided.
        let terms = self.terms_of(approval)?;
        if !terms.admit(by) {
            return Err(Rejected::NotAnApprover);
        }
        let call = self.asked(approval, &verdict)?;
        let entity = by.entity();
        match verdict {
            Verdict::Deny(reason) => Ok(denial(call, approval, reason, entity, false)),
            Verdict::Approve(edited) => {
                let definition = call
                    .definition
                    .as_ref()
                    .expect("only a known tool asks for approval");
                if let Some(input) = &edited {
                    if !terms.may_edit(by, call.is_seen_by_members()) {
                        return Err(Rejected::Invalid(vec![Problem::new("/input", NOT_EDITABLE)]));
                    }
                    let value = input
                        .read()
                        .map_err(|e| Rejected::Invalid(vec![Problem::new("/input", e.to_string())]))?;
                    let verified = definition.input.verify(&value);
                    verified.map_err(|misfit| Rejected::from(misfit).within("/input"))?;
                }
                let works_for = self.state.sender.works_for;
                let remembered = is_remembered(&terms, edited.as_ref(), remember, by, works_for)?;
                // What runs is what was asked about, or what the person made of it: the log proves which.
                let runs = edited.clone().unwrap_or_else(|| call.input());
                let input_hash = Some(definition::hash(&runs.to_value()));
                let deadline = match release(definition, now) {
                    Fate::Offer { deadline } => Some(deadline),
                    Fate::Run | Fate::Ask { .. } | Fate::Refused { .. } => None,
                };
                let reserved = deadline.and_then(|_| self.reservation(&call.tool.name, now));
                let response = ToolApprovalResponse::of(
                    &call.tool, approval, true, None, edited, entity, false, deadline, reserved, input_hash,
                    remembered,
                );
                Ok(vec![response.into()])
            }
        }
    }

    /// The terms of a question that was asked. One of before there were terms is a consent.
    fn terms_of(&self, approval: ApprovalId) -> Result<ApprovalTerms, Rejected> {
        let call = self.call(approval.call()).ok_or(Rejected::Unknown)?;
        call.asked.as_ref().ok_or(Rejected::Unknown)?;
        Ok(call.approval_terms())
    }

    /// The terms on which a call of this tool asks now.
    pub(super) fn terms(&self, tool: &str) -> Option<ApprovalTerms> {
        let tool = self.tools.get(tool)?;
        let mut terms = tool.approval_terms.clone();
        if terms.not_requester {
            terms.requesters = self.state.speakers.clone();
            terms.unknown_requester = self.state.unknown_speaker;
        }
        if !tool.person_permissions.is_empty() {
            terms.editor = self.state.sender.speaker;
        }
        Some(terms)
    }

    /// What is said aloud to whoever decides on a call of this tool.
    pub(super) fn proposal(&self, tool: &str, input: &Json) -> Option<Spoken> {
        let tool = self.tools.get(tool)?;
        let voice = tool.voice.as_ref().filter(|voice| voice.prompt.is_some())?;
        voice.proposal(tool.display_name(), &input.to_value())
    }

    /// The call that waits for this answer, or why it does not wait any more.
    fn asked(&self, approval: ApprovalId, verdict: &Verdict) -> Result<&Call, Rejected> {
        let call = self.call(approval.call()).ok_or(Rejected::Unknown)?;
        match (&call.state, self.decision(approval)) {
            (CallState::AwaitsApproval { .. }, _) => Ok(call),
            (_, Some(record)) if record.answered && record.verdict == *verdict => Err(Rejected::Repeated),
            (_, Some(record)) if record.answered => Err(Rejected::Different),
            // Whatever else became of it is told only of calls that a person was asked about.
            (CallState::Settled(settled), _) if call.asked.is_some() => Err(ended(call, settled)),
            _ => Err(Rejected::Unknown),
        }
    }
}

/// Whether a yes stands for later calls too. One of a role that only a token names does not: later nobody could say whether
/// its giver still has the role. Nor does one that [`Run::consent_for`] would not find again.
fn is_remembered(
    terms: &ApprovalTerms,
    edited: Option<&Json>,
    wish: Option<bool>,
    by: &Decider,
    works_for: WorksFor,
) -> Result<bool, Rejected> {
    let wrong = |words: &str| Err(Rejected::Invalid(vec![Problem::new("/remember", words)]));
    let lasts = terms.admit(&by.without_token());
    let has_subject = match (works_for, terms.remember) {
        (WorksFor::Nobody, _) => false,
        (WorksFor::Unknown, Some(Remember::UntilRevoked)) => *by == Decider::Backend,
        (WorksFor::Unknown | WorksFor::Person(_), _) => true,
    };
    match (terms.remember, edited, wish) {
        (None, _, Some(true)) => wrong(NOT_REMEMBERED),
        (Some(_), Some(_), Some(true)) => wrong(EDITED),
        (Some(_), None, Some(true)) if !lasts => wrong(KNOWN_BY_TOKEN),
        (Some(_), None, Some(true)) if !has_subject => wrong(NOBODY_KNOWN),
        (Some(_), None, None | Some(true)) => Ok(lasts && has_subject),
        (None, _, None | Some(false)) | (Some(_), _, Some(false)) | (Some(_), Some(_), None) => Ok(false),
    }
}

/// Why the question is void. What a hidden tool said of itself stays hidden.
pub(super) fn ended(call: &Call, settled: &Settled) -> Rejected {
    match super::take::gone(settled) {
        Rejected::Gone { code, .. } if hidden(call.tool.placement, call.tool.shown) => Rejected::Gone {
            code,
            message: "the call has ended".into(),
        },
        other => other,
    }
}

/// A no: the decision, and the end of its call.
pub(super) fn denial(
    call: &Call,
    approval: ApprovalId,
    reason: Option<String>,
    by: Option<EntityId>,
    expired: bool,
) -> Vec<Event> {
    let reason = if expired { Some(EXPIRED.to_owned()) } else { reason };
    let response = ToolApprovalResponse::of(
        &call.tool,
        approval,
        false,
        reason.clone(),
        None,
        by,
        expired,
        None,
        None,
        None,
        false,
    );
    vec![response.into(), ToolOutputDenied::of(&call.tool, reason).into()]
}

impl From<Misfit> for Rejected {
    fn from(misfit: Misfit) -> Self {
        match misfit {
            Misfit::TooCostly(problem) => Self::TooCostly(problem),
            Misfit::Invalid(problems) => Self::Invalid(problems),
        }
    }
}

/// What becomes of a call whose output is refused.
pub(super) fn refused_output(misfit: Misfit) -> Outcome {
    match misfit {
        Misfit::TooCostly(problem) => Outcome::error(ErrorCode::LimitExceeded, problem.message),
        Misfit::Invalid(problems) => {
            let problems = sentences(&problems);
            let words = format!("the output does not fit the tool's output schema: {problems}");
            Outcome::error(ErrorCode::InvalidOutput, words)
        }
    }
}
