use serde_json::{Value, json};
use toolgate_kernel::time::Time;
use toolgate_package::{Algorithm, CuratorKey, CuratorKeys, Package, SigningKey, Verification, sign, verify};

use crate::sample::{changed, document, package};

const NOW: Time = Time(1_800_000_000_000);

/// A curator with one key, and the document that it signed.
struct Signed {
    key: SigningKey,
    keys: CuratorKeys,
    document: Value,
}

fn signed(algorithm: Algorithm) -> Signed {
    let key = SigningKey::generate(algorithm);
    let curator = "acme".parse().unwrap();
    let id = key.public().fingerprint();
    let document = sign(document(), &key, &curator, Some(&id)).unwrap();
    let mut keys = CuratorKeys::default();
    keys.add(curator, CuratorKey::new(key.public()));
    Signed { key, keys, document }
}

fn code(verification: Verification) -> &'static str {
    match verification {
        Verification::Unsigned => "unsigned",
        Verification::ToolsOnly { .. } => "tools-only",
        Verification::Verified { .. } => "verified",
        Verification::Rejected(rejection) => rejection.code(),
    }
}

fn check(document: &Value, keys: &CuratorKeys) -> &'static str {
    code(verify(&package(document), keys, NOW))
}

#[test]
fn what_a_curator_signed_is_verified() {
    for algorithm in [Algorithm::Ed25519, Algorithm::Rsa] {
        let signed = signed(algorithm);
        let verified = verify(&package(&signed.document), &signed.keys, NOW);
        let (curator, key) = ("acme".parse().unwrap(), signed.key.public().fingerprint());
        assert_eq!(verified, Verification::Verified { curator, key });
    }
}

#[test]
fn a_document_without_a_signature_is_unsigned() {
    assert_eq!(check(&document(), &CuratorKeys::default()), "unsigned");
}

/// Every member at every depth, changed in a way that leaves the document valid.
fn changes() -> Vec<(&'static str, Value)> {
    vec![
        ("/id", json!("clock")),
        ("/name", json!("Tim3")),
        ("/version", json!("1.2.1")),
        ("/description", json!("Tells the time!")),
        ("/tools/0/name", json!("get_tim3")),
        ("/tools/0/description", json!("The time in a zon3.")),
        ("/tools/0/parameters/properties/zone/type", json!("number")),
        ("/tools/0/outputSchema/type", json!("string")),
        (
            "/tools/0/executorCode",
            json!("return { time: new Date().toISOString(), zone: args.zone } ;"),
        ),
        ("/tools/0/timeout", json!("3s")),
        ("/tools/0/visibility", json!("public")),
        ("/permissions/0", json!("fetch:api.example.net")),
        ("/permissions", json!([])),
        ("/dependencies/units", json!("^1.1")),
        ("/dependencies/other", json!("*")),
        ("/engine", json!(">=0.2")),
        ("/curatorId", json!("other")),
        ("/keyId", json!("other")),
        ("/contentHash", json!("0".repeat(64))),
        ("/packageHash", json!("0".repeat(64))),
        ("/signature", json!("AAAA")),
        ("/packageSignature", json!("AAAA")),
    ]
}

#[test]
fn any_change_of_a_signed_document_is_noticed() {
    let Signed { keys, document, .. } = signed(Algorithm::Ed25519);
    for (pointer, value) in changes() {
        let told = check(&changed(document.clone(), pointer, value), &keys);
        assert!(
            told.chars().all(|c| c.is_ascii_uppercase() || c == '_'),
            "{pointer}: {told}"
        );
    }
}

#[test]
fn the_hashes_made_anew_do_not_help_an_attacker() {
    let Signed { keys, document, .. } = signed(Algorithm::Ed25519);
    for (pointer, value) in changes() {
        let mut forged = changed(document.clone(), pointer, value);
        let hashes = package(&forged);
        forged["contentHash"] = json!(hashes.content_hash().to_string());
        forged["packageHash"] = json!(package(&forged).hash().to_string());
        let told = check(&forged, &keys);
        let as_signed = matches!(pointer, "/contentHash" | "/packageHash");
        assert_eq!(told == "verified", as_signed, "{pointer}: {told}");
        assert!(!["tools-only", "unsigned"].contains(&told), "{pointer}: {told}");
    }
}

