//! What the engine counts for the metrics, and the log line of a run that failed. Each figure of a project names the project,
//! so that whoever reads the metrics can be shown their own.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use metrics::{Label, SharedString, counter, histogram};
use toolgate_kernel::agent::{ModelName, Provider};
use toolgate_kernel::event::{Entry, Event, RunFinish, Status, ToolRef};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::run::Run;
use toolgate_kernel::tool::Placement;

/// Names of agents and tools that have figures of their own. Each costs memory here and in every scrape, and projects choose
/// them, so the figures of what comes later are added up.
const NAMES_MAX: usize = 1_000;
/// Stands for the names beyond `NAMES_MAX`.
const OTHER: &str = "(other)";
/// Stands for client tools: their names come with requests.
const CLIENT: &str = "(client)";
/// Stands for names that a model has made up.
const UNKNOWN: &str = "(unknown)";

/// Counts events of runs.
#[derive(Default)]
pub(crate) struct Figures {
    names: Mutex<HashSet<(ProjectId, String)>>,
}

impl Figures {
    /// Counts what was stored of a run.
    pub fn count(&self, project: ProjectId, run: &Run, entry: &Entry) {
        for event in &entry.events {
            match event {
                Event::RunStart(_) => {
                    counter!("toolgate_runs_started_total", self.of_agent(project, run)).increment(1);
                }
                Event::RunFinish(finish) => {
                    let mut labels = self.of_agent(project, run);
                    labels.push(Label::new("status", finish.status.as_str()));
                    counter!("toolgate_runs_finished_total", labels).increment(1);
                    log_failure(project, run, finish);
                }
                Event::StepFinish(finish) => {
                    let mut labels = self.of_agent(project, run);
                    labels.push(Label::new("vendor", vendor(&run.agent().model.name)));
                    counter!("toolgate_steps_total", labels.clone()).increment(1);
                    let (input, output) = (finish.usage.input_tokens, finish.usage.output_tokens);
                    for (kind, tokens) in [("input", input), ("output", output)] {
                        let mut labels = labels.clone();
                        labels.push(Label::new("kind", kind));
                        counter!("toolgate_tokens_total", labels).increment(tokens);
                    }
                }
                Event::ToolOutputAvailable(output) => self.count_call(project, run, &output.tool(), "output"),
                Event::ToolOutputError(error) => {
                    let outcome = error.code.map_or("error", |code| code.as_str());
                    self.count_call(project, run, &error.tool(), outcome);
                }
                Event::ToolOutputDenied(denied) => self.count_call(project, run, &denied.tool(), "denied"),
                _ => {}
            }
        }
    }

    fn count_call(&self, project: ProjectId, run: &Run, tool: &ToolRef, outcome: &'static str) {
        let name = match tool.placement {
            _ if !run.tools().contains_key(&*tool.name) => UNKNOWN.into(),
            Placement::Client => CLIENT.into(),
            Placement::Server | Placement::Plugin | Placement::Mcp => self.name(project, &tool.name),
        };
        let labels = vec![
            Label::new("project", project.to_string()),
            Label::new("tool", name),
            Label::new("outcome", outcome),
        ];
        counter!("toolgate_calls_total", labels).increment(1);
    }

    fn of_agent(&self, project: ProjectId, run: &Run) -> Vec<Label> {
        vec![
            Label::new("project", project.to_string()),
            Label::new("agent", self.name(project, run.agent().name.as_str())),
        ]
    }

    /// The name as a label, as long as there is room for another one.
    fn name(&self, project: ProjectId, name: &str) -> SharedString {
        let mut names = self.names.lock().expect("no panic holds the names");
        let known = (project, name.to_owned());
        if names.contains(&known) {
            return known.1.into();
        }
        if names.len() >= NAMES_MAX {
            return OTHER.into();
        }
        let label = known.1.clone();
        names.insert(known);
        label.into()
    }
}

/// Counts one request to a model: how long it took in all, and until its first piece.
pub(crate) fn count_reply(model: &ModelName, took: Duration, first: Option<Duration>, is_error: bool) {
    let vendor = vendor(model);
    let outcome = if is_error { "error" } else { "reply" };
    histogram!("toolgate_model_seconds", "vendor" => vendor, "outcome" => outcome).record(took);
    if let Some(first) = first {
        histogram!("toolgate_model_first_token_seconds", "vendor" => vendor).record(first);
    }
}

/// A run that fails at night is found by its line: who, where, and what the vendor said.
fn log_failure(project: ProjectId, run: &Run, finish: &RunFinish) {
    if finish.status == Status::Failed {
        let model = &run.agent().model.name;
        tracing::warn!(
            %project,
            run = %run.id(),
            agent = %run.agent().name,
            vendor = vendor(model),
            model = model.name,
            reason = ?finish.reason,
            error = finish.error.as_deref().unwrap_or_default(),
            "a run failed"
        );
    }
}

fn vendor(model: &ModelName) -> &'static str {
    let named = Provider::ALL
        .iter()
        .find(|(_, provider)| *provider == model.provider);
    named.map_or("unknown", |(name, _)| name)
}
