//! Starts of calls that the log has no event for. A call that may be executed again after a crash, or whose output is fixed,
//! is not recorded before it runs: that it begins follows from what the log says of it. Each message is made from one event
//! and those that were stored with it, so every reader is told the same at the same place, also one that comes back. A delegated
//! call is announced twice: when it may start, and when its run or task is known.

use toolgate_engine::feed::Batch;
use toolgate_kernel::event::{ChildCall, Event, Seq, ToolExecuting, ToolRef};
use toolgate_kernel::id::CallId;
use toolgate_kernel::tool::Placement;

/// The place of the start that follows from the event at `event`: behind it, and before every transient event, the first of
/// which stands at [`Seq::LANES`].
pub(crate) fn place_after(event: Seq) -> Seq {
    Seq(event.0 + 1)
}

/// Where to read on for somebody who has read up to `cursor`: the event there is read again, because the start that follows
/// from it may not have been told.
pub(crate) fn read_from(cursor: Seq) -> Seq {
    match cursor.0 % Seq::STRIDE {
        0 => Seq(cursor.0.saturating_sub(1)),
        _ => cursor,
    }
}

/// The start that follows from an event: of a call on the gateway's side that needs no approval, or has it now.
pub(crate) fn start_of(seen: &Event, batch: &Batch) -> Option<Event> {
    let tool = free_to_run(plain(seen), batch)?;
    if tool.placement == Placement::Client || stored_with(batch, tool.call).any(is_start) {
        return None;
    }
    let start = ToolExecuting::of(&tool, None, None, None, None, None).into();
    Some(match seen {
        Event::ChildCall(e) => ChildCall {
            event: Box::new(start),
            ..e.clone()
        }
        .into(),
        _ => start,
    })
}

/// Whether an event says no more than that a call begins, which its reader knows already: the event that set the call free
/// was stored before, and [`start_of`] told of it.
pub(crate) fn is_told(seen: &Event, batch: &Batch) -> bool {
    let Event::ToolExecuting(e) = plain(seen) else {
        return false;
    };
    let says_more = e.claim.is_some()
        || e.child.is_some()
        || e.pause.is_some()
        || e.task.is_some()
        || e.child_status.is_some();
    let is_set_free = |event: &Event| free_to_run(event, batch).is_some();
    e.placement != Placement::Client && !says_more && !stored_with(batch, e.tool_call_id).any(is_set_free)
}

/// The tool of a call that the event sets free to run.
fn free_to_run(event: &Event, batch: &Batch) -> Option<ToolRef> {
    match event {
        Event::ToolInputAvailable(e) => {
            let waits_or_ended = |event: &Event| {
                matches!(
                    event,
                    Event::ToolApprovalRequest(_) | Event::ToolOutputError(_) | Event::ToolOutputDenied(_)
                )
            };
            let is_free = !stored_with(batch, e.tool_call_id).any(waits_or_ended);
            is_free.then(|| e.tool())
        }
        Event::ToolApprovalResponse(e) => e.approved.then(|| e.tool()),
        _ => None,
    }
}

fn is_start(event: &Event) -> bool {
    matches!(event, Event::ToolExecuting(_))
}

/// The events of a call that were stored together.
fn stored_with(batch: &Batch, call: CallId) -> impl Iterator<Item = &Event> {
    let events = batch.placed().map(|(_, event)| plain(event));
    events.filter(move |event| event.tool_call() == Some(call))
}

/// What happened to the call, in whichever run of the tree.
pub(crate) fn plain(event: &Event) -> &Event {
    match event {
        Event::ChildCall(e) => &e.event,
        event => event,
    }
}
