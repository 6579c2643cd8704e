//! What every request to `/mcp` passes behind the gate: its size, its session, its agent.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::request::Parts;
use http::{HeaderName, Method};
use http_body_util::{BodyExt as _, Full};
use serde::Deserialize;
use toolgate_access::Principal;
use toolgate_http::body::collect;
use toolgate_http::problem::Refusal;
use toolgate_http::query::Query;
use toolgate_http::stream::OpenStream;
use toolgate_kernel::id::SpaceId;
use toolgate_kernel::name::AgentName;

use crate::listing::{Offer, offer, own_agent};
use crate::sessions::{SESSION_ID, Transport};
use crate::visitor::{Abilities, Visitor};
use crate::{Mcp, late, listened_tasks};

/// Where the door is.
pub(crate) const PATH: &str = "/mcp";
/// Names the space of a call, for clients that send no `_meta` of their own; `?space=` does the same.
const SPACE_ID: HeaderName = HeaderName::from_static("toolgate-space-id");
/// Bytes of a message beside its arguments: names, metadata, a request state.
const ENVELOPE_BYTES_MAX: usize = 64 * 1024;

/// What the routes share.
pub(crate) struct Door {
    pub mcp: Arc<Mcp>,
    pub transport: Arc<Transport>,
}

/// `/mcp`: the tools of the project's `default` agent.
pub(crate) async fn default_agent(State(door): State<Arc<Door>>, request: Request) -> Response {
    door.enter(toolgate_engine::default_agent(), request).await
}

/// `/mcp/agents/{agent}`: the tools of another agent.
pub(crate) async fn named_agent(
    State(door): State<Arc<Door>>,
    Path(agent): Path<String>,
    request: Request,
) -> Response {
    match agent.parse::<AgentName>() {
        Ok(agent) => door.enter(agent, request).await,
        Err(_) => Refusal::not_found("agent").into_response(),
    }
}

/// What is read of a message before it is passed on.
#[derive(Deserialize, Default)]
struct Peek {
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<PeekParams>,
}

#[derive(Deserialize, Default)]
struct PeekParams {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    notifications: Option<PeekFilter>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct PeekFilter {
    #[serde(default)]
    task_ids: Vec<String>,
}

impl Door {
    async fn enter(&self, agent: AgentName, request: Request) -> Response {
        let (mut parts, body) = request.into_parts();
        let gate = &self.mcp.gate;
        let answered = match gate.caller(&mut parts).await {
            Ok(who) => self.pass(who, agent, &mut parts, body).await,
            Err(refusal) => Err(refusal),
        };
        gate.finish(&parts, answered)
    }

    async fn pass(
        &self,
        who: Principal,
        agent: AgentName,
        parts: &mut Parts,
        body: Body,
    ) -> Result<Response, Refusal> {
        let door = &self.mcp.shared;
        let bytes = match parts.method {
            Method::POST => {
                // Arguments are the largest part; twice, because text may be escaped. Parsed where others wait.
                let max = 2 * door.settings.content.message + ENVELOPE_BYTES_MAX;
                collect(door, parts, body, max.min(door.settings.body_bytes_max)).await?
            }
            _ => Bytes::new(),
        };
        // What cannot be read is told by the transport, in the words of JSON-RPC.
        let peek: Peek = serde_json::from_slice(&bytes).unwrap_or_default();
        let begins = peek.method.as_deref() == Some("initialize");
        match parts.headers.get(SESSION_ID) {
            Some(id) => self.transport.admit(&who, id.to_str().unwrap_or_default())?,
            None if begins => self.transport.make_room(&who).await,
            None => {}
        }
        let params = peek.params.unwrap_or_default();
        let changes = match peek.method.as_deref() {
            Some("subscriptions/listen") => Some(self.mcp.lists.follow(door, who.project).await?),
            _ => None,
        };
        let visitor = Visitor {
            space: named_space(parts)?,
            tasks: listened_tasks::accepted(door, &who, &params.notifications.unwrap_or_default().task_ids)
                .await,
            changes,
            who,
            agent,
        };
        self.check_agent(&visitor).await?;
        let called = match (peek.method.as_deref(), params.name) {
            (Some("tools/call"), Some(name)) => {
                let found = offer(door, &visitor, &name).await?;
                found.map(|found: Offer| found.listed(&name, Abilities::MODERN))
            }
            _ => None,
        };
        let (who, tasks) = (visitor.who.clone(), visitor.tasks.clone());
        parts.extensions.insert(visitor);
        let request = http::Request::from_parts(parts.clone(), Full::new(bytes));
        let answer = self.transport.clone().answer(who.clone(), called, request);
        if parts.method == Method::POST {
            let response = late::respond(answer, door.settings.heartbeat).await;
            return Ok(listened_tasks::acknowledge(response, tasks));
        }
        let open = match parts.method {
            Method::GET => Some(OpenStream::reserve(door, &who)?),
            _ => None,
        };
        let response = answer.await;
        let Some(open) = open.filter(|_| response.status().is_success()) else {
            return Ok(response.map(Body::new));
        };
        // The stream of a session belongs to no space, so nothing else ends it with its reader's access.
        let shared = door.clone();
        let ended = async move {
            let _open = open;
            shared.access.until_ended(&who, shared.settings.heartbeat).await;
        };
        Ok(response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(ended)))))
    }

    /// An agent that the address names must be there for the caller; without one there are still other tools.
    async fn check_agent(&self, visitor: &Visitor) -> Result<(), Refusal> {
        if visitor.agent == toolgate_engine::default_agent() {
            return Ok(());
        }
        let found = own_agent(&self.mcp.shared, visitor).await?;
        found.map(|_| ()).ok_or_else(|| Refusal::not_found("agent"))
    }
}

/// The space that a header or the address names.
fn named_space(parts: &Parts) -> Result<Option<SpaceId>, Refusal> {
    let header = parts
        .headers
        .get(SPACE_ID)
        .map(|value| value.to_str().unwrap_or_default());
    match header {
        None => Query::of(&parts.uri)?.read("space"),
        Some(text) => text
            .parse()
            .map(Some)
            .map_err(|error| Refusal::malformed(format!("header {SPACE_ID}: {error}"))),
    }
}
