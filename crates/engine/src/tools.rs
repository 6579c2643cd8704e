//! The seam to the tools that the gateway can run: its own, and those of plugins and MCP servers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_fair::Share;
use toolgate_kernel::agent::Secret;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::id::{CallId, EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::members::Members;
use toolgate_kernel::name::{AgentName, ToolName};
use toolgate_kernel::problem::Problem;
use toolgate_kernel::prompt::Turn;
use toolgate_kernel::question::{Answer, Question};
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{Binding, Listed, Placement, SourceTool, ToolList};

use crate::call_log::CallLog;
use crate::records::Receipt;
use crate::sampling::Sampling;
use crate::shares::share_of;
use crate::store::{EntityRecord, StoreError};
use crate::user_tokens::NoToken;

pub use toolgate_kernel::tool::{BUILT_IN, SHARED};
/// The built-in tool by which a run tells the one above something before its end: the engine brings its outputs up.
pub const SIGNAL_PARENT: &str = "signal_parent";

/// What a tool on the gateway's side is given besides its input.
pub struct CallContext {
    /// The project that owns it.
    pub project: ProjectId,
    /// Where: the space of the run at the top. All below it work there too, though their events stand elsewhere.
    pub space: SpaceId,
    /// In which run.
    pub run: RunId,
    /// The run at the top, which a person or a plan started.
    pub root: RunId,
    /// How many runs stand above this one; its parent waits for it when there is one.
    pub depth: u32,
    /// Whose configuration the run follows.
    pub agent: AgentName,
    /// The agent's own entity: what it keeps is tied to this.
    pub entity: EntityId,
    /// The call; also its idempotency key when it is run again after a crash.
    pub call: CallId,
    /// Whom the run works for: the person who spoke last, in it or above it. None when that was a backend or a plan.
    pub profile: Option<EntityRecord>,
    /// On whose behalf the run works: that person, or who asked for the plan that wrote the last message. Says whose
    /// something is that a tool keeps; gives no rights.
    pub works_for: Option<EntityId>,
    /// The token that the person of `profile` showed with the request that this run goes on from, or why there is none.
    /// Only for what the operator lets it be passed on to.
    pub user_token: Result<Secret, NoToken>,
    /// What was said in the space so far, as the model was told.
    pub turns: Vec<Arc<Turn>>,
    /// The tools that the run has.
    pub tools: Vec<ToolName>,
    /// What the agent was given.
    pub grants: Vec<String>,
    /// When the engine stops waiting.
    pub deadline: Time,
    /// Now, by the engine's clock.
    pub now: Time,
    /// Fires when nobody wants the result any more.
    pub cancel: CancellationToken,
    /// Tells the space how far it is.
    pub progress: Arc<dyn Fn(Json) + Send + Sync>,
    /// Stored with the outcome, for backends only.
    pub log: CallLog,
    /// Asks the run's own model, for whoever the project lets do so.
    pub sampling: Sampling,
}

impl CallContext {
    /// Whose share of the workers and of outbound requests it takes.
    pub fn share(&self) -> Share {
        share_of(self.project, self.profile.as_ref().map(|person| person.id))
    }
    /// Says what the tool does now, for people who wait: `{"status": words}`.
    pub fn tell(&self, words: &str) {
        (self.progress)(json!({ "status": words }).into());
    }
    /// What a tool in a sandbox is given, which needs these permissions: of the agent's grants, those among them.
    pub fn sandboxed(&self, permissions: &[String]) -> SandboxContext {
        let granted = |needed: &&String| self.grants.contains(needed);
        SandboxContext {
            call: self.call,
            grants: permissions.iter().filter(granted).cloned().collect(),
            deadline: self.deadline,
            now: self.now,
            cancel: self.cancel.clone(),
            progress: self.progress.clone(),
        }
    }
    /// Says that the call was made, with this answer: stored with what it changed, it is given when the call is made
    /// again after a crash.
    pub fn receipt(&self, answer: Json) -> Receipt {
        Receipt {
            key: self.call.to_string(),
            answer,
            time: self.now,
        }
    }
}

/// What code that is not the gateway's own is given besides the input: nothing of the conversation, of the person, of
/// the space or of the agent. A type of its own, so that a new member of [`CallContext`] stays outside of the sandbox.
#[derive(Clone)]
pub struct SandboxContext {
    /// The call; also its idempotency key when it is run again after a crash.
    pub call: CallId,
    /// The permissions that the tool needs and the agent was given.
    pub grants: Vec<String>,
    /// When the engine stops waiting.
    pub deadline: Time,
    /// Now, by the engine's clock.
    pub now: Time,
    /// Fires when nobody wants the result any more.
    pub cancel: CancellationToken,
    /// Tells the space how far it is.
    pub progress: Arc<dyn Fn(Json) + Send + Sync>,
}

/// Why a tool gave no output, in words that the model can act on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CallFailure {
    /// Why, for programs.
    pub code: ErrorCode,
    /// Why, in words.
    pub message: String,
}

