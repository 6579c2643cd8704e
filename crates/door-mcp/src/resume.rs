//! Request states: what a client without tasks sends back to go on waiting for a call. A state names the run and is
//! sealed for one caller and one request, so that nobody can make one up, use another's, or put other arguments under
//! it. It says nothing that is secret, and nothing is stored of it: it outlives restarts and holds on every node.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use toolgate_access::signing_key::SigningKeys;
use toolgate_engine::records::Records;
use toolgate_http::Shared;
use toolgate_kernel::id::{ProjectId, RunId};

use crate::problem;
use crate::visitor::Visitor;

/// Kind of the record that holds a project's key.
const KIND: &str = "mcp-request-state-key";
/// How long a state can be sent back.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// A call that a client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Waiting {
    /// The run that is the call.
    pub run: RunId,
    /// Whether the person put the run's question aside, so that it is not asked again.
    #[serde(default)]
    pub put_aside: bool,
}

/// Seals and opens request states.
pub(crate) struct RequestStates {
    keys: SigningKeys,
}

impl RequestStates {
    /// States that are sealed with keys in `records`.
    pub fn new(records: Arc<dyn Records>) -> Self {
        Self {
            keys: SigningKeys::new(records, KIND),
        }
    }

    /// Seals a state for this caller and this request.
    pub async fn seal(
        &self,
        door: &Shared,
        visitor: &Visitor,
        request: &CallToolRequestParams,
        waiting: Waiting,
    ) -> Result<String, ErrorData> {
        let codec = self.codec(door, visitor.who.project).await?;
        let bound = bound_to(visitor, request);
        let options = SealOptions::new().associated_data(&bound).ttl(LIFETIME);
        let sealed = codec.seal_json_with(&waiting, &options);
        sealed.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// Opens a state that was sealed for this caller and this request.
    pub async fn open(
        &self,
        door: &Shared,
        visitor: &Visitor,
        request: &CallToolRequestParams,
        sealed: &str,
    ) -> Result<Waiting, ErrorData> {
        let codec = self.codec(door, visitor.who.project).await?;
        let bound = bound_to(visitor, request);
        codec.open_json_with(sealed, &bound).map_err(|error| {
            let words = format!("{error}; send the call again without requestState, which makes it anew");
            ErrorData::invalid_params(words, None)
        })
    }

    async fn codec(&self, door: &Shared, project: ProjectId) -> Result<RequestStateCodec, ErrorData> {
        let now = door.engine.clock().now();
        let key = self.keys.find_or_make(project, now).await;
        let codec = RequestStateCodec::try_new(key.map_err(problem::store)?);
        codec.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

/// What a state is good for: this caller and this request, whatever is answered with it.
fn bound_to(visitor: &Visitor, request: &CallToolRequestParams) -> Vec<u8> {
    let asked = json!(["tools/call", request.name, request.arguments]);
    let hash = Sha256::new()
        .chain_update(visitor.owner())
        .chain_update([0])
        .chain_update(asked.to_string());
    hash.finalize().to_vec()
}
