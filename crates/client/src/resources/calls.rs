//! Calls that wait for something outside.

use reqwest::Method;
use serde::Serialize;
use serde_json::json;
use toolgate_kernel::id::CallId;

use super::tools::Receipt;
use crate::client::Client;
use crate::error::Error;
use crate::http::Patience;

/// Ends waits; for backends only.
#[derive(Debug, Clone, Copy)]
pub struct Calls<'a> {
    pub(crate) client: &'a Client,
}

impl Calls<'_> {
    /// Ends the wait of a `waiting` call: its tool gives `{"signal": value}`. The same again gets the same receipt;
    /// another value, or one that comes too late, is refused.
    pub async fn signal(&self, call: CallId, value: impl Serialize) -> Result<Receipt, Error> {
        let path = format!("v1/calls/{call}/signal");
        let http = self.client.http();
        http.send(Method::POST, &path, &json!({ "value": value }), Patience::Brief)
            .await
    }
}
