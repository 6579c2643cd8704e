//! One identity at one server: gets its tokens, and renews them.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig, StoredCredentials,
};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use super::account::{Account, Accounts, BoxError, Registration, SIGN_IN_TIME, TokenStore};
use super::challenge::Challenge;
use super::http::{OAuthHttp, Through};
use super::{BrowserFlow, Flow, OAuth, client_credentials};

/// Most sign-ins that one request to a server may lead to: one for a token, one for a scope that it turns out to lack.
pub(crate) const SIGN_INS_MAX: usize = 2;
/// Scope that authorization servers give refresh tokens for.
const OFFLINE_ACCESS: &str = "offline_access";
/// Most characters of an authorization server's words that are repeated.
const WORDS_CHARS_MAX: usize = 300;

/// One identity at one server. Shared by its connections, which use its tokens; nothing is asked of anybody until the
/// server asks for a token.
pub struct Authorizer {
    url: Url,
    settings: OAuth,
    accounts: Accounts,
    http: Arc<dyn OAuthHttp>,
    browser: Option<Arc<dyn Browser>>,
    /// What the authorization server says of itself, since it was last asked.
    found: std::sync::Mutex<Option<AuthorizationMetadata>>,
    /// Its lock is held while tokens are got or renewed.
    manager: OnceCell<Mutex<AuthorizationManager>>,
}

/// Brings a person to an address, and back.
#[async_trait]
pub trait Browser: Send + Sync {
    /// Lets a person sign in at this address, and gives what the authorization server sent the browser back with.
    async fn sign_in(&self, authorize_url: &Url) -> Result<Callback, BoxError>;
}

/// A sign-in that has begun.
#[derive(Clone)]
pub struct SignIn {
    /// Where the person signs in.
    pub authorize_url: Url,
    /// Names the sign-in; the authorization server gives it back. Whoever knows it can finish the sign-in.
    pub state: String,
    /// When it is too late to finish it.
    pub expires_at: SystemTime,
}

/// What the authorization server sent the browser back with.
#[derive(Clone)]
pub struct Callback {
    /// Code that is exchanged for tokens.
    pub code: String,
    /// As in [`SignIn::state`].
    pub state: String,
    /// Who says so (RFC 9207).
    pub iss: Option<String>,
}

/// What is known of tokens that there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    /// The authorization server.
    pub issuer: Option<String>,
    /// Scopes that it has granted.
    pub scopes: Vec<String>,
}

/// Why there is no token. No message holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OAuthError {
    /// Only a person can get one.
    #[error("a person must sign in to the MCP server")]
    NeedsAuthorization(Challenge),
    /// The state is of no sign-in that is under way.
    #[error("this sign-in is unknown, was finished already, or took longer than 10 minutes: begin again")]
    UnknownState,
    /// The authorization server, or who sent the browser back, is not the one that it should be (RFC 8414, RFC 9207).
    #[error("the authorization server is not the one that it should be: {0}")]
    WrongIssuer(String),
    /// The server, or the authorization server, cannot be used like this.
    #[error("signing in failed: {0}")]
    Failed(String),
    /// The record of the tokens cannot be read or written.
    #[error("the tokens cannot be kept: {0}")]
    Store(String),
}

impl Callback {
    /// Reads the address that the browser was sent to.
    pub fn from_url(url: &Url) -> Result<Self, String> {
        let mut callback = (None, None, None, None);
        for (name, value) in url.query_pairs() {
            let value = Some(value.into_owned());
            match name.as_ref() {
                "code" => callback.0 = value,
                "state" => callback.1 = value,
                "iss" => callback.2 = value,
                "error" => callback.3 = value,
                _ => {}
            }
        }
        match callback {
            (_, _, _, Some(error)) => Err(format!("the authorization server refused: {}", cut(&error))),
            (Some(code), Some(state), iss, None) => Ok(Self { code, state, iss }),
            _ => Err("the address that the browser came back to holds no code".into()),
        }
    }
}

impl SignIn {
    /// Sends the browser with this state instead, so that its owner can tell from it whose sign-in it is. The owner
    /// finishes with the state that it replaces.
    pub fn replace_state(&mut self, state: &str) {
        let pairs: Vec<(String, String)> = self.authorize_url.query_pairs().into_owned().collect();
        let mut query = self.authorize_url.query_pairs_mut();
        query.clear();
        for (name, value) in &pairs {
            query.append_pair(name, if name == "state" { state } else { value });
        }
    }
}

