//! The A2A door: `[a2a]`.

use std::sync::Arc;

use anyhow::anyhow;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_door_a2a::{A2aSettings, CardSigner};
use toolgate_kernel::agent::Secret;
use toolgate_package::canonical;
use toolgate_package::key::{Algorithm, SigningKey};

use super::text;

/// The A2A door.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct A2a {
    /// Agent cards name version 0.3 too, with the members that clients of 0.3 read.
    pub advertise_03: bool,
    /// Organization that agent cards name as the provider.
    #[serde(deserialize_with = "text::optional")]
    pub provider: Option<String>,
    /// Its site.
    #[serde(deserialize_with = "text::optional")]
    pub provider_url: Option<String>,
    /// Private key (PEM) that signs agent cards; without one they are not signed.
    #[serde(deserialize_with = "text::secret")]
    pub signing_key: Option<Secret>,
    /// Signs push notifications; without one the token of each configuration does.
    #[serde(deserialize_with = "text::secret")]
    pub push_secret: Option<Secret>,
    /// The agent of the conformance kits stands at the root. For testing the gateway, not for using it.
    pub conformance_agent: bool,
}

impl A2a {
    /// As the door takes it.
    pub fn door(&self) -> anyhow::Result<A2aSettings> {
        let signer = match &self.signing_key {
            Some(pem) => {
                let key = SigningKey::from_pem(pem.expose());
                let key = key.map_err(|error| anyhow!("the setting `a2a.signing_key` is no key: {error}"))?;
                Some(signer(key))
            }
            None => None,
        };
        let url = self.provider_url.clone().unwrap_or_default();
        Ok(A2aSettings {
            advertise_03: self.advertise_03,
            provider: self.provider.clone().map(|name| (name, url)),
            signer,
            conformance: self.conformance_agent,
        })
    }
}

/// Signs cards: a JWS over the canonical JSON of the card, without its payload.
fn signer(key: SigningKey) -> CardSigner {
    let public = key.public();
    let algorithm = match public.algorithm() {
        Algorithm::Ed25519 => "EdDSA",
        Algorithm::Rsa => "RS256",
    };
    let kid = public.fingerprint().to_string();
    let protected = json!({"alg": algorithm, "typ": "JOSE", "kid": kid}).to_string();
    let protected = URL_SAFE_NO_PAD.encode(protected);
    Arc::new(move |card: &Value| {
        let payload = canonical::canonical(&signed_form(card)).unwrap_or_default();
        let message = format!("{protected}.{}", URL_SAFE_NO_PAD.encode(payload));
        let signature = URL_SAFE_NO_PAD.encode(key.sign(message.as_bytes()));
        json!({"protected": protected, "signature": signature})
    })
}

/// Members whose presence protobuf keeps, so that `false` and the empty text are not the same as nothing.
const KEEPS_PRESENCE: [&str; 5] = [
    "streaming",
    "pushNotifications",
    "extendedAgentCard",
    "documentationUrl",
    "iconUrl",
];

/// The card as everybody writes it who has read it by the proto: without members that have their default.
fn signed_form(card: &Value) -> Value {
    match card {
        Value::Object(members) => {
            let members = members.iter().filter(|(name, _)| *name != "signatures");
            let kept = members.map(|(name, value)| (name.clone(), signed_form(value)));
            let kept =
                kept.filter(|(name, value)| KEEPS_PRESENCE.contains(&name.as_str()) || !is_default(value));
            Value::Object(kept.collect())
        }
        Value::Array(items) => items
            .iter()
            .map(signed_form)
            .filter(|item| !is_default(item))
            .collect(),
        other => other.clone(),
    }
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(_) => false,
    }
}
