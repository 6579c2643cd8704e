//! The public form of the events of a call. `of` of each event takes one argument per member, so a new one does not
//! compile here either.

use super::hidden;
use crate::event::{
    Claim, Pause, ToolApprovalRequest, ToolApprovalResponse, ToolExecuting, ToolInputAvailable,
    ToolInputDelta, ToolOutputAvailable, ToolOutputDenied, ToolOutputError, ToolProgress, ToolQuestion,
    ToolQuestionResponse, ToolRef,
};
use crate::time::Time;
use crate::tool::{ApprovalTerms, ConsentRef, Decider};

/// What every event of a call shows, whether it shows what the tool read and wrote, and whether it is an offer to the reader.
pub(super) struct Shown {
    pub tool: ToolRef,
    payload: bool,
    is_offered: bool,
}

impl Shown {
    fn payload<T>(&self, member: &Option<T>) -> Option<T>
    where
        T: Clone,
    {
        member.as_ref().filter(|_| self.payload).cloned()
    }

    /// A client call with a deadline is an offer to whoever sees it.
    fn deadline(&self, deadline: Option<Time>) -> Option<Time> {
        deadline.filter(|_| self.is_offered)
    }
}

pub(super) fn of(tool: ToolRef, reader: &Decider) -> Shown {
    let is_offered = tool.is_offered_to(reader.entity());
    let ToolRef {
        call,
        name,
        placement,
        shown,
        // Who asked for the call is known; whoever may execute it sees the offer.
        offered_to: _,
        given_name,
    } = tool;
    Shown {
        payload: !hidden(placement, shown) && is_offered,
        is_offered,
        tool: ToolRef {
            call,
            name,
            placement,
            shown,
            offered_to: None,
            given_name,
        },
    }
}

pub(super) fn input_delta(e: &ToolInputDelta, reader: &Decider) -> Option<ToolInputDelta> {
    let shown = of(e.tool(), reader);
    shown
        .payload
        .then(|| ToolInputDelta::of(&shown.tool, e.input_text_delta.clone()))
}

pub(super) fn input_available(e: &ToolInputAvailable, reader: &Decider) -> ToolInputAvailable {
    let shown = of(e.tool(), reader);
    // The vendor's signature of a call is between us and the vendor.
    let signature = None;
    ToolInputAvailable::of(
        &shown.tool,
        shown.payload(&e.input),
        shown.deadline(e.deadline),
        signature,
        shown.payload(&e.reserved).map(claim),
        shown.payload(&e.consent).map(consent),
    )
}

pub(super) fn approval_request(e: &ToolApprovalRequest, reader: &Decider) -> ToolApprovalRequest {
    let shown = of(e.tool(), reader);
    // Nobody decides blindly: who may decide is shown what it is about, less what the tool's author hides.
    let deciding = e
        .terms
        .as_ref()
        .filter(|terms| !shown.payload && terms.admit(reader));
    let input = match deciding {
        Some(terms) => e.input.as_ref().map(|input| terms.shown(input)),
        None => shown.payload(&e.input),
    };
    let may_hear = |variable: &str| shown.payload || deciding.is_some_and(|terms| !terms.hides(variable));
    let voice = e.voice.as_ref().and_then(|voice| voice.heard(may_hear));
    let known = e.terms.clone().unwrap_or_default();
    let may_decide = known.admit(reader);
    let editable = may_decide && known.may_edit(reader, e.tool().is_seen_by_members());
    ToolApprovalRequest::of(
        &shown.tool,
        e.approval_id,
        input,
        e.expires_at,
        e.terms.as_ref().map(ApprovalTerms::public),
        voice,
        Some(may_decide),
        Some(editable),
    )
}

pub(super) fn approval_response(e: &ToolApprovalResponse, reader: &Decider) -> ToolApprovalResponse {
    let shown = of(e.tool(), reader);
    ToolApprovalResponse::of(
        &shown.tool,
        e.approval_id,
        e.approved,
        shown.payload(&e.reason),
        shown.payload(&e.input),
        shown.payload(&e.by),
        e.expired,
        shown.deadline(e.deadline),
        shown.payload(&e.reserved).map(claim),
        // The hash of an input that may be guessed tells the input.
        shown.payload(&e.input_hash),
        e.remembered,
    )
}

/// Members are asked, so they see what.
pub(super) fn question(e: &ToolQuestion, reader: &Decider) -> ToolQuestion {
    let shown = of(e.tool(), reader);
    // How a source names its questions is between us and the source.
    let key = None;
    ToolQuestion::of(
        &shown.tool,
        e.question_id,
        key,
        e.message.clone(),
        e.schema.clone(),
        e.url.clone(),
        e.expires_at,
    )
}

/// What a person fills in is for the tool: other members learn that the question is answered.
pub(super) fn question_response(e: &ToolQuestionResponse, reader: &Decider) -> ToolQuestionResponse {
    let shown = of(e.tool(), reader);
    let is_own = e.by.is_some() && e.by == reader.entity();
    let (content, by) = match is_own {
        true => (e.content.clone(), e.by),
        false => (None, shown.payload(&e.by)),
    };
    ToolQuestionResponse::of(&shown.tool, e.question_id, e.action, content, by, e.expired)
}

pub(super) fn executing(e: &ToolExecuting, reader: &Decider) -> ToolExecuting {
    let shown = of(e.tool(), reader);
    // How a source names its tasks is between us and the source, and how a child run stands is for backends.
    let (task, child_status) = (None, None);
    ToolExecuting::of(
        &shown.tool,
        shown.payload(&e.claim).map(claim),
        shown.payload(&e.child),
        shown.payload(&e.pause).map(pause),
        task,
        child_status,
    )
}

/// Other clients see who is at work.
fn claim(claim: Claim) -> Claim {
    let Claim { holder, until, by: _ } = claim;
    Claim {
        holder,
        until,
        by: None,
    }
}

/// Members see by whose yes a call runs that they see.
fn consent(consent: ConsentRef) -> ConsentRef {
    let ConsentRef {
        consent_id,
        by,
        given_at,
    } = consent;
    ConsentRef {
        consent_id,
        by,
        given_at,
    }
}

fn pause(pause: Pause) -> Pause {
    let Pause { until, signal } = pause;
    Pause { until, signal }
}

pub(super) fn progress(e: &ToolProgress, reader: &Decider) -> Option<ToolProgress> {
    let shown = of(e.tool(), reader);
    shown
        .payload
        .then(|| ToolProgress::of(&shown.tool, e.progress.clone()))
}

pub(super) fn output_available(e: &ToolOutputAvailable, reader: &Decider) -> ToolOutputAvailable {
    let shown = of(e.tool(), reader);
    // What code writes for its authors may hold anything.
    let log = None;
    ToolOutputAvailable::of(
        &shown.tool,
        shown.payload(&e.output),
        shown.payload(&e.warning),
        log,
        e.voice.as_ref().and_then(|voice| voice.heard(|_| shown.payload)),
    )
}

pub(super) fn output_error(e: &ToolOutputError, reader: &Decider) -> ToolOutputError {
    let shown = of(e.tool(), reader);
    let log = None;
    ToolOutputError::of(
        &shown.tool,
        shown.payload(&e.code),
        shown.payload(&e.error_text),
        log,
    )
}

pub(super) fn output_denied(e: &ToolOutputDenied, reader: &Decider) -> ToolOutputDenied {
    let shown = of(e.tool(), reader);
    ToolOutputDenied::of(&shown.tool, shown.payload(&e.reason))
}
