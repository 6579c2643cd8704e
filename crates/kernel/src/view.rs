//! Who may see what: the one redaction, before any door. Live streams, replays, lists and exports all pass
//! through [`view`]; a door that filters by itself is a bug.
//!
//! The public form of an event names every member, with neither `..` nor a catch-all arm: a new member or event does
//! not compile until somebody decides who sees it.

mod call;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::call::Call;
use crate::event::{
    Event, Notification, ReasoningDelta, ReasoningEnd, ReasoningStart, RunFinish, RunStart, RunStatus, Said,
    StepFinish, StepRetry, StepStart, TextDelta, TextEnd, TextStart, ToolInputStart, ToolReleased, Usage,
};
use crate::json::Json;
use crate::message::Message;
use crate::tool::{ClientTool, Decider, Placement};

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Audience {
    /// A secret principal: sees everything.
    Secret,
    /// A public principal: of tools that run on the gateway's side it learns that they ran.
    Public,
}

/// What `audience` sees of `event`; nothing when it must not even know of it.
pub fn view(event: &Event, audience: Audience) -> Option<Cow<'_, Event>> {
    match audience {
        Audience::Secret => Some(Cow::Borrowed(event)),
        Audience::Public => public(event),
    }
}

/// What somebody who may be asked to decide sees of `event`: what its audience sees, and the input of the questions that
/// it may decide, less what their tools hide. This is the one exception to the redaction of tools on the gateway's side.
pub fn view_for<'e>(event: &'e Event, who: &Decider) -> Option<Cow<'e, Event>> {
    match (who, event) {
        (Decider::Backend, _) => view(event, Audience::Secret),
        (Decider::Member { .. }, Event::ToolApprovalRequest(e)) => {
            owned(call::approval_request(e, Some(who)))
        }
        (Decider::Member { .. }, _) => view(event, Audience::Public),
    }
}

/// Whether a public principal learns no more of a tool than its name.
pub(crate) fn hidden(placement: Placement, shown: bool) -> bool {
    placement != Placement::Client && !shown
}

/// The input of a call that waits for approval, as `who` sees it: all of it where members see the tool or a secret key
/// asks, and for whoever else may decide what the tool does not hide.
pub fn approval_input(call: &Call, who: &Decider) -> Option<Json> {
    let input = call.input.as_ref()?;
    if *who == Decider::Backend || call.is_seen_by_members() {
        return Some(input.clone());
    }
    // A question of before there were terms was asked on the promise that nobody is shown what it is about.
    let terms = call.asked.as_ref()?.terms.as_ref()?;
    terms.admit(who).then(|| terms.shown(input))
}

fn public(event: &Event) -> Option<Cow<'_, Event>> {
    match event {
        Event::RunStart(e) => owned(run_start(e)),
        Event::Said(Said {
            message:
                Message {
                    message_id: _,
                    from: _,
                    parts: _,
                    metadata: _,
                },
        }) => Some(Cow::Borrowed(event)),
        Event::StepStart(StepStart { step: _ }) => Some(Cow::Borrowed(event)),
        Event::StepRetry(StepRetry {
            step,
            attempt,
            // May quote the vendor.
            error: _,
            not_before,
        }) => owned(StepRetry {
            step: *step,
            attempt: *attempt,
            error: None,
            not_before: *not_before,
        }),
        Event::TextStart(TextStart { id: _ })
        | Event::TextDelta(TextDelta { id: _, delta: _ })
        | Event::TextEnd(TextEnd { id: _, text: _ })
        | Event::ReasoningStart(ReasoningStart { id: _ })
        | Event::ReasoningDelta(ReasoningDelta { id: _, delta: _ }) => Some(Cow::Borrowed(event)),
        Event::ReasoningEnd(ReasoningEnd {
            id,
            text,
            // The vendor's signature is between us and the vendor.
            signature: _,
        }) => owned(ReasoningEnd {
            id: id.clone(),
            text: text.clone(),
            signature: None,
        }),
        Event::StepFinish(StepFinish {
            step,
            reason,
            usage: used,
        }) => owned(StepFinish {
            step: *step,
            reason: *reason,
            usage: usage(used),
        }),
        Event::RunStatus(RunStatus { status: _ }) => Some(Cow::Borrowed(event)),
        Event::RunFinish(RunFinish {
            status,
            reason,
            usage: used,
            // May quote the vendor.
            error: _,
        }) => owned(RunFinish {
            status: *status,
            reason: *reason,
            usage: usage(used),
            error: None,
        }),
        Event::Notification(Notification {
            title: _,
            body: _,
            message_id: _,
        }) => Some(Cow::Borrowed(event)),
        Event::ToolInputStart(e) => owned(ToolInputStart::of(&call::of(e.tool()).tool)),
        Event::ToolInputDelta(e) => call::input_delta(e).and_then(owned),
        Event::ToolInputAvailable(e) => owned(call::input_available(e)),
        Event::ToolApprovalRequest(e) => owned(call::approval_request(e, None)),
        Event::ToolApprovalResponse(e) => owned(call::approval_response(e)),
        Event::ToolExecuting(e) => owned(call::executing(e)),
        Event::ToolReleased(e) => owned(ToolReleased::of(&call::of(e.tool()).tool)),
        Event::ToolProgress(e) => call::progress(e).and_then(owned),
        Event::ToolOutputAvailable(e) => owned(call::output_available(e)),
        Event::ToolOutputError(e) => owned(call::output_error(e)),
        Event::ToolOutputDenied(e) => owned(call::output_denied(e)),
        // Nobody here knows which of its members are secret.
        Event::Opaque(_) => None,
    }
}

fn owned<'a>(event: impl Into<Event>) -> Option<Cow<'a, Event>> {
    Some(Cow::Owned(event.into()))
}

/// Who answers, with which model, and the client tools that members may execute. What one client told, what the run may
/// spend and how it hangs together with other runs is for backends.
fn run_start(start: &RunStart) -> RunStart {
    let RunStart {
        agent,
        revision,
        model,
        entity: _,
        parent: _,
        depth,
        behind: _,
        budget: _,
        client_tools,
        categories: _,
        history: _,
        tools: _,
        tool_versions: _,
    } = start;
    RunStart {
        agent: agent.clone(),
        revision: *revision,
        model: model.clone(),
        entity: None,
        parent: None,
        depth: *depth,
        behind: None,
        budget: None,
        client_tools: client_tools.iter().map(client_tool).collect(),
        categories: None,
        history: Vec::new(),
        tools: Json::null(),
        tool_versions: BTreeMap::new(),
    }
}

/// Whoever executes a client tool needs all of its definition.
fn client_tool(tool: &ClientTool) -> ClientTool {
    let ClientTool {
        name,
        description,
        parameters,
        output_schema,
        timeout_ms,
        version,
        deprecated,
        given_name,
    } = tool;
    ClientTool {
        name: name.clone(),
        description: description.clone(),
        parameters: parameters.clone(),
        output_schema: output_schema.clone(),
        timeout_ms: *timeout_ms,
        version: version.clone(),
        deprecated: deprecated.clone(),
        given_name: given_name.clone(),
    }
}

fn usage(usage: &Usage) -> Usage {
    let Usage {
        input_tokens,
        output_tokens,
        reasoning_tokens,
        cached_tokens,
    } = *usage;
    Usage {
        input_tokens,
        output_tokens,
        reasoning_tokens,
        cached_tokens,
    }
}
