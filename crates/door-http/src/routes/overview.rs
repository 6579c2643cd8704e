//! What a project does, in figures: for people who look after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use toolgate_engine::activity::{Activity, Hour};
use toolgate_engine::usage::{Day, Usage};
use toolgate_http::answer::{Answer, ok};
use toolgate_http::caller::Backend;
use toolgate_http::describe::{BackendOnly, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::{Shared, schema};
use toolgate_kernel::event::Status;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

use super::tool_usage::LatencyBody;
use crate::Resources;

/// Hours that are told.
const HOURS: i64 = 24;

/// What a project does.
#[derive(Serialize, ToSchema)]
pub(crate) struct Overview {
    /// Number of runs that have not ended, by status.
    runs: BTreeMap<&'static str, u64>,
    /// Runs that wait for somebody.
    waiting: Waiting,
    /// The last 24 hours, oldest first, the current one last. A run counts in the hour in which it was created.
    hours: Vec<HourBody>,
    /// Calls of tools that ended yesterday or today, in UTC.
    tools: ToolFigures,
    /// How the gateway is.
    health: GatewayHealth,
}

/// Runs that wait for somebody.
#[derive(Serialize, ToSchema)]
pub(crate) struct Waiting {
    /// Those that wait for a client to execute a call.
    calls: u64,
    /// Those that wait for a person to approve a call or to answer a question.
    approvals: u64,
}

/// Runs that were created in one hour.
#[derive(Serialize, ToSchema)]
pub(crate) struct HourBody {
    /// When the hour began.
    #[schema(value_type = schema::Time)]
    start: Time,
    /// Runs that were created.
    started: u64,
    /// Of those, how many have completed.
    completed: u64,
    /// Of those, how many have failed.
    failed: u64,
    /// Of those, how many were cancelled.
    cancelled: u64,
    /// Tokens that those have used so far.
    tokens: u64,
}

/// Calls of all tools together.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolFigures {
    /// The first day that is counted.
    #[schema(value_type = schema::Time)]
    since: Time,
    /// Calls that ended.
    calls: u64,
    /// Of those, how many gave no output.
    failed: u64,
    /// Those by error code.
    failures: BTreeMap<&'static str, u64>,
    /// How long those took that were executed.
    latency_ms: Option<LatencyBody>,
}

/// How the gateway is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GatewayHealth {
    /// `ok`, or `unavailable` when the store cannot be read or written.
    #[schema(value_type = String)]
    store: &'static str,
    /// What carries events between nodes.
    #[schema(value_type = String)]
    bus: &'static str,
    /// Protections of the sandbox that this machine lacks.
    sandbox_missing: Vec<String>,
    /// Version of the gateway.
    #[schema(value_type = String)]
    version: &'static str,
}

/// What models cost.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct Prices {
    /// Currency of the prices, such as `USD`.
    pub currency: String,
    /// By model, as `provider:name` or by name alone.
    pub models: BTreeMap<String, ModelPrice>,
}

/// What a model costs per million tokens.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelPrice {
    /// Tokens read.
    pub input: f64,
    /// Tokens written.
    pub output: f64,
    /// Tokens read from the vendor's cache; as `input` if missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
}

/// What the project does: open runs, the last 24 hours, calls, health. From stored rows, so the same on every node.
#[utoipa::path(
    get, path = "/v1/overview", operation_id = "get_overview", tag = "health",
    responses((status = 200, description = "The figures.", body = Overview), BackendOnly, Refused),
)]
pub(crate) async fn overview(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
) -> Result<Answer<Overview>, Refusal> {
    let now = door.engine.clock().now();
    let first = Hour(Hour::of(now).0 - (HOURS - 1));
    let activity = door.engine.activity(project, first.start()).await?;
    let open = |status: Status| {
        let found = activity.open.iter().find(|(of, _)| *of == status);
        found.map_or(0, |(_, runs)| *runs)
    };
    let store = match door.engine.is_ready().await {
        true => "ok",
        false => "unavailable",
    };
    Ok(ok(Overview {
        runs: Status::OPEN
            .into_iter()
            .map(|status| (status.as_str(), open(status)))
            .collect(),
        waiting: Waiting {
            calls: open(Status::WaitingTool),
            approvals: open(Status::WaitingApproval),
        },
        hours: (0..HOURS)
            .map(|n| HourBody::of(&activity, Hour(first.0 + n)))
            .collect(),
        tools: ToolFigures::of(&activity, Day::of(first.start())),
        health: GatewayHealth {
            store,
            bus: "in-process",
            sandbox_missing: resources.sandbox_lacks.clone(),
            version: env!("CARGO_PKG_VERSION"),
        },
    }))
}

/// What models cost, as the operator has set it. Empty when nothing is set.
#[utoipa::path(
    get, path = "/v1/prices", operation_id = "get_prices", tag = "health",
    responses((status = 200, description = "The prices.", body = Prices), BackendOnly, Refused),
)]
pub(crate) async fn prices(State(resources): State<Arc<Resources>>, _: Backend) -> Answer<Prices> {
    ok(resources.prices.clone())
}

impl HourBody {
    fn of(activity: &Activity, hour: Hour) -> Self {
        let records = activity.hours.iter().filter(|record| record.hour == hour);
        let runs = |status: Option<Status>| {
            let records = records
                .clone()
                .filter(|record| status.is_none_or(|of| record.status == of));
            records.map(|record| record.runs).sum()
        };
        Self {
            start: hour.start(),
            started: runs(None),
            completed: runs(Some(Status::Completed)),
            failed: runs(Some(Status::Failed)),
            cancelled: runs(Some(Status::Cancelled)),
            tokens: records.clone().map(|record| record.tokens).sum(),
        }
    }
}

impl ToolFigures {
    fn of(activity: &Activity, since: Day) -> Self {
        let usage = Usage::sum(&activity.calls);
        Self {
            since: since.start(),
            calls: usage.calls,
            failed: usage.failures.values().sum(),
            failures: usage
                .failures
                .iter()
                .map(|(code, calls)| (code.as_str(), *calls))
                .collect(),
            latency_ms: usage.latency.map(LatencyBody::from),
        }
    }
}
