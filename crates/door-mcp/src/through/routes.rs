//! `/mcp/servers/{name}`: who may reach which server, and which era a request belongs to.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use toolgate_access::Principal;
use toolgate_http::Shared;
use toolgate_http::body::{check, collect};
use toolgate_http::problem::Refusal;
use toolgate_mcp::link::message::{BadMessage, Message, Outcome};

use super::era::{self, INVALID_REQUEST, META, PARSE_ERROR, VERSION_KEY};
use super::owner::Owner;
use super::reply::refuse_with;
use super::upstream::Upstream;
use super::upstreams::{Exposed, UpstreamsError};
use super::{Through, headers, legacy, modern};
use crate::gate::Gate;

#[derive(Clone)]
struct Door {
    gate: Gate,
    through: Through,
}

/// A request to a server that its sender may reach.
#[derive(Clone)]
pub(super) struct Visit {
    pub(super) shared: Shared,
    pub(super) through: Through,
    pub(super) who: Principal,
    pub(super) owner: Owner,
    pub(super) upstream: Arc<Upstream>,
}

pub(super) fn router(gate: Gate, through: Through) -> Router {
    Router::new()
        .route("/mcp/servers/{name}", post(enter).get(enter).delete(enter))
        .with_state(Door { gate, through })
}

async fn enter(State(door): State<Door>, Path(name): Path<String>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let answered = match door.gate.caller(&mut parts).await {
        Ok(who) => door.pass(who, &name, &parts, body).await,
        Err(refusal) => Err(refusal),
    };
    door.gate.finish(&parts, answered)
}

impl Door {
    async fn pass(&self, who: Principal, name: &str, parts: &Parts, body: Body) -> Result<Response, Refusal> {
        let visit = self.visit(who, name).await?;
        let session = headers::text(&parts.headers, &headers::SESSION);
        match (&parts.method, session) {
            (&Method::POST, _) => accept(visit, parts, body).await,
            (&Method::GET, Some(session)) => legacy::listen(visit, session),
            (&Method::DELETE, Some(session)) => legacy::leave(visit, session).await,
            _ => Ok(StatusCode::METHOD_NOT_ALLOWED.into_response()),
        }
    }

    async fn visit(&self, who: Principal, name: &str) -> Result<Visit, Refusal> {
        let found = self.through.for_caller(&who, name).await;
        let exposed = found.map_err(|error| Refusal::unavailable(error.0))?;
        let exposed =
            exposed.ok_or_else(|| Refusal::missing(format!("there is no exposed MCP server {name:?}")))?;
        Ok(Visit {
            shared: self.gate.shared.clone(),
            through: self.through.clone(),
            owner: Owner::of(&who),
            upstream: self.through.0.known.get(who.project, name, exposed),
            who,
        })
    }
}

impl Through {
    /// The server of this name. One that is not for the caller is as good as none.
    async fn for_caller(&self, who: &Principal, name: &str) -> Result<Option<Exposed>, UpstreamsError> {
        let found = self.0.upstreams.find(who, name).await?;
        Ok(found.filter(|exposed| exposed.access.admits(&who.starter(), false)))
    }
}

impl Visit {
    /// Waits until its sender may not go on: access has ended, or the server is not exposed to it as it was. Looked at every
    /// `heartbeat`.
    pub(super) async fn until_ended(&self) {
        let (door, who) = (&self.shared, &self.who);
        let beat = door.settings.heartbeat;
        let is_withdrawn = async {
            loop {
                tokio::time::sleep(beat).await;
                match self.through.for_caller(who, &self.upstream.name).await {
                    Ok(Some(exposed)) if exposed.revision == self.upstream.revision => {}
                    Ok(_) => return,
                    // What cannot be found out now is no reason to end what was let in.
                    Err(_) => {}
                }
            }
        };
        tokio::select! {
            () = door.access.until_ended(who, beat) => {}
            () = is_withdrawn => {}
        }
    }
}

async fn accept(visit: Visit, parts: &Parts, body: Body) -> Result<Response, Refusal> {
    let bytes = collect(&visit.shared, parts, body, visit.shared.settings.body_bytes_max).await?;
    let message = match read(&bytes) {
        Ok(message) => message,
        Err(outcome) => return Ok(refuse_with(StatusCode::BAD_REQUEST, None, outcome)),
    };
    let headers = parts.headers.clone();
    if let Some(session) = headers::text(&headers, &headers::SESSION) {
        return legacy::post(visit, session, message).await;
    }
    let version = headers::text(&headers, &headers::VERSION);
    let is_modern = version.is_some_and(era::is_modern) || speaks_modern(&message);
    match (is_modern, message) {
        (true, message) => modern::post(visit, headers, message).await,
        (false, Message::Request(request)) if request.method == "initialize" => {
            legacy::open(visit, request).await
        }
        (false, message) => Ok(refuse_with(StatusCode::BAD_REQUEST, id(&message), no_session())),
    }
}

fn read(bytes: &[u8]) -> Result<Message, Outcome> {
    let text = std::str::from_utf8(bytes).map_err(|error| Outcome::error(PARSE_ERROR, error.to_string()))?;
    check(text)
        .map_err(|error| Outcome::error(PARSE_ERROR, format!("the body is not sound JSON: {error}")))?;
    Message::read(bytes).map_err(|error| {
        let code = match &error {
            BadMessage::Json(_) => PARSE_ERROR,
            BadMessage::Form(_) => INVALID_REQUEST,
        };
        Outcome::error(code, error.to_string())
    })
}

fn speaks_modern(message: &Message) -> bool {
    let params = match message {
        Message::Request(request) => &request.params,
        Message::Notification(notice) => &notice.params,
        Message::Response(_) => return false,
    };
    let meta = params.as_ref().and_then(|params| params.object(META));
    meta.is_some_and(|meta| meta.get(VERSION_KEY).is_some())
}

fn id(message: &Message) -> Option<toolgate_mcp::link::message::Id> {
    match message {
        Message::Request(request) => Some(request.id.clone()),
        Message::Notification(_) | Message::Response(_) => None,
    }
}

fn no_session() -> Outcome {
    let words = "expected initialize, a header Mcp-Session-Id, or a request of 2026-07-28 with its _meta";
    Outcome::error(INVALID_REQUEST, words)
}

/// Status of a session that is not there: its client has to shake hands again.
pub(super) fn gone(message: Option<&Message>) -> Response {
    let outcome = Outcome::error(INVALID_REQUEST, "there is no such session; send initialize");
    refuse_with(StatusCode::NOT_FOUND, message.and_then(id), outcome)
}
