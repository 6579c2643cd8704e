//! Helpers of tools that store records.

use serde::de::DeserializeOwned;
use serde_json::Value;
use toolgate_engine::records::{Owner, Record, RecordSet};
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::call::ErrorCode;

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

/// Relevance relative to the best hit. The absolute score would reveal how rare the words are in the records of other
/// owners.
pub(crate) fn share(score: f64, best: f64) -> f64 {
    if best > 0.0 { score / best } else { 1.0 }
}
