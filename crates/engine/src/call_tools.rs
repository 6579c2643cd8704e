//! Tools of calls, for whoever names both: a call never changes its tool, so the tool of one that people or clients have a part
//! in is read once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use toolgate_kernel::call::Call;
use toolgate_kernel::id::CallId;
use toolgate_kernel::run::Arrival;
use toolgate_kernel::tool::Placement;

use crate::Engine;
use crate::intake::IntakeError;

/// Calls whose tools are remembered; beyond it they are forgotten and looked up again.
const CALLS_MAX: usize = 10_000;

/// The names of the tools of calls that somebody asked for.
#[derive(Default)]
pub(crate) struct CallTools(Mutex<HashMap<CallId, CallTool>>);

/// The tool of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTool {
    /// The name the model used.
    pub name: Arc<str>,
    /// What the client that brought the tool calls it, where the run had to rename it.
    pub given_name: Option<Arc<str>>,
    /// Whether people or clients have a part in the call. Of others, those of a child run may be known to nobody in the space.
    pub is_asked: bool,
}

impl CallTool {
    fn of(call: &Call) -> Self {
        let tool = &call.tool;
        Self {
            name: tool.name.clone(),
            given_name: tool.given_name.clone(),
            is_asked: tool.placement == Placement::Client || call.asked.is_some(),
        }
    }

    /// Whether the tool has this name.
    pub fn is_named(&self, name: &str) -> bool {
        *self.name == *name || self.given_name.as_deref() == Some(name)
    }
}

impl CallTools {
    fn get(&self, call: CallId) -> Option<CallTool> {
        let calls = self.0.lock().expect("no panic holds the tools of calls");
        calls.get(&call).cloned()
    }

    fn remember(&self, call: CallId, tool: CallTool) {
        let mut calls = self.0.lock().expect("no panic holds the tools of calls");
        if calls.len() >= CALLS_MAX {
            calls.clear();
        }
        calls.insert(call, tool);
    }
}

impl Engine {
    /// The tool of a call. Whoever calls this has asked `toolgate_access` about its run.
    pub async fn tool_of(&self, call: CallId) -> Result<CallTool, IntakeError> {
        let known = &self.inner.call_tools;
        if let Some(tool) = known.get(call) {
            return Ok(tool);
        }
        let tool = self
            .inner
            .deliver(call.run, Arrival::Tick, move |run| {
                Some(run.call(call).map(CallTool::of))
            })
            .await?;
        let tool = tool.ok_or(IntakeError::Unknown("call"))?;
        // Of any other call, people may still be asked.
        if tool.is_asked {
            known.remember(call, tool.clone());
        }
        Ok(tool)
    }
}
