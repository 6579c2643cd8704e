//! `/mcp/servers/{name}`: who may come in, and which era a request belongs to.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRef, Path, Request, State};
use axum::http::header::ORIGIN;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use toolgate_access::Principal;
use toolgate_http::Shared;
use toolgate_http::body::{check, collect};
use toolgate_http::caller::Caller;
use toolgate_http::problem::Refusal;
use toolgate_mcp::link::message::{BadMessage, Message, Outcome};

use super::era::{self, INVALID_REQUEST, META, PARSE_ERROR, VERSION_KEY};
use super::owner::Owner;
use super::reply::refuse_with;
use super::upstream::Upstream;
use super::{Through, headers, legacy, modern};

#[derive(Clone)]
struct Door {
    shared: Shared,
    through: Through,
}

impl FromRef<Door> for Shared {
    fn from_ref(door: &Door) -> Self {
        door.shared.clone()
    }
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

pub(super) fn router(shared: Shared, through: Through) -> Router {
    let handlers = post(accept).get(listen).delete(leave);
    Router::new()
        .route("/mcp/servers/{name}", handlers)
        .with_state(Door { shared, through })
}

async fn accept(
    State(door): State<Door>,
    Caller(who): Caller,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let visit = door.visit(who, &name, &parts.headers).await?;
    let bytes = collect(&door.shared, &parts, body, door.shared.settings.body_bytes_max).await?;
    let message = match read(&bytes) {
        Ok(message) => message,
        Err(outcome) => return Ok(refuse_with(StatusCode::BAD_REQUEST, None, outcome)),
    };
    let headers = parts.headers;
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

async fn listen(
    State(door): State<Door>,
    Caller(who): Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let visit = door.visit(who, &name, &headers).await?;
    match headers::text(&headers, &headers::SESSION) {
        Some(session) => legacy::listen(visit, session),
        None => Ok(StatusCode::METHOD_NOT_ALLOWED.into_response()),
    }
}

async fn leave(
    State(door): State<Door>,
    Caller(who): Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let visit = door.visit(who, &name, &headers).await?;
    match headers::text(&headers, &headers::SESSION) {
        Some(session) => legacy::leave(visit, session).await,
        None => Ok(StatusCode::METHOD_NOT_ALLOWED.into_response()),
    }
}

impl Door {
    async fn visit(&self, who: Principal, name: &str, headers: &HeaderMap) -> Result<Visit, Refusal> {
        check_origin(&self.shared.settings.origins, headers)?;
        let found = self.through.0.upstreams.find(&who, name).await;
        let found = found.map_err(|error| Refusal::unavailable(error.0))?;
        // One that is not for the caller is as good as none.
        let exposed = found.filter(|exposed| exposed.access.admits(&who.starter(), false));
        let exposed =
            exposed.ok_or_else(|| Refusal::missing(format!("there is no exposed MCP server {name:?}")))?;
        Ok(Visit {
            shared: self.shared.clone(),
            through: self.through.clone(),
            owner: Owner::of(&who),
            upstream: self.through.0.known.get(who.project, name, exposed),
            who,
        })
    }
}

/// Pages of this machine and of the origins in the settings may call; what is no page says no origin.
fn check_origin(allowed: &[String], headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(origin) = headers.get(ORIGIN) else {
        return Ok(());
    };
    let shown = origin.to_str().unwrap_or_default();
    let host = shown
        .parse::<Uri>()
        .ok()
        .and_then(|uri| uri.host().map(str::to_owned))
        .unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_here =
        host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match is_here || allowed.iter().any(|known| known == "*" || known == shown) {
        true => Ok(()),
        false => Err(Refusal::forbidden(
            "pages of this origin may not call MCP servers, see http.origins",
        )),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_others_may_not_call() {
        let may = |origin: &str, allowed: &[&str]| {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, origin.parse().unwrap());
            let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            check_origin(&allowed, &headers).is_ok()
        };
        assert!(may("http://localhost:3000", &[]));
        assert!(may("http://[::1]:3000", &[]));
        assert!(!may("http://evil.example.com", &[]));
        assert!(!may("http://localhost.example.com", &[]));
        assert!(!may("null", &[]));
        assert!(may("https://app.example.com", &["https://app.example.com"]));
        assert!(check_origin(&[], &HeaderMap::new()).is_ok());
    }
}
