//! Tools that the agents of a project share: defined once, used by name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use toolgate_kernel::agent::{TOOLS_MAX, read_shared, with_name};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::name::ToolName;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{Listed, SHARED, SourceTool, Tool, ToolList};

use crate::agents::AgentError;
use crate::record_updater::RecordUpdater;
use crate::records::{Amendment, Change, Expected, Listing, NewRecord, Owner, Record, RecordSet, Records};
use crate::sources::Sources;
use crate::store::StoreError;
use crate::tool_names::{NamesUnknown, TakenNames};
use crate::tools::{CallContext, CallFailure, Called, ToolSource};
use crate::workspace::Only;
use crate::{Engine, TooManyWait};

/// Most shared tools of a project.
pub const SHARED_TOOLS_MAX: usize = TOOLS_MAX;
/// Most bytes of one definition.
pub const SHARED_TOOL_BYTES_MAX: usize = 256 * 1024;
/// Most bytes of all definitions of a project.
pub const SHARED_TOOLS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long another node's change may stay unseen here.
const KNOWN_FOR: Duration = Duration::from_secs(1);
/// Projects whose tools are kept in memory.
const PROJECTS_MAX: usize = 1_000;
const KIND: &str = "shared-tool";
/// Id of the record that changes with every change of the set, so that one read tells whether there was any. Not a name
/// of a tool, and before all names.
const STAMP: &str = "@stamp";

/// A tool that the agents of a project share.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedTool {
    /// What agents and models call it.
    pub name: String,
    /// The definition as it was written, with its name. It may hold keys: never shown as it is.
    pub definition: Json,
    /// Number of its changes, from 1.
    pub version: u64,
    /// Time at which it was first stored.
    pub created: Time,
    /// Time of its last change.
    pub updated: Time,
}

/// Why a shared tool was not stored or removed.
#[derive(Debug, thiserror::Error)]
pub enum SharedToolError {
    /// Its definition is wrong in these ways.
    #[error("the definition has {} problems", .0.len())]
    Invalid(Vec<Problem>),
    /// The project has as many as it may, or as many bytes of them.
    #[error("{0}")]
    Full(String),
    /// It is not as the caller expects: it has this version, or is not there.
    #[error("{}", changed(*.0))]
    Changed(Option<u64>),
    /// Whether its name is free is not known.
    #[error(transparent)]
    NamesUnknown(NamesUnknown),
    /// Too many requests wait to be checked.
    #[error(transparent)]
    TooManyWait(#[from] TooManyWait),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn changed(version: Option<u64>) -> String {
    match version {
        Some(version) => format!("the shared tool is there, at version {version}; nothing was changed"),
        None => "there is no such shared tool; nothing was changed".into(),
    }
}

impl From<NamesUnknown> for SharedToolError {
    fn from(unknown: NamesUnknown) -> Self {
        match unknown {
            NamesUnknown::Store(error) => error.into(),
            unknown @ NamesUnknown::Source { .. } => Self::NamesUnknown(unknown),
        }
    }
}

impl From<AgentError> for SharedToolError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Invalid(problems) => Self::Invalid(problems),
            AgentError::TooManyWait(error) => error.into(),
            AgentError::Store(error) => error.into(),
        }
    }
}

/// The body of the record [`STAMP`]: what the set holds.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Stamp {
    tools: usize,
    bytes: usize,
}

/// The source of shared tools. An agent gets a copy of their definitions, which other sources and the kernel run.
pub(crate) struct SharedTools {
    updater: RecordUpdater,
    known: Mutex<HashMap<ProjectId, Known>>,
}

struct Known {
    /// When the stamp was last read; none after a change here.
    looked: Option<Instant>,
    stamp: Option<u64>,
    list: Arc<ToolList>,
}

/// What the store has of one tool, and of all.
struct Stored {
    stamp: Option<Record>,
    tool: Option<Record>,
    /// Names that other sources have; read where the tool is new.
    taken: Option<Result<TakenNames, NamesUnknown>>,
}

