//! The tool sources of the gateway, and what holds for a call whichever source runs it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use toolgate_kernel::agent::{Catalog, NamedTool};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::question::{Answer, problem_of};
use toolgate_kernel::tool::{Definition, Execution, Listed, Placement, SourceTool, ToolList, Toolbox};

use crate::overflow;
use crate::records::Records;
use crate::shared_tools::SharedTools;
use crate::tools::{
    BUILT_IN, CallContext, CallFailure, Called, Delegation, SHARED, SetTool, TASK_BYTES_MAX, ToolSource,
};
use crate::workspace::Workspace;

/// Projects whose catalog is kept in memory.
const CATALOGS_MAX: usize = 1_000;

/// Every tool source there is. A new one is a type that implements [`ToolSource`], and a line that adds it here.
pub struct Sources {
    sources: Vec<Arc<dyn ToolSource>>,
    /// The source of shared tools, which is one of `sources`.
    shared: Arc<SharedTools>,
    /// Holds the receipts of calls that were made before.
    records: Arc<dyn Records>,
    /// Takes outputs that are too large for a conversation.
    workspace: Workspace,
    catalogs: Mutex<HashMap<ProjectId, Kept>>,
}

type Lists = Vec<Result<Arc<ToolList>, CallFailure>>;

/// A catalog, and the lists it was made of.
struct Kept {
    lists: Lists,
    catalog: Arc<Catalog>,
}

impl Sources {
    /// The shared tools of projects, and no other source yet.
    pub fn new(records: Arc<dyn Records>, workspace: Workspace) -> Self {
        let shared = Arc::new(SharedTools::new(records.clone()));
        Self {
            sources: vec![shared.clone()],
            shared,
            records,
            workspace,
            catalogs: Mutex::default(),
        }
    }

    /// Adds a source. Panics when another has its name or one of its execution types.
    pub fn with(mut self, source: Arc<dyn ToolSource>) -> Self {
        let types = source.execution_types();
        for other in &self.sources {
            assert_ne!(other.name(), source.name(), "two sources have one name");
            let shared = other.execution_types().iter().find(|kind| types.contains(kind));
            assert_eq!(shared, None, "{} and {}", other.name(), source.name());
        }
        self.sources.push(source);
        self
    }

    pub(crate) fn shared(&self) -> &SharedTools {
        &self.shared
    }

    pub(crate) fn all(&self) -> &[Arc<dyn ToolSource>] {
        &self.sources
    }

    pub(crate) fn records(&self) -> &Arc<dyn Records> {
        &self.records
    }

    /// What the source of this name lists for a project; nothing when it cannot say.
    pub async fn list(&self, source: &str, project: ProjectId) -> Arc<ToolList> {
        match self.named(source) {
            Some(source) => source.list(project).await.unwrap_or_default(),
            None => Arc::default(),
        }
    }

    /// What is wrong with what sources read of an agent besides tools.
    pub(crate) async fn check_agent(&self, project: ProjectId, config: &Value) -> Vec<Problem> {
        let mut problems = Vec::new();
        for source in &self.sources {
            problems.extend(source.check_agent(project, config).await);
        }
        problems
    }

    /// Lets sources keep what an agent brings.
    pub(crate) async fn adopt_agent(
        &self,
        project: ProjectId,
        agent: &AgentName,
        config: &Value,
    ) -> Result<(), CallFailure> {
        for source in &self.sources {
            source.adopt_agent(project, agent, config).await?;
        }
        Ok(())
    }

    /// Lets sources forget what an agent brought.
    pub(crate) async fn forget_agent(&self, project: ProjectId, agent: &AgentName) {
        for source in &self.sources {
            source.forget_agent(project, agent).await;
        }
    }

