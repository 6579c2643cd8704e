//! A person's way through a browser: from the request that begins it to the address that the browser comes back to.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;
use toolgate_mcp::oauth::{Callback, OAuthError, SIGN_IN_TIME};
use url::Url;

use super::{Identities, Identity};
use crate::error::ServerError;
use crate::servers::{Inner, McpServers};
use crate::supervisor::Patience;

/// What a state is bound to.
const STATE_CONTEXT: &str = "mcp-sign-in";
/// Longest state that is looked at.
const STATE_CHARS_MAX: usize = 2_048;

/// A sign-in that has begun.
#[derive(Debug, Clone)]
pub struct Begun {
    /// Where the person signs in.
    pub authorize_url: Url,
    /// When it is too late.
    pub expires_at: Time,
}

/// Why a browser that came back brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// The state is none of ours, or of a sign-in that is over.
    #[error("this sign-in is unknown, was finished already, or took longer than 10 minutes; begin again")]
    Unknown,
    /// The authorization server did not give tokens, in words.
    #[error("{0}")]
    Failed(String),
}

/// Whose sign-in it is. Travels through the browser, sealed.
#[derive(Serialize, Deserialize)]
struct State {
    project: ProjectId,
    server: String,
    /// Names the sign-in at the identity, which finishes it once.
    csrf: String,
    expires_at: Time,
}

impl McpServers {
    /// Begins a person's sign-in to a server. One that is under way stays good.
    pub async fn authorize(&self, project: ProjectId, server: &str) -> Result<Begun, ServerError> {
        let identity = Identity {
            project,
            server: server.to_owned(),
        };
        let identities = self.0.identities()?;
        let authorizer = self.0.authorizer_of(&identity).await?;
        let begun = authorizer.begin(None).await;
        let mut begun = begun.map_err(|error| ServerError::SignIn(error.to_string()))?;
        let expires_at = self.0.clock.now().after(SIGN_IN_TIME);
        let state = State {
            project,
            server: identity.server,
            csrf: begun.state.clone(),
            expires_at,
        };
        begun.replace_state(&identities.seal(&state));
        Ok(Begun {
            authorize_url: begun.authorize_url,
            expires_at,
        })
    }

    /// Ends a sign-in with what the browser came back with, and connects the server. Gives whose server it is.
    pub async fn finish_sign_in(
        &self,
        state: &str,
        code: Option<&str>,
        iss: Option<&str>,
        error: Option<&str>,
    ) -> Result<(ProjectId, String), SignInError> {
        let identities = self.0.identities().map_err(|_| SignInError::Unknown)?;
        let state = identities.open(state).ok_or(SignInError::Unknown)?;
        if state.expires_at < self.0.clock.now() {
            return Err(SignInError::Unknown);
        }
        let identity = Identity {
            project: state.project,
            server: state.server,
        };
        let authorizer = self.0.authorizer_of(&identity).await;
        let authorizer = authorizer.map_err(|error| SignInError::Failed(error.to_string()))?;
        let Some(code) = code.filter(|_| error.is_none()) else {
            // It is over either way.
            let _ = authorizer.abandon(&state.csrf).await;
            return Err(SignInError::Failed(
                "the authorization server did not agree".into(),
            ));
        };
        let callback = Callback {
            code: code.to_owned(),
            state: state.csrf,
            iss: iss.map(str::to_owned),
        };
        authorizer.finish(callback).await.map_err(|error| match error {
            OAuthError::UnknownState => SignInError::Unknown,
            error => SignInError::Failed(error.to_string()),
        })?;
        identities.needed(&identity, false);
        self.0.reconnect(&identity).await;
        Ok((identity.project, identity.server))
    }
}

impl Inner {
    fn identities(&self) -> Result<&Identities, ServerError> {
        let lacks = || ServerError::SignIn("this gateway signs in to no servers".into());
        self.identities.as_ref().ok_or_else(lacks)
    }

    async fn authorizer_of(
        &self,
        identity: &Identity,
    ) -> Result<std::sync::Arc<toolgate_mcp::oauth::Authorizer>, ServerError> {
        let snapshot = self.cache.snapshot(identity.project).await?;
        let missing = || ServerError::Missing(format!("MCP server {:?} in this project", identity.server));
        let configured = snapshot.servers.get(&identity.server).ok_or_else(missing)?;
        let made = self
            .identities()?
            .authorizer(identity, configured, &snapshot.settings);
        let none = || ServerError::NoSignIn(identity.server.clone());
        made.map_err(ServerError::SignIn)?.ok_or_else(none)
    }

    /// Connects a server that somebody has signed in to, in the background.
    async fn reconnect(self: &std::sync::Arc<Self>, identity: &Identity) {
        let Ok(snapshot) = self.cache.snapshot(identity.project).await else {
            return;
        };
        let Some(configured) = snapshot.servers.get(&identity.server) else {
            return;
        };
        let handle = self
            .pool
            .handle(self, identity.project, &identity.server, configured);
        // What came of it is the server's status.
        self.tasks
            .spawn(async move { drop(handle.lease(Patience::Now).await) });
    }
}

impl Identities {
    fn seal(&self, state: &State) -> String {
        let plain = serde_json::to_vec(state).expect("it has text keys");
        BASE64_URL_SAFE_NO_PAD.encode(self.vault.seal(STATE_CONTEXT, &plain))
    }

    fn open(&self, state: &str) -> Option<State> {
        let sealed = state.get(..state.len().min(STATE_CHARS_MAX + 1));
        let sealed = sealed.filter(|sealed| sealed.len() <= STATE_CHARS_MAX)?;
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        serde_json::from_slice(&self.vault.open(STATE_CONTEXT, &sealed)?).ok()
    }
}
