//! Tickets: what a login link and a session cookie hold. A ticket names its record and proves it with a secret; the
//! store keeps the secret's hash alone.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolgate_kernel::id::ProjectId;
use uuid::Uuid;

const SECRET_BYTES: usize = 32;
/// Purpose, project, id and secret.
const BYTES: usize = 1 + 16 + 16 + SECRET_BYTES;

/// What a ticket is for. One for another purpose is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    LoginCode = 1,
    Session = 2,
}

/// A ticket that somebody shows, or that was just made.
#[derive(Clone, PartialEq)]
pub(crate) struct Ticket {
    pub project: ProjectId,
    pub id: [u8; 16],
    secret: [u8; SECRET_BYTES],
}

/// SHA-256 of a ticket's secret, in base 64.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SecretHash(String);

impl Ticket {
    /// A ticket with a fresh id and a random secret.
    pub fn make(project: ProjectId) -> Self {
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret).expect("the system gives random bytes");
        Self {
            project,
            id: *Uuid::now_v7().as_bytes(),
            secret,
        }
    }

    /// Reads what [`Self::text`] wrote for the same purpose.
    pub fn read(text: &str, purpose: Purpose) -> Option<Self> {
        // Checked before it is decoded: whoever sends much has it read no further.
        if text.len() != BYTES.div_ceil(3) * 4 - (3 - BYTES % 3) % 3 {
            return None;
        }
        let bytes: [u8; BYTES] = URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
        let (head, rest) = bytes.split_first_chunk::<1>()?;
        let (project, rest) = rest.split_first_chunk::<16>()?;
        let (id, secret) = rest.split_first_chunk::<16>()?;
        (head[0] == purpose as u8).then_some(Self {
            project: ProjectId::from_bytes(*project),
            id: *id,
            secret: secret.try_into().ok()?,
        })
    }

    /// The ticket as text for an address or a cookie.
    pub fn text(&self, purpose: Purpose) -> String {
        let mut bytes = vec![purpose as u8];
        bytes.extend_from_slice(&self.project.to_bytes());
        bytes.extend_from_slice(&self.id);
        bytes.extend_from_slice(&self.secret);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// What the store keeps of the secret.
    pub fn hash(&self) -> SecretHash {
        SecretHash(URL_SAFE_NO_PAD.encode(Sha256::digest(self.secret)))
    }

    /// Whether the store keeps the hash of this secret. Compares in constant time.
    pub fn proves(&self, stored: &SecretHash) -> bool {
        verify_slices_are_equal(self.hash().0.as_bytes(), stored.0.as_bytes()).is_ok()
    }

    /// Another secret, which only whoever knows this one can compute.
    pub fn derived(&self, label: &[u8]) -> String {
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &self.secret);
        URL_SAFE_NO_PAD.encode(aws_lc_rs::hmac::sign(&key, label))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_read_for_its_purpose_alone_and_proved_by_its_secret_alone() {
        let ticket = Ticket::make(ProjectId::new(Uuid::from_u128(7)));
        let text = ticket.text(Purpose::Session);
        assert!(Ticket::read(&text, Purpose::Session).is_some_and(|read| read == ticket));
        assert!(Ticket::read(&text, Purpose::LoginCode).is_none());
        assert!(ticket.proves(&ticket.hash()));
        let other = Ticket::make(ticket.project);
        assert!(!other.proves(&ticket.hash()));
        assert_ne!(other.derived(b"x"), ticket.derived(b"x"));
        for odd in ["", "x", &text[1..], &format!("{text}A"), &"!".repeat(text.len())] {
            assert!(Ticket::read(odd, Purpose::Session).is_none(), "{odd:?}");
        }
    }
}
