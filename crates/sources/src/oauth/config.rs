//! What is said of the sign-in to a server: the member `auth` of its configuration.

use serde_json::Value;
use toolgate_kernel::members::Members;
use toolgate_mcp::oauth::SigningAlgorithm;

const TEXT_CHARS_MAX: usize = 4_096;
const KEY_CHARS_MAX: usize = 16_384;
const SCOPES_MAX: usize = 100;
/// Members that are secret, and are masked wherever a server is shown.
pub(crate) const SECRETS: [&str; 3] = ["token", "clientSecret", "privateKey"];
const MEMBERS: [&str; 8] = [
    "type",
    "token",
    "clientId",
    "clientSecret",
    "scopes",
    "flow",
    "privateKey",
    "algorithm",
];

/// How the gateway shows a server at an address who it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Auth {
    /// Not at all, or by a header of the configuration.
    None,
    /// By this token. May name a secret: `${secret.NAME}`.
    Bearer(String),
    /// By OAuth, when the server asks for it.
    OAuth(OAuthConfig),
}

/// What is said of OAuth. Secrets may be named: `${secret.NAME}`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OAuthConfig {
    /// The gateway's id at the authorization server. Without one it registers itself.
    pub client_id: Option<String>,
    /// Secret that belongs to the id.
    pub client_secret: Option<String>,
    /// Scopes to ask for, instead of those that the server names.
    pub scopes: Vec<String>,
    /// Who signs in.
    pub flow: OAuthFlow,
}

/// Who signs in.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum OAuthFlow {
    /// A person, in a browser.
    #[default]
    Browser,
    /// The gateway itself, by its secret or by a key.
    ClientCredentials {
        /// Private key as PEM, instead of a secret.
        private_key: Option<String>,
        /// How the key signs.
        algorithm: SigningAlgorithm,
    },
}

impl Auth {
    /// Reads the member. Without one a server that asks for it is signed in to by a person, unless the configuration
    /// has a header for that.
    pub(crate) fn read(server: &Members<'_>, has_header: bool) -> Self {
        if server.get("auth").is_none() {
            return match has_header {
                true => Self::None,
                false => Self::OAuth(OAuthConfig::default()),
            };
        }
        let Some(auth) = server.section("auth", &MEMBERS) else {
            return Self::None;
        };
        let kinds = [("none", "none"), ("bearer", "bearer"), ("oauth", "oauth")];
        let kind = auth.choice("type", &kinds).unwrap_or("oauth");
        for member in SECRETS {
            if auth.get(member).and_then(Value::as_str) == Some("***") {
                auth.wrong(member, "this is the mask of a value; give the value itself");
            }
        }
        match kind {
            "none" => Self::None,
            "bearer" => match auth.text("token", TEXT_CHARS_MAX) {
                Some(token) => Self::Bearer(token.to_owned()),
                None => {
                    auth.lacks("a bearer needs \"token\"");
                    Self::None
                }
            },
            _ => Self::OAuth(oauth(&auth)),
        }
    }
}

fn oauth(auth: &Members<'_>) -> OAuthConfig {
    let text = |name, most| auth.text(name, most).map(str::to_owned);
    let client_id = text("clientId", TEXT_CHARS_MAX);
    let client_secret = text("clientSecret", TEXT_CHARS_MAX);
    let private_key = text("privateKey", KEY_CHARS_MAX);
    let algorithms = [
        ("RS256", SigningAlgorithm::Rs256),
        ("ES256", SigningAlgorithm::Es256),
        ("ES384", SigningAlgorithm::Es384),
    ];
    let algorithm = auth
        .choice("algorithm", &algorithms)
        .unwrap_or(SigningAlgorithm::Es256);
    let is_own = auth.choice("flow", &[("browser", false), ("client-credentials", true)]);
    let is_own = is_own.unwrap_or_default();
    if is_own && (client_id.is_none() || (client_secret.is_none() && private_key.is_none())) {
        auth.lacks("client credentials need \"clientId\", and \"clientSecret\" or \"privateKey\"");
    }
    if !is_own && client_secret.is_some() && client_id.is_none() {
        auth.wrong("clientSecret", "a secret belongs to a \"clientId\"");
    }
    OAuthConfig {
        client_id,
        client_secret,
        scopes: auth.texts("scopes", SCOPES_MAX, TEXT_CHARS_MAX),
        flow: match is_own {
            true => OAuthFlow::ClientCredentials {
                private_key,
                algorithm,
            },
            false => OAuthFlow::Browser,
        },
    }
}
