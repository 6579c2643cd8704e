//! What every request passes: its id, its span, its figures, and the rules for calls from other origins.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::Extension;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ALLOW,
    CONTENT_LENGTH, HOST, HeaderName, HeaderValue, ORIGIN, VARY,
};
use http::uri::Authority;
use http::{HeaderMap, Method, StatusCode, Uri};
use metrics::SharedString;
use toolgate_kernel::problem::choice;
use tracing::Instrument;
use uuid::Uuid;

use crate::Shared;
use crate::in_flight::InFlight;
use crate::problem::Refusal;

/// Names a request in logs; taken from the client when it brings a sane one.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The run that a stream follows.
pub(crate) const RUN_ID: HeaderName = HeaderName::from_static("toolgate-run-id");
/// The space that a stream follows.
pub(crate) const SPACE_ID: HeaderName = HeaderName::from_static("toolgate-space-id");

const REQUEST_ID_BYTES_MAX: usize = 128;
/// Most characters of a foreign origin that are shown.
const ORIGIN_CHARS_SHOWN: usize = 128;
/// Most foreign origins that the log names until the next start: anybody can make up more.
const ORIGINS_NAMED_MAX: usize = 64;
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The state of [`pass`].
#[derive(Clone)]
pub(crate) struct Edge {
    door: Shared,
    foreign: Arc<ForeignOrigins>,
}

impl Edge {
    pub(crate) fn new(door: Shared) -> Self {
        let foreign = Arc::default();
        Self { door, foreign }
    }
}

/// Wraps every route.
pub(crate) async fn pass(State(edge): State<Edge>, mut request: Request, next: Next) -> Response {
    let door = &edge.door;
    let in_flight = InFlight::default();
    request.extensions_mut().insert(in_flight.clone());
    let id = request_id(request.headers());
    let origin = allowed_origin(&door.settings.origins, request.headers());
    let asks_first =
        request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let preflight = asks_first && origin.is_some();
    let mut response = match preflight {
        true => StatusCode::NO_CONTENT.into_response(),
        false if asks_first => edge.foreign.refuse(request.headers()).into_response(),
        false if door.access.open().is_some() && is_foreign(origin.is_some(), request.headers()) => {
            let detail =
                "without keys the gateway answers to 127.0.0.1, [::1] and localhost, and to their pages";
            Refusal::forbidden(detail).into_response()
        }
        false => {
            // Without `access-control-allow-origin` the request is executed, and only its answer is kept from the page.
            if origin.is_none() && is_from_another_page(request.headers(), request.uri()) {
                edge.foreign.log(request.headers(), HIDDEN_ANSWER);
            }
            in_flight.count_answer(door, observed(&id, request, next).await)
        }
    };
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id);
    if let Some(origin) = origin {
        allow(headers, origin, preflight);
    }
    response
}

/// Whether a gateway that asks for no key is called by a name, or from a page, that is not this machine's. Any page
/// that somebody reads could speak for them otherwise: its name can be made to lead here, and a form can be posted anywhere.
fn is_foreign(origin_allowed: bool, headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host_is_ours = text(HOST).is_none_or(|host| is_this_machine(host.parse::<Authority>().ok().as_ref()));
    let origin_is_ours = text(ORIGIN)
        .is_none_or(|origin| is_this_machine(origin.parse::<Uri>().ok().as_ref().and_then(Uri::authority)));
    !host_is_ours || !(origin_is_ours || origin_allowed)
}

pub(crate) fn is_this_machine(authority: Option<&Authority>) -> bool {
    authority.is_some_and(|authority| {
        let name = authority.host().trim_start_matches('[').trim_end_matches(']');
        let loopback = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        loopback || name.eq_ignore_ascii_case("localhost")
    })
}

/// Runs the request in its span and counts it. The query is left out: it may hold a token.
async fn observed(id: &HeaderValue, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    let span = tracing::info_span!(
        "request",
        method = word(&method),
        route,
        request_id = id.to_str().unwrap_or_default(),
        status = tracing::field::Empty,
    );
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    span.record("status", status);
    span.in_scope(|| tracing::debug!(elapsed = ?began.elapsed(), "answered"));
    let labels = [
        ("method", SharedString::from(word(&method))),
        ("route", SharedString::from(route.to_owned())),
        ("status", SharedString::from(status.to_string())),
    ];
    metrics::counter!("toolgate_http_requests_total", &labels).increment(1);
    metrics::histogram!("toolgate_http_request_seconds", "route" => route.to_owned()).record(began.elapsed());
    response
}

/// A method's name; a client's own invention is none, so that nobody fills the metrics with names.
fn word(method: &Method) -> &'static str {
    let known = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"];
    known
        .into_iter()
        .find(|known| *known == method.as_str())
        .unwrap_or("other")
}

fn request_id(headers: &HeaderMap) -> HeaderValue {
    let sane = |value: &&HeaderValue| {
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        (1..=REQUEST_ID_BYTES_MAX).contains(&value.len()) && value.as_bytes().iter().all(allowed)
    };
    match headers.get(REQUEST_ID).filter(sane) {
        Some(given) => given.clone(),
        None => HeaderValue::try_from(Uuid::now_v7().to_string()).expect("a UUID is ASCII"),
    }
}

/// What to tell a browser about the request's origin; none when it may not call from there.
fn allowed_origin(origins: &[String], headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    if origins.iter().any(|allowed| allowed == "*") {
        return Some(HeaderValue::from_static("*"));
    }
    origins
        .iter()
        .any(|allowed| allowed.as_bytes() == origin.as_bytes())
        .then(|| origin.clone())
}

