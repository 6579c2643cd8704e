//! A curator of the tests, and what it signs.

use serde_json::{Value, json};
use toolgate_package::{Algorithm, Package, SigningKey, sign};

use crate::harness::Api;

/// The curator's id.
pub const CURATOR: &str = "acme";

/// A curator with one key at a time: a revoked one is followed by the next.
pub struct Curator {
    key: SigningKey,
}

/// A document with tools of these names and codes.
pub fn document(id: &str, version: &str, tools: &[(&str, &str)]) -> Value {
    let tools = tools.iter().map(|(name, code)| {
        let code = if code.is_empty() { "return null;" } else { code };
        json!({
            "name": name,
            "description": format!("The tool {name}."),
            "parameters": {"type": "object"},
            "executorCode": code,
        })
    });
    json!({"id": id, "name": id, "version": version, "tools": tools.collect::<Vec<_>>()})
}

/// The content address of a document.
pub fn hash(document: &Value) -> String {
    let package = Package::parse(document.to_string().as_bytes()).expect("a package");
    package.hash().to_string()
}

impl Curator {
    pub fn new() -> Self {
        Self {
            key: SigningKey::generate(Algorithm::Ed25519),
        }
    }

    /// Makes the gateway's project trust it.
    pub async fn trusted(&self, api: &Api) {
        let key = json!({"publicKey": self.key.public().to_pem()});
        let put = api
            .put(&format!("/v1/curators/{CURATOR}"), &json!({"keys": [key]}))
            .await;
        assert!(put.is_success(), "{put:?}");
    }

    /// Signs a document.
    pub fn signed(&self, document: Value) -> Value {
        sign(document, &self.key, &CURATOR.parse().expect("an id"), None).expect("a package")
    }
}
