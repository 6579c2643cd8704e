//! `toolgate tool check`: validates tool definitions in files as the gateway would.

use std::fmt;
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;
use toolgate_egress::Egress;
use toolgate_engine::clock::SystemClock;
use toolgate_engine::outbox::Outbox;
use toolgate_engine::tools::BUILT_IN;
use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
use toolgate_kernel::agent::{Catalog, Defaults, Missing};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::tool::{Checked, ClientToolLimits, Rules, ToolList, check, check_agent};
use toolgate_sandbox::{Sandbox, SandboxOptions};
use toolgate_store::MemoryStore;
use toolgate_tools::Toolkit;
use toolgate_tools::knowledge::Library;
use toolgate_tools::notify::{Channels, Deliveries};
use toolgate_tools::readable::Reader;

use super::offline_source::OfflineSource;
use crate::output;
use crate::serve;
use crate::settings::Settings;

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

#[derive(Debug, Args)]
pub struct Check {
    /// JSON files: a definition, a list of them, `{"tools": […]}` or an agent's configuration; `-` reads
    /// standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Rules to validate by [default: trusted for an agent's configuration, otherwise client]
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Profile>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Settings file, for its limits
    #[arg(long, value_name = "FILE", env = "TOOLGATE_CONFIG")]
    config: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Profile {
    /// Rules for client tools in a request
    Client,
    /// Rules for an agent's tools
    Trusted,
}

impl Check {
    /// Prints the report; the exit code is 0 if everything is valid.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let settings = Settings::of_process(self.config.as_deref())?;
        let limits = settings.client_tools.limits()?;
        let offered = Offered::of(&settings)?;
        let defaults = offered.defaults(&settings);
        let reports: Vec<Report> = self
            .files
            .iter()
            .map(|file| {
                let checked = match read(file) {
                    Ok(written) => self.check(&written, &limits, &defaults),
                    Err(problem) => Checked {
                        errors: vec![problem],
                        ..Checked::default()
                    },
                };
                Report::new(file.display().to_string(), checked)
            })
            .collect();
        let text = match self.json {
            true => format!("{}\n", serde_json::to_string_pretty(&reports)?),
            false => reports.iter().map(Report::to_string).collect(),
        };
        // The exit code is right also if the reader has closed the pipe.
        output::print(&text)?;
        match reports.iter().all(|report| report.valid) {
            true => Ok(ExitCode::SUCCESS),
            false => Ok(ExitCode::FAILURE),
        }
    }

    fn check(&self, written: &Value, limits: &ClientToolLimits, defaults: &Defaults<'_>) -> Checked {
        let form = Form::of(written);
        let profile = self.profile.unwrap_or(match form {
            Form::Agent => Profile::Trusted,
            Form::Tools(..) => Profile::Client,
        });
        match (form, profile) {
            (Form::Agent, Profile::Trusted) => check_agent(written, defaults),
            (Form::Agent, Profile::Client) => check(&written["tools"], "/tools", &Rules::Client(limits)),
            (Form::Tools(tools, pointer), Profile::Client) => check(tools, pointer, &Rules::Client(limits)),
            (Form::Tools(tools, pointer), Profile::Trusted) => {
                check(tools, pointer, &Rules::Trusted(defaults))
            }
        }
    }
}

/// What the tool sources of a gateway with these settings offer. Nothing is kept.
pub(super) struct Offered {
    catalog: Arc<Catalog>,
    pub built_in: Arc<ToolList>,
}