/// Whether a browser sends this for a page of another origin than the gateway's own pages. Behind a proxy the browser knows
/// better than `host` does.
fn is_from_another_page(headers: &HeaderMap, uri: &Uri) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return false;
    };
    if let Some(site) = headers.get(SEC_FETCH_SITE) {
        return site != "same-origin" && site != "none";
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| uri.authority().map(Authority::as_str));
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    !origin.is_some_and(|(_, own)| host.is_some_and(|host| host.eq_ignore_ascii_case(own)))
}

/// What the log says of a page that asked before its request.
const REFUSED_PREFLIGHT: &str =
    "the preflight of a page of another origin is refused, allow it in http.origins";
/// What the log says of a page whose request needs no preflight.
const HIDDEN_ANSWER: &str =
    "a page of another origin is answered, but its browser hides the answer, allow it in http.origins";

/// Origins that are not allowed, of pages that called. The browser tells a page nothing of the reason: the words are for whoever
/// looks at the response or at the log.
#[derive(Default)]
struct ForeignOrigins(Mutex<HashSet<String>>);

impl ForeignOrigins {
    fn refuse(&self, headers: &HeaderMap) -> Refusal {
        let origin = self.log(headers, REFUSED_PREFLIGHT);
        Refusal::forbidden(format!(
            "pages of {origin:?} may not call this gateway, add the origin to the setting http.origins (TOOLGATE_HTTP_ORIGINS)"
        ))
    }

    /// Names the origin in the log, once, with what became of its request, and gives it.
    fn log(&self, headers: &HeaderMap, outcome: &str) -> String {
        let origin = headers.get(ORIGIN).map_or(&b""[..], HeaderValue::as_bytes);
        let origin: String = String::from_utf8_lossy(origin)
            .chars()
            .take(ORIGIN_CHARS_SHOWN)
            .collect();
        if self.is_new(&origin) {
            tracing::info!(origin, "{outcome}");
        }
        origin
    }

    fn is_new(&self, origin: &str) -> bool {
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        named.len() < ORIGINS_NAMED_MAX && named.insert(origin.to_owned())
    }
}

fn allow(headers: &mut HeaderMap, origin: HeaderValue, preflight: bool) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("origin"));
    if !preflight {
        let exposed = "x-request-id, location, preference-applied, toolgate-run-id, toolgate-space-id, retry-after, mcp-session-id, \
             www-authenticate";
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(exposed));
        return;
    }
    let methods = "GET, POST, PUT, PATCH, DELETE";
    let sendable = "accept, authorization, content-type, idempotency-key, last-event-id, mcp-method, mcp-name, \
                    mcp-protocol-version, mcp-session-id, prefer, toolgate-space-id, traceparent, x-public-key, \
                    x-request-id";
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(sendable));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
}

pub(crate) async fn no_route(uri: Uri) -> Refusal {
    let path: String = uri.path().chars().take(128).collect();
    Refusal::missing(format!("there is nothing at {path}"))
}

/// The method of a request whose route has no such method.
#[derive(Clone)]
struct Unanswered(Method);

/// What [`name_methods`] makes an answer of: a fallback is not told which methods its route has.
pub(crate) async fn no_method(method: Method) -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, Extension(Unanswered(method))).into_response()
}

/// Says which methods a route has when it was asked for another. They stand in the header `allow` by then.
pub(crate) async fn name_methods(response: Response) -> Response {
    let Some(Unanswered(method)) = response.extensions().get() else {
        return response;
    };
    let allow = response.headers().get(ALLOW);
    let allow = allow.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let there: Vec<&str> = allow.split(',').map(str::trim).collect();
    let method: String = method.as_str().chars().take(32).collect();
    let detail = format!("{method} is not possible here, expected {}", choice(&there));
    let answer = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", detail).into_response();
    let (mut head, body) = answer.into_parts();
    // The request's id, what a browser is told of origins, and `allow`.
    let mut kept = response.headers().clone();
    kept.remove(CONTENT_LENGTH);
    head.headers.extend(kept);
    Response::from_parts(head, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let lines = lines.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        });
        lines.collect()
    }

    #[test]
    fn a_request_of_another_page_is_told_from_one_of_the_gateways_own() {
        let is_another = |lines: &[(&'static str, &str)]| {
            is_from_another_page(&headers(lines), &Uri::from_static("/v1/events"))
        };
        let host = ("host", "gate.example:8787");
        assert!(!is_another(&[host]), "a program");
        assert!(!is_another(&[host, ("origin", "http://Gate.example:8787")]));
        assert!(is_another(&[host, ("origin", "http://gate.example:3000")]));
        assert!(is_another(&[host, ("origin", "null")]));
        // A proxy changed the host.
        let page = ("origin", "https://public.example");
        assert!(!is_another(&[host, page, ("sec-fetch-site", "same-origin")]));
        assert!(is_another(&[host, page, ("sec-fetch-site", "cross-site")]));
    }

    #[test]
    fn a_foreign_origin_is_named_once_and_only_so_many_are() {
        let foreign = ForeignOrigins::default();
        assert!(foreign.is_new("https://evil.example"));
        assert!(!foreign.is_new("https://evil.example"));
        let named = (0..100).filter(|number| foreign.is_new(&format!("https://{number}.example")));
        assert_eq!(named.count(), ORIGINS_NAMED_MAX - 1);
    }
}
