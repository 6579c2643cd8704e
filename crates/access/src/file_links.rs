//! Signed links to files: whoever has one may read one version of one file until it expires, without a key. The link
//! says everything by itself and nothing is stored of it; what signs it is a random key of the project, in the store,
//! so that links outlive restarts and hold on every node.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use toolgate_engine::records::Records;
use toolgate_engine::store::StoreError;
use toolgate_engine::workspace::{FileName, Place};
use toolgate_kernel::id::{EntityId, ProjectId, SpaceId};
use toolgate_kernel::time::Time;

use crate::rate::Asker;
use crate::signing_key::SigningKeys;
use crate::{Access, AccessError};

/// Kind of the record that holds a project's key.
const KIND: &str = "file-link-key";
const MAC_BYTES: usize = 32;
/// What is signed begins with this, so that no signature for another purpose is one of a link.
const PURPOSE: &[u8] = b"toolgate file link\0";
/// First byte of a link that a backend made, and of one that a member of the space made.
const BY_BACKEND: u8 = 1;
const BY_MEMBER: u8 = 2;
/// First byte, project, space, maker, version, expiry.
const HEAD_BYTES: usize = 1 + 16 + 16 + 16 + 8 + 8;
/// Longest link: all of the above, the longest name of a file and the signature, in base 64.
const LINK_CHARS_MAX: usize = (HEAD_BYTES + 512 + MAC_BYTES).div_ceil(3) * 4;

/// How long links last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkLimits {
    /// Lifetime of a link whose maker asks for none.
    pub lifetime: Duration,
    /// Longest lifetime.
    pub lifetime_max: Duration,
}

impl Default for LinkLimits {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_secs(15 * 60),
            lifetime_max: Duration::from_secs(24 * 3600),
        }
    }
}

/// What a link leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct FileLink {
    /// Space of the file.
    pub place: Place,
    /// Name of the file.
    pub name: FileName,
    /// Version of the file; never reused, so that a link never leads to other content.
    pub version: u64,
    /// The link works before this time.
    pub expires: Time,
    /// The member of the space who made it; none if a backend did. The link works as long as they are a member.
    pub maker: Option<EntityId>,
}

/// Makes and reads links.
pub struct FileLinks {
    keys: SigningKeys,
    limits: LinkLimits,
}

impl FileLinks {
    /// Links that are signed with keys in `records`.
    pub fn new(records: Arc<dyn Records>, limits: LinkLimits) -> Self {
        let keys = SigningKeys::new(records, KIND);
        Self { keys, limits }
    }

    /// How long links last.
    pub fn limits(&self) -> LinkLimits {
        self.limits
    }