impl Offered {
    pub fn of(settings: &Settings) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        runtime.block_on(Self::list(settings))
    }

    /// The same, for a caller that has a runtime.
    pub async fn list(settings: &Settings) -> anyhow::Result<Self> {
        let store = Arc::new(MemoryStore::new());
        let reader = Arc::new(Reader::here());
        let egress = Egress::new();
        let sandbox = Sandbox::new(std::env::current_exe()?, SandboxOptions::default());
        let tools = Toolkit::standard(toolgate_tools::Parts {
            store: store.clone(),
            records: store.clone(),
            workspace: Workspace::new(store.clone(), WorkspaceLimits::default()),
            knowledge: Arc::new(Library::new(store.clone(), reader.clone())),
            deliveries: Arc::new(Deliveries::new(
                Arc::new(Outbox::new(store, Arc::new(SystemClock))),
                Channels::default(),
                &egress,
            )),
            reader,
            plans: toolgate_tools::PlanLimits::default(),
            egress,
            outbound: Arc::new(settings.outbound_settings()?),
        });
        let sources = serve::sources(tools, sandbox)
            .with(Arc::new(OfflineSource::Plugin))
            .with(Arc::new(OfflineSource::Mcp));
        // Of no project: what only some projects have is not known here.
        let nobody = ProjectId::from_bytes([0; 16]);
        Ok(Self {
            catalog: sources.catalog(nobody).await,
            built_in: sources.list(BUILT_IN, nobody).await,
        })
    }

    pub fn defaults(&self, settings: &Settings) -> Defaults<'_> {
        Defaults {
            model: settings.model.spec(),
            catalog: &self.catalog,
            missing: Missing::Unknown,
        }
    }
}

/// The contents of a file.
enum Form<'v> {
    /// An agent's configuration.
    Agent,
    /// A definition or a list of them, and its JSON pointer.
    Tools(&'v Value, &'static str),
}

impl<'v> Form<'v> {
    fn of(written: &'v Value) -> Self {
        match written.as_object() {
            Some(members) if members.contains_key("tools") && members.len() == 1 => {
                Self::Tools(&written["tools"], "/tools")
            }
            Some(members) if is_agent(|name| members.contains_key(name)) => Self::Agent,
            Some(_) | None => Self::Tools(written, ""),
        }
    }
}

/// Whether an object with these members is an agent rather than a tool.
fn is_agent(has: impl Fn(&str) -> bool) -> bool {
    ["tools", "agent", "instructions", "model", "loop"]
        .into_iter()
        .any(has)
}

/// Reads and parses a file.
fn read(file: &PathBuf) -> Result<Value, Problem> {
    let open = || -> std::io::Result<Box<dyn Read>> {
        if file.as_os_str() != "-" {
            return Ok(Box::new(std::fs::File::open(file)?));
        }
        if std::io::stdin().is_terminal() {
            eprintln!("reading definitions from the terminal, end them with Ctrl-D");
        }
        Ok(Box::new(std::io::stdin()))
    };
    let mut text = String::new();
    open()
        .and_then(|source| source.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(|error| Problem::new("", format!("cannot be read: {error}")))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        let message = format!("has more than {FILE_BYTES_MAX} bytes");
        return Err(Problem::new("", message));
    }
    serde_json::from_str(&text).map_err(|error| Problem::new("", format!("is not JSON: {error}")))
}

/// The report on one file.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    valid: bool,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
    /// The names of the tools, in the order they were written.
    tools: Vec<String>,
}

impl Report {
    fn new(file: String, checked: Checked) -> Self {
        let Checked {
            tools,
            errors,
            warnings,
        } = checked;
        Self {
            file,
            valid: errors.is_empty(),
            errors,
            warnings,
            tools: tools.iter().map(|tool| tool.name.to_string()).collect(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = &self.file;
        for (kind, problems) in [("error", &self.errors), ("warning", &self.warnings)] {
            for Problem { pointer, message } in problems {
                writeln!(out, "{file}#{pointer}: {kind}: {message}")?;
            }
        }
        let count = |many: usize, what: &str| match many {
            1 => format!("1 {what}"),
            _ => format!("{many} {what}s"),
        };
        match self.valid {
            true => writeln!(out, "{file}: {} valid", count(self.tools.len(), "tool")),
            false => writeln!(out, "{file}: {}", count(self.errors.len(), "problem")),
        }
    }
}
