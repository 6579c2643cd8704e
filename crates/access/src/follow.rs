//! Access that lasts: whoever opens a stream passes the same check as whoever goes on with one, and is told at once
//! when it ends.

use std::time::Duration;

use toolgate_engine::revocation::{RevocationWatch, Revoked};
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::{SessionId, SpaceId};
use toolgate_kernel::tool::Decider;

use crate::{Access, AccessError, Principal};

/// The right to follow a space, for as long as it holds.
pub struct Pass {
    who: Principal,
    space: SpaceId,
    /// Who the reader is to the questions of the space, by its role when it was let in.
    reader: Decider,
    revocations: RevocationWatch,
}

/// What has become of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It holds.
    Holds,
    /// The reader has another role in the space: what it may see is decided anew when it comes back.
    RoleChanged,
    /// It holds no longer.
    Ended,
    /// The store does not say. Nothing more may be read now, but the reader may come back.
    Unknown,
}

impl Access {
    /// Lets `who` follow a space, or read again what it was once told of it.
    pub async fn admit(&self, who: &Principal, space: SpaceId) -> Result<Pass, AccessError> {
        // Watched before it is checked: what is revoked in between is not missed.
        let revocations = self.revocations.watch();
        self.reach_space(who, space).await?;
        let pass = Pass {
            who: who.clone(),
            space,
            reader: self.decider(who, space).await?,
            revocations,
        };
        match self.standing(&pass).await? {
            Standing::Ended | Standing::Unknown => Err(AccessError::unauthenticated(ENDED)),
            Standing::Holds | Standing::RoleChanged => Ok(pass),
        }
    }

    /// The standing of a pass that may have been revoked: without an answer of the store it does not hold.
    pub async fn standing_in_doubt(&self, pass: &Pass) -> Standing {
        self.standing(pass).await.unwrap_or(Standing::Unknown)
    }

    /// Whether the pass still holds: a key may be removed, a token expires, a member may be taken out or be given another
    /// role.
    pub async fn standing(&self, pass: &Pass) -> Result<Standing, StoreError> {
        let Pass { who, space, .. } = pass;
        if !self.is_somebody(who).await? {
            return Ok(Standing::Ended);
        }
        if who.user.is_none() {
            return Ok(match self.directory.space(*space).await? {
                Some(_) => Standing::Holds,
                None => Standing::Ended,
            });
        }
        if !self.is_member(who, *space).await? {
            return Ok(Standing::Ended);
        }
        Ok(match self.decider(who, *space).await? == pass.reader {
            true => Standing::Holds,
            false => Standing::RoleChanged,
        })
    }
}

impl Access {
    /// Ends when `who` is nobody any longer: its key, session or project was removed, or its token has expired. For streams
    /// that belong to no space; looked at every `beat`, and at once when something is revoked.
    pub async fn until_ended(&self, who: &Principal, beat: Duration) {
        let mut revocations = self.revocations.watch();
        let (key, project, session) = (who.key.map(|key| key.id), who.project, session_of(who));
        loop {
            // A store that does not answer now is no reason to end what was let in.
            if !self.is_somebody(who).await.unwrap_or(true) {
                return;
            }
            let revoked = revocations.next(move |revoked: &Revoked| match revoked {
                Revoked::Key(removed) => key == Some(*removed),
                Revoked::Project(removed) => *removed == project,
                Revoked::Member { .. } | Revoked::Space(_) | Revoked::Words(_) | Revoked::Entity(_) => false,
                Revoked::Session(ended) => session == Some(*ended),
            });
            // Either is a reason to look, and an end of the wait is no error.
            let _ = tokio::time::timeout(beat, revoked).await;
        }
    }

    async fn is_somebody(&self, who: &Principal) -> Result<bool, StoreError> {
        if let Some(key) = who.key
            && self.key_of_hash(key.hash).await?.is_none()
        {
            return Ok(false);
        }
        if let Some(shown) = &who.session
            && !self.session_holds(shown).await?
        {
            return Ok(false);
        }
        let expires = who.user.as_ref().map(|user| user.expires);
        Ok(expires.is_none_or(|expires| self.clock.now() < expires))
    }
}

/// What somebody is told whose access has ended.
pub const ENDED: &str = "no longer allowed: the key, the session, the membership or the space was removed, or the token has expired";

impl Pass {
    /// Who the reader was to the questions of the space when it was let in.
    pub fn reader(&self) -> &Decider {
        &self.reader
    }

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
    let session = session_of(who);
    move |revoked| match revoked {
        Revoked::Key(removed) => key == Some(*removed),
        Revoked::Member { space: left, member } => *left == space && entity == Some(*member),
        Revoked::Project(removed) => *removed == project,
        Revoked::Session(ended) => session == Some(*ended),
        Revoked::Space(deleted) => *deleted == space,
        Revoked::Entity(deleted) => entity == Some(*deleted),
        Revoked::Words(_) => false,
    }
}

fn session_of(who: &Principal) -> Option<SessionId> {
    who.session.as_ref().map(|shown| shown.session.id)
}
