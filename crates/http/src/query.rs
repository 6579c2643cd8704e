//! Parts of the address: ids in the path, settings in the query.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use http::Uri;
use http::request::Parts;
use serde::de::DeserializeOwned;
use toolgate_kernel::event::Seq;

use crate::problem::Refusal;

/// Items of a page when nobody says how many.
pub const PAGE_DEFAULT: usize = 50;
/// Most items of a page.
pub const PAGE_MAX: usize = 500;

/// Largest place in a stream: what a reader that has only doubles reads exactly.
pub const SEQ_MAX: u64 = (1 << 53) - 1;

/// What stands in the path; one that cannot be read names nothing that exists.
pub struct At<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for At<T> {
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(Self(value)),
            Err(PathRejection::FailedToDeserializePathParams(error)) => {
                Err(Refusal::missing(error.into_kind().to_string()))
            }
            Err(_) => Err(Refusal::not_found("thing")),
        }
    }
}

/// The query of an address.
#[derive(Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// The query of `uri`.
    pub fn of(uri: &Uri) -> Result<Self, Refusal> {
        axum::extract::Query::try_from_uri(uri)
            .map(|query| Self(query.0))
            .map_err(|_| Refusal::malformed("the query cannot be read"))
    }
    /// The names of all settings, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
    /// A setting as it stands; the first when it stands twice.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.as_str())
    }
    /// A setting that is read as `T`.
    pub fn read<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Refusal> {
        let parse = |text: &str| {
            text.parse()
                .map_err(|error| Refusal::malformed(format!("query {name}: {error}")))
        };
        self.text(name).map(parse).transpose()
    }
    /// How many items a page may have.
    pub fn limit(&self) -> Result<usize, Refusal> {
        const LIMIT: RangeInclusive<usize> = 1..=PAGE_MAX;
        match self.read("limit")? {
            None => Ok(PAGE_DEFAULT),
            Some(limit) if LIMIT.contains(&limit) => Ok(limit),
            Some(limit) => Err(Refusal::malformed(format!(
                "query limit: {limit} is not from 1 to {PAGE_MAX}"
            ))),
        }
    }
    /// A place in a stream.
    pub fn seq(&self, name: &str) -> Result<Option<Seq>, Refusal> {
        self.text(name).map(|text| seq(text, name)).transpose()
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        Self::of(&parts.uri)
    }
}

/// A cursor that somebody sent back.
pub fn seq(text: &str, from: &str) -> Result<Seq, Refusal> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| digits && *number <= SEQ_MAX);
    number.map(Seq).ok_or_else(|| {
        let seen: String = text.chars().take(32).collect();
        Refusal::malformed(format!(
            "{from}: {seen:?} is not a place in a stream; send the id of the last event"
        ))
    })
}