#[test]
fn every_changed_byte_of_a_signed_text_is_noticed() {
    let Signed { keys, document, .. } = signed(Algorithm::Ed25519);
    let text = document.to_string();
    let mut valid = 0;
    for index in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[index] ^= 1;
        if let Ok(package) = Package::parse(&bytes) {
            valid += 1;
            assert_ne!(code(verify(&package, &keys, NOW)), "verified", "byte {index}");
        }
    }
    assert!(valid > 300, "{valid} changed texts were valid documents");
}

#[test]
fn where_a_copy_was_found_is_not_signed() {
    let Signed { keys, document, .. } = signed(Algorithm::Ed25519);
    let moved = changed(document, "/sourceUrl", json!("https://cdn.example.com/time.json"));
    assert_eq!(check(&moved, &keys), "verified");
}

#[test]
fn the_order_of_members_and_the_spacing_do_not_matter() {
    let Signed { keys, document, .. } = signed(Algorithm::Ed25519);
    let members = document.as_object().unwrap();
    let turned: serde_json::Map<String, Value> = members
        .iter()
        .rev()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let text = serde_json::to_string_pretty(&turned).unwrap();
    let package = Package::parse(text.as_bytes()).unwrap();
    assert_eq!(code(verify(&package, &keys, NOW)), "verified");
}

#[test]
fn the_signature_of_the_tools_alone_says_nothing_of_the_rest() {
    let Signed {
        keys, mut document, ..
    } = signed(Algorithm::Ed25519);
    let members = document.as_object_mut().unwrap();
    members.remove("packageHash");
    members.remove("packageSignature");
    assert_eq!(check(&document, &keys), "tools-only");
    assert_eq!(
        check(&changed(document.clone(), "/permissions", json!([])), &keys),
        "tools-only"
    );
    let code = json!("return 1;");
    assert_eq!(
        check(&changed(document, "/tools/0/executorCode", code), &keys),
        "CONTENT_CHANGED"
    );
}

#[test]
fn the_signature_of_the_tools_does_not_pass_for_the_other() {
    let Signed {
        keys, mut document, ..
    } = signed(Algorithm::Ed25519);
    document["packageSignature"] = document["signature"].clone();
    assert_eq!(check(&document, &keys), "BAD_SIGNATURE");
}

#[test]
fn a_key_counts_from_its_beginning_to_its_end() {
    let Signed { key, document, .. } = signed(Algorithm::Ed25519);
    let told = |change: fn(&mut CuratorKey)| {
        let mut with = CuratorKey::new(key.public());
        change(&mut with);
        let mut keys = CuratorKeys::default();
        keys.add("acme".parse().unwrap(), with);
        check(&document, &keys)
    };
    assert_eq!(told(|key| key.not_before = Some(NOW)), "verified");
    assert_eq!(
        told(|key| key.not_before = Some(Time(NOW.0 + 1))),
        "KEY_NOT_YET_VALID"
    );
    assert_eq!(told(|key| key.expires = Some(Time(NOW.0 + 1))), "verified");
    assert_eq!(told(|key| key.expires = Some(NOW)), "KEY_EXPIRED");
    assert_eq!(told(|key| key.revoked = true), "KEY_REVOKED");
    assert_eq!(told(|key| key.id = "other".parse().unwrap()), "UNKNOWN_KEY");
}

