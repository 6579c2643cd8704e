//! Is it there, is it ready, what does it do.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, HeaderValue};
use serde::Serialize;
use toolgate_http::Shared;
use toolgate_http::answer::{Answer, json, ok};
use toolgate_http::caller::FigureReader;
use toolgate_http::describe::{BackendOnly, Busy, Refused};
use toolgate_http::problem::Refusal;
use toolgate_kernel::id::ProjectId;
use utoipa::ToSchema;

use crate::Resources;

/// It is there.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    #[schema(value_type = String)]
    status: &'static str,
}

/// It takes work.
#[derive(Serialize, ToSchema)]
pub(crate) struct Ready {
    /// Always `ok`.
    #[schema(value_type = String)]
    status: &'static str,
    /// What an operator may want to know of it.
    details: ReadyDetails,
}

/// What an operator may want to know.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReadyDetails {
    /// How well notices travel between nodes: `direct` for a single node, `joined`, `doubtful` while another node is silent,
    /// `away` while the bus cannot be reached. Requests are served all the same, from the store.
    #[schema(value_type = String)]
    bus: &'static str,
    /// The sandbox that runs code of others.
    sandbox: SandboxDetails,
}

/// How the sandbox is protected.
#[derive(Serialize, ToSchema)]
pub(crate) struct SandboxDetails {
    /// Protections that this machine lacks, of `seccomp`, `landlock`, `no-new-privileges`, `descriptors`; `worker` when no
    /// process can be started. The log says why.
    missing: Vec<String>,
}

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "get_openapi", tag = "health", security(()),
    responses((status = 200, description = "OpenAPI 3.1.", body = Object)),
)]
pub(crate) async fn openapi(State(resources): State<Arc<Resources>>) -> Response {
    json(http::StatusCode::OK, resources.openapi.as_bytes().to_vec())
}

/// Whether the process lives.
#[utoipa::path(
    get, path = "/healthz", operation_id = "get_health", tag = "health", security(()),
    responses((status = 200, description = "It does.", body = Health)),
)]
pub(crate) async fn healthz() -> Answer<Health> {
    ok(Health { status: "ok" })
}

/// Whether requests should be sent here: the store can be read and written, and the gateway is not going down. The
/// store is asked at most once a second.
#[utoipa::path(
    get, path = "/readyz", operation_id = "get_ready", tag = "health", security(()),
    responses((status = 200, description = "They should.", body = Ready), Busy),
)]
pub(crate) async fn readyz(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
) -> Result<Answer<Ready>, Refusal> {
    if door.settings.leaving.is_cancelled() || door.settings.stop.is_cancelled() {
        return Err(Refusal::unavailable("the gateway is going down"));
    }
    if !door.engine.is_ready().await {
        return Err(Refusal::unavailable(
            "the store cannot be read or written, see the log",
        ));
    }
    let missing = resources.sandbox_lacks.clone();
    let details = ReadyDetails {
        bus: door.engine.bus_health().as_str(),
        sandbox: SandboxDetails { missing },
    };
    Ok(ok(Ready {
        status: "ok",
        details,
    }))
}

/// Figures in Prometheus' text format.
///
/// A project's key gets the figures of the gateway and of its own project, the operator's key those of all projects.
#[utoipa::path(
    get, path = "/metrics", operation_id = "get_metrics", tag = "health",
    responses((status = 200, description = "The figures.", body = String, content_type = "text/plain"), BackendOnly, Refused),
)]
pub(crate) async fn metrics(State(resources): State<Arc<Resources>>, reader: FigureReader) -> Response {
    let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    let figures = (resources.metrics)();
    let figures = match reader {
        FigureReader::Operator => figures,
        FigureReader::Project(project) => of_project(&figures, project),
    };
    ([(CONTENT_TYPE, text)], figures).into_response()
}

/// The lines without those that name another project. A value cannot look like a label: its quotes are escaped.
fn of_project(figures: &str, project: ProjectId) -> String {
    const LABEL: &str = "project=\"";
    let own = format!("{LABEL}{project}\"");
    let lines = figures.split_inclusive('\n');
    lines
        .filter(|line| !line.contains(LABEL) || line.contains(&own))
        .collect()
}
