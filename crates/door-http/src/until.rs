//! Whether a request is answered with an event stream, and when that ends.

use axum::extract::FromRequestParts;
use http::request::Parts;
use toolgate_access::Principal;
use toolgate_http::Shared;
use toolgate_http::answer::accepts_events;
use toolgate_http::problem::Refusal;
use toolgate_http::query::Query;
use toolgate_http::stream::OpenStream;
use utoipa::ToSchema;

/// Whether a request is answered with a stream, and when that ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Streams {
    No,
    UntilEnd,
    UntilPause,
}

impl Streams {
    fn of(parts: &Parts, default: Self) -> Result<Self, Refusal> {
        let known = [("end", Self::UntilEnd), ("pause", Self::UntilPause)];
        let until = Query::of(&parts.uri)?.word("until", &known)?.unwrap_or(default);
        Ok(if accepts_events(&parts.headers) {
            until
        } else {
            Self::No
        })
    }

    /// The stream that the request is answered with, if it is.
    pub fn reserve(self, door: &Shared, who: &Principal) -> Result<Option<OpenStream>, Refusal> {
        match self {
            Self::No => Ok(None),
            Self::UntilEnd | Self::UntilPause => OpenStream::reserve(door, who).map(Some),
        }
    }
}

/// How a request that says something is answered: with what follows, until somebody has to say something again.
pub(crate) struct Saying(pub Streams);

impl<S: Sync> FromRequestParts<S> for Saying {
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        Streams::of(parts, Streams::UntilPause).map(Self)
    }
}

/// How a request that reads is answered: with all that follows.
pub(crate) struct Reading(pub Streams);

impl<S: Sync> FromRequestParts<S> for Reading {
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        Streams::of(parts, Streams::UntilEnd).map(Self)
    }
}

/// When a stream ends.
#[derive(ToSchema)]
#[schema(as = Until, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes a word of the query")]
pub(crate) enum UntilWord {
    /// When the run has ended.
    End,
    /// Also when the run waits for a client or a person.
    Pause,
}
