//! Events into a run. Everything that a run knows, it learned here or in [`RunState`]; `take` checks, this changes.

use std::sync::Arc;

use super::{Run, RunState};
use crate::agent::{Agent, History};
use crate::event::{Budget, Entry, Event, Seq, ToolRef};
use crate::history;
use crate::id::{CallId, EntityId, RunId};
use crate::time::Time;
use crate::tool::{Placement, Toolbox};

impl Run {
    /// A run to which nothing has happened. `tools` are the agent's and the caller's together.
    pub fn new(id: RunId, agent: Arc<Agent>, tools: Arc<Toolbox>) -> Self {
        let limits = &agent.limits;
        let budget = Budget {
            tokens: limits.tokens,
            descendants: limits.descendants,
            depth: Some(limits.depth),
        };
        Self {
            id,
            agent,
            tools,
            depth: 0,
            revision: 0,
            budget,
            state: RunState::default(),
            told_before: None,
            cut: None,
            request: None,
            offered_to: None,
            brought: Vec::new(),
            cut_turns: 0,
        }
    }

    /// Rebuilds a run from its log.
    pub fn replay(id: RunId, agent: Arc<Agent>, tools: Arc<Toolbox>, log: &[Entry]) -> Self {
        let mut run = Self::new(id, agent, tools);
        log.iter().for_each(|entry| run.extend(entry));
        run
    }

    /// Takes one more entry of the log as a fact. Whoever drives the run has made sure that nothing in it is
    /// [`beyond`](Entry::beyond) this version.
    pub fn extend(&mut self, entry: &Entry) {
        for (seq, event) in entry.placed() {
            self.apply(event, seq, entry.time);
        }
    }

    /// Tells the run where its latest events were stored, for the receipts it gives.
    pub fn stored(&mut self, entry: &Entry) {
        self.state.stored(entry);
    }

    /// Takes one event as a fact.
    pub(super) fn apply(&mut self, event: &Event, seq: Seq, time: Time) {
        self.state.apply(event, seq, time);
        match event {
            Event::RunStart(e) => {
                self.depth = e.depth;
                self.revision = e.revision;
                self.budget = e.budget.unwrap_or(self.budget);
                self.state.unknown_speaker |= e.unknown_requester;
                self.offered_to = e.offered_to;
                self.brought = e.client_tools.iter().map(|tool| tool.name.clone()).collect();
                self.told_before = match self.agent.history {
                    History::Client => Some(history::told(self.id, &e.history).into()),
                    History::Server => None,
                };
            }
            Event::Told(e) => self.told_before = Some(history::told(self.id, &e.turns).into()),
            Event::CallRequest(e) => self.request = Some(Arc::new(e.clone())),
            Event::ContextCut(e) => {
                self.cut = Some(Arc::new(e.clone()));
                self.cut_turns = self.state.turns().len();
            }
            Event::ToolInputAvailable(e) => {
                if let Some(call) = self.state.calls.last_mut() {
                    call.definition = self.tools.get(e.tool_name.as_ref()).cloned();
                }
            }
            _ => {}
        }
    }
}

/// What the events of a call carry that the model made under `name`.
pub fn tool_ref(call: CallId, name: &Arc<str>, tools: &Toolbox, offered_to: Option<EntityId>) -> ToolRef {
    let tool = tools.get(name.as_ref());
    let placement = tool.map_or(Placement::Server, |tool| tool.placement());
    ToolRef {
        call,
        name: name.clone(),
        placement,
        offered_to: offered_to.filter(|_| placement == Placement::Client),
        shown: tool.is_some_and(|tool| tool.visibility == crate::tool::Visibility::Public),
        given_name: tool.and_then(|tool| tool.given_name.clone()),
    }
}
