//! What a child run tells the run at the top: its calls that need a person or a client, and nothing else.

use super::Run;
use crate::event::{ChildCall, Event, ToolInputAvailable};
use crate::id::CallId;
use crate::tool::Placement;

impl Run {
    /// What these events, which the run has just caused, are in the log of the run at the top. Nothing for a run that is
    /// there itself.
    pub fn tell_above(&self, events: &[Event]) -> Vec<Event> {
        if self.depth == 0 {
            return Vec::new();
        }
        let mut told = Vec::new();
        let mut introduced = Vec::new();
        for event in events {
            let Some(id) = event.tool_call().filter(|id| self.is_asked(*id, events)) else {
                continue;
            };
            if !introduced.contains(&id) {
                told.extend(self.introduction(id, events));
                introduced.push(id);
            }
            told.push(event.clone());
        }
        let told = told.into_iter().map(|event| ChildCall {
            ignorable: true,
            agent: self.agent.name.clone(),
            child_run_id: self.id,
            event: Box::new(event),
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
        call.asked.is_some() || is_offered || !call.questions.asked().is_empty()
    }

    /// The announcement of a call whose tool asks people for the first time with these events, in the middle of the call:
    /// the run at the top has not heard of it before.
    fn introduction(&self, id: CallId, events: &[Event]) -> Option<Event> {
        let call = self.call(id)?;
        let asks = |event: &&Event| matches!(event, Event::ToolQuestion(e) if e.tool_call_id == id);
        let announces = |event: &Event| matches!(event, Event::ToolInputAvailable(e) if e.tool_call_id == id);
        let new = events.iter().filter(asks).count();
        let is_known = call.asked.is_some()
            || call.tool.placement == Placement::Client
            || call.questions.asked().len() > new
            || events.iter().any(announces);
        let announcement = || ToolInputAvailable::of(&call.tool, call.input.clone(), None, None, None, None);
        (new > 0 && !is_known).then(|| announcement().into())
    }
}
