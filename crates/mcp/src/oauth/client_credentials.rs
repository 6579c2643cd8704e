//! Tokens for the client itself: by its secret, or by a statement that its key has signed (RFC 7523).
//!
//! The SDK has this too, in a future that cannot be sent between threads.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::Url;
use rmcp::transport::auth::{AuthorizationMetadata, OAuthTokenResponse};
use serde_json::{Value, json};
use toolgate_kernel::agent::Secret;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::authorizer::{OAuthError, cut, failed};
use super::http::OAuthHttp;
use super::{OAuth, SigningAlgorithm, SigningKey};

/// How long a signed statement is good for, in seconds.
const STATEMENT_SECONDS: u64 = 300;
const STATEMENT_KIND: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A token to ask for.
pub(super) struct Request<'a> {
    pub settings: &'a OAuth,
    pub key: Option<&'a SigningKey>,
    pub metadata: &'a AuthorizationMetadata,
    /// The server that the token is for (RFC 8707).
    pub resource: &'a Url,
    pub scopes: &'a [String],
}

impl Request<'_> {
    /// Asks the authorization server.
    pub async fn send(&self, http: &dyn OAuthHttp) -> Result<OAuthTokenResponse, OAuthError> {
        let response = http.send(self.request()?).await;
        let response = response.map_err(|error| failed(&cut(&error.to_string())))?;
        if response.status().is_success() {
            let tokens = serde_json::from_slice(response.body());
            return tokens.map_err(|_| failed("the authorization server's answer holds no token"));
        }
        let words: Value = serde_json::from_slice(response.body()).unwrap_or_default();
        let reason = words["error"].as_str().unwrap_or("it does not say why");
        let status = response.status().as_u16();
        Err(failed(&format!(
            "the authorization server refuses the client, {status}: {}",
            cut(reason)
        )))
    }

    fn request(&self) -> Result<http::Request<Vec<u8>>, OAuthError> {
        let endpoint = Url::parse(&self.metadata.token_endpoint);
        let endpoint = endpoint.map_err(|_| failed("the authorization server names no token endpoint"))?;
        if endpoint.scheme() != "https" && !(is_local(&endpoint) && is_local(self.resource)) {
            return Err(failed("the authorization server's token endpoint is not https"));
        }
        let missing = |what| failed(&format!("the client credentials have no {what}"));
        let id = self
            .settings
            .client_id
            .as_deref()
            .ok_or_else(|| missing("clientId"))?;
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials")
            .append_pair("resource", self.resource.as_str());
        let mut request = http::Request::post(endpoint.as_str())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json");
        if !self.scopes.is_empty() {
            form.append_pair("scope", &self.scopes.join(" "));
        }
        match (self.key, &self.settings.client_secret) {
            (Some(key), _) => {
                let statement = self.statement(id, key)?;
                form.append_pair("client_assertion_type", STATEMENT_KIND)
                    .append_pair("client_assertion", &statement);
            }
            (None, Some(secret)) if self.takes_secret_in_header() => {
                request = request.header(AUTHORIZATION, basic(id, secret));
            }
            (None, Some(secret)) => {
                form.append_pair("client_id", id)
                    .append_pair("client_secret", secret.expose());
            }
            (None, None) => return Err(missing("clientSecret")),
        }
        request
            .body(form.finish().into_bytes())
            .map_err(|error| failed(&error.to_string()))
    }

    /// Without a word about it a server takes the header (RFC 8414).
    fn takes_secret_in_header(&self) -> bool {
        let methods = self
            .metadata
            .additional_fields
            .get("token_endpoint_auth_methods_supported");
        let methods = methods.and_then(Value::as_array);
        methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"))
    }

    fn statement(&self, id: &str, key: &SigningKey) -> Result<String, OAuthError> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let claims = json!({
            "iss": id,
            "sub": id,
            "aud": self.metadata.issuer,
            "iat": now,
            "exp": now + STATEMENT_SECONDS,
            "jti": uuid::Uuid::now_v7().to_string(),
        });
        let pem = key.pem.expose().as_bytes();
        let (algorithm, read) = match key.algorithm {
            SigningAlgorithm::Rs256 => (Algorithm::RS256, EncodingKey::from_rsa_pem(pem)),
            SigningAlgorithm::Es256 => (Algorithm::ES256, EncodingKey::from_ec_pem(pem)),
            SigningAlgorithm::Es384 => (Algorithm::ES384, EncodingKey::from_ec_pem(pem)),
        };
        let read =
            read.map_err(|_| failed("the client's private key cannot be read; expected PKCS#8 as PEM"))?;
        let mut header = Header::new(algorithm);
        header.typ = Some("client-authentication+jwt".into());
        let signed = jsonwebtoken::encode(&header, &claims, &read);
        signed.map_err(|_| failed("the client's private key cannot sign"))
    }
}

fn basic(id: &str, secret: &Secret) -> String {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret.expose()));
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

fn is_local(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}
