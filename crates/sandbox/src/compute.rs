//! `compute`: a tool whose author wrote a JavaScript function body. It runs in the sandbox, without permissions.

use async_trait::async_trait;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::time::Duration;

use toolgate_engine::call_log::CallLog;
use toolgate_engine::tools::{CallContext, CallFailure, Called, ToolSource};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::members::Members;
use toolgate_kernel::tool::{Binding, SourceTool, ToolList};

use crate::host::{FetchRequest, FetchResponse, Host, LogLevel, NoHost, StorageOp, one_line};
use crate::job::{Job, JobLimits};
use crate::sandbox::Sandbox;
use crate::syntax::SyntaxChecker;

/// Longest code of a tool in an agent's configuration.
const CODE_CHARS_MAX: usize = 64 << 10;
/// The engine stops a call at its own deadline; this one is for calls without a sensible one.
const WALL_MAX: Duration = Duration::from_secs(60);

/// The source of `compute` tools. None is listed: each is defined by its configuration.
pub struct Compute {
    sandbox: Sandbox,
    syntax: SyntaxChecker,
}

impl Compute {
    /// Runs code in this sandbox, and has it checked where it is configured.
    pub fn new(sandbox: Sandbox) -> Self {
        Self {
            syntax: sandbox.syntax_checker(),
            sandbox,
        }
    }
}

#[async_trait]
impl ToolSource for Compute {
    fn name(&self) -> &'static str {
        "compute"
    }
    fn execution_types(&self) -> &'static [&'static str] {
        &["compute"]
    }
    fn read(&self, tool: &Members<'_>, _: &ToolList) -> Option<Binding> {
        if tool.get("execution").is_none() {
            tool.lacks("expected \"execution\": {\"code\": a JavaScript function body with `args`}");
        }
        let execution = tool.section("execution", &["code"])?;
        if execution.get("code").is_none() {
            execution.lacks("expected \"code\", a JavaScript function body with `args`");
        }
        let code = execution.text("code", CODE_CHARS_MAX)?;
        if let Some(words) = self.syntax.problem(code) {
            execution.wrong_if_new("code", format!("the code is not JavaScript: {words}"));
        }
        let config = tool.get("execution")?.into();
        Some(Binding::configured("compute", config, json!({ "retry": "safe" })))
    }
    async fn call(
        &self,
        tool: &SourceTool,
        input: &Json,
        context: &CallContext,
    ) -> Result<Called, CallFailure> {
        let code = code(tool).ok_or_else(|| {
            CallFailure::unavailable(
                "the configuration of this tool cannot be read any more; go on without it",
            )
        })?;
        let left = context.deadline.since(context.now).min(WALL_MAX);
        let job = Job {
            share: context.share(),
            owner: owner(context.project, &code),
            code,
            args: input.clone(),
            limits: JobLimits {
                wall: left,
                ..JobLimits::default()
            },
        };
        let host = Arc::new(LogOnly(context.log.clone()));
        Ok(self.sandbox.run(job, host).await?.into())
    }
}

/// Gives the code no permissions, and keeps what it writes to `console` with the call.
struct LogOnly(CallLog);

#[async_trait]
impl Host for LogOnly {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, String> {
        NoHost.fetch(request).await
    }
    async fn storage(&self, operation: StorageOp) -> Result<Option<Json>, String> {
        NoHost.storage(operation).await
    }
    fn log(&self, level: LogLevel, text: &str) {
        self.0.write(level.name(), &one_line(text));
    }
}

fn code(tool: &SourceTool) -> Option<Arc<str>> {
    let config = tool.config.as_ref()?.to_value();
    Some(config.get("code")?.as_str()?.into())
}

/// Each code of each project has processes of its own.
fn owner(project: ProjectId, code: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"compute");
    hash.update(project.to_bytes());
    hash.update(code);
    hash.finalize().into()
}
