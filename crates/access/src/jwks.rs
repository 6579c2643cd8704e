//! The published keys of projects: fetched when they are needed, kept for a while, never asked for too often.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use toolgate_egress::{BodyLimit, Client, Egress, Policy, Proxy, Request};
use url::Url;

use crate::AccessError;

/// How long fetched keys are used without asking again.
const FRESH: Duration = Duration::from_secs(600);
/// How soon they are asked for again, however many unknown keys are named and however often it failed.
const REFRESH_MIN: Duration = Duration::from_secs(10);
/// How long an answer may take.
const FETCH_TIME_MAX: Duration = Duration::from_secs(5);
/// Largest answer.
const SET_BYTES_MAX: usize = 256 * 1024;
/// Addresses that are remembered.
const SETS_MAX: usize = 1024;

/// The published keys, by address.
pub(crate) struct Jwks {
    client: Client,
    sets: Mutex<HashMap<String, Arc<tokio::sync::Mutex<KeySet>>>>,
}

#[derive(Default)]
struct KeySet {
    keys: Vec<Jwk>,
    fetched: Option<Instant>,
    tried: Option<Instant>,
}

impl Jwks {
    /// Fetches through this egress. Addresses of key sets come from the operator's settings, so any is permitted.
    pub fn new(egress: &Egress) -> Self {
        let policy = Policy::trusted(Proxy::Environment);
        Self {
            client: egress.client(policy.within(FETCH_TIME_MAX).without_redirects()),
            sets: Mutex::default(),
        }
    }

    /// The key of that name that may check `algorithm`; without a name, the only one that may.
    pub async fn key(
        &self,
        url: &str,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, AccessError> {
        let set = self.set(url);
        // Held while fetching: whoever comes meanwhile waits for the one answer.
        let mut set = set.lock().await;
        let within = |moment: Option<Instant>, span| moment.is_some_and(|moment| moment.elapsed() < span);
        let known = find(&set.keys, kid, algorithm);
        if (known.is_none() || !within(set.fetched, FRESH)) && !within(set.tried, REFRESH_MIN) {
            set.tried = Some(Instant::now());
            match self.fetch(url).await {
                Ok(keys) => (set.keys, set.fetched) = (keys, Some(Instant::now())),
                Err(error) => tracing::warn!(%error, "published keys cannot be fetched; older ones are used"),
            }
        }
        match find(&set.keys, kid, algorithm) {
            Some(key) => DecodingKey::from_jwk(key).map_err(|_| {
                AccessError::unauthenticated("the token's key is published in a form that cannot be read")
            }),
            None if set.fetched.is_some() => Err(AccessError::unauthenticated(
                "the token is signed with a key that is not published",
            )),
            None => Err(AccessError::Unavailable(
                "the project's published keys cannot be fetched now".into(),
            )),
        }
    }

    fn set(&self, url: &str) -> Arc<tokio::sync::Mutex<KeySet>> {
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if sets.len() >= SETS_MAX && !sets.contains_key(url) {
            sets.clear();
        }
        sets.entry(url.to_owned()).or_default().clone()
    }

    async fn fetch(&self, url: &str) -> Result<Vec<Jwk>, String> {
        let url: Url = url.parse().map_err(|_| "the address is no URL".to_owned())?;
        let loopback = matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
        if url.scheme() != "https" && !(url.scheme() == "http" && loopback) {
            return Err("the address is neither https nor loopback".into());
        }
        let request = Request::get(url, BodyLimit::Whole(SET_BYTES_MAX));
        let response = self.client.send(request).await;
        let response = response.map_err(|error| error.to_string())?;
        if !response.status.is_success() {
            return Err(format!("it answered with {}", response.status));
        }
        parse(&response.body).map_err(|error| error.to_string())
    }
}

/// The keys of a set; one that cannot be read is left out and does not spoil the others.
fn parse(body: &[u8]) -> Result<Vec<Jwk>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<serde_json::Value>,
    }
    let set: Set = serde_json::from_slice(body)?;
    Ok(set
        .keys
        .into_iter()
        .filter_map(|key| serde_json::from_value(key).ok())
        .collect())
}

fn find<'k>(keys: &'k [Jwk], kid: Option<&str>, algorithm: Algorithm) -> Option<&'k Jwk> {
    let mut fitting = keys.iter().filter(|key| fits(key, algorithm));
    match kid {
        Some(kid) => fitting.find(|key| key.common.key_id.as_deref() == Some(kid)),
        None => fitting.next().filter(|_| fitting.next().is_none()),
    }
}

/// Whether a key may check signatures of this algorithm. A symmetric key never does.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let kind = match (&key.algorithm, algorithm) {
        (AlgorithmParameters::RSA(_), Algorithm::RS256) => true,
        (AlgorithmParameters::EllipticCurve(ec), Algorithm::ES256) => ec.curve == EllipticCurve::P256,
        (AlgorithmParameters::OctetKeyPair(pair), Algorithm::EdDSA) => pair.curve == EllipticCurve::Ed25519,
        _ => false,
    };
    let named = key
        .common
        .key_algorithm
        .as_ref()
        .is_none_or(|named| named.to_string() == format!("{algorithm:?}"));
    let signs = key
        .common
        .public_key_use
        .as_ref()
        .is_none_or(|usage| *usage == PublicKeyUse::Signature);
    kind && named && signs
}
