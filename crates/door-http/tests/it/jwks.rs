//! Tokens that a project's published keys check.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RsaKeyPair};
use axum::Router;
use axum::routing::get;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use toolgate_engine::store::{Directory, IdentityProvider, ProjectRecord};
use toolgate_kernel::time::Time;

use crate::world::{FAR, PUBLIC, World, project};

/// A pair of keys, one of them published.
struct Signer {
    algorithm: Algorithm,
    kid: &'static str,
    key: EncodingKey,
}

impl Signer {
    fn published(&self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.key, self.algorithm).unwrap();
        jwk.common.key_id = Some(self.kid.into());
        serde_json::to_value(jwk).unwrap()
    }
    fn token(&self, subject: &str) -> String {
        self.signed(&json!({ "sub": subject, "exp": FAR }))
    }
    fn signed(&self, claims: &Value) -> String {
        let header = Header {
            kid: Some(self.kid.into()),
            ..Header::new(self.algorithm)
        };
        encode(&header, claims, &self.key).unwrap()
    }
}

fn ed25519(kid: &'static str) -> Signer {
    let pair = Ed25519KeyPair::generate().unwrap();
    let key = EncodingKey::from_ed_der(pair.to_pkcs8v1().unwrap().as_ref());
    Signer {
        algorithm: Algorithm::EdDSA,
        kid,
        key,
    }
}
fn p256(kid: &'static str) -> Signer {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let key = EncodingKey::from_ec_der(pair.to_pkcs8v1().unwrap().as_ref());
    Signer {
        algorithm: Algorithm::ES256,
        kid,
        key,
    }
}
fn rsa(kid: &'static str) -> Signer {
    let pair = RsaKeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
    let der = AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(&pair).unwrap();
    // PKCS#8 puts so many bytes before the plain key of this size, which is what the library wants.
    const WRAPPING: usize = 26;
    Signer {
        algorithm: Algorithm::RS256,
        kid,
        key: EncodingKey::from_rsa_der(&der.as_ref()[WRAPPING..]),
    }
}

/// Publishes keys at a loopback address, for a project without a secret; counts how often it is asked.
async fn publish(world: &World, answer: String) -> Arc<AtomicUsize> {
    publish_for(world, answer, IdentityProvider::default()).await
}