impl Authorizer {
    /// An identity at the server at this address.
    pub fn new(
        url: &str,
        settings: OAuth,
        store: Arc<dyn TokenStore>,
        http: Arc<dyn OAuthHttp>,
    ) -> Result<Self, OAuthError> {
        let url = Url::parse(url).map_err(|error| OAuthError::Failed(error.to_string()))?;
        Ok(Self {
            url,
            settings,
            accounts: Accounts(store),
            http,
            browser: None,
            found: std::sync::Mutex::default(),
            manager: OnceCell::new(),
        })
    }

    /// Asks this browser's person whenever a sign-in is needed, instead of failing with
    /// [`OAuthError::NeedsAuthorization`].
    pub fn browser(mut self, browser: Arc<dyn Browser>) -> Self {
        self.browser = Some(browser);
        self
    }

    /// Begins the sign-in of a person. The challenge says what the server wants, if it has said so.
    pub async fn begin(&self, challenge: Option<&Challenge>) -> Result<SignIn, OAuthError> {
        let Flow::Browser(flow) = &self.settings.flow else {
            return Err(failed("its client signs in by itself, no person is needed"));
        };
        let mut manager = self.lock().await?;
        let metadata = self.discover(&mut manager, challenge).await?;
        let issuer = issuer(&metadata)?;
        let account = self.accounts.load().await?;
        let scopes = self
            .scopes(&manager, &metadata, &account, &issuer, challenge)
            .await;
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let client = self
            .client(&mut manager, flow, &metadata, &account, &issuer, &scopes)
            .await?;
        manager.configure_client(client)?;
        let authorize_url = manager.get_authorization_url(&scopes).await?;
        let authorize_url = Url::parse(&authorize_url).map_err(|error| failed(&error.to_string()))?;
        if !matches!(authorize_url.scheme(), "https" | "http") {
            return Err(failed(
                "the authorization server's address for sign-ins is none of a web page",
            ));
        }
        let state = authorize_url.query_pairs().find(|(name, _)| name == "state");
        let state = state.map(|(_, state)| state.into_owned()).unwrap_or_default();
        Ok(SignIn {
            authorize_url,
            state,
            expires_at: SystemTime::now() + SIGN_IN_TIME,
        })
    }

    /// Ends the sign-in of a person: the code becomes tokens. Works once, also in another process than the one that
    /// began it.
    pub async fn finish(&self, callback: Callback) -> Result<(), OAuthError> {
        let Flow::Browser(flow) = &self.settings.flow else {
            return Err(OAuthError::UnknownState);
        };
        let mut manager = self.lock().await?;
        let account = self.accounts.load().await?;
        let begun = account
            .pending
            .iter()
            .find(|begun| begun.csrf_token == callback.state);
        let begun = begun.ok_or(OAuthError::UnknownState)?;
        // Whoever began it may have been another process, or have begun again with another authorization server.
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let metadata = match found.filter(|found| found.issuer == begun.expected_issuer) {
            Some(found) => found,
            None => self.discover(&mut manager, None).await?,
        };
        let issuer = issuer(&metadata)?;
        if begun.expected_issuer.as_ref() != Some(&issuer) {
            return Err(OAuthError::WrongIssuer(format!(
                "the server now trusts {}",
                cut(&issuer)
            )));
        }
        manager.set_metadata(metadata.clone());
        let client = self.known_client(flow, &metadata, &account, &issuer);
        manager.configure_client(client.ok_or(OAuthError::UnknownState)?)?;
        let iss = callback.iss.as_deref();
        let exchanged = manager.exchange_code_for_token_with_issuer(&callback.code, &callback.state, iss);
        exchanged.await?;
        Ok(())
    }

    /// Gives a sign-in up, as when the person has refused.
    pub async fn abandon(&self, state: &str) -> Result<(), OAuthError> {
        let _lock = self.lock().await?;
        let forget = |account: &mut Account| account.pending.retain(|begun| begun.csrf_token != state);
        Ok(self.accounts.update(forget).await?)
    }

