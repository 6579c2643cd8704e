//! The record of an identity, encrypted.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use toolgate_engine::clock::Clock;
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_engine::records::{Amendment, Change, NewRecord, Owner, RecordSet};
use toolgate_engine::store::StoreError;
use toolgate_kernel::json::Json;
use toolgate_mcp::oauth::{BoxError, TokenStore};

use super::Identity;
use super::vault::Vault;

/// Kind of the records.
const KIND: &str = "mcp-tokens";

/// The tokens of an identity. Those of a server at another address are not seen: they are none of its business.
pub(super) struct SealedTokens {
    pub vault: Arc<Vault>,
    pub updater: RecordUpdater,
    pub clock: Arc<dyn Clock>,
    pub identity: Identity,
    pub fingerprint: String,
}

impl SealedTokens {
    fn set(&self) -> RecordSet {
        record_set(&self.identity)
    }

    /// What the encryption is bound to.
    fn context(&self) -> String {
        let Identity { project, server } = &self.identity;
        format!("{KIND} {project} {server} {}", self.fingerprint)
    }

    async fn change(&self, change: Change) -> Result<(), BoxError> {
        change_tokens(&self.updater, &*self.clock, &self.identity, change).await?;
        Ok(())
    }
}

fn record_set(identity: &Identity) -> RecordSet {
    RecordSet {
        project: identity.project,
        owner: Owner::Project,
        kind: KIND,
    }
}

async fn change_tokens(
    updater: &RecordUpdater,
    clock: &dyn Clock,
    identity: &Identity,
    change: Change,
) -> Result<(), StoreError> {
    let decide = |()| {
        let amendment = Amendment {
            changes: vec![change.clone()],
            ..Amendment::default()
        };
        Ok::<_, StoreError>((amendment, ()))
    };
    updater
        .update(record_set(identity), clock.now(), || async { Ok(()) }, decide)
        .await
}

/// Forgets the tokens of a server that was removed.
pub(crate) async fn forget(
    updater: &RecordUpdater,
    clock: &dyn Clock,
    identity: &Identity,
) -> Result<(), StoreError> {
    let record = updater
        .records()
        .record(record_set(identity), &identity.server)
        .await?;
    match record {
        Some(_) => change_tokens(updater, clock, identity, Change::Remove(identity.server.clone())).await,
        None => Ok(()),
    }
}

#[async_trait]
impl TokenStore for SealedTokens {
    async fn load(&self) -> Result<Option<Vec<u8>>, BoxError> {
        let record = self
            .updater
            .records()
            .record(self.set(), &self.identity.server)
            .await?;
        let sealed = record.and_then(|record| record.data);
        let opened = sealed
            .as_ref()
            .and_then(|sealed| self.vault.open(&self.context(), sealed));
        if sealed.is_some() && opened.is_none() {
            tracing::warn!(
                server = self.identity.server,
                "the tokens of an MCP server are of another address or another encryption key, somebody must sign in again"
            );
        }
        Ok(opened)
    }

    async fn save(&self, record: Vec<u8>) -> Result<(), BoxError> {
        let sealed = self.vault.seal(&self.context(), &record);
        let record = NewRecord {
            id: self.identity.server.clone(),
            body: Json::from(json!({})),
            text: None,
            data: Some(sealed),
            due: None,
        };
        self.change(Change::Put(record)).await
    }

    async fn clear(&self) -> Result<(), BoxError> {
        self.change(Change::Remove(self.identity.server.clone())).await
    }
}