    /// Signs a link. The project's first link makes its key.
    pub async fn sign(&self, link: &FileLink, now: Time) -> Result<String, StoreError> {
        let key = self.keys.find_or_make(link.place.project, now).await?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let mut bytes = encode(link);
        let mac = hmac::sign(&key, &signed(&bytes));
        bytes.extend_from_slice(mac.as_ref());
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// What a link leads to; none if it was not signed here or has expired. Compares signatures in constant time, and
    /// looks at no file: a forged link tells nothing of what exists.
    pub async fn open(&self, text: &str, now: Time) -> Result<Option<FileLink>, StoreError> {
        if text.len() > LINK_CHARS_MAX {
            return Ok(None);
        }
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(text) else {
            return Ok(None);
        };
        let Some((said, mac)) = bytes.split_last_chunk::<MAC_BYTES>() else {
            return Ok(None);
        };
        let Some(link) = decode(said) else {
            return Ok(None);
        };
        let Some(key) = self.keys.find(link.place.project).await? else {
            return Ok(None);
        };
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let genuine = hmac::verify(&key, &signed(said), mac).is_ok();
        Ok(Some(link).filter(|link| genuine && now < link.expires))
    }

    /// Ends every link of a project: those to come are signed with a new key.
    pub async fn end_all(&self, project: ProjectId, now: Time) -> Result<(), StoreError> {
        self.keys.remove(project, now).await
    }
}

impl Access {
    /// Fails unless the maker of a link may still read what it leads to. Counts one request of this link. All links of a
    /// user have the rate of a user together, however many there are, and all that a project's backends made have that of
    /// a secret key, each within the rate of a user. The maker's own requests count apart: whoever has a link uses up none
    /// of them.
    pub async fn reach_linked(&self, link: &FileLink, text: &str) -> Result<(), AccessError> {
        let askers = match link.maker {
            Some(maker) => [Some(Asker::LinksOfUser(maker)), None],
            None => [
                Some(Asker::Link(crate::keys::hash(text))),
                Some(Asker::LinksOfProject(link.place.project)),
            ],
        };
        for asker in askers.into_iter().flatten() {
            self.limiter.check(asker).map_err(AccessError::RateLimited)?;
        }
        let Some(maker) = link.maker else {
            return Ok(());
        };
        let space = self.directory.space(link.place.space).await?;
        match space.is_some_and(|space| space.members.contains(&maker)) {
            true => Ok(()),
            false => Err(AccessError::not_found("link")),
        }
    }
}

fn signed(said: &[u8]) -> Vec<u8> {
    [PURPOSE, said].concat()
}

fn encode(link: &FileLink) -> Vec<u8> {
    let (by, maker) = match link.maker {
        None => (BY_BACKEND, [0; 16]),
        Some(maker) => (BY_MEMBER, maker.to_bytes()),
    };
    let mut bytes = vec![by];
    bytes.extend_from_slice(&link.place.project.to_bytes());
    bytes.extend_from_slice(&link.place.space.to_bytes());
    bytes.extend_from_slice(&maker);
    bytes.extend_from_slice(&link.version.to_be_bytes());
    bytes.extend_from_slice(&link.expires.0.to_be_bytes());
    bytes.extend_from_slice(link.name.as_str().as_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<FileLink> {
    let (by, rest) = bytes.split_first_chunk::<1>()?;
    let (project, rest) = rest.split_first_chunk::<16>()?;
    let (space, rest) = rest.split_first_chunk::<16>()?;
    let (maker, rest) = rest.split_first_chunk::<16>()?;
    let (version, rest) = rest.split_first_chunk::<8>()?;
    let (expires, name) = rest.split_first_chunk::<8>()?;
    let maker = match by[0] {
        BY_BACKEND => None,
        BY_MEMBER => Some(EntityId::from_bytes(*maker)),
        _ => return None,
    };
    Some(FileLink {
        place: Place {
            project: ProjectId::from_bytes(*project),
            space: SpaceId::from_bytes(*space),
        },
        name: std::str::from_utf8(name).ok()?.parse().ok()?,
        version: u64::from_be_bytes(*version),
        expires: Time(i64::from_be_bytes(*expires)),
        maker,
    })
}

#[cfg(test)]
mod tests {
    use toolgate_store::MemoryStore;
    use uuid::Uuid;

    use super::*;

    const NOW: Time = Time(1_000);

    fn link(project: u128) -> FileLink {
        FileLink {
            place: Place {
                project: ProjectId::new(Uuid::from_u128(project)),
                space: SpaceId::new(Uuid::from_u128(7)),
            },
            name: "Küche/plan 1.png".parse().unwrap(),
            version: 3,
            expires: Time(2_000),
            maker: Some(EntityId::new(Uuid::from_u128(9))),
        }
    }

    #[tokio::test]
    async fn a_link_leads_where_it_was_made_for_until_it_expires_also_for_another_node() {
        let store = Arc::new(MemoryStore::new());
        let links = FileLinks::new(store.clone(), LinkLimits::default());
        let text = links.sign(&link(1), NOW).await.unwrap();
        let elsewhere = FileLinks::new(store, LinkLimits::default());
        assert_eq!(elsewhere.open(&text, Time(1_999)).await.unwrap(), Some(link(1)));
        assert_eq!(elsewhere.open(&text, Time(2_000)).await.unwrap(), None);
        let backends = FileLink {
            maker: None,
            ..link(1)
        };
        let text = links.sign(&backends, NOW).await.unwrap();
        assert_eq!(elsewhere.open(&text, NOW).await.unwrap(), Some(backends));
    }

    #[tokio::test]
    async fn no_bit_of_a_link_can_be_changed_and_no_key_opens_another_projects() {
        let links = FileLinks::new(Arc::new(MemoryStore::new()), LinkLimits::default());
        let text = links.sign(&link(1), NOW).await.unwrap();
        links.sign(&link(2), NOW).await.unwrap();
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut forged = bytes.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            let forged = URL_SAFE_NO_PAD.encode(forged);
            assert_eq!(links.open(&forged, NOW).await.unwrap(), None, "bit {bit}");
        }
        let mut moved = bytes.clone();
        moved[1..17].copy_from_slice(&link(2).place.project.to_bytes());
        assert_eq!(
            links.open(&URL_SAFE_NO_PAD.encode(moved), NOW).await.unwrap(),
            None
        );
        for odd in ["", "x", "!!", &text[1..], &"A".repeat(LINK_CHARS_MAX + 1)] {
            assert_eq!(links.open(odd, NOW).await.unwrap(), None, "{odd:?}");
        }
    }

    #[tokio::test]
    async fn ending_all_links_of_a_project_leaves_those_of_others() {
        let links = FileLinks::new(Arc::new(MemoryStore::new()), LinkLimits::default());
        let (mine, theirs) = (
            links.sign(&link(1), NOW).await.unwrap(),
            links.sign(&link(2), NOW).await.unwrap(),
        );
        links.end_all(link(1).place.project, NOW).await.unwrap();
        assert_eq!(links.open(&mine, NOW).await.unwrap(), None);
        assert_eq!(links.open(&theirs, NOW).await.unwrap(), Some(link(2)));
        let again = links.sign(&link(1), NOW).await.unwrap();
        assert_eq!(links.open(&again, NOW).await.unwrap(), Some(link(1)));
        assert_eq!(links.open(&mine, NOW).await.unwrap(), None);
    }
}