    /// Forgets tokens, registrations and sign-ins that are under way.
    pub async fn forget(&self) -> Result<(), OAuthError> {
        let _lock = self.lock().await?;
        let cleared = self.accounts.0.clear().await;
        cleared.map_err(|error| OAuthError::Store(error.to_string()))
    }

    /// What is known of the tokens, if there are any. They may have expired.
    pub async fn signed_in(&self) -> Result<Option<SignedIn>, OAuthError> {
        let kept = self.accounts.load().await?.credentials;
        let kept = kept.filter(|kept| kept.token_response.is_some());
        Ok(kept.map(|kept| SignedIn {
            issuer: kept.issuer,
            scopes: kept.granted_scopes,
        }))
    }

    /// Gets the token that the server asks for from a person.
    pub(crate) async fn satisfy(&self, challenge: &Challenge) -> Result<(), OAuthError> {
        match (&self.settings.flow, &self.browser) {
            (Flow::ClientCredentials(_), _) => Err(failed("the server refuses the client's token")),
            (Flow::Browser(_), None) => {
                self.remember(challenge).await?;
                Err(OAuthError::NeedsAuthorization(challenge.clone()))
            }
            (Flow::Browser(_), Some(browser)) => {
                let begun = self.begin(Some(challenge)).await?;
                let callback = browser.sign_in(&begun.authorize_url).await;
                self.finish(callback.map_err(|error| failed(&error.to_string()))?)
                    .await
            }
        }
    }

    /// The token to send, renewed if it is about to expire. None until somebody has signed in.
    pub(crate) async fn token(&self) -> Result<Option<String>, OAuthError> {
        let mut manager = self.lock().await?;
        let kept = self.accounts.load().await?.credentials;
        let Some(kept) = kept.filter(|kept| kept.token_response.is_some()) else {
            return Ok(None);
        };
        match manager.get_access_token().await {
            Err(AuthError::AuthorizationRequired) => {}
            // An earlier process has got it.
            Err(AuthError::InternalError(_)) if self.ready(&mut manager, &kept).await? => {}
            token => return present(token),
        }
        match &self.settings.flow {
            Flow::ClientCredentials(_) => self.sign_in_as_client(&mut manager, None).await?,
            Flow::Browser(_) => {}
        }
        present(manager.get_access_token().await)
    }

    /// A token for a server that has refused this one, if that takes nobody.
    pub(crate) async fn renew(
        &self,
        refused: Option<&str>,
        challenge: &Challenge,
    ) -> Result<Option<String>, OAuthError> {
        let mut manager = self.lock().await?;
        let account = self.accounts.load().await?;
        match (&self.settings.flow, account.credentials, refused) {
            (Flow::ClientCredentials(_), _, _) => {
                self.sign_in_as_client(&mut manager, Some(challenge)).await?;
                present(manager.get_access_token().await)
            }
            (Flow::Browser(_), Some(kept), Some(refused)) if !challenge.wants_scope() => {
                self.refresh(&mut manager, &kept, refused).await
            }
            (Flow::Browser(_), _, _) => Ok(None),
        }
    }

    /// A newer token than the one that was refused: another request's, or a new one.
    async fn refresh(
        &self,
        manager: &mut AuthorizationManager,
        kept: &StoredCredentials,
        refused: &str,
    ) -> Result<Option<String>, OAuthError> {
        let is_new = |token: &String| token != refused;
        if let Some(token) = present(manager.get_access_token().await)?.filter(is_new) {
            return Ok(Some(token));
        }
        if manager.get_credentials().await.is_err() && !self.ready(manager, kept).await? {
            return Ok(None);
        }
        match manager.refresh_token().await {
            Ok(_) => Ok(present(manager.get_access_token().await)?.filter(is_new)),
            Err(error) => present(Err(error)),
        }
    }

    /// Gets ready to renew tokens that an earlier process has got. False if they are of no use any more.
    async fn ready(
        &self,
        manager: &mut AuthorizationManager,
        kept: &StoredCredentials,
    ) -> Result<bool, OAuthError> {
        let metadata = self.discover(manager, None).await?;
        let issuer = issuer(&metadata)?;
        if kept.issuer.as_ref() != Some(&issuer) {
            // The server trusts another one now, which must not see what the first gave.
            self.accounts.update(|account| account.credentials = None).await?;
            return Ok(false);
        }
        let account = self.accounts.load().await?;
        let client = match &self.settings.flow {
            Flow::Browser(flow) => self.known_client(flow, &metadata, &account, &issuer),
            Flow::ClientCredentials(_) => None,
        };
        let client = client.unwrap_or_else(|| OAuthClientConfig::new(&kept.client_id, self.url.as_str()));
        manager.configure_client(client)?;
        Ok(true)
    }

