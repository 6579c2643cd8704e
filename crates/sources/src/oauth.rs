//! Sign-in to servers of a project: one identity per project and server, its tokens encrypted in the store.
//!
//! `toolgate-mcp` speaks OAuth; here stands what a gateway adds: `vault` encrypts, `tokens` is the record, `guarded_http`
//! decides what an authorization server's addresses may be, `config` is what is said of it, and `sign_in` carries a
//! person through a browser and back. A token per user would be another `Identity`; nothing else would change.

mod config;
mod guarded_http;
mod sign_in;
mod tokens;
mod vault;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use toolgate_egress::Egress;
use toolgate_engine::clock::Clock;
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_kernel::agent::Secret;
use toolgate_kernel::id::ProjectId;
use toolgate_mcp::oauth::{Authorizer, BrowserFlow, Flow, OAuth, SigningKey};

pub(crate) use config::SECRETS;
pub use config::{Auth, OAuthConfig, OAuthFlow};
pub use sign_in::{Begun, SignInError};
pub(crate) use tokens::forget;
pub use vault::EncryptionKey;

use crate::config::Reach;
use crate::settings::{McpResolver, McpSettings};
use crate::snapshot::{Configured, Origin};
use guarded_http::GuardedHttp;
use tokens::SealedTokens;
use vault::Vault;

/// Path of the address that browsers come back to.
pub const CALLBACK_PATH: &str = "/v1/mcp/oauth/callback";
/// Path of the gateway's client metadata document.
pub const CLIENT_PATH: &str = "/v1/mcp/oauth/client.json";
/// What the gateway calls itself at authorization servers.
pub const CLIENT_NAME: &str = "Toolgate";
/// Most identities that are kept in memory. Beyond it all are made anew when they are next needed.
const MADE_MAX: usize = 10_000;

/// What sign-ins need of the gateway.
#[derive(Clone)]
pub struct SignInParts {
    /// Encrypts tokens at rest.
    pub key: EncryptionKey,
    /// Address of the gateway as browsers reach it, without a slash at its end.
    pub public_url: String,
}

/// Whose tokens: a project's at one of its servers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub project: ProjectId,
    /// Name of the server, `<agent>/<server>` for one of an agent.
    pub server: String,
}

/// The identities of all projects.
pub(crate) struct Identities {
    vault: Arc<Vault>,
    public_url: String,
    updater: RecordUpdater,
    clock: Arc<dyn Clock>,
    egress: Egress,
    resolver: Arc<dyn McpResolver>,
    made: Mutex<HashMap<Identity, Made>>,
}

struct Made {
    configured: Configured,
    authorizer: Arc<Authorizer>,
    /// The server wants a person, and nobody has signed in since.
    is_needed: bool,
}

impl Identities {
    pub fn new(
        parts: &SignInParts,
        updater: RecordUpdater,
        clock: Arc<dyn Clock>,
        egress: Egress,
        resolver: Arc<dyn McpResolver>,
    ) -> Self {
        Self {
            vault: Arc::new(Vault::new(&parts.key)),
            public_url: parts.public_url.clone(),
            updater,
            clock,
            egress,
            resolver,
            made: Mutex::default(),
        }
    }

    /// The identity at a server as it is configured now; none if it is not signed in to.
    pub fn authorizer(
        &self,
        identity: &Identity,
        configured: &Configured,
        settings: &McpSettings,
    ) -> Result<Option<Arc<Authorizer>>, String> {
        let Reach::Http { url, auth, .. } = &configured.config.reach else {
            return Ok(None);
        };
        let Auth::OAuth(config) = auth else {
            return Ok(None);
        };
        if let Some(made) = self.lock().get(identity)
            && made.configured == *configured
        {
            return Ok(Some(made.authorizer.clone()));
        }
        let oauth = self.settings(config, settings)?;
        let tokens = SealedTokens {
            vault: self.vault.clone(),
            updater: self.updater.clone(),
            clock: self.clock.clone(),
            identity: identity.clone(),
            fingerprint: configured.config.fingerprint(),
        };
        let http = GuardedHttp {
            egress: self.egress.clone(),
            resolver: self.resolver.clone(),
            project: identity.project,
            server: url.clone(),
            is_operators: configured.origin == Origin::Settings,
        };
        let authorizer = Authorizer::new(url.as_str(), oauth, Arc::new(tokens), Arc::new(http));
        let authorizer = Arc::new(authorizer.map_err(|error| error.to_string())?);
        let made = Made {
            configured: configured.clone(),
            authorizer: authorizer.clone(),
            is_needed: false,
        };
        let mut all = self.lock();
        if all.len() >= MADE_MAX {
            all.clear();
        }
        all.insert(identity.clone(), made);
        Ok(Some(authorizer))
    }

    /// Notes whether the server waits for a person.
    pub fn needed(&self, identity: &Identity, is_needed: bool) {
        if let Some(made) = self.lock().get_mut(identity) {
            made.is_needed = is_needed;
        }
    }

    /// Whether the server waits for a person.
    pub fn is_needed(&self, identity: &Identity) -> bool {
        self.lock().get(identity).is_some_and(|made| made.is_needed)
    }

    /// As the protocol wants it, with the secrets filled in.
    fn settings(&self, config: &OAuthConfig, settings: &McpSettings) -> Result<OAuth, String> {
        let fill = |text: &String| {
            let filled = settings.secrets.fill(text, str::to_owned);
            let filled = filled
                .map_err(|name| format!("the secret {name:?} is not set; add it to the project's settings"));
            filled.map(Secret::new)
        };
        let flow = match &config.flow {
            OAuthFlow::Browser => Flow::Browser(BrowserFlow {
                redirect_uri: format!("{}{CALLBACK_PATH}", self.public_url),
                client_name: CLIENT_NAME.into(),
                // An authorization server can read only what it can reach.
                client_metadata_url: (self.public_url.starts_with("https://"))
                    .then(|| format!("{}{CLIENT_PATH}", self.public_url)),
            }),
            OAuthFlow::ClientCredentials {
                private_key,
                algorithm,
            } => {
                let key = private_key.as_ref().map(|key| -> Result<_, String> {
                    Ok(SigningKey {
                        pem: fill(key)?,
                        algorithm: *algorithm,
                    })
                });
                Flow::ClientCredentials(key.transpose()?)
            }
        };
        Ok(OAuth {
            client_id: config.client_id.clone(),
            client_secret: config.client_secret.as_ref().map(fill).transpose()?,
            scopes: config.scopes.clone(),
            flow,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Identity, Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