impl SharedTools {
    pub fn new(records: Arc<dyn Records>) -> Self {
        Self {
            updater: RecordUpdater::new(records),
            known: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProjectId, Known>> {
        self.known.lock().expect("no panic holds the shared tools")
    }

    /// Reads the list again if the set has changed since it was last read.
    async fn refresh(&self, project: ProjectId) -> Result<Arc<ToolList>, StoreError> {
        let records = self.updater.records();
        // Read first: a change in between is seen the next time.
        let stamp = records
            .record(set(project), STAMP)
            .await?
            .map(|stamp| stamp.version);
        let same = self
            .lock()
            .get(&project)
            .filter(|known| known.stamp == stamp)
            .map(|known| known.list.clone());
        let list = match same {
            Some(list) => list,
            None => {
                let tools = self.stored(project).await?.into_iter();
                let listed = |tool: SharedTool| (tool.name, Listed::new(tool.definition.to_value()));
                Arc::new(tools.map(listed).collect())
            }
        };
        let mut known = self.lock();
        if known.len() >= PROJECTS_MAX {
            known.clear();
        }
        let now = Known {
            looked: Some(Instant::now()),
            stamp,
            list: list.clone(),
        };
        known.insert(project, now);
        Ok(list)
    }

    async fn stored(&self, project: ProjectId) -> Result<Vec<SharedTool>, StoreError> {
        let listing = Listing {
            after: Some(STAMP.into()),
            limit: SHARED_TOOLS_MAX,
            ..Listing::default()
        };
        let records = self.updater.records().list_records(set(project), listing).await?;
        Ok(records.into_iter().map(SharedTool::from).collect())
    }

    /// Stores a definition, or removes the tool without one, and changes the stamp with it. Gives the version before.
    async fn change(
        &self,
        sources: &Sources,
        project: ProjectId,
        name: &ToolName,
        only: Only,
        definition: Option<&Json>,
        now: Time,
    ) -> Result<Option<u64>, SharedToolError> {
        let records = self.updater.records().clone();
        let read = || async {
            let stamp = records.record(set(project), STAMP).await?;
            let tool = records.record(set(project), name.as_str()).await?;
            let taken = match (definition, &tool) {
                (Some(_), None) => Some(sources.taken_names(project, SHARED).await),
                (Some(_), Some(_)) | (None, _) => None,
            };
            Ok(Stored { stamp, tool, taken })
        };
        let decide = |stored: Stored| decide(name, stored, only, definition);
        let before = self.updater.update(set(project), now, read, decide).await?;
        if let Some(known) = self.lock().get_mut(&project) {
            known.looked = None;
        }
        Ok(before)
    }
}

impl SharedTools {
    /// Removes all tools, and changes the stamp with them. Gives how many there were.
    async fn clear(&self, project: ProjectId, now: Time) -> Result<usize, SharedToolError> {
        let records = self.updater.records().clone();
        let read = || async {
            // Read first: a tool that is stored after this changes it.
            let stamp = records.record(set(project), STAMP).await?;
            Ok((stamp, self.stored(project).await?))
        };
        let decide = |(stamp, tools): (Option<Record>, Vec<SharedTool>)| {
            let removed = tools.len();
            let Some(stamp) = stamp.filter(|_| removed > 0) else {
                return Ok((Amendment::default(), 0));
            };
            // The stamp stays: its version tells other nodes that the set has changed.
            let empty = serde_json::to_value(Stamp::default()).expect("a stamp is JSON");
            let mut changes: Vec<Change> = tools.into_iter().map(|tool| Change::Remove(tool.name)).collect();
            changes.push(Change::Put(record(STAMP, empty.into())));
            let amendment = Amendment {
                expected: vec![Expected {
                    id: STAMP.into(),
                    version: Some(stamp.version),
                }],
                changes,
                ..Amendment::default()
            };
            Ok::<_, SharedToolError>((amendment, removed))
        };
        let removed = self.updater.update(set(project), now, read, decide).await?;
        if let Some(known) = self.lock().get_mut(&project) {
            known.looked = None;
        }
        Ok(removed)
    }
}

/// The amendment, and the version that the tool had.
fn decide(
    name: &ToolName,
    stored: Stored,
    only: Only,
    definition: Option<&Json>,
) -> Result<(Amendment, Option<u64>), SharedToolError> {
    let before = stored.tool.as_ref().map(|tool| tool.version);
    let is_as_expected = match only {
        Only::Always => true,
        Only::New => before.is_none(),
        Only::Existing => before.is_some(),
        Only::Version(version) => before == Some(version),
    };
    if !is_as_expected {
        return Err(SharedToolError::Changed(before));
    }
    let size = |body: &Json| body.as_str().len();
    let mut stamp: Stamp = match &stored.stamp {
        Some(stamp) => stamp
            .body
            .read()
            .map_err(|error| StoreError::Corrupt(format!("shared tools: {error}")))?,
        None => Stamp::default(),
    };
    if let Some(tool) = &stored.tool {
        stamp.tools = stamp.tools.saturating_sub(1);
        stamp.bytes = stamp.bytes.saturating_sub(size(&tool.body));
    }
    let change = match definition {
        // Nothing changes: no run loses a tool because it was stored once more.
        Some(definition) if stored.tool.as_ref().is_some_and(|tool| tool.body == *definition) => {
            return Ok((Amendment::default(), before));
        }
        None if before.is_none() => return Ok((Amendment::default(), None)),
        Some(definition) => {
            stamp.tools += 1;
            stamp.bytes += size(definition);
            Change::Put(record(name.as_str(), definition.clone()))
        }
        None => Change::Remove(name.to_string()),
    };
    if definition.is_some() {
        check_room(stamp)?;
    }
    let taken = stored.taken.transpose()?;
    if let Some(owner) = taken.as_ref().and_then(|taken| taken.owner(name.as_str())) {
        let words = format!("{owner} has a tool named {name:?} already; choose another name");
        return Err(SharedToolError::Invalid(vec![Problem::new("/name", words)]));
    }
    let stamped = serde_json::to_value(stamp).expect("a stamp is JSON").into();
    let expect = |id: &str, record: &Option<Record>| Expected {
        id: id.to_owned(),
        version: record.as_ref().map(|record| record.version),
    };
    let amendment = Amendment {
        expected: vec![expect(STAMP, &stored.stamp), expect(name.as_str(), &stored.tool)],
        changes: vec![change, Change::Put(record(STAMP, stamped))],
        turn: taken.map(|taken| taken.turn()),
        ..Amendment::default()
    };
    Ok((amendment, before))
}

fn check_room(stamp: Stamp) -> Result<(), SharedToolError> {
    if stamp.tools > SHARED_TOOLS_MAX {
        return Err(SharedToolError::Full(format!(
            "the project has {SHARED_TOOLS_MAX} shared tools, which is all that it may have; remove one first"
        )));
    }
    if stamp.bytes > SHARED_TOOLS_BYTES_MAX {
        return Err(SharedToolError::Full(format!(
            "the shared tools of the project would have {} bytes, at most {SHARED_TOOLS_BYTES_MAX} are allowed; remove \
             one first",
            stamp.bytes
        )));
    }
    Ok(())
}

fn record(id: &str, body: Json) -> NewRecord {
    NewRecord {
        id: id.to_owned(),
        body,
        text: None,
        data: None,
        due: None,
    }
}

fn set(project: ProjectId) -> RecordSet {
    RecordSet {
        project,
        owner: Owner::Project,
        kind: KIND,
    }
}

impl From<Record> for SharedTool {
    fn from(record: Record) -> Self {
        Self {
            name: record.id,
            definition: record.body,
            version: record.version,
            created: record.created,
            updated: record.updated,
        }
    }
}

#[async_trait]
impl ToolSource for SharedTools {
    fn name(&self) -> &'static str {
        SHARED
    }
    fn execution_types(&self) -> &'static [&'static str] {
        &[]
    }
    fn written_out(&self, _: &str, listed: &Listed) -> Option<Value> {
        Some(Value::Object(listed.members().clone()))
    }
    async fn list(&self, project: ProjectId) -> Result<Arc<ToolList>, CallFailure> {
        let known = self
            .lock()
            .get(&project)
            .map(|known| (known.looked, known.list.clone()));
        match known {
            Some((Some(looked), list)) if looked.elapsed() < KNOWN_FOR => Ok(list),
            Some((_, list)) => Ok(self.refresh(project).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "shared tools could not be read again");
                list
            })),
            None => Ok(self.refresh(project).await?),
        }
    }
    async fn names(&self, project: ProjectId) -> Result<Vec<String>, CallFailure> {
        let stored = self.stored(project).await?.into_iter();
        Ok(stored.map(|tool| tool.name).collect())
    }
    async fn call(&self, _: &SourceTool, _: &Json, _: &CallContext) -> Result<Called, CallFailure> {
        Err(CallFailure::unavailable(
            "a shared tool is run by the source of its execution type",
        ))
    }
}

