//! Keys: Ed25519 by default, RSASSA-PKCS1-v1_5 with SHA-256 for curators who have such a key. PEM outside (PKCS#8, SPKI).

use std::fmt;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize, PublicKey as RsaPublicKey};
use aws_lc_rs::signature::{
    KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaParameters, UnparsedPublicKey,
};
use ed25519_dalek::{Signature, Signer as _, SigningKey as Ed25519Key, VerifyingKey};
use pem::{EncodeConfig, LineEnding, Pem};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::id::KeyId;

/// Largest PEM text that is read.
pub const PEM_BYTES_MAX: usize = 32 << 10;
/// Sizes of RSA keys that are accepted, in bits.
pub const RSA_BITS: std::ops::RangeInclusive<u32> = 2_048..=8_192;

/// What DER puts before the 32 bytes of an Ed25519 public key (SPKI).
const ED25519_SPKI: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];
/// What DER puts before the 32 bytes of an Ed25519 private key (PKCS#8, version 1).
const ED25519_PKCS8: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// The object identifier `rsaEncryption` in DER.
const RSA_ENCRYPTION: [u8; 11] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// In how many bytes at the beginning of a key its algorithm is named.
const ALGORITHM_BYTES: usize = 32;

/// A signature algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Algorithm {
    /// Ed25519 (RFC 8032), the default.
    #[serde(rename = "Ed25519")]
    Ed25519,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    #[serde(rename = "RSASSA-PKCS1-v1_5")]
    Rsa,
}

impl fmt::Display for Algorithm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Ed25519 => "Ed25519",
            Self::Rsa => "RSASSA-PKCS1-v1_5",
        })
    }
}

/// A text that is no key, or one that must not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// It is no PEM of the expected kind.
    #[error("expected a PEM text that begins with \"-----BEGIN {expected}-----\"{hint}")]
    NotPem {
        /// The label of such a key.
        expected: &'static str,
        /// What to do with the key that was seen.
        hint: &'static str,
    },
    /// Its content is no key of an algorithm that is used here.
    #[error("expected an Ed25519 key or an RSA key of 2048 to 8192 bits, got another or a damaged one")]
    Unknown,
    /// It is an RSA key of the wrong size.
    #[error("an RSA key of {0} bits is not accepted; use one of 2048 to 8192 bits, or an Ed25519 key")]
    RsaSize(u32),
    /// Anybody could make signatures that fit it.
    #[error("this Ed25519 key is of small order: signatures by it prove nothing")]
    Weak,
}

/// A curator's public key.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    kind: PublicKind,
    spki: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq)]
enum PublicKind {
    Ed25519(VerifyingKey),
    Rsa,
}

impl PublicKey {
    /// Reads a PEM text with one public key (SPKI, `BEGIN PUBLIC KEY`).
    pub fn from_pem(text: &str) -> Result<Self, BadKey> {
        const LABEL: &str = "PUBLIC KEY";
        let hint = |label: &str| match label {
            "PRIVATE KEY" => "; this is a private key, keep it secret and give the public one",
            "RSA PUBLIC KEY" => "; convert it with: openssl rsa -RSAPublicKey_in -pubout",
            "CERTIFICATE" => "; take the key out with: openssl x509 -pubkey -noout",
            _ => "",
        };
        Self::from_spki(&body(text, LABEL, hint)?)
    }

    /// Reads the DER of a SubjectPublicKeyInfo.
    pub fn from_spki(spki: &[u8]) -> Result<Self, BadKey> {
        if let Some(bytes) = spki.strip_prefix(&ED25519_SPKI) {
            let bytes: &[u8; 32] = bytes.try_into().map_err(|_| BadKey::Unknown)?;
            let key = VerifyingKey::from_bytes(bytes).map_err(|_| BadKey::Unknown)?;
            if key.is_weak() {
                return Err(BadKey::Weak);
            }
            return Ok(Self::ed25519(key));
        }
        if !names_rsa(spki) {
            return Err(BadKey::Unknown);
        }
        let key = RsaPublicKey::from_der(spki).map_err(|_| BadKey::Unknown)?;
        let bits = RsaParameters::public_modulus_len(key.as_ref()).map_err(|_| BadKey::Unknown)?;
        if !RSA_BITS.contains(&bits) {
            return Err(BadKey::RsaSize(bits));
        }
        Self::rsa(&key).ok_or(BadKey::Unknown)
    }

    fn ed25519(key: VerifyingKey) -> Self {
        Self {
            spki: [&ED25519_SPKI[..], key.as_bytes()].concat(),
            kind: PublicKind::Ed25519(key),
        }
    }

    fn rsa(key: &RsaPublicKey) -> Option<Self> {
        let spki: PublicKeyX509Der<'_> = key.as_der().ok()?;
        Some(Self {
            kind: PublicKind::Rsa,
            spki: spki.as_ref().to_vec(),
        })
    }

    /// The key as PEM.
    pub fn to_pem(&self) -> String {
        written("PUBLIC KEY", self.spki.clone())
    }

    /// The algorithm of its signatures.
    pub fn algorithm(&self) -> Algorithm {
        match self.kind {
            PublicKind::Ed25519(_) => Algorithm::Ed25519,
            PublicKind::Rsa => Algorithm::Rsa,
        }
    }

    /// The first 16 characters of the SHA-256 of the key (SPKI) in hex: its id, if nobody chooses another.
    pub fn fingerprint(&self) -> KeyId {
        let digest = Sha256::digest(&self.spki);
        let hex: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        hex.parse().expect("hex is an id")
    }

