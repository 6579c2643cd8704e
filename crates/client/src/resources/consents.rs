//! Consents: decisions that are remembered.

use hyper::Method;
use serde::Deserialize;
use toolgate_protocol::id::{ApprovalId, EntityId, SpaceId};
use toolgate_protocol::time::Time;

use crate::client::Client;
use crate::error::Error;
use crate::http::RetryPolicy;

/// A yes that is remembered: calls of its tool run without being asked about.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Consent {
    /// Id, unique in its space.
    pub id: String,
    /// Agent whose calls it is for.
    pub agent: String,
    /// Tool that it is for.
    pub tool_name: String,
    /// SHA-256 of the tool's definition, in hex: a changed tool asks again.
    pub tool_hash: String,
    /// Who gave it; absent for a secret key.
    pub by: Option<EntityId>,
    /// Person whom the run worked for when it was given.
    pub given_for: Option<EntityId>,
    /// The approval that was answered.
    pub approval_id: ApprovalId,
    /// When it was given.
    pub given_at: Time,
}

/// Lists and revokes remembered decisions.
#[derive(Debug, Clone, Copy)]
pub struct Consents<'a> {
    pub(crate) client: &'a Client,
}

impl Consents<'_> {
    /// The remembered decisions of a space, newest first: a backend's all, a user's own.
    pub async fn list(&self, space: SpaceId) -> Result<Vec<Consent>, Error> {
        #[derive(Deserialize)]
        struct Listed {
            consents: Vec<Consent>,
        }
        let path = format!("v1/spaces/{space}/consents");
        let listed: Listed = self.client.http().get(&path, &[]).await?;
        Ok(listed.consents)
    }

    /// Revokes one: the next call of its tool asks again.
    pub async fn revoke(&self, space: SpaceId, consent: &str) -> Result<(), Error> {
        let segments = ["v1", "spaces", &space.to_string(), "consents", consent].map(str::to_owned);
        let http = self.client.http();
        let request = http.request_segments(Method::DELETE, &segments, &[]);
        http.send_request(request, RetryPolicy::Once).await.map(drop)
    }
}
