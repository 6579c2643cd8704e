//! The tokens of a project's users: who signed them and for whom.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::Value;
use toolgate_engine::store::{IdentityProvider, ProjectRecord};
use toolgate_kernel::context::is_time_zone;
use toolgate_kernel::time::Time;

use crate::jwks::Jwks;
use crate::{AccessError, ClaimNames};

/// The claim of OpenID Connect with the user's time zone.
const ZONE_CLAIM: &str = "zoneinfo";
/// Longest token that is looked at.
const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// Longest subject (`sub`) of a user, in characters.
pub const SUBJECT_CHARS_MAX: usize = 256;
/// How far the signer's clock may be from ours.
const LEEWAY: Duration = Duration::from_secs(30);

/// Claims of a JWT.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claims {
    /// The user.
    pub subject: String,
    /// Until when it holds, our clock's error included.
    pub expires: Time,
    /// The user's groups.
    pub groups: Arc<[String]>,
    /// The user's roles.
    pub roles: Arc<[String]>,
    /// The user's time zone (`zoneinfo`), if it has the form of one.
    pub time_zone: Option<Arc<str>>,
}

/// Checks a token by the key that its algorithm calls for: the project's secret for HS256, its published
/// keys for RS256, ES256 and EdDSA. So a published key can never pass as a secret.
pub(crate) async fn verify(
    token: &str,
    project: &ProjectRecord,
    jwks: &Jwks,
    names: &ClaimNames,
    now: Time,
) -> Result<Claims, AccessError> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err(AccessError::unauthenticated("the token is too long"));
    }
    let header = decode_header(token).map_err(|_| AccessError::unauthenticated("the token is not a JWT"))?;
    if header.crit.is_some() {
        return Err(AccessError::unauthenticated(
            "the token asks for an extension that is not known here",
        ));
    }
    let (key, provider) = signer(&header, project, jwks).await?;
    let mut validation = Validation::new(header.alg);
    // Time is told by the engine's clock, below.
    validation.validate_exp = false;
    validation.validate_aud = false;
    // The library passes a token without these claims unless they are required.
    if let Some(issuer) = provider.and_then(|provider| provider.issuer.as_ref()) {
        validation.set_issuer(&[issuer]);
        validation.required_spec_claims.insert("iss".into());
    }
    if let Some(audience) = provider.and_then(|provider| provider.audience.as_ref()) {
        validation.validate_aud = true;
        validation.set_audience(&[audience]);
        validation.required_spec_claims.insert("aud".into());
    }

    #[derive(Deserialize)]
    struct Said {
        sub: Option<String>,
        exp: Option<f64>,
        nbf: Option<f64>,
        /// Bounded by the length of the token.
        #[serde(flatten)]
        others: HashMap<String, Value>,
    }
    let said = decode::<Said>(token, &key, &validation).map_err(told)?.claims;
    let moment = |seconds: f64| Time((seconds * 1000.0) as i64);
    let expires = said
        .exp
        .map(moment)
        .ok_or(AccessError::unauthenticated("the token has no exp"))?
        .after(LEEWAY);
    if expires <= now {
        return Err(AccessError::unauthenticated("the token has expired"));
    }
    if said.nbf.is_some_and(|nbf| moment(nbf) > now.after(LEEWAY)) {
        return Err(AccessError::unauthenticated("the token is not valid yet"));
    }
    match said.sub {
        Some(subject) if (1..=SUBJECT_CHARS_MAX).contains(&subject.chars().count()) => Ok(Claims {
            subject,
            expires,
            groups: texts(said.others.get(&names.groups)),
            roles: texts(said.others.get(&names.roles)),
            time_zone: zone(said.others.get(ZONE_CLAIM)),
        }),
        Some(_) => Err(AccessError::Unauthenticated(format!(
            "the token's sub must have 1 to {SUBJECT_CHARS_MAX} characters"
        ))),
        None => Err(AccessError::unauthenticated(
            "the token names nobody: sub is missing",
        )),
    }
}

/// A claim that names a time zone. Anything else names none.
fn zone(claim: Option<&Value>) -> Option<Arc<str>> {
    claim?.as_str().filter(|name| is_time_zone(name)).map(Arc::from)
}

/// A claim that is a text or a list of texts. Anything else names nothing: it may be a claim of the signer's own.
fn texts(claim: Option<&Value>) -> Arc<[String]> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match claim {
        Some(Value::Array(items)) => items.iter().filter_map(text).collect(),
        other => other.and_then(text).into_iter().collect(),
    }
}

/// The key that checks a token, and the identity provider that published it.
async fn signer<'p>(
    header: &Header,
    project: &'p ProjectRecord,
    jwks: &Jwks,
) -> Result<(DecodingKey, Option<&'p IdentityProvider>), AccessError> {
    match (header.alg, &project.jwt_secret, &project.identity_provider) {
        (Algorithm::HS256, Some(secret), _) => Ok((DecodingKey::from_secret(secret.as_bytes()), None)),
        (Algorithm::RS256 | Algorithm::ES256 | Algorithm::EdDSA, _, Some(provider)) => {
            let kid = header.kid.as_deref();
            let key = jwks.key(&provider.jwks_url, kid, header.alg).await?;
            Ok((key, Some(provider)))
        }
        (other, ..) => Err(AccessError::Unauthenticated(format!(
            "the project accepts no tokens that are signed with {other:?}"
        ))),
    }
}

fn told(error: jsonwebtoken::errors::Error) -> AccessError {
    use jsonwebtoken::errors::ErrorKind;
    AccessError::Unauthenticated(match error.kind() {
        ErrorKind::MissingRequiredClaim(claim) => format!("the token has no {claim}"),
        ErrorKind::InvalidIssuer => "the token's iss is not the project's jwtIssuer".into(),
        ErrorKind::InvalidAudience => "the token's aud does not name the project's jwtAudience".into(),
        _ => "the token is not valid".into(),
    })
}
