//! Parts of the address: ids in the path, settings in the query.

use std::collections::HashSet;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use http::Uri;
use http::request::Parts;
use serde::de::DeserializeOwned;
use toolgate_engine::usage::Day;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{EntityId, RunId, SpaceId};
use toolgate_kernel::name::{AgentName, ToolName};
use toolgate_kernel::problem::{cut, one_of, preview};
use toolgate_kernel::time::Time;

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

/// What a setting of the query may be read as: a type whose parse error says what was seen and what would be right.
pub trait Parameter: FromStr<Err: Display> {}

impl Parameter for AgentName {}
impl Parameter for ToolName {}
impl Parameter for EntityId {}
impl Parameter for RunId {}
impl Parameter for SpaceId {}
impl Parameter for Time {}
impl Parameter for Day {}

/// The query of an address.
#[derive(Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// The query of `uri`. A parameter that is given twice is refused: one of the two would be ignored without a word.
    pub fn of(uri: &Uri) -> Result<Self, Refusal> {
        let read = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri);
        let Ok(axum::extract::Query(pairs)) = read else {
            return Err(Refusal::malformed(
                "the query cannot be read, expected one like ?limit=5&agent=support",
            ));
        };
        let mut seen = HashSet::new();
        match pairs.iter().find(|(name, _)| !seen.insert(name)) {
            None => Ok(Self(pairs)),
            Some((name, _)) => Err(Refusal::malformed(format!(
                "query {}: is given twice, expected once",
                cut(name)
            ))),
        }
    }
    /// The names of all settings, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
    /// A setting as it stands.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.as_str())
    }
    /// A setting that is read as `T`.
    pub fn read<T: Parameter>(&self, name: &str) -> Result<Option<T>, Refusal> {
        let parse = |text: &str| {
            text.parse()
                .map_err(|error| Refusal::malformed(format!("query {name}: {error}")))
        };
        self.text(name).map(parse).transpose()
    }
    /// A setting that is one of these words; gives what stands beside the word.
    pub fn word<T: Copy>(&self, name: &str, known: &[(&str, T)]) -> Result<Option<T>, Refusal> {
        let word = |text| one_word(name, text, known);
        self.text(name).map(word).transpose()
    }
    /// A setting that is some of these words, with commas between them; gives what stands beside each, and nothing when it is left
    /// out.
    pub fn words<T: Copy>(&self, name: &str, known: &[(&str, T)]) -> Result<Vec<T>, Refusal> {
        let Some(text) = self.text(name) else {
            return Ok(Vec::new());
        };
        let words = text.split(',').map(|word| one_word(name, word, known));
        words.collect()
    }
    /// A setting that is `true` or `false`; `false` when it is left out.
    pub fn flag(&self, name: &str) -> Result<bool, Refusal> {
        let flag = self.word(name, &[("true", true), ("false", false)])?;
        Ok(flag.unwrap_or_default())
    }
    /// A setting that is a whole number of this range.
    pub fn whole(&self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Refusal> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.map(Some).ok_or_else(|| {
            let (min, max) = range.into_inner();
            Refusal::malformed(format!(
                "query {name}: must be a whole number from {min} to {max}, got {}",
                preview(text)
            ))
        })
    }
    /// How many items a page may have.
    pub fn limit(&self) -> Result<usize, Refusal> {
        self.limit_of(PAGE_DEFAULT, PAGE_MAX)
    }
    /// The same with other bounds.
    pub fn limit_of(&self, default: usize, max: usize) -> Result<usize, Refusal> {
        let limit = self.whole("limit", 1..=max as u64)?;
        Ok(limit.map_or(default, |limit| limit as usize))
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
fn one_word<T: Copy>(name: &str, text: &str, known: &[(&str, T)]) -> Result<T, Refusal> {
    let found = known.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        Refusal::malformed(format!("query {name}: {}", one_of(text, &words)))
    })
}