    /// Keeps a challenge, so that a sign-in which begins later knows what the server wants.
    pub(crate) async fn remember(&self, challenge: &Challenge) -> Result<(), OAuthError> {
        let _lock = self.lock().await?;
        let header = challenge.header.clone();
        if self.accounts.load().await?.challenge == header {
            return Ok(());
        }
        Ok(self.accounts.update(|account| account.challenge = header).await?)
    }

    async fn sign_in_as_client(
        &self,
        manager: &mut AuthorizationManager,
        challenge: Option<&Challenge>,
    ) -> Result<(), OAuthError> {
        let metadata = self.discover(manager, challenge).await?;
        let issuer = issuer(&metadata)?;
        let account = self.accounts.load().await?;
        let mut scopes = self
            .scopes(manager, &metadata, &account, &issuer, challenge)
            .await;
        // There is nobody who could be away.
        scopes.retain(|scope| scope != OFFLINE_ACCESS || self.settings.scopes.contains(scope));
        let Flow::ClientCredentials(key) = &self.settings.flow else {
            return Err(failed("its client cannot sign in without a person"));
        };
        let request = client_credentials::Request {
            settings: &self.settings,
            key: key.as_ref(),
            metadata: &metadata,
            resource: &self.url,
            scopes: &scopes,
        };
        let tokens = request.send(&*self.http).await?;
        let client_id = self.settings.client_id.clone().unwrap_or_default();
        let received_at = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let kept = StoredCredentials::new(client_id, Some(tokens), scopes, Some(received_at));
        let kept = kept.with_issuer(Some(issuer));
        Ok(self
            .accounts
            .update(|account| account.credentials = Some(kept))
            .await?)
    }

