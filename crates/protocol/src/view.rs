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

use crate::event::{
    CallRequest, ChildCall, Event, Notification, ReasoningDelta, ReasoningEnd, ReasoningStart, RunFinish,
    RunStart, RunStatus, Said, StepFinish, StepRetry, StepStart, TextDelta, TextEnd, TextStart, Told,
    ToolInputStart, ToolReleased, Usage,
};
use crate::history::{Earlier, EarlierPart};
use crate::json::Json;
use crate::message::{Message, Origin};
use crate::tool::{ClientTool, Decider, Placement};

/// What `reader` sees of `event`; nothing when it must not even know of it. A secret key sees everything. A member of
/// the space learns of tools on the gateway's side that they ran, and the same of a client call that is offered to another
/// member alone; the exceptions are the input of a question that it may decide, less what the tool hides, and what a
/// tool asks people in the middle of a call.
pub fn view<'e>(event: &'e Event, reader: &Decider) -> Option<Cow<'e, Event>> {
    match reader {
        Decider::Backend => Some(Cow::Borrowed(event)),
        Decider::Member { .. } => public(event, reader),
    }
}

/// Whether a public principal learns no more of a tool than its name.
pub fn hidden(placement: Placement, shown: bool) -> bool {
    placement != Placement::Client && !shown
}

fn public<'e>(event: &'e Event, reader: &Decider) -> Option<Cow<'e, Event>> {
    match event {
        Event::RunStart(e) => owned(run_start(e)),
        Event::Said(Said {
            message:
                Message {
                    message_id: _,
                    from: _,
                    sender: None,
                    parts: _,
                    metadata: _,
                    origin:
                        None
                        | Some(Origin::Plan {
                            plan_id: _,
                            due_at: _,
                        }),
                    on_behalf_of: _,
                },
        }) => Some(Cow::Borrowed(event)),
        Event::Said(Said {
            message:
                Message {
                    message_id,
                    from,
                    // Other members know it by its entity.
                    sender: _,
                    parts,
                    metadata,
                    origin,
                    on_behalf_of,
                },
        }) => owned(Said {
            message: Message {
                message_id: *message_id,
                from: *from,
                sender: None,
                parts: parts.clone(),
                metadata: metadata.clone(),
                origin: origin.clone(),
                on_behalf_of: on_behalf_of.clone(),
            },
        }),
        Event::Told(Told { turns, from }) => owned(Told {
            turns: turns.iter().filter_map(told_words).collect(),
            from: *from,
        }),
        Event::CallRequest(CallRequest {
            tool_name,
            // The event of the call shows it to whoever may see it.
            input: _,
            from,
            sender: _,
        }) => owned(CallRequest {
            tool_name: tool_name.clone(),
            input: None,
            from: *from,
            sender: None,
        }),
        // May sum up what tools gave.
        Event::ContextCut(_) => None,
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
        Event::ToolInputStart(e) => owned(ToolInputStart::of(&call::of(e.tool(), reader).tool)),
        Event::ToolInputDelta(e) => call::input_delta(e, reader).and_then(owned),
        Event::ToolInputAvailable(e) => owned(call::input_available(e, reader)),
        Event::ToolApprovalRequest(e) => owned(call::approval_request(e, reader)),
        Event::ToolApprovalResponse(e) => owned(call::approval_response(e, reader)),
        Event::ToolQuestion(e) => owned(call::question(e, reader)),
        Event::ToolQuestionResponse(e) => owned(call::question_response(e, reader)),
        Event::ToolExecuting(e) => owned(call::executing(e, reader)),
        Event::ToolReleased(e) => owned(ToolReleased::of(&call::of(e.tool(), reader).tool)),
        Event::ToolProgress(e) => call::progress(e, reader).and_then(owned),
        Event::ToolOutputAvailable(e) => owned(call::output_available(e, reader)),
        Event::ToolOutputError(e) => owned(call::output_error(e, reader)),
        Event::ToolOutputDenied(e) => owned(call::output_denied(e, reader)),
        Event::ChildCall(e) => child_call(e, public(&e.event, reader)),
        // What a tool's server does with the model is for backends; the run's end tells what all of it cost.
        // Of an event that nobody here knows, which of its members are secret is unknown.
        Event::ToolSampling(_) | Event::Opaque(_) => None,
    }
}

/// What a child run asks is seen as if the run at the top asked it.
fn child_call<'e>(e: &ChildCall, seen: Option<Cow<'_, Event>>) -> Option<Cow<'e, Event>> {
    let ChildCall {
        ignorable,
        agent,
        child_run_id,
        event: _,
    } = e;
    owned(ChildCall {
        ignorable: *ignorable,
        agent: agent.clone(),
        child_run_id: *child_run_id,
        event: Box::new(seen?.into_owned()),
    })
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
        unknown_requester: _,
        offered_to: _,
        result_schema: _,
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
        unknown_requester: false,
        offered_to: None,
        result_schema: None,
        client_tools: client_tools.iter().map(client_tool).collect(),
        categories: None,
        history: Vec::new(),
        tools: Json::null(),
        tool_versions: BTreeMap::new(),
    }
}

/// The words of a turn that a client told. The calls in it are left out: those of tools on the gateway's side are for
/// backends, and nobody can tell them from others.
fn told_words(turn: &Earlier) -> Option<Earlier> {
    match turn {
        Earlier::User(_) => Some(turn.clone()),
        Earlier::Assistant(parts) => {
            let words = parts.iter().filter(|part| match part {
                EarlierPart::Text(_) => true,
                EarlierPart::Call {
                    name: _,
                    input: _,
                    output: _,
                    failed: _,
                } => false,
            });
            let words: Vec<EarlierPart> = words.cloned().collect();
            (!words.is_empty()).then_some(Earlier::Assistant(words))
        }
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
        estimated,
    } = *usage;
    Usage {
        input_tokens,
        output_tokens,
        reasoning_tokens,
        cached_tokens,
        estimated,
    }
}
