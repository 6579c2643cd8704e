//! Access that lasts: whoever opens a stream passes the same check as whoever goes on with one, and is told at once
//! when it ends.

use toolgate_engine::revocation::{RevocationWatch, Revoked};
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::SpaceId;

use crate::{Access, AccessError, Principal};

/// The right to follow a space, for as long as it holds.
pub struct Pass {
    who: Principal,
    space: SpaceId,
    revocations: RevocationWatch,
}

impl Access {
    /// Lets `who` follow a space, or read again what it was once told of it.
    pub async fn admit(&self, who: &Principal, space: SpaceId) -> Result<Pass, AccessError> {
        // Watched before it is checked: what is revoked in between is not missed.
        let pass = Pass {
            who: who.clone(),
            space,
            revocations: self.revocations.watch(),
        };
        self.reach_space(who, space).await?;
        match self.still_holds(&pass).await? {
            true => Ok(pass),
            false => Err(AccessError::unauthenticated(ENDED)),
        }
    }

    /// Whether the pass still holds: a key may be removed, a token expires, a member may be taken out.
    pub async fn still_holds(&self, pass: &Pass) -> Result<bool, StoreError> {
        let Pass { who, space, .. } = pass;
        if let Some(key) = who.key
            && self.key_of_hash(key.hash).await?.is_none()
        {
            return Ok(false);
        }
        match &who.user {
            None => Ok(true),
            Some(user) => Ok(self.clock.now() < user.expires && self.is_member(who, *space).await?),
        }
    }
}

/// What somebody is told whose access has ended.
pub const ENDED: &str = "no longer allowed: the key or the membership was removed, or the token has expired";

impl Pass {
    /// Whether something was revoked that the pass depends on. It has to be looked up then.
    pub fn is_doubtful(&mut self) -> bool {
        self.revocations.concerns(concerns(&self.who, self.space))
    }

    /// Ends when something is revoked that the pass depends on.
    pub async fn doubt(&mut self) {
        self.revocations.next(concerns(&self.who, self.space)).await;
    }
}

fn concerns(who: &Principal, space: SpaceId) -> impl Fn(&Revoked) -> bool {
    let (key, entity, project) = (who.key.map(|key| key.id), who.entity(), who.project);
    move |revoked| match revoked {
        Revoked::Key(removed) => key == Some(*removed),
        Revoked::Member { space: left, member } => *left == space && entity == Some(*member),
        Revoked::Project(removed) => *removed == project,
    }
}
