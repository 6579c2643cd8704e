//! Calls that wait for a signal.

use hyper::Method;
use serde::Serialize;
use serde_json::json;
use toolgate_protocol::id::CallId;

use super::tools::Receipt;
use crate::client::Client;
use crate::error::Error;
use crate::http::RetryPolicy;

/// Signals waiting calls; needs a secret key.
#[derive(Debug, Clone, Copy)]
pub struct Calls<'a> {
    pub(crate) client: &'a Client,
}

impl Calls<'_> {
    /// Ends the wait of a `waiting` call: its output is `{"signal": value}`. The same signal again gets the
    /// same receipt; a different value, or one that arrives too late, is rejected.
    pub async fn signal(&self, call: CallId, value: impl Serialize) -> Result<Receipt, Error> {
        let path = format!("v1/calls/{call}/signal");
        let http = self.client.http();
        http.send(
            Method::POST,
            &path,
            &json!({ "value": value }),
            RetryPolicy::Brief,
        )
        .await
    }
}
