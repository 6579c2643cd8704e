//! Helpers of tools that store records.

use serde::de::DeserializeOwned;
use serde_json::Value;
use toolgate_engine::records::{Owner, Record, RecordSet};
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::id::CallId;

/// The agent's records of this kind.
pub(crate) fn of_agent(context: &CallContext, kind: &'static str) -> RecordSet {
    RecordSet {
        project: context.project,
        owner: Owner::Entity(context.entity),
        kind,
    }
}

/// Parses a record's body.
pub(crate) fn body<T: DeserializeOwned>(record: &Record) -> Result<T, CallFailure> {
    let broken = |error| {
        tracing::error!(record = record.id, %error, "a stored record cannot be read");
        CallFailure::failed("what is stored cannot be read")
    };
    record.body.read().map_err(broken)
}

/// Parses an input that was checked against its schema.
pub(crate) fn input<T: DeserializeOwned>(input: Value) -> Result<T, CallFailure> {
    serde_json::from_value(input).map_err(|error| {
        CallFailure::new(
            ErrorCode::ValidationFailed,
            format!("the input cannot be read: {error}"),
        )
    })
}

/// Whether an id has the form `<prefix><call id>…` that the gateway gives. Models make up ids from the name of a thing;
/// those count as left out.
pub(crate) fn is_minted(id: &str, prefix: &str) -> bool {
    let number = |tail: &str| tail.split('_').take(3).collect::<Vec<_>>().join("_");
    id.strip_prefix(prefix)
        .is_some_and(|tail| number(tail).parse::<CallId>().is_ok())
}

/// Most things that a failure lists.
const NAMED_MAX: usize = 20;
/// Most characters of each.
const NAMED_CHARS_MAX: usize = 80;

/// What there is, for a failure that tells the model what it may choose from.
pub(crate) fn named<'a>(things: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let shorten = |words: &str| words.chars().take(NAMED_CHARS_MAX).collect::<String>();
    let things = things.take(NAMED_MAX);
    let lines = things.map(|(id, words)| format!("{id} ({})", shorten(words)));
    lines.collect::<Vec<_>>().join(", ")
}

/// Relevance relative to the best hit. The absolute score would reveal how rare the words are in the records of other
/// owners.
pub(crate) fn share(score: f64, best: f64) -> f64 {
    if best > 0.0 { score / best } else { 1.0 }
}
