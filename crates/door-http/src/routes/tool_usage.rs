//! How a tool is used.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use serde::Serialize;
use toolgate_engine::usage::{Day, Percentiles, Usage};
use toolgate_http::answer::{Answer, ok};
use toolgate_http::caller::Backend;
use toolgate_http::describe::{BackendOnly, BadQuery, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query};
use toolgate_http::{Shared, schema};
use toolgate_kernel::name::ToolName;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

/// How far back the figures go when nobody says.
const SINCE_DEFAULT: Duration = Duration::from_hours(30 * 24);

/// The figures of a tool.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolUsage)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolUsageBody {
    /// Name of the tool.
    name: String,
    /// From when: days are counted whole, in UTC.
    #[schema(value_type = schema::Time)]
    since: Time,
    /// Calls that ended, with or without an output.
    calls: u64,
    /// Calls that gave no output.
    failed: u64,
    /// Those, by their code.
    failures: BTreeMap<&'static str, u64>,
    /// How long the executed ones took, in milliseconds; nothing when there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ms: Option<LatencyBody>,
}

/// How long calls took at most, in milliseconds: exact up to 16, then rounded up by an eighth or less.
#[derive(Serialize, ToSchema)]
#[schema(as = Latency)]
pub(crate) struct LatencyBody {
    /// Half of them.
    p50: u64,
    /// Nine of ten.
    p90: u64,
    /// Ninety-nine of a hundred.
    p99: u64,
}

impl From<Percentiles> for LatencyBody {
    fn from(percentiles: Percentiles) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            p50: millis(percentiles.p50),
            p90: millis(percentiles.p90),
            p99: millis(percentiles.p99),
        }
    }
}

/// How often a tool was called under this name, how often that failed and why, how long it took. Waiting for a
/// person's approval counts not.
#[utoipa::path(
    get, path = "/v1/tools/{name}/usage", operation_id = "get_tool_usage", tag = "tools",
    params(
        ("name" = String, Path, pattern = "^[A-Za-z_][A-Za-z0-9_-]{0,63}$"),
        ("since" = inline(Option<schema::Time>), Query, description = "From the day of this moment on; thirty days back unless said otherwise."),
    ),
    responses((status = 200, description = "The figures.", body = ToolUsageBody), BadQuery, Missing, BackendOnly, Refused),
)]
pub(crate) async fn usage(
    State(door): State<Shared>,
    Backend(project): Backend,
    At(name): At<ToolName>,
    query: Query,
) -> Result<Answer<ToolUsageBody>, Refusal> {
    let since = query.read("since")?.unwrap_or_else(|| {
        let back = SINCE_DEFAULT.as_millis() as i64;
        Time(door.engine.clock().now().0.saturating_sub(back))
    });
    let Usage {
        calls,
        failures,
        latency,
    } = door.engine.usage(project, name.as_str(), since).await?;
    Ok(ok(ToolUsageBody {
        name: name.to_string(),
        since: Day::of(since).start(),
        calls,
        failed: failures.values().sum(),
        failures: failures
            .into_iter()
            .map(|(code, calls)| (code.as_str(), calls))
            .collect(),
        latency_ms: latency.map(LatencyBody::from),
    }))
}