impl Engine {
    /// The shared tools of a project, by name.
    pub async fn shared_tools(&self, project: ProjectId) -> Result<Vec<SharedTool>, StoreError> {
        self.inner.tools.shared().stored(project).await
    }

    /// A shared tool by its name.
    pub async fn shared_tool(
        &self,
        project: ProjectId,
        name: &ToolName,
    ) -> Result<Option<SharedTool>, StoreError> {
        let records = self.inner.tools.shared().updater.records();
        let record = records.record(set(project), name.as_str()).await?;
        Ok(record.map(SharedTool::from))
    }

    /// Checks and stores a shared tool, in place of the one of its name, if that one is as `only` says. Gives the
    /// tool, and whether it is new. A run that has begun with the tool as it was fails its calls from now on.
    pub async fn put_shared_tool(
        &self,
        project: ProjectId,
        name: &ToolName,
        definition: Value,
        only: Only,
    ) -> Result<(SharedTool, bool), SharedToolError> {
        let written = definition;
        let mut definition = with_name(&written).into_owned();
        if let Some(members) = definition.as_object_mut() {
            members.entry("name").or_insert_with(|| name.as_str().into());
        }
        let body = Json::from(&definition);
        if body.as_str().len() > SHARED_TOOL_BYTES_MAX {
            let words = format!("the definition has more than {SHARED_TOOL_BYTES_MAX} bytes");
            return Err(SharedToolError::Invalid(vec![Problem::new("", words)]));
        }
        let named = name.clone();
        self.with_defaults(project, move |defaults| {
            read_shared(&named, &written, defaults).map_err(SharedToolError::Invalid)
        })
        .await??;
        let now = self.inner.clock.now();
        let shared = self.inner.tools.shared();
        let before = shared
            .change(&self.inner.tools, project, name, only, Some(&body), now)
            .await?;
        self.inner.agents.forget_project(project);
        let stored = self.shared_tool(project, name).await?;
        let stored = stored.ok_or(SharedToolError::Changed(None))?;
        Ok((stored, before.is_none()))
    }

