//! The source of plugin tools: lists the tools of the plugins that run, and runs their calls in the sandbox.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolgate_engine::tools::{CallContext, CallFailure, Called, ToolSource};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::members::Members;
use toolgate_kernel::tool::{Binding, Listed, Placement, SourceTool, ToolList};
use toolgate_package::Package;
use toolgate_sandbox::{Job, JobLimits, Sandbox};

use crate::cache::KNOWN_FOR;
use crate::host::CallHost;
use crate::plugins::Plugins;
use crate::trust::{Stopped, Trust};

/// Name of the source, which stands in every definition that a run has pinned.
pub const SOURCE: &str = "plugin";

/// Longest id of a plugin that is looked at.
const PLUGIN_CHARS_MAX: usize = 64;

/// Offers the tools of plugins to agents: `{"executionType": "plugin", "execution": {"tool": name}}`.
pub struct PluginSource {
    plugins: Plugins,
    sandbox: Sandbox,
}

/// Which package a run has pinned for a tool: the tool's configuration in its definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PinnedTool {
    /// Id of the plugin.
    pub plugin: String,
    /// Version of the package.
    pub version: String,
    /// Hash of the package.
    pub package: String,
    /// Id of the record with the storage of that installation: a call sees this storage or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// How far the package was trusted then.
    pub trust: Trust,
}

impl PinnedTool {
    /// What the definition of a tool says of its plugin; none if it is no tool of a plugin.
    pub fn of(tool: &SourceTool) -> Option<Self> {
        let config = tool.config.as_ref().filter(|_| tool.source == SOURCE)?;
        config.read().ok()
    }

    pub(crate) fn to_json(&self) -> Json {
        serde_json::to_value(self).expect("texts are JSON").into()
    }
}

impl PluginSource {
    /// The tools of these plugins, run in this sandbox.
    pub fn new(plugins: Plugins, sandbox: Sandbox) -> Self {
        Self { plugins, sandbox }
    }

    /// Ends when the package may no longer run: at once after a change by this node, within a second after one by another.
    async fn stopped(&self, project: ProjectId, hash: &str) -> Stopped {
        let mut changes = self.plugins.cache().watch();
        loop {
            // A store that cannot be reached now has revoked nothing that this node knows of.
            if let Ok(snapshot) = self.plugins.snapshot(project).await
                && let Err(stopped) = snapshot.read.index.trust(hash, &snapshot.settings)
            {
                return stopped;
            }
            // Either way it looks again.
            let _ = tokio::time::timeout(KNOWN_FOR, changes.changed()).await;
        }
    }

    /// The package that a run has pinned, if it may run.
    async fn package(
        &self,
        tool: &SourceTool,
        project: ProjectId,
    ) -> Result<(PinnedTool, Arc<Package>), CallFailure> {
        let pinned = PinnedTool::of(tool).ok_or_else(CallFailure::removed)?;
        let snapshot = self.plugins.snapshot(project).await?;
        let trust = snapshot.read.index.trust(&pinned.package, &snapshot.settings);
        trust.map_err(|stopped| stopped.not_called())?;
        let package = self.plugins.cache().package(project, &pinned.package).await?;
        Ok((pinned, package.ok_or_else(CallFailure::removed)?))
    }

    async fn job(
        &self,
        code: Arc<str>,
        input: &Json,
        pinned: &PinnedTool,
        context: &CallContext,
    ) -> Result<Job, CallFailure> {
        let settings = self.plugins.settings(context.project).await?;
        let left = context.deadline.0.saturating_sub(context.now.0);
        let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
        Ok(Job {
            share: context.share(),
            owner: owner(context.project, &pinned.package),
            code,
            args: input.clone(),
            limits: JobLimits {
                wall: left.min(settings.limits.call),
                ..JobLimits::default()
            },
        })
    }
}

#[async_trait]
impl ToolSource for PluginSource {
    fn name(&self) -> &'static str {
        SOURCE
    }
    fn placement(&self) -> Placement {
        Placement::Plugin
    }
    fn execution_types(&self) -> &'static [&'static str] {
        &["plugin"]
    }
    fn read(&self, tool: &Members<'_>, list: &ToolList) -> Option<Binding> {
        let binding = Binding::named_with(
            tool,
            "tool",
            &["plugin"],
            list,
            "no installed plugin has a tool named",
        )?;
        let (section, name) = tool.named_with("tool", &["plugin"])?;
        let wanted = section.text("plugin", PLUGIN_CHARS_MAX);
        let pinned = list
            .get(name)
            .and_then(Listed::config)
            .and_then(|config| config.read::<PinnedTool>().ok());
        match (wanted, pinned) {
            (Some(wanted), Some(pinned)) if pinned.plugin != wanted => {
                section.wrong(
                    "plugin",
                    format!("{name:?} is a tool of the plugin {:?}", pinned.plugin),
                );
                None
            }
            _ => Some(binding),
        }
    }
    async fn list(&self, project: ProjectId) -> Result<Arc<ToolList>, CallFailure> {
        Ok(self.plugins.snapshot(project).await?.list.clone())
    }
    /// Also the names of plugins that do not run at the moment.
    async fn names(&self, project: ProjectId) -> Result<Vec<String>, CallFailure> {
        let (index, _) = self.plugins.index(project).await?;
        let current = index.plugins.keys().filter_map(|plugin| index.current(plugin));
        Ok(current.flat_map(|(_, package)| package.tools.clone()).collect())
    }
    /// A run keeps the version that it pinned, unless that was revoked or purged.
    async fn still_offers(&self, tool: &SourceTool, project: ProjectId) -> Result<(), CallFailure> {
        self.package(tool, project).await.map(drop)
    }
    async fn call(
        &self,
        tool: &SourceTool,
        input: &Json,
        context: &CallContext,
    ) -> Result<Called, CallFailure> {
        let (pinned, package) = self.package(tool, context.project).await?;
        let found = package
            .tools()
            .iter()
            .find(|found| found.name.as_str() == tool.tool);
        let code = found.ok_or_else(CallFailure::removed)?.executor_code.clone();
        let job = self.job(code, input, &pinned, context).await?;
        let host = CallHost::new(&self.plugins, &package, &pinned, context).await?;
        tokio::select! {
            biased;
            // Dropping the call kills the worker that runs it.
            stopped = self.stopped(context.project, &pinned.package) => Err(cut_off(&stopped)),
            output = self.sandbox.run(job, Arc::new(host)) => Ok(output?.into()),
        }
    }
}

/// For the model, when a call that was under way is stopped.
fn cut_off(stopped: &Stopped) -> CallFailure {
    let words = format!(
        "{}, and the call was stopped while it ran: what it had done by then is unknown; go on without this tool",
        stopped.words()
    );
    CallFailure::new(ErrorCode::Interrupted, words)
}

/// Whose code a worker runs: it is never used for another owner.
fn owner(project: ProjectId, package: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(project.to_string());
    hash.update(package);
    hash.finalize().into()
}
