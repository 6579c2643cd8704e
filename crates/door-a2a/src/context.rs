//! Conversations: a context is a space. One that a client names itself belongs to that name and to whoever gives it.

use sha2::{Digest, Sha256};
use toolgate_a2a::error::Error;
use toolgate_access::Principal;
use toolgate_http::Shared;
use toolgate_kernel::id::SpaceId;

use crate::problem::refused;

/// Longest name that a client may give a conversation, in bytes.
pub(crate) const CONTEXT_ID_BYTES_MAX: usize = 512;

/// A conversation that a request names.
pub(crate) struct Context {
    pub space: SpaceId,
    /// What the client calls it, where it is not the id of a space.
    pub name: Option<String>,
}

/// The space of a conversation, if `who` may reach it or it is not there yet. Nobody comes to another's by guessing its
/// name.
pub(crate) async fn find(door: &Shared, who: &Principal, id: &str) -> Result<Context, Error> {
    if let Ok(space) = id.parse::<SpaceId>() {
        let reached = door.access.reach_space(who, space).await;
        reached.map_err(|error| refused(error, ""))?;
        return Ok(Context { space, name: None });
    }
    let space = space_of(who, id);
    if who.user.is_some() {
        let reached = door.access.reach_if_made(who, space, "context").await;
        reached.map_err(|error| refused(error, ""))?;
    }
    Ok(Context {
        space,
        name: Some(id.to_owned()),
    })
}

/// The space that a conversation of this name has.
pub(crate) fn space_of(who: &Principal, id: &str) -> SpaceId {
    if let Ok(space) = id.parse() {
        return space;
    }
    let entity = who.entity().map(|entity| entity.to_string()).unwrap_or_default();
    let owner = format!("{}:{entity}", who.project);
    let hash = ["a2a", &owner, id].iter().fold(Sha256::new(), |hash, text| {
        hash.chain_update(text).chain_update([0])
    });
    let hash = hash.finalize();
    SpaceId::from_bytes(hash[..16].try_into().expect("a hash has 32 bytes"))
}