/// The same for a project that expects the issuer and audience of `provider`.
async fn publish_for(world: &World, answer: String, provider: IdentityProvider) -> Arc<AtomicUsize> {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let serve = move || {
        count.fetch_add(1, Ordering::SeqCst);
        std::future::ready(answer.clone())
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = axum::serve(listener, Router::new().route("/keys", get(serve)));
    tokio::spawn(server.into_future());
    let record = ProjectRecord {
        id: project(1),
        name: "test".into(),
        jwt_secret: None,
        identity_provider: Some(IdentityProvider {
            jwks_url: format!("http://{address}/keys"),
            ..provider
        }),
        settings: None,
        created: Time(0),
    };
    world.store.put_project(record).await.unwrap();
    asked
}

fn keys(signers: &[&Signer]) -> String {
    json!({ "keys": signers.iter().map(|signer| signer.published()).collect::<Vec<_>>() }).to_string()
}

async fn told(world: &World, token: &str) -> String {
    let client = world
        .nobody()
        .with("x-public-key", PUBLIC)
        .with("authorization", &format!("Bearer {token}"));
    let told = client.get("/v1/spaces").await;
    match told.status.as_u16() {
        200 => "ok".into(),
        status => told.expect(status)["detail"].as_str().unwrap().to_owned(),
    }
}

#[tokio::test]
async fn published_keys_of_every_kind_check_tokens_and_are_asked_for_once() {
    let world = World::new().await;
    let signers = [rsa("r"), p256("e"), ed25519("d")];
    let asked = publish(&world, keys(&signers.iter().collect::<Vec<_>>())).await;
    for signer in &signers {
        assert_eq!(
            told(&world, &signer.token("ada")).await,
            "ok",
            "{:?}",
            signer.algorithm
        );
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_unknown_key_is_looked_for_but_not_again_and_again() {
    let world = World::new().await;
    let (known, unknown) = (ed25519("known"), ed25519("unknown"));
    let asked = publish(&world, keys(&[&known])).await;
    assert_eq!(told(&world, &known.token("ada")).await, "ok");
    for _ in 0..5 {
        assert!(
            told(&world, &unknown.token("ada"))
                .await
                .contains("not published")
        );
    }
    assert_eq!(told(&world, &known.token("ada")).await, "ok");
    assert_eq!(
        asked.load(Ordering::SeqCst),
        1,
        "the second look comes no sooner than after some seconds"
    );
}

#[tokio::test]
async fn a_published_key_never_passes_as_a_secret_nor_for_another_algorithm() {
    let world = World::new().await;
    let signer = rsa("r");
    let mut shared = signer.published();
    shared["alg"] = "RS256".into();
    publish(
        &world,
        json!({ "keys": [shared, { "kty": "oct", "kid": "s", "k": "c2VjcmV0", "alg": "HS256" }] })
            .to_string(),
    )
    .await;
    assert_eq!(told(&world, &signer.token("ada")).await, "ok");

    let claims = json!({ "sub": "ada", "exp": FAR });
    let modulus = signer.published()["n"].as_str().unwrap().to_owned();
    for (kid, secret) in [("r", modulus.as_bytes()), ("s", b"secret".as_slice())] {
        let header = Header {
            kid: Some(kid.into()),
            ..Header::new(Algorithm::HS256)
        };
        let confused = encode(&header, &claims, &EncodingKey::from_secret(secret)).unwrap();
        assert!(
            told(&world, &confused)
                .await
                .contains("accepts no tokens that are signed with HS256")
        );
    }
    let header = Header {
        kid: Some("r".into()),
        ..Header::new(Algorithm::RS384)
    };
    let other = encode(&header, &claims, &signer.key).unwrap();
    assert!(told(&world, &other).await.contains("RS384"));
}

#[tokio::test]
async fn keys_that_cannot_be_had_are_a_matter_of_time_not_of_the_token() {
    for nonsense in ["no json".to_owned(), "x".repeat(300_000)] {
        let world = World::new().await;
        publish(&world, nonsense).await;
        let told = told(&world, &ed25519("d").token("ada")).await;
        assert!(told.contains("cannot be fetched now"), "{told}");
    }
}

#[tokio::test]
async fn a_token_for_another_application_or_tenant_is_refused() {
    let world = World::new().await;
    let signer = ed25519("shared");
    let provider = IdentityProvider {
        issuer: Some("https://id.example/tenant".into()),
        audience: Some("toolgate".into()),
        ..IdentityProvider::default()
    };
    publish_for(&world, keys(&[&signer]), provider).await;
    let token = |issuer: Value, audience: Value| {
        let mut claims = json!({ "sub": "ada", "exp": FAR, "iss": issuer, "aud": audience });
        claims
            .as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null());
        signer.signed(&claims)
    };
    let ours = json!("https://id.example/tenant");
    for audience in [json!("toolgate"), json!(["shop", "toolgate"])] {
        assert_eq!(told(&world, &token(ours.clone(), audience)).await, "ok");
    }
    for (issuer, audience, why) in [
        (json!("https://id.example/other"), json!("toolgate"), "jwtIssuer"),
        (Value::Null, json!("toolgate"), "no iss"),
        (ours.clone(), json!("shop"), "jwtAudience"),
        (ours.clone(), json!(["shop"]), "jwtAudience"),
        (ours, Value::Null, "no aud"),
    ] {
        let said = told(&world, &token(issuer, audience)).await;
        assert!(said.contains(why), "{why}: {said}");
    }
}
