//! What every request passes: its id, its span, its figures, and the rules for calls from other origins.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HeaderName,
    HeaderValue, ORIGIN, VARY,
};
use http::{HeaderMap, Method, StatusCode};
use metrics::SharedString;
use tracing::Instrument;
use uuid::Uuid;

use crate::Shared;

/// Names a request in logs; taken from the client when it brings a sane one.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The run that a stream follows.
pub(crate) const RUN_ID: HeaderName = HeaderName::from_static("toolgate-run-id");
/// The space that a stream follows.
pub(crate) const SPACE_ID: HeaderName = HeaderName::from_static("toolgate-space-id");

const REQUEST_ID_BYTES_MAX: usize = 128;

/// Wraps every route.
pub(crate) async fn pass(State(door): State<Shared>, request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    let origin = allowed_origin(&door.settings.origins, request.headers());
    let preflight = request.method() == Method::OPTIONS
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        && origin.is_some();
    let mut response = match preflight {
        true => StatusCode::NO_CONTENT.into_response(),
        false => observed(&id, request, next).await,
    };
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id);
    if let Some(origin) = origin {
        allow(headers, origin, preflight);
    }
    response
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

fn allow(headers: &mut HeaderMap, origin: HeaderValue, preflight: bool) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("origin"));
    if !preflight {
        let exposed = "x-request-id, toolgate-run-id, toolgate-space-id, retry-after";
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(exposed));
        return;
    }
    let methods = "GET, POST, PUT, DELETE";
    let sendable = "accept, authorization, content-type, idempotency-key, last-event-id, traceparent, \
                    x-public-key, x-request-id";
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(sendable));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
}
