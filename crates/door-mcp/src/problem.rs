//! Refusals in the words of JSON-RPC.

use http::StatusCode;
use rmcp::ErrorData;
use toolgate_engine::store::StoreError;
use toolgate_http::problem::Refusal;

/// The error of a request that was refused. What the caller got wrong, or may not reach, is `-32602`; what may be tried
/// again is `-32603`. `data` is the problem as the REST API tells it.
pub(crate) fn error(refusal: Refusal) -> ErrorData {
    let problem = refusal.into_body();
    let (status, detail) = (problem.status, problem.detail.clone());
    let data = serde_json::to_value(&problem).ok();
    match StatusCode::from_u16(status) {
        Ok(status) if status == StatusCode::TOO_MANY_REQUESTS => ErrorData::internal_error(detail, data),
        Ok(status) if status.is_client_error() => ErrorData::invalid_params(detail, data),
        _ => ErrorData::internal_error(detail, data),
    }
}

/// The same for what fails with an error of the engine or of access.
pub(crate) fn fault(error: impl Into<Refusal>) -> ErrorData {
    self::error(error.into())
}

/// The store failed: the request may be sent again.
pub(crate) fn store(error: StoreError) -> ErrorData {
    fault(error)
}
