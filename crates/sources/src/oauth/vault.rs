//! Encryption of what is stored: AES-256-GCM, bound to what it belongs to.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// The key that encrypts tokens at rest. Never printed.
#[derive(Clone)]
pub struct EncryptionKey([u8; KEY_BYTES]);

impl EncryptionKey {
    /// A new key.
    pub fn generate() -> Self {
        let mut key = [0; KEY_BYTES];
        rand::fill(&mut key).expect("the machine has randomness");
        Self(key)
    }

    /// Reads a key of 32 bytes in Base64, as `openssl rand -base64 32` writes it.
    pub fn read(text: &str) -> Result<Self, String> {
        let bytes = BASE64_STANDARD.decode(text.trim()).ok();
        let key = bytes.and_then(|bytes| bytes.try_into().ok());
        let words = "expected 32 bytes in Base64, as `openssl rand -base64 32` writes them";
        key.map(Self).ok_or_else(|| words.to_owned())
    }

    /// In Base64, for the file that keeps it.
    pub fn write(&self) -> String {
        BASE64_STANDARD.encode(self.0)
    }
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// Encrypts and decrypts.
pub(crate) struct Vault(LessSafeKey);

impl Vault {
    pub fn new(key: &EncryptionKey) -> Self {
        let key =
            UnboundKey::new(&AES_256_GCM, &key.0).expect("the key has the length that the algorithm wants");
        Self(LessSafeKey::new(key))
    }

    /// Encrypts. What is opened with another `context` than it was sealed with cannot be read.
    pub fn seal(&self, context: &str, plain: &[u8]) -> Vec<u8> {
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).expect("the machine has randomness");
        let mut sealed = plain.to_vec();
        let aad = Aad::from(context.as_bytes());
        let done = self
            .0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed);
        done.expect("a record is shorter than the algorithm's limit");
        [nonce.to_vec(), sealed].concat()
    }

    /// What was sealed with this key and in this context, if it was.
    pub fn open(&self, context: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut plain = sealed.to_vec();
        let opened = self
            .0
            .open_in_place(nonce, Aad::from(context.as_bytes()), &mut plain);
        Some(opened.ok()?.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_and_context_open_what_was_sealed() {
        let key = EncryptionKey::generate();
        let vault = Vault::new(&key);
        let sealed = vault.seal("tokens of a", b"secret");
        assert!(!sealed.windows(6).any(|part| part == b"secret"));
        assert_eq!(
            vault.open("tokens of a", &sealed).as_deref(),
            Some(&b"secret"[..])
        );
        assert_eq!(vault.open("tokens of b", &sealed), None);
        assert_eq!(
            Vault::new(&EncryptionKey::generate()).open("tokens of a", &sealed),
            None
        );
        let mut changed = sealed.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(vault.open("tokens of a", &changed), None);
        let read = EncryptionKey::read(&key.write()).unwrap();
        assert!(Vault::new(&read).open("tokens of a", &sealed).is_some());
    }

    #[test]
    fn a_key_of_another_length_is_refused() {
        assert!(EncryptionKey::read("c2hvcnQ=").is_err());
        assert!(EncryptionKey::read("not base64").is_err());
    }
}