    /// Removes a shared tool, if it is as `only` says. False when there is none. A run that has begun with the
    /// tool fails its calls from now on, and agents that name it go without it.
    pub async fn remove_shared_tool(
        &self,
        project: ProjectId,
        name: &ToolName,
        only: Only,
    ) -> Result<bool, SharedToolError> {
        let now = self.inner.clock.now();
        let shared = self.inner.tools.shared();
        let before = shared
            .change(&self.inner.tools, project, name, only, None, now)
            .await?;
        self.inner.agents.forget_project(project);
        Ok(before.is_some())
    }

    /// Removes all shared tools of a project in one write, and says how many those were.
    pub async fn clear_shared_tools(&self, project: ProjectId) -> Result<usize, SharedToolError> {
        let now = self.inner.clock.now();
        let removed = self.inner.tools.shared().clear(project, now).await?;
        self.inner.agents.forget_project(project);
        Ok(removed)
    }

    /// The tools that agents of the project get by these names, in the order of the names; those that nobody offers are
    /// missing.
    pub async fn tools_by_name(
        &self,
        project: ProjectId,
        names: Vec<String>,
    ) -> Result<Vec<Arc<Tool>>, AgentError> {
        self.with_defaults(project, move |defaults| {
            toolgate_kernel::agent::tools_by_name(&names, defaults)
        })
        .await
    }
}
