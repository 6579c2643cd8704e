use toolgate_package::key::BadKey;
use toolgate_package::{Algorithm, PublicKey, SigningKey};

const BOTH: [Algorithm; 2] = [Algorithm::Ed25519, Algorithm::Rsa];

#[test]
fn a_key_survives_its_file() {
    for algorithm in BOTH {
        let key = SigningKey::generate(algorithm);
        let again = SigningKey::from_pem(&key.to_pem()).unwrap();
        assert_eq!(again.public(), key.public());
        assert_eq!(again.sign(b"x"), key.sign(b"x"), "{algorithm}");
        let public = PublicKey::from_pem(&key.public().to_pem()).unwrap();
        assert_eq!(public, key.public());
        assert_eq!(public.algorithm(), algorithm);
        assert!(public.verifies(b"x", &key.sign(b"x")));
        assert!(!public.verifies(b"y", &key.sign(b"x")));
    }
}

#[test]
fn a_signature_with_any_bit_changed_does_not_verify() {
    for algorithm in BOTH {
        let key = SigningKey::generate(algorithm);
        let (public, signature) = (key.public(), key.sign(b"message"));
        for index in 0..signature.len() {
            let mut bad = signature.clone();
            bad[index] ^= 1;
            assert!(!public.verifies(b"message", &bad), "{algorithm} byte {index}");
        }
        assert!(!public.verifies(b"message", &signature[..signature.len() - 1]));
        assert!(!public.verifies(b"message", &[]));
    }
}

#[test]
fn two_keys_are_two_keys() {
    let (one, other) = (
        SigningKey::generate(Algorithm::Ed25519),
        SigningKey::generate(Algorithm::Ed25519),
    );
    assert_ne!(one.public().fingerprint(), other.public().fingerprint());
    assert!(!other.public().verifies(b"x", &one.sign(b"x")));
}

#[test]
fn a_private_key_is_never_printed() {
    for algorithm in BOTH {
        let key = SigningKey::generate(algorithm);
        let pem = key.to_pem();
        let secret = pem.lines().nth(1).expect("a line of the key");
        assert!(!format!("{key:?}").contains(secret));
    }
}

#[test]
fn a_key_of_small_order_is_refused() {
    // The neutral element: every signature (R, 0) with R small verifies in a lax implementation.
    let mut spki = vec![
        0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
    ];
    spki.push(1);
    spki.extend([0; 31]);
    assert_eq!(PublicKey::from_spki(&spki), Err(BadKey::Weak));
}

#[test]
fn an_rsa_key_that_is_too_short_is_refused() {
    let short = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQD885tVrCJjYbvurfWKlSzX4tfc
oRL5RAaIq2ehDAx9CoKNUzWR1kZG2cgISuuGNA0N9Kjk/OlnyAEa6MQlfe5IC4ih
lDHvbmBCOzQw0WAmOU4VBqG+eem1q0w++ggAI0b/djTBjVHtweDE55ro55GLrHsv
MOPVZKcGObZSOjbFKwIDAQAB
-----END PUBLIC KEY-----
";
    assert_eq!(PublicKey::from_pem(short), Err(BadKey::RsaSize(1_024)));
}

#[test]
fn what_is_no_key_says_what_to_do() {
    let private = SigningKey::generate(Algorithm::Ed25519);
    let told = PublicKey::from_pem(&private.to_pem()).unwrap_err().to_string();
    assert!(told.contains("this is a private key"), "{told}");
    let told = SigningKey::from_pem(&private.public().to_pem())
        .unwrap_err()
        .to_string();
    assert!(told.contains("this is a public key"), "{told}");
    for text in [
        "",
        "x",
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        &"x".repeat(40_000),
    ] {
        assert!(PublicKey::from_pem(text).is_err());
        assert!(SigningKey::from_pem(text).is_err());
    }
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    assert!(
        SigningKey::from_pem(encrypted)
            .unwrap_err()
            .to_string()
            .contains("openssl pkcs8")
    );
    let rsa = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n";
    assert!(
        SigningKey::from_pem(rsa)
            .unwrap_err()
            .to_string()
            .contains("-topk8")
    );
}
