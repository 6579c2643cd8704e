//! What the engine counts for the metrics, and the log line of a run that failed. Each figure of a project names the project,
//! so that whoever reads the metrics can be shown their own.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use metrics::{Label, SharedString, counter, histogram};
use toolgate_kernel::agent::ModelName;
use toolgate_kernel::event::{EndReason, Entry, Event, RunFinish, Status, ToolRef};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::run::Run;
use toolgate_kernel::tool::Placement;

use crate::budget::BudgetExceeded;
use crate::consumption::{Consumed, Consumption};

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
    /// Counts what was stored of a run. `vendor_status`: that of the vendor's last answer, if it was a refusal.
    pub fn count(&self, project: ProjectId, run: &Run, entry: &Entry, vendor_status: Option<u16>) {
        for event in &entry.events {
            match event {
                Event::RunStart(_) => {
                    counter!("toolgate_runs_started_total", self.of_agent(project, run)).increment(1);
                }
                Event::RunFinish(finish) => {
                    let mut labels = self.of_agent(project, run);
                    labels.push(Label::new("status", finish.status.as_str()));
                    counter!("toolgate_runs_finished_total", labels).increment(1);
                    log_failure(project, run, finish, vendor_status);
                }
                Event::StepFinish(_) => {
                    let mut labels = self.of_agent(project, run);
                    labels.push(Label::new("vendor", run.agent().model.name.provider.as_str()));
                    counter!("toolgate_steps_total", labels).increment(1);
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

    /// Counts the tokens and the cost that an append has added.
    pub fn count_consumption(&self, run: &Run, added: &Consumption, currency: &str) {
        if added.consumed.requests == 0 {
            return;
        }
        let mut labels = self.of_agent(added.project, run);
        labels.push(Label::new("vendor", run.agent().model.name.provider.as_str()));
        let Consumed {
            input_tokens,
            output_tokens,
            cached_tokens,
            cost_micros,
            unpriced_requests,
            ..
        } = added.consumed;
        let kinds = [
            ("input", input_tokens),
            ("output", output_tokens),
            ("cached", cached_tokens),
        ];
        for (kind, tokens) in kinds {
            let mut labels = labels.clone();
            labels.push(Label::new("kind", kind));
            counter!("toolgate_tokens_total", labels).increment(tokens);
        }
        if unpriced_requests > 0 {
            counter!("toolgate_unpriced_requests_total", labels.clone()).increment(unpriced_requests);
        }
        labels.push(Label::new("currency", currency.to_owned()));
        counter!("toolgate_cost_micros_total", labels).increment(cost_micros);
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

/// Counts a run or a request that a budget has refused.
pub(crate) fn count_refusal(project: ProjectId, exceeded: &BudgetExceeded) {
    let labels = vec![
        Label::new("project", project.to_string()),
        Label::new("budget", exceeded.setting()),
    ];
    counter!("toolgate_budget_refusals_total", labels).increment(1);
}

/// Counts one request to a model: how long it took in all, and until its first piece.
pub(crate) fn count_reply(model: &ModelName, took: Duration, first: Option<Duration>, is_error: bool) {
    let vendor = model.provider.as_str();
    let outcome = if is_error { "error" } else { "reply" };
    histogram!("toolgate_model_seconds", "vendor" => vendor, "outcome" => outcome).record(took);
    if let Some(first) = first {
        histogram!("toolgate_model_first_token_seconds", "vendor" => vendor).record(first);
    }
}

/// A run that fails at night is found by its line: who, where, and what the vendor said.
fn log_failure(project: ProjectId, run: &Run, finish: &RunFinish, vendor_status: Option<u16>) {
    if finish.status == Status::Failed {
        let model = &run.agent().model.name;
        tracing::warn!(
            %project,
            run = %run.id(),
            agent = %run.agent().name,
            vendor = model.provider.as_str(),
            model = model.name,
            reason = finish.reason.as_str(),
            status = vendor_status.filter(|_| finish.reason == EndReason::ModelError),
            error = finish.error.as_deref().unwrap_or_default(),
            "a run failed"
        );
    }
}