impl CallFailure {
    /// The tool failed, for this reason.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::ExecutionFailed, message)
    }
    /// Whoever the tool needs is not there.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unavailable, message)
    }
    /// The tool was there when the run began, and is gone.
    pub fn removed() -> Self {
        Self::unavailable(
            "this tool was removed after the run had begun, and the call was not made; go on without it",
        )
    }
    /// With this code.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// A store that failed; what it says of itself is for the log.
impl From<StoreError> for CallFailure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict => {
                Self::unavailable("others are changing this at the same time; nothing was changed, try again")
            }
            error => {
                tracing::warn!(%error, "a tool could not reach the store");
                Self::unavailable("the gateway's store cannot be reached now; try again later")
            }
        }
    }
}

/// Longest name of a task, in bytes: the state that a server has its client keep fits.
pub const TASK_BYTES_MAX: usize = 64 * 1024;

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Called {
    /// It ended with this output.
    Output(Json),
    /// Somebody else carries it on.
    Delegated(Delegation),
}

impl Called {
    /// The output; none when somebody else carries the call on.
    pub fn output(self) -> Option<Json> {
        match self {
            Self::Output(output) => Some(output),
            Self::Delegated(_) => None,
        }
    }
}

impl From<Json> for Called {
    fn from(output: Json) -> Self {
        Self::Output(output)
    }
}

/// A tool of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetTool {
    /// What models call it.
    pub name: String,
    /// The source's own name for it, which it is listed by.
    pub listed: String,
}

/// How a call that somebody else carries on is found again. Stored before anything else happens, so that a crash loses
/// neither the task nor what people are asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Delegation {
    /// The source's own name for the work; opaque to everyone else, at most [`TASK_BYTES_MAX`] long. A call whose task is
    /// longer fails.
    pub task: Arc<str>,
    /// When to look again; none when only answers (or the tool's timeout) move it.
    pub check_at: Option<Time>,
    /// What members of the space are asked; the call goes on when all are answered.
    pub questions: Vec<Question>,
}

/// How soon a task is looked at again that could not be looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

impl Delegation {
    /// The same task, to be looked at again a while after `now`.
    pub fn later(task: &str, now: Time) -> Self {
        Self {
            task: task.into(),
            check_at: Some(now.after(LOOK_AGAIN)),
            questions: Vec::new(),
        }
    }
}