    /// Finds the authorization server that the server trusts now. Without a challenge, the last one shows the way.
    async fn discover(
        &self,
        manager: &mut AuthorizationManager,
        challenge: Option<&Challenge>,
    ) -> Result<AuthorizationMetadata, OAuthError> {
        let header = match challenge {
            Some(challenge) => {
                let header = challenge.header.clone();
                self.accounts
                    .update(|account| account.challenge = header.clone())
                    .await?;
                challenge.header.clone()
            }
            None => self.accounts.load().await?.challenge,
        };
        let found = manager.resolve_metadata_from_challenge(header.as_deref()).await?;
        if !found.source.is_discovered() {
            return Err(failed("it names no authorization server"));
        }
        manager.set_metadata(found.metadata.clone());
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.metadata.clone());
        Ok(found.metadata)
    }

    /// Scopes to ask for: those that were granted before, and those that are configured, or that the server names.
    async fn scopes(
        &self,
        manager: &AuthorizationManager,
        metadata: &AuthorizationMetadata,
        account: &Account,
        issuer: &str,
        challenge: Option<&Challenge>,
    ) -> Vec<String> {
        let mut scopes = account.granted_by(issuer);
        let configured = &self.settings.scopes;
        scopes.extend(configured.iter().cloned());
        let lacks_scope = challenge.map_or_else(|| account.lacks_scope(), Challenge::wants_scope);
        if configured.is_empty() || lacks_scope {
            scopes.extend(manager.select_initial_scopes(&[]).await);
        }
        let supported = metadata.scopes_supported.as_deref().unwrap_or_default();
        if !scopes.is_empty() && supported.iter().any(|scope| scope == OFFLINE_ACCESS) {
            scopes.push(OFFLINE_ACCESS.to_owned());
        }
        let mut once = Vec::new();
        for scope in scopes {
            if !once.contains(&scope) {
                once.push(scope);
            }
        }
        once
    }

    /// The client to ask for a code with: one that is known, or one that is registered now.
    async fn client(
        &self,
        manager: &mut AuthorizationManager,
        flow: &BrowserFlow,
        metadata: &AuthorizationMetadata,
        account: &Account,
        issuer: &str,
        scopes: &[&str],
    ) -> Result<OAuthClientConfig, OAuthError> {
        if let Some(known) = self.known_client(flow, metadata, account, issuer) {
            return Ok(known);
        }
        // The SDK takes the kind of application for a registration from the client that is configured.
        let kind = OAuthClientConfig::new("unregistered", &flow.redirect_uri);
        manager.configure_client(kind.with_application_type(application_type(&flow.redirect_uri)))?;
        let registered = manager
            .register_client(&flow.client_name, &flow.redirect_uri, scopes)
            .await?;
        let registration = Registration {
            client_id: registered.client_id.clone(),
            client_secret: registered.client_secret.clone(),
            redirect_uri: flow.redirect_uri.clone(),
        };
        let issuer = issuer.to_owned();
        self.accounts
            .update(|account| account.register(issuer, registration))
            .await?;
        Ok(registered)
    }

    /// The client that this authorization server knows: the configured one, the metadata document if it reads those,
    /// or the one that was registered.
    fn known_client(
        &self,
        flow: &BrowserFlow,
        metadata: &AuthorizationMetadata,
        account: &Account,
        issuer: &str,
    ) -> Option<OAuthClientConfig> {
        let client = |id: &str| OAuthClientConfig::new(id, &flow.redirect_uri);
        if let Some(id) = &self.settings.client_id {
            return Some(match &self.settings.client_secret {
                Some(secret) => client(id).with_client_secret(secret.expose()),
                None => client(id),
            });
        }
        let reads_documents = metadata
            .additional_fields
            .get("client_id_metadata_document_supported");
        if let Some(document) = &flow.client_metadata_url
            && reads_documents.is_some_and(|reads| reads == true)
        {
            return Some(client(document));
        }
        let registered = account.registrations.get(issuer);
        let registered = registered.filter(|kept| kept.redirect_uri == flow.redirect_uri)?;
        Some(match &registered.client_secret {
            Some(secret) => client(&registered.client_id).with_client_secret(secret),
            None => client(&registered.client_id),
        })
    }

    async fn lock(&self) -> Result<MutexGuard<'_, AuthorizationManager>, OAuthError> {
        let made = self
            .manager
            .get_or_try_init(async || Ok::<_, OAuthError>(Mutex::new(self.new_manager().await?)));
        Ok(made.await?.lock().await)
    }

    async fn new_manager(&self) -> Result<AuthorizationManager, OAuthError> {
        let http = Arc::new(Through(self.http.clone()));
        let mut manager = AuthorizationManager::new_with_oauth_http_client(self.url.clone(), http).await?;
        manager.set_credential_store(self.accounts.clone());
        manager.set_state_store(self.accounts.clone());
        Ok(manager)
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Authorizer").finish_non_exhaustive()
    }
}

/// The token, or none if only a person can get another.
fn present(token: Result<String, AuthError>) -> Result<Option<String>, OAuthError> {
    match token {
        Ok(token) => Ok(Some(token)),
        Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Credentials are bound to it, so there must be one.
fn issuer(metadata: &AuthorizationMetadata) -> Result<String, OAuthError> {
    let issuer = metadata.issuer.clone();
    issuer.ok_or_else(|| failed("its authorization server does not name itself (`issuer`)"))
}

/// OpenID Connect registration: a native application may be sent back to this machine, a web application may not.
fn application_type(redirect_uri: &str) -> &'static str {
    let host = Url::parse(redirect_uri)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned));
    match host.as_deref() {
        Some("localhost" | "127.0.0.1" | "[::1]") => "native",
        _ => "web",
    }
}

pub(super) fn failed(reason: &str) -> OAuthError {
    OAuthError::Failed(reason.to_owned())
}

pub(super) fn cut(words: &str) -> String {
    words.chars().take(WORDS_CHARS_MAX).collect()
}

impl From<AuthError> for OAuthError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::CredentialStoreError(reason) => Self::Store(reason),
            AuthError::AuthorizationServerMismatch { received_issuer, .. } => {
                Self::WrongIssuer(format!("it names {}", cut(&received_issuer)))
            }
            AuthError::AuthorizationServerMissingIssuer { .. } => Self::WrongIssuer("it names none".into()),
            AuthError::InternalError(reason) if reason == "Authorization state not found" => {
                Self::UnknownState
            }
            other => Self::Failed(cut(&other.to_string())),
        }
    }
}