    /// What the sources offer a project now. The same `Arc` while that stays the same.
    pub async fn catalog(&self, project: ProjectId) -> Arc<Catalog> {
        let mut lists = Lists::with_capacity(self.sources.len());
        for source in &self.sources {
            lists.push(source.list(project).await);
        }
        let mut catalogs = self.catalogs.lock().expect("no panic holds the catalogs");
        if let Some(kept) = catalogs.get(&project).filter(|kept| kept.lists == lists) {
            return kept.catalog.clone();
        }
        let catalog = Arc::new(catalog_of(&self.sources, &lists));
        if catalogs.len() >= CATALOGS_MAX {
            catalogs.clear();
        }
        let kept = Kept {
            lists,
            catalog: catalog.clone(),
        };
        catalogs.insert(project, kept);
        catalog
    }

    /// Runs a call of a tool that may be a copy of a shared one, unless it was made before.
    pub(crate) async fn run_copy(
        &self,
        definition: &Definition,
        tool: &SourceTool,
        input: &Json,
        context: &CallContext,
    ) -> Result<Called, CallFailure> {
        match self.check_shared(definition, context.project).await {
            Ok(()) => self.run(tool, input, context).await,
            Err(failure) => self.done_before(context, failure).await,
        }
    }

    /// Runs a call of a tool as the run pinned it, unless it was made before.
    pub async fn run(
        &self,
        tool: &SourceTool,
        input: &Json,
        context: &CallContext,
    ) -> Result<Called, CallFailure> {
        if let Some(answer) = self.receipt(context).await? {
            return Ok(answer.into());
        }
        let source = self.offering(tool, context.project).await?;
        let called = source.call(tool, input, context).await;
        self.concluded(&**source, tool, called, context).await
    }

    /// Goes on with a call of a tool that may be a copy of a shared one, which its source delegated to `task`, unless it
    /// was made before.
    pub(crate) async fn resume_copy(
        &self,
        definition: &Definition,
        tool: &SourceTool,
        input: &Json,
        task: &str,
        answers: &[Answer],
        context: &CallContext,
    ) -> Result<Called, CallFailure> {
        match self.receipt(context).await {
            Ok(Some(answer)) => return Ok(answer.into()),
            Ok(None) => {}
            // Nothing is lost: the task is looked at again until the tool's time is up.
            Err(_) if answers.is_empty() => {
                return Ok(Called::Delegated(Delegation::later(task, context.now)));
            }
            Err(failure) => return Err(failure),
        }
        self.check_shared(definition, context.project).await?;
        let source = self.offering(tool, context.project).await?;
        let called = source.resume(tool, input, task, answers, context).await;
        self.concluded(&**source, tool, called, context).await
    }

    /// Tells the source of a tool that nobody wants the result of `task` any more.
    pub(crate) async fn abandon(&self, tool: &SourceTool, task: &str, project: ProjectId) {
        if let Some(source) = self.named(&tool.source) {
            source.abandon(tool, task, project).await;
        }
    }

    /// What came of a call as a run keeps it.
    async fn concluded(
        &self,
        source: &dyn ToolSource,
        tool: &SourceTool,
        called: Result<Called, CallFailure>,
        context: &CallContext,
    ) -> Result<Called, CallFailure> {
        match called {
            Ok(Called::Output(output)) => Ok(self.bounded(output, context).await.into()),
            Ok(Called::Delegated(delegation)) => match check(&delegation) {
                Ok(()) => Ok(Called::Delegated(delegation)),
                Err(failure) => {
                    source.abandon(tool, &delegation.task, context.project).await;
                    Err(failure)
                }
            },
            // It may be done all the same: by whoever made the call before, or by a store that did not say so in time.
            Err(failure) => self.done_before(context, failure).await,
        }
    }

    /// What came of the call when it was made before, or else why it was not made now.
    async fn done_before(&self, context: &CallContext, failure: CallFailure) -> Result<Called, CallFailure> {
        let answer = self.receipt(context).await?.ok_or(failure)?;
        Ok(answer.into())
    }

    /// An output as a model may read it: one that is too large becomes a file, and the model is told where it is.
    pub(crate) async fn bounded(&self, output: Json, context: &CallContext) -> Json {
        overflow::bounded(output, &self.workspace, context).await
    }