    /// Whether `signature` is this key's signature of `message`.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.kind {
            // Strict: aws-lc accepts points of small order, by which one signature fits several messages.
            PublicKind::Ed25519(key) => Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify_strict(message, &signature).is_ok()),
            PublicKind::Rsa => UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &self.spki)
                .verify(message, signature)
                .is_ok(),
        }
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PublicKey({} {})", self.algorithm(), self.fingerprint())
    }
}

/// A curator's private key. Never printed; its memory is wiped.
pub struct SigningKey(SigningKind);

enum SigningKind {
    Ed25519(Ed25519Key),
    Rsa(RsaKeyPair),
}

impl SigningKey {
    /// Makes a key; an RSA one has 3072 bits.
    pub fn generate(algorithm: Algorithm) -> Self {
        Self(match algorithm {
            Algorithm::Ed25519 => {
                let mut seed = Zeroizing::new([0; 32]);
                getrandom::fill(&mut *seed).expect("the system has randomness");
                SigningKind::Ed25519(Ed25519Key::from_bytes(&seed))
            }
            Algorithm::Rsa => {
                let pair = RsaKeyPair::generate(KeySize::Rsa3072).expect("the system has randomness");
                SigningKind::Rsa(pair)
            }
        })
    }

    /// Reads a PEM text with one private key (PKCS#8, `BEGIN PRIVATE KEY`, not encrypted).
    pub fn from_pem(text: &str) -> Result<Self, BadKey> {
        const LABEL: &str = "PRIVATE KEY";
        let hint = |label: &str| match label {
            "PUBLIC KEY" => "; this is a public key, signing needs the private one",
            "ENCRYPTED PRIVATE KEY" => "; decrypt it with: openssl pkcs8 -in KEY",
            "RSA PRIVATE KEY" => "; convert it with: openssl pkcs8 -topk8 -nocrypt",
            "OPENSSH PRIVATE KEY" => "; make one with: toolgate plugin keygen",
            _ => "",
        };
        let der = Zeroizing::new(body(text, LABEL, hint)?);
        if let Some(seed) = ed25519_seed(&der) {
            return Ok(Self(SigningKind::Ed25519(Ed25519Key::from_bytes(&seed))));
        }
        if !names_rsa(&der) {
            return Err(BadKey::Unknown);
        }
        let pair = RsaKeyPair::from_pkcs8(&der).map_err(|_| BadKey::Unknown)?;
        let key = Self(SigningKind::Rsa(pair));
        let bits = key.rsa_bits();
        match bits.is_some_and(|bits| RSA_BITS.contains(&bits)) {
            true => Ok(key),
            false => Err(bits.map_or(BadKey::Unknown, BadKey::RsaSize)),
        }
    }

    /// The key as PEM, for the one file that keeps it.
    pub fn to_pem(&self) -> Zeroizing<String> {
        let der = match &self.0 {
            SigningKind::Ed25519(key) => [&ED25519_PKCS8[..], key.as_bytes()].concat(),
            SigningKind::Rsa(pair) => {
                let der: Pkcs8V1Der<'_> = pair.as_der().expect("a valid key has a DER form");
                der.as_ref().to_vec()
            }
        };
        Zeroizing::new(written("PRIVATE KEY", der))
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        match &self.0 {
            SigningKind::Ed25519(key) => PublicKey::ed25519(key.verifying_key()),
            SigningKind::Rsa(pair) => PublicKey::rsa(pair.public_key()).expect("a valid key has a DER form"),
        }
    }

    /// The signature of `message`. The same message has the same signature each time.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        match &self.0 {
            SigningKind::Ed25519(key) => key.sign(message).to_bytes().to_vec(),
            SigningKind::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature)
                    .expect("a valid key signs");
                signature
            }
        }
    }

    fn rsa_bits(&self) -> Option<u32> {
        match &self.0 {
            SigningKind::Ed25519(_) => None,
            SigningKind::Rsa(pair) => RsaParameters::public_modulus_len(pair.public_key().as_ref()).ok(),
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SigningKey({})", self.public().fingerprint())
    }
}

/// The seed in a PKCS#8 document of an Ed25519 key: version 1, or version 2 with the public key behind it.
fn ed25519_seed(der: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    const SEED: usize = ED25519_PKCS8.len();
    let head = der.get(..SEED)?;
    // Byte 1 is the length and byte 4 the version: they differ when the public key follows.
    let same = |index: &usize| head[*index] == ED25519_PKCS8[*index];
    let is_ed25519 = (0..SEED)
        .filter(|index| ![1, 4].contains(index))
        .all(|index| same(&index));
    let whole = usize::from(head[1]) + 2 == der.len() && head[1] < 0x80 && head[4] <= 1;
    let seed = der.get(SEED..SEED + 32)?;
    (is_ed25519 && whole).then(|| Zeroizing::new(seed.try_into().expect("32 bytes")))
}

fn names_rsa(der: &[u8]) -> bool {
    let head = &der[..der.len().min(ALGORITHM_BYTES + RSA_ENCRYPTION.len())];
    head.windows(RSA_ENCRYPTION.len())
        .any(|bytes| bytes == RSA_ENCRYPTION)
}

/// The bytes of the one PEM block with this label.
fn body(text: &str, expected: &'static str, hint: fn(&str) -> &'static str) -> Result<Vec<u8>, BadKey> {
    let not_pem = |hint| BadKey::NotPem { expected, hint };
    if text.len() > PEM_BYTES_MAX {
        return Err(not_pem(""));
    }
    let block = pem::parse(text.trim()).map_err(|_| not_pem(""))?;
    if block.tag() != expected {
        return Err(not_pem(hint(block.tag())));
    }
    Ok(block.into_contents())
}

fn written(label: &str, der: Vec<u8>) -> String {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new(label, der), config)
}
