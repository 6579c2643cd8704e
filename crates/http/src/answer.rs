//! Answers in JSON, and whether a client asks for a stream instead.

use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;

/// A JSON body.
pub struct Answer<T>(pub StatusCode, pub T);

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.1).expect("an answer has text keys");
        json(self.0, body)
    }
}

/// JSON that is written already.
pub fn json(status: StatusCode, body: Vec<u8>) -> Response {
    (
        status,
        [(CONTENT_TYPE, HeaderValue::from_static("application/json"))],
        body,
    )
        .into_response()
}

/// 200 with a JSON body.
pub fn ok<T>(body: T) -> Answer<T> {
    Answer(StatusCode::OK, body)
}

/// Whether the client asks for a stream of events.
pub fn accepts_events(headers: &HeaderMap) -> bool {
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