    /// Whether one of these tools passes the token of the user on.
    pub(crate) fn pass_user_token(&self, tools: &Toolbox) -> bool {
        tools.values().any(|tool| match &tool.execution {
            Execution::Source(tool) => self
                .named(&tool.source)
                .is_some_and(|source| source.passes_user_token(tool)),
            _ => false,
        })
    }

    fn named(&self, name: &str) -> Option<&Arc<dyn ToolSource>> {
        self.sources.iter().find(|source| source.name() == name)
    }

    /// Refuses a call of a copy of a shared tool, unless the project still has that one as it was.
    pub(crate) async fn check_shared(
        &self,
        tool: &Definition,
        project: ProjectId,
    ) -> Result<(), CallFailure> {
        let Some(pinned) = &tool.shared else {
            return Ok(());
        };
        let original = SourceTool {
            source: SHARED.into(),
            tool: tool.name.to_string(),
            placement: Placement::Server,
            config: None,
            listed: Some(pinned.clone()),
        };
        self.shared.still_offers(&original, project).await
    }

    /// The source of a tool, when it offers the tool as the model was told of it.
    async fn offering(
        &self,
        tool: &SourceTool,
        project: ProjectId,
    ) -> Result<&Arc<dyn ToolSource>, CallFailure> {
        let source = self.named(&tool.source).ok_or_else(CallFailure::removed)?;
        source.still_offers(tool, project).await?;
        Ok(source)
    }

    /// What came of the call when it was made before.
    async fn receipt(&self, context: &CallContext) -> Result<Option<Json>, CallFailure> {
        let key = context.call.to_string();
        Ok(self.records.receipt(context.project, &key).await?)
    }
}

/// Whether a run can keep a delegation.
fn check(delegation: &Delegation) -> Result<(), CallFailure> {
    let bytes = delegation.task.len();
    if bytes > TASK_BYTES_MAX {
        return Err(CallFailure::failed(format!(
            "the tool was given a task whose name has {bytes} bytes, and at most {TASK_BYTES_MAX} are kept"
        )));
    }
    match problem_of(&delegation.questions) {
        Some(words) => Err(CallFailure::failed(words)),
        None => Ok(()),
    }
}

fn catalog_of(sources: &[Arc<dyn ToolSource>], lists: &Lists) -> Catalog {
    let mut catalog = Catalog::default();
    for (source, list) in sources.iter().zip(lists) {
        for kind in source.execution_types() {
            let (reader, list) = (source.clone(), list.clone());
            catalog.add(kind, source.name(), source.placement(), move |tool| match &list {
                Ok(list) => reader.read(tool, list),
                Err(failure) => {
                    let words = format!("the tools of this type are not available: {failure}");
                    tool.wrong("executionType", words);
                    None
                }
            });
        }
    }
    let mut by_trust: Vec<_> = sources.iter().zip(lists).collect();
    // Shared tools are the first source; only the gateway's own tools are trusted more.
    by_trust.sort_by_key(|(source, _)| source.name() != BUILT_IN);
    for (source, list) in by_trust {
        for (name, listed) in list.as_ref().map(|list| list.iter()).into_iter().flatten() {
            if let Some(tool) = named_tool(&**source, name, name, listed) {
                catalog.offer(tool);
            }
        }
    }
    for (source, list) in sources.iter().zip(lists) {
        let Ok(list) = list else { continue };
        for (set, tools) in source.sets(list) {
            for SetTool { name, listed } in tools {
                let tool = list
                    .get(&listed)
                    .and_then(|found| named_tool(&**source, &name, &listed, found));
                if let Some(tool) = tool {
                    catalog.offer_in(&set, tool);
                }
            }
        }
    }
    catalog
}

/// A listed tool that agents can use by its name; none when its name is not one that models accept.
fn named_tool(source: &dyn ToolSource, name: &str, listed_as: &str, listed: &Listed) -> Option<NamedTool> {
    let mut written = source.written_out(listed_as, listed)?;
    written["name"] = name.into();
    Some(NamedTool {
        name: name.parse().ok()?,
        source: source.name(),
        written,
        shared: (source.name() == SHARED).then(|| listed.hash().to_owned()),
    })
}
