//! Sign-in to servers at an address: OAuth 2.1, as the MCP specification asks of clients.
//!
//! An [`Authorizer`] stands for one identity at one server. It finds the authorization server (RFC 9728, RFC 8414,
//! OpenID discovery), gets a client id (configured, as a metadata document, by dynamic registration), and then tokens:
//! by a person in a browser (PKCE, [`Authorizer::begin`] and [`Authorizer::finish`]), or by the client's own
//! credentials. Tokens are renewed while the server is used. What must be kept stands in one record of a [`TokenStore`];
//! what goes out goes through an [`OAuthHttp`], which decides what may be reached.
//!
//! Start with `authorizer`; `account` is the record, `challenge` what a server says when it wants a token.

mod account;
mod authorizer;
mod challenge;
mod client_credentials;
mod http;
mod transport;

use std::fmt;

use toolgate_kernel::agent::Secret;

pub use account::{BoxError, MemoryTokenStore, SIGN_IN_TIME, TokenStore};
pub(crate) use authorizer::SIGN_INS_MAX;
pub use authorizer::{Authorizer, Browser, Callback, OAuthError, SignIn, SignedIn};
pub use challenge::Challenge;
pub use http::{OAuthHttp, RESPONSE_BYTES_MAX, direct};
pub(crate) use transport::WithToken;

/// How a client signs in.
#[derive(Debug, Clone)]
pub struct OAuth {
    /// The client's id at the authorization server. Without one the client's metadata document is its id, or it is
    /// registered when it first signs in.
    pub client_id: Option<String>,
    /// Secret that belongs to the id.
    pub client_secret: Option<Secret>,
    /// Scopes to ask for, instead of those that the server names.
    pub scopes: Vec<String>,
    /// Who signs in.
    pub flow: Flow,
}

/// Who signs in.
#[derive(Debug, Clone)]
pub enum Flow {
    /// A person, in a browser.
    Browser(BrowserFlow),
    /// The client itself, by its secret, or by a key that signs a statement of who it is (`private_key_jwt`).
    ClientCredentials(Option<SigningKey>),
}

/// The sign-in of a person.
#[derive(Debug, Clone)]
pub struct BrowserFlow {
    /// Address that the authorization server sends the browser to in the end.
    pub redirect_uri: String,
    /// The client's name, as the person reads it.
    pub client_name: String,
    /// Address of the client's metadata document, if it has published one. Only `https` with a path can be used.
    pub client_metadata_url: Option<String>,
}

/// A private key and how it signs.
#[derive(Clone)]
pub struct SigningKey {
    /// The key, as PEM (PKCS#8).
    pub pem: Secret,
    /// Signature algorithm.
    pub algorithm: SigningAlgorithm,
}

/// Signature algorithm of a client's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SigningAlgorithm {
    /// RSA with SHA-256.
    Rs256,
    /// ECDSA on P-256.
    Es256,
    /// ECDSA on P-384.
    Es384,
}

impl SigningAlgorithm {
    /// The algorithm that JOSE knows by this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            "ES384" => Some(Self::Es384),
            _ => None,
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SigningKey({:?})", self.algorithm)
    }
}