/// A source of tools: lists them for a project and runs their calls. The built-in tools are one, so are `request` and
/// `image-generator`.
///
/// The engine sees to what holds for every source: input that does not match the schema never arrives, a call that was
/// made before a crash is answered with its receipt, the future is dropped at the deadline and on a cancel, a panic is a
/// failed call, an output that is too large becomes a file, and a tool that its source no longer offers as the model was
/// told of it is not called.
#[async_trait]
pub trait ToolSource: Send + Sync {
    /// Unique in the gateway. Stored with every definition that a run pins, so it never changes.
    fn name(&self) -> &'static str;
    /// Where its tools run: decides who may see their inputs and outputs.
    fn placement(&self) -> Placement {
        Placement::Server
    }
    /// The values of `executionType` whose `execution` it reads. Unique in the gateway.
    fn execution_types(&self) -> &'static [&'static str];
    /// Reads the `execution` of a tool in an agent's configuration, given the whole tool and what the source lists; notes
    /// what is wrong with it, with its place. `{"tool": name}` unless the source says otherwise.
    fn read(&self, tool: &Members<'_>, list: &ToolList) -> Option<Binding> {
        Binding::named(tool, "tool", list, "its source has no tool named")
    }
    /// A listed tool as the author of an agent would write it out, for agents that have only its name. None when it cannot
    /// be used by its name alone. `{"tool": name}` of its first execution type unless the source says otherwise.
    fn written_out(&self, name: &str, _listed: &Listed) -> Option<Value> {
        let kind = self.execution_types().first()?;
        Some(json!({ "executionType": kind, "execution": { "tool": name } }))
    }
    /// Whether a tool passes the token of the user on. Only runs with such a tool have [`CallContext::user_token`].
    fn passes_user_token(&self, _tool: &SourceTool) -> bool {
        false
    }
    /// The sets that agents use as a whole, by name, with the listed tools of each and what models call them. A set that
    /// belongs to one agent is named `<agent>/<set>`. None unless the source says otherwise.
    fn sets(&self, _list: &ToolList) -> BTreeMap<String, Vec<SetTool>> {
        BTreeMap::new()
    }
    /// What is wrong with the parts of an agent's configuration that the source reads besides tools (`mcpServers`).
    async fn check_agent(&self, _project: ProjectId, _config: &Value) -> Vec<Problem> {
        Vec::new()
    }
    /// An agent is about to be stored with this configuration, which is right: the source keeps what is meant for it.
    async fn adopt_agent(
        &self,
        _project: ProjectId,
        _agent: &AgentName,
        _config: &Value,
    ) -> Result<(), CallFailure> {
        Ok(())
    }
    /// An agent was removed: what the source has kept for it goes.
    async fn forget_agent(&self, _project: ProjectId, _agent: &AgentName) {}
    /// The tools of a project, by the source's own names. Asked when an agent is read and before each call, so it answers
    /// from memory, with the same `Arc` while nothing has changed. Empty for a source whose tools are only configured.
    async fn list(&self, _project: ProjectId) -> Result<Arc<ToolList>, CallFailure> {
        Ok(Arc::default())
    }
    /// What the names of all its tools begin with, and those of no other source: for one whose tools come and go without
    /// anybody in the project storing them.
    fn name_prefix(&self) -> Option<&'static str> {
        None
    }
    /// The names that its tools have in a project, also while it does not offer them: no other source may take one of
    /// them. Asked before a name is taken, so it reads what is stored now, and gives an error rather than a part.
    async fn names(&self, project: ProjectId) -> Result<Vec<String>, CallFailure> {
        Ok(self.list(project).await?.keys().cloned().collect())
    }
    /// Says whether a tool may still be called as a run pinned it; asked before each call. By default it may while the
    /// source lists it with the same [`Listed::hash`]. A source that keeps the versions of its tools says yes for every
    /// version that it can still run.
    ///
    /// [`Listed::hash`]: toolgate_kernel::tool::Listed::hash
    async fn still_offers(&self, tool: &SourceTool, project: ProjectId) -> Result<(), CallFailure> {
        let Some(pinned) = &tool.listed else {
            return Ok(());
        };
        match self.list(project).await?.get(&tool.tool) {
            Some(listed) if listed.hash() == pinned => Ok(()),
            Some(_) => Err(CallFailure::unavailable(
                "this tool was changed after the run had begun, and the call was not made, since it may mean something \
                 else now; go on without it, the next run has the tool as it is now",
            )),
            None => Err(CallFailure::removed()),
        }
    }
    /// Runs a call of one of its tools, for the project of `context`. Dropping the future stops it.
    async fn call(
        &self,
        tool: &SourceTool,
        input: &Json,
        context: &CallContext,
    ) -> Result<Called, CallFailure>;
    /// Goes on with a call that it delegated to `task`: without answers at its `check_at`, with all answers once its
    /// questions are answered. Dropping the future stops it.
    ///
    /// Without answers it may be asked any number of times, also by two nodes at once, and changes nothing; with answers
    /// it is asked again after a crash if the tool's `retry` is `safe`. An error ends the call. A source that cannot reach
    /// whoever has the task gives the same task with a later `check_at` instead, until `deadline` of the context is past.
    /// Questions that are open stay open when it is asked without answers; it gives only those that are new.
    async fn resume(
        &self,
        _tool: &SourceTool,
        _input: &Json,
        _task: &str,
        _answers: &[Answer],
        _context: &CallContext,
    ) -> Result<Called, CallFailure> {
        Err(CallFailure::unavailable(
            "the source of this tool cannot be asked about its tasks",
        ))
    }
    /// Tells it that nobody wants the result of `task` any more: the call was cancelled, superseded or timed out. Best
    /// effort: it is told once, for a short time, and not at all after a crash.
    async fn abandon(&self, _tool: &SourceTool, _task: &str, _project: ProjectId) {}
}
