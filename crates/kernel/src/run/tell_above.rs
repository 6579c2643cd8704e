//! What a child run tells the run at the top: its calls that need a person or a client, and nothing else.

use super::Run;
use crate::event::{ChildCall, Event};
use crate::id::CallId;
use crate::tool::Placement;

impl Run {
    /// What these events, which the run has just caused, are in the log of the run at the top. Nothing for a run that is
    /// there itself.
    pub fn tell_above(&self, events: &[Event]) -> Vec<Event> {
        if self.depth == 0 {
            return Vec::new();
        }
        let told = events.iter().filter(|event| {
            let call = event.tool_call();
            call.is_some_and(|call| self.is_asked(call, events))
        });
        let told = told.map(|event| ChildCall {
            ignorable: true,
            agent: self.agent.name.clone(),
            child_run_id: self.id,
            event: Box::new(event.clone()),
        });
        told.map(Event::from).collect()
    }

    /// Whether people or clients were asked about a call.
    fn is_asked(&self, id: CallId, events: &[Event]) -> bool {
        let Some(call) = self.call(id) else {
            return false;
        };
        // A call that the pipeline refuses is announced without an offer, and ends in the same breath.
        let refused = |event: &Event| matches!(event, Event::ToolInputAvailable(e) if e.tool_call_id == id && e.deadline.is_none());
        let is_offered = call.tool.placement == Placement::Client && !events.iter().any(refused);
        call.asked.is_some() || is_offered
    }
}
