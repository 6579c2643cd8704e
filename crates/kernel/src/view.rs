//! Who may see what: the one redaction, before any door. Live streams, replays, lists and exports all pass
//! through [`view`]; a door that filters by itself is a bug.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::event::{
    Event, RunFinish, RunStart, StepRetry, ToolApprovalRequest, ToolApprovalResponse, ToolExecuting,
    ToolInputAvailable, ToolOutputAvailable, ToolOutputDenied, ToolOutputError,
};
use crate::json::Json;
use crate::tool::Placement;

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

/// Whether a public principal learns no more of a tool than its name.
pub(crate) fn hidden(placement: Placement, shown: bool) -> bool {
    placement != Placement::Client && !shown
}

fn public(event: &Event) -> Option<Cow<'_, Event>> {
    let redacted: Event = match event {
        Event::ToolInputDelta(e) if hidden(e.placement, e.shown) => return None,
        Event::ToolProgress(e) if hidden(e.placement, e.shown) => return None,
        // Nobody here knows which of its members are secret.
        Event::Opaque(_) => return None,
        Event::ToolInputAvailable(e) if hidden(e.placement, e.shown) => {
            ToolInputAvailable::of(&e.tool(), None, e.deadline, None).into()
        }
        // The vendor's signature of a call is between us and the vendor.
        Event::ToolInputAvailable(e) if e.signature.is_some() => ToolInputAvailable {
            signature: None,
            ..e.clone()
        }
        .into(),
        Event::ToolApprovalRequest(e) if hidden(e.placement, e.shown) => {
            ToolApprovalRequest::of(&e.tool(), e.approval_id, None, e.expires_at).into()
        }
        Event::ToolApprovalResponse(e) if hidden(e.placement, e.shown) => ToolApprovalResponse::of(
            &e.tool(),
            e.approval_id,
            e.approved,
            None,
            None,
            None,
            e.expired,
            e.deadline,
        )
        .into(),
        Event::ToolExecuting(e) if hidden(e.placement, e.shown) => {
            ToolExecuting::of(&e.tool(), None, None, None, None).into()
        }
        // How a source names its tasks is between us and the source.
        Event::ToolExecuting(e) if e.task.is_some() => ToolExecuting {
            task: None,
            ..e.clone()
        }
        .into(),
        Event::ToolOutputAvailable(e) if hidden(e.placement, e.shown) => {
            ToolOutputAvailable::of(&e.tool(), None, None).into()
        }
        Event::ToolOutputError(e) if hidden(e.placement, e.shown) => {
            ToolOutputError::of(&e.tool(), None, None).into()
        }
        Event::ToolOutputDenied(e) if hidden(e.placement, e.shown) => {
            ToolOutputDenied::of(&e.tool(), None).into()
        }
        Event::StepRetry(e) => StepRetry {
            error: None,
            ..e.clone()
        }
        .into(),
        Event::RunFinish(e) if e.error.is_some() => RunFinish {
            error: None,
            ..e.clone()
        }
        .into(),
        Event::RunStart(e) => RunStart {
            tools: Json::null(),
            tool_versions: BTreeMap::new(),
            parent: None,
            ..e.clone()
        }
        .into(),
        Event::ReasoningEnd(e) if e.signature.is_some() => crate::event::ReasoningEnd {
            signature: None,
            ..e.clone()
        }
        .into(),
        Event::Said(_)
        | Event::StepStart(_)
        | Event::TextStart(_)
        | Event::TextDelta(_)
        | Event::TextEnd(_)
        | Event::ReasoningStart(_)
        | Event::ReasoningDelta(_)
        | Event::ReasoningEnd(_)
        | Event::ToolInputStart(_)
        | Event::ToolInputDelta(_)
        | Event::ToolInputAvailable(_)
        | Event::ToolApprovalRequest(_)
        | Event::ToolApprovalResponse(_)
        | Event::ToolExecuting(_)
        | Event::ToolReleased(_)
        | Event::ToolProgress(_)
        | Event::ToolOutputAvailable(_)
        | Event::ToolOutputError(_)
        | Event::ToolOutputDenied(_)
        | Event::StepFinish(_)
        | Event::RunStatus(_)
        | Event::RunFinish(_)
        | Event::Notification(_) => return Some(Cow::Borrowed(event)),
    };
    Some(Cow::Owned(redacted))
}
