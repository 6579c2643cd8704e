//! What must be kept of a sign-in: one record per identity at a server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, CredentialStore, StateStore, StoredAuthorizationState, StoredCredentials,
};
use serde::{Deserialize, Serialize};

/// Any error of an implementation.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How long a person has for a sign-in.
pub const SIGN_IN_TIME: Duration = Duration::from_secs(10 * 60);
/// Most sign-ins that are under way for one identity; the oldest makes room.
const PENDING_MAX: usize = 8;
/// Most authorization servers whose registrations are kept; the one with the first name makes room.
const REGISTRATIONS_MAX: usize = 16;

/// Keeps one record with secrets. The gateway's is encrypted at rest.
#[async_trait]
pub trait TokenStore: Send + Sync {
    /// The record, if there is one.
    async fn load(&self) -> Result<Option<Vec<u8>>, BoxError>;
    /// Replaces the record.
    async fn save(&self, record: Vec<u8>) -> Result<(), BoxError>;
    /// Removes the record.
    async fn clear(&self) -> Result<(), BoxError>;
}

/// A record that ends with the process.
#[derive(Default)]
pub struct MemoryTokenStore(Mutex<Option<Vec<u8>>>);

#[async_trait]
impl TokenStore for MemoryTokenStore {
    async fn load(&self) -> Result<Option<Vec<u8>>, BoxError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
    async fn save(&self, record: Vec<u8>) -> Result<(), BoxError> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
        Ok(())
    }
    async fn clear(&self) -> Result<(), BoxError> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }
}

/// The record.
#[derive(Default, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Account {
    /// Tokens, with the issuer that gave them.
    pub credentials: Option<StoredCredentials>,
    /// Clients that were registered, by issuer: none is ever shown to another.
    pub registrations: BTreeMap<String, Registration>,
    /// Sign-ins under way, the oldest first.
    pub pending: Vec<StoredAuthorizationState>,
    /// The server's last challenge, which says where its metadata is.
    pub challenge: Option<String>,
}

/// A client at an authorization server.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Registration {
    pub client_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// What it was registered with: another address needs another registration.
    pub redirect_uri: String,
}

impl Account {
    /// Scopes that this issuer has granted.
    pub fn granted_by(&self, issuer: &str) -> Vec<String> {
        let of_issuer = |kept: &&StoredCredentials| kept.issuer.as_deref() == Some(issuer);
        let kept = self.credentials.as_ref().filter(of_issuer);
        kept.map(|kept| kept.granted_scopes.clone()).unwrap_or_default()
    }

    /// Whether the server's last challenge was for want of a scope.
    pub fn lacks_scope(&self) -> bool {
        let challenge = self.challenge.as_deref().unwrap_or_default();
        challenge.contains("insufficient_scope")
    }

    pub fn register(&mut self, issuer: String, registration: Registration) {
        if self.registrations.len() >= REGISTRATIONS_MAX && !self.registrations.contains_key(&issuer) {
            self.registrations.pop_first();
        }
        self.registrations.insert(issuer, registration);
    }
}

/// The record of an identity, read and written whole. Whoever writes holds the lock of the authorizer.
#[derive(Clone)]
pub(super) struct Accounts(pub Arc<dyn TokenStore>);

impl Accounts {
    pub async fn load(&self) -> Result<Account, AuthError> {
        match self.0.load().await.map_err(failed)? {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(error.into())),
            None => Ok(Account::default()),
        }
    }

    /// Reads, changes and writes.
    pub async fn update(&self, change: impl FnOnce(&mut Account) + Send) -> Result<(), AuthError> {
        let mut account = self.load().await?;
        change(&mut account);
        let now = now();
        account.pending.retain(|sign_in| !is_late(sign_in, now));
        let bytes = serde_json::to_vec(&account).map_err(|error| failed(error.into()))?;
        self.0.save(bytes).await.map_err(failed)
    }
}

fn failed(error: BoxError) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl CredentialStore for Accounts {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(Accounts::load(self).await?.credentials)
    }
    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.update(|account| account.credentials = Some(credentials))
            .await
    }
    async fn clear(&self) -> Result<(), AuthError> {
        self.update(|account| account.credentials = None).await
    }
    async fn on_refresh_token_rejected(&self, rejected: &StoredCredentials) -> Result<(), AuthError> {
        let rejected = serde_json::to_value(rejected).ok();
        self.update(|account| {
            let kept = account.credentials.as_ref();
            let is_kept = kept.and_then(|kept| serde_json::to_value(kept).ok()) == rejected;
            if let Some(kept) = account.credentials.as_mut().filter(|_| is_kept) {
                kept.token_response = None;
            }
        })
        .await
    }
}

#[async_trait]
impl StateStore for Accounts {
    async fn save(&self, _csrf: &str, sign_in: StoredAuthorizationState) -> Result<(), AuthError> {
        self.update(|account| {
            let over = (account.pending.len() + 1).saturating_sub(PENDING_MAX);
            account.pending.drain(..over);
            account.pending.push(sign_in);
        })
        .await
    }
    async fn load(&self, csrf: &str) -> Result<Option<StoredAuthorizationState>, AuthError> {
        let now = now();
        let mut pending = Accounts::load(self).await?.pending.into_iter();
        Ok(pending.find(|sign_in| sign_in.csrf_token == csrf && !is_late(sign_in, now)))
    }
    async fn delete(&self, csrf: &str) -> Result<(), AuthError> {
        self.update(|account| account.pending.retain(|sign_in| sign_in.csrf_token != csrf))
            .await
    }
}

fn is_late(sign_in: &StoredAuthorizationState, now: u64) -> bool {
    sign_in.created_at + SIGN_IN_TIME.as_secs() < now
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map(|since| since.as_secs()).unwrap_or_default()
}