#[test]
fn a_curator_may_have_several_keys_while_one_replaces_another() {
    let (old, new) = (signed(Algorithm::Rsa), signed(Algorithm::Ed25519));
    let curator = "acme".parse().unwrap();
    let mut keys = CuratorKeys::default();
    keys.add("acme".parse().unwrap(), CuratorKey::new(old.key.public()));
    assert_eq!(check(&new.document, &keys), "UNKNOWN_KEY");
    keys.add("acme".parse().unwrap(), CuratorKey::new(new.key.public()));
    assert_eq!(check(&old.document, &keys), "verified");
    assert_eq!(check(&new.document, &keys), "verified");
    // Without a key id every key that counts is tried.
    let unnamed = sign(document(), &new.key, &curator, None).unwrap();
    assert_eq!(check(&unnamed, &keys), "verified");
    let mut revoked = CuratorKey::new(new.key.public());
    revoked.revoked = true;
    keys.add(curator, revoked);
    assert_eq!(check(&unnamed, &keys), "BAD_SIGNATURE");
    assert_eq!(check(&new.document, &keys), "KEY_REVOKED");
    assert_eq!(check(&old.document, &keys), "verified");
}

#[test]
fn a_key_of_somebody_else_does_not_verify() {
    let (one, other) = (signed(Algorithm::Ed25519), signed(Algorithm::Ed25519));
    assert_eq!(check(&one.document, &CuratorKeys::default()), "UNKNOWN_CURATOR");
    let mut keys = CuratorKeys::default();
    let mut key = CuratorKey::new(other.key.public());
    key.id = one.key.public().fingerprint();
    keys.add("acme".parse().unwrap(), key);
    assert_eq!(check(&one.document, &keys), "BAD_SIGNATURE");
}

#[test]
fn signing_again_replaces_every_earlier_signature() {
    let (old, new) = (signed(Algorithm::Rsa), SigningKey::generate(Algorithm::Ed25519));
    let curator = "other".parse().unwrap();
    let again = sign(old.document.clone(), &new, &curator, None).unwrap();
    let mut keys = old.keys;
    keys.add(curator, CuratorKey::new(new.public()));
    assert_eq!(check(&again, &keys), "verified");
    assert!(again.get("keyId").is_none());
    assert_eq!(
        package(&again).content_hash(),
        package(&old.document).content_hash()
    );
}

#[test]
fn what_is_no_package_is_not_signed() {
    let key = SigningKey::generate(Algorithm::Ed25519);
    let broken = changed(document(), "/version", json!("new"));
    let problems = sign(broken, &key, &"acme".parse().unwrap(), None).unwrap_err().0;
    assert_eq!(problems[0].pointer, "/version");
}

#[test]
fn curators_are_read_with_all_problems() {
    let pem = SigningKey::generate(Algorithm::Ed25519).public().to_pem();
    let good = json!({
        "acme": pem,
        "other": { "keys": [{ "id": "1", "publicKey": pem, "notBefore": "2026-01-01T00:00:00Z", "expires": "2027-01-01T00:00:00Z" }] },
    });
    let keys = CuratorKeys::read(&good, "/curators").unwrap();
    assert_eq!(keys.curators().count(), 2);
    assert_eq!(keys.of(&"other".parse().unwrap())[0].id.as_str(), "1");
    let bad = json!({
        "a b": pem,
        "none": { "keys": [] },
        "x": [{ "publicKey": "x" }, { "revoked": 1 }, { "publicKey": pem, "expires": "soon" }],
        "same": [{ "publicKey": pem }, { "publicKey": pem }],
        "turned": { "publicKey": pem, "notBefore": "2027-01-01T00:00:00Z", "expires": "2026-01-01T00:00:00Z" },
    });
    let problems = CuratorKeys::read(&bad, "/curators").unwrap_err();
    for pointer in [
        "/curators/a b",
        "/curators/none/keys",
        "/curators/x/0/publicKey",
        "/curators/x/1",
        "/curators/x/1/revoked",
        "/curators/x/2/expires",
        "/curators/same",
        "/curators/turned/expires",
    ] {
        assert!(
            problems.iter().any(|problem| problem.pointer == pointer),
            "{pointer}: {problems:?}"
        );
    }
}
