//! What every request passes: its address, who asks, its size, its binding.
//!
//! | address | what is there |
//! | --- | --- |
//! | `/.well-known/agent-card.json` | the card of the agent `default` |
//! | `/a2a` | JSON-RPC of the agent `default` |
//! | `/a2a/message/send`, `/a2a/message/stream`, `/a2a/tasks/resume` | the same, for clients that name the method in the path |
//! | `/a2a/{agent}` | JSON-RPC of an agent |
//! | `/a2a/{agent}/.well-known/agent-card.json` | its card |
//! | `/a2a/{agent}/message:send`, `/a2a/{agent}/tasks/…` | REST of an agent, of `default` too |
//!
//! No name of an agent clashes with a method: below an agent called `message` or `tasks` there is neither `stream` nor
//! `resume`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts as _, Request, State};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderValue, Method};
use serde_json::{Value, json};
use toolgate_a2a::Dialect;
use toolgate_a2a::error::{Error, ErrorKind};
use toolgate_a2a::method::Operation;
use toolgate_a2a::rpc;
use toolgate_http::body::{check, collect};
use toolgate_http::caller::Caller;
use toolgate_http::problem::Refusal;
use toolgate_kernel::name::AgentName;

use crate::asking::{Asking, Envelope, JSON, check_content_type, named_extensions, version};
use crate::operations::perform;
use crate::{A2a, card, rest};

/// Bytes of a request beside its content: names, metadata, tags.
const ENVELOPE_BYTES_MAX: usize = 256 * 1024;

/// `/.well-known/agent-card.json`, and where older clients look.
pub(crate) async fn root_card(State(a2a): State<Arc<A2a>>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    card::respond(&a2a, &mut parts, a2a.root_agent()).await
}

/// Everything under `/a2a`.
pub(crate) async fn enter(State(a2a): State<Arc<A2a>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let path = parts
        .uri
        .path()
        .strip_prefix("/a2a")
        .unwrap_or_default()
        .to_owned();
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match segments.as_slice() {
        [] | ["message", "send" | "stream"] | ["tasks", "resume"] => {
            json_rpc(&a2a, parts, body, a2a.root_agent()).await
        }
        [".well-known", "agent-card.json" | "agent.json"] => {
            card::respond(&a2a, &mut parts, a2a.root_agent()).await
        }
        [agent, below @ ..] => {
            let Ok(agent) = agent.parse::<AgentName>() else {
                return Refusal::not_found("agent").into_response();
            };
            match below {
                [] | ["message", "send" | "stream"] | ["tasks", "resume"] => {
                    json_rpc(&a2a, parts, body, agent).await
                }
                [".well-known", "agent-card.json" | "agent.json"] => {
                    card::respond(&a2a, &mut parts, agent).await
                }
                below => rest::enter(&a2a, parts, body, agent, below).await,
            }
        }
    }
}

async fn json_rpc(a2a: &A2a, mut parts: Parts, body: Body, agent: AgentName) -> Response {
    if parts.method != Method::POST {
        return Refusal::new(
            http::StatusCode::METHOD_NOT_ALLOWED,
            "METHOD_NOT_ALLOWED",
            "JSON-RPC is posted to this address; the agent card is at .well-known/agent-card.json below it",
        )
        .into_response();
    }
    let who = match Caller::from_request_parts(&mut parts, &a2a.shared).await {
        Ok(Caller(who)) => who,
        Err(refusal) => return refusal.into_response(),
    };
    let mut asking = Asking {
        a2a,
        who,
        agent,
        dialect: Dialect::V1,
        envelope: Envelope::Rpc(Value::Null),
        parts,
        extensions: Vec::new(),
    };
    let named = named_extensions(&asking.parts.headers);
    asking.use_extensions(named.iter().map(String::as_str));
    let body = match read_body(&asking, body).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let request = match rpc::Request::from_json(body) {
        Ok(request) => request,
        Err(malformed) => {
            asking.envelope = Envelope::Rpc(malformed.id);
            return asking.respond(Err(malformed.error));
        }
    };
    asking.envelope = Envelope::Rpc(request.id);
    let method = match version(&asking.parts) {
        // The name of a method tells the dialect: there are clients of 1.0 that name no version.
        Ok(_) => Operation::of_method(&request.method).ok_or_else(|| unknown(&request.method)),
        Err(error) => Err(error),
    };
    let answered = match method {
        Ok((operation, dialect)) => {
            asking.dialect = dialect;
            perform(&mut asking, operation, request.params).await
        }
        Err(error) => Err(error),
    };
    asking.respond(answered)
}

/// The body as JSON. What it says of its type is looked at before it is read.
pub(crate) async fn read_body(asking: &Asking<'_>, body: Body) -> Result<Value, Response> {
    if let Err(error) = check_content_type(&asking.parts.headers) {
        return Err(asking.respond(Err(error)));
    }
    let door = asking.door();
    // Content is the largest part; twice, because text may be escaped.
    let max = 2 * door.settings.content.message + ENVELOPE_BYTES_MAX;
    let bytes = collect(door, &asking.parts, body, max.min(door.settings.body_bytes_max)).await;
    let bytes = bytes.map_err(IntoResponse::into_response)?;
    let text = std::str::from_utf8(&bytes).map_err(|error| error.to_string());
    let sound = text.and_then(|text| check(text).map(|()| text).map_err(|error| error.to_string()));
    match sound {
        Ok(text) => Ok(serde_json::from_str(text).unwrap_or_default()),
        Err(_) if bytes.is_empty() && matches!(asking.envelope, Envelope::Rest(_)) => Ok(json!({})),
        Err(error) => {
            let words = format!("the body is not sound JSON: {error}");
            Err(asking.respond(Err(Error::new(ErrorKind::Parse, words))))
        }
    }
}

fn unknown(method: &str) -> Error {
    let shown: String = method.chars().take(64).collect();
    let words = format!("there is no method {shown:?}; those of A2A 1.0 are called like SendMessage");
    Error::new(ErrorKind::MethodNotFound, words)
}

/// The media type in which a REST request wants its answer: the one that it has.
pub(crate) fn rest_media_type(parts: &Parts) -> HeaderValue {
    let is_a2a = |name| {
        let value = parts
            .headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok());
        value.is_some_and(|value| value.contains(toolgate_a2a::MEDIA_TYPE))
    };
    match is_a2a(http::header::CONTENT_TYPE) || is_a2a(http::header::ACCEPT) {
        true => HeaderValue::from_static(toolgate_a2a::MEDIA_TYPE),
        false => JSON,
    }
}
