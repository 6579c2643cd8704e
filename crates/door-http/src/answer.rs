//! What a request is answered with when it is done.

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;

use crate::Shared;
use crate::problem::Refusal;
use crate::query::Query;

/// A JSON body.
pub(crate) struct Answer<T>(pub StatusCode, pub T);

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.1).expect("an answer has text keys");
        json(self.0, body)
    }
}

/// JSON that is written already.
pub(crate) fn json(status: StatusCode, body: Vec<u8>) -> Response {
    (
        status,
        [(CONTENT_TYPE, HeaderValue::from_static("application/json"))],
        body,
    )
        .into_response()
}

/// 200 with a JSON body.
pub(crate) fn ok<T>(body: T) -> Answer<T> {
    Answer(StatusCode::OK, body)
}

/// Whether a request is answered with a stream, and when that ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Streams {
    No,
    UntilEnd,
    UntilPause,
}

impl Streams {
    fn of(parts: &Parts, default: Self) -> Result<Self, Refusal> {
        let until = match Query::of(&parts.uri)?.text("until") {
            None => default,
            Some("end") => Self::UntilEnd,
            Some("pause") => Self::UntilPause,
            Some(_) => return Err(Refusal::malformed("query until: must be one of end pause")),
        };
        Ok(if accepts_events(&parts.headers) {
            until
        } else {
            Self::No
        })
    }
}

/// How a request that says something is answered: with what follows, until somebody has to say something again.
pub(crate) struct Saying(pub Streams);

impl FromRequestParts<Shared> for Saying {
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Refusal> {
        Streams::of(parts, Streams::UntilPause).map(Self)
    }
}

/// How a request that reads is answered: with all that follows.
pub(crate) struct Reading(pub Streams);

impl FromRequestParts<Shared> for Reading {
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Refusal> {
        Streams::of(parts, Streams::UntilEnd).map(Self)
    }
}

/// Whether the client asks for a stream of events.
pub(crate) fn accepts_events(headers: &HeaderMap) -> bool {
    let accepts = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    accepts.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let stream = parts
            .next()
            .is_some_and(|media| media.eq_ignore_ascii_case("text/event-stream"));
        stream && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_sent_to_those_who_accept_one() {
        let asks = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            accepts_events(&headers)
        };
        assert!(asks("text/event-stream"));
        assert!(asks("application/json;q=0.5, Text/Event-Stream; q=0.9"));
        assert!(!asks("*/*"));
        assert!(!asks("application/json, text/event-stream;q=0"));
        assert!(!accepts_events(&HeaderMap::new()));
    }
}
