//! Access that ends, told at once to whoever serves somebody who had it: on this node by a channel, on the others by the
//! bus. A notice that is lost costs time only, because a stream also looks by itself from time to time.

use std::collections::VecDeque;

use tokio::sync::watch;
use toolgate_kernel::call::CallState;
use toolgate_kernel::event::Status;
use toolgate_kernel::id::{EntityId, KeyId, ProjectId, SessionId, SpaceId};
use toolgate_kernel::tool::Decider;

use crate::bus::Notice;
use crate::intake::IntakeError;
use crate::store::{RunFilter, RunRecord, StoreError};
use crate::{Engine, Inner};

/// Revocations that are remembered. Who has missed more than that looks in the store.
const RECENT_MAX: usize = 256;
/// Open runs of a space that are read at once.
const OPEN_RUNS_PAGE: usize = 500;

/// Access that has ended. It may have been given again since: the store knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    /// A key was removed.
    Key(KeyId),
    /// An entity was taken out of a space, or has another role there.
    Member {
        /// The space.
        space: SpaceId,
        /// Who is or was a member of it.
        member: EntityId,
    },
    /// A project was removed.
    Project(ProjectId),
    /// A session was ended.
    Session(SessionId),
    /// A space was deleted.
    Space(SpaceId),
    /// Runs of a space were deleted, or words in it.
    Words(SpaceId),
    /// An entity was deleted.
    Entity(EntityId),
}

/// What was revoked, for all who serve. Cheap to clone.
#[derive(Clone)]
pub struct Revocations(watch::Sender<Recent>);

#[derive(Default)]
struct Recent {
    /// How many there were in all.
    count: u64,
    /// The newest of them, oldest first.
    last: VecDeque<Revoked>,
}

impl Default for Revocations {
    fn default() -> Self {
        Self(watch::Sender::new(Recent::default()))
    }
}

impl Revocations {
    /// Tells everybody on this node.
    pub fn publish(&self, revoked: Revoked) {
        self.0.send_modify(|recent| {
            recent.count += 1;
            recent.last.push_back(revoked);
            if recent.last.len() > RECENT_MAX {
                recent.last.pop_front();
            }
        });
    }

    /// Something may have been revoked that nobody here was told of: everybody looks in the store.
    pub(crate) fn doubt(&self) {
        self.0.send_modify(|recent| {
            // More than is remembered, so whoever watches cannot know what it missed.
            recent.count += RECENT_MAX as u64 + 1;
            recent.last.clear();
        });
    }

    /// How many there were: what was read before the last one may be out of date.
    pub fn count(&self) -> u64 {
        self.0.borrow().count
    }

    /// Watches what is revoked from now on.
    pub fn watch(&self) -> RevocationWatch {
        let recent = self.0.subscribe();
        let seen = recent.borrow().count;
        RevocationWatch { recent, seen }
    }
}

/// What was revoked since somebody began to watch.
pub struct RevocationWatch {
    recent: watch::Receiver<Recent>,
    seen: u64,
}

impl RevocationWatch {
    /// Whether something was revoked, since the last look, that `is_it`; also when more was than is remembered.
    pub fn concerns(&mut self, is_it: impl Fn(&Revoked) -> bool) -> bool {
        // The usual case is one atomic read.
        self.recent.has_changed().unwrap_or(false) && self.look(is_it)
    }

    /// Ends when something is revoked that `is_it`.
    pub async fn next(&mut self, is_it: impl Fn(&Revoked) -> bool) {
        while self.recent.changed().await.is_ok() {
            if self.look(&is_it) {
                return;
            }
        }
        // Nobody is left who could revoke anything.
        std::future::pending().await
    }

    fn look(&mut self, is_it: impl Fn(&Revoked) -> bool) -> bool {
        let recent = self.recent.borrow_and_update();
        let new = (recent.count - self.seen) as usize;
        self.seen = recent.count;
        new > recent.last.len() || recent.last.iter().rev().take(new).any(is_it)
    }
}

impl Inner {
    /// Tells everybody on every node. Called when it is stored.
    pub(crate) fn revoke(&self, revoked: Revoked) {
        self.revoked(revoked);
        self.bus.publish(self.settings.node, &Notice::Revoked(revoked));
    }

    /// Forgets what is in memory of it, and tells everybody on this node.
    pub(crate) fn revoked(&self, revoked: Revoked) {
        match revoked {
            Revoked::Space(space) | Revoked::Words(space) => self.pasts.forget(space),
            Revoked::Entity(entity) => self.user_tokens.forget_user(entity),
            // Nothing that was said in it stays in memory.
            Revoked::Project(_) => self.pasts.clear(),
            Revoked::Key(_) | Revoked::Member { .. } | Revoked::Session(_) => {}
        }
        self.revocations.publish(revoked);
    }
}

impl Engine {
    /// Tells every node that a session was ended: what is followed with it ends.
    pub fn session_ended(&self, session: SessionId) {
        self.inner.revoke(Revoked::Session(session));
    }

    /// Ends what a former member of a space has under way there: calls that it asked for are cancelled, and what it has
    /// claimed is offered again.
    pub(crate) async fn end_work_of(&self, space: SpaceId, member: EntityId) -> Result<(), StoreError> {
        let Some(record) = self.inner.store.space(space).await? else {
            return Ok(());
        };
        let mut before = None;
        loop {
            let filter = RunFilter {
                space: Some(space),
                statuses: Status::OPEN.to_vec(),
                before,
                limit: OPEN_RUNS_PAGE,
                ..RunFilter::default()
            };
            let open = self.inner.store.runs(record.project, filter).await?;
            for run in open.runs {
                self.end_work_in(&run, member).await?;
            }
            before = open.next;
            if before.is_none() {
                return Ok(());
            }
        }
    }

    async fn end_work_in(&self, run: &RunRecord, member: EntityId) -> Result<(), StoreError> {
        let uncounted = |_| Ok::<_, StoreError>(());
        let state = self.run_state(run.id, &Decider::Backend, uncounted).await?;
        // A run that is one call answers whoever asked for it, and nobody else has a part in it.
        if run.tool.is_some() && run.parent.is_none() && state.speaker() == Some(member) {
            return unless_settled(self.cancel(run.id).await);
        }
        let below = state.pending_below().map(|(_, call)| call);
        for call in state.calls().iter().chain(below) {
            let CallState::Open {
                claim: Some(claim), ..
            } = &call.state
            else {
                continue;
            };
            if claim.by == Some(member) {
                let released = self.release_call(call.tool.call, claim.holder.clone(), claim.by);
                unless_settled(released.await)?;
            }
        }
        Ok(())
    }
}

/// A refusal means that the run has moved since it was read: the call was settled, or somebody else has it. At worst a
/// lease runs out.
fn unless_settled<T>(done: Result<T, IntakeError>) -> Result<(), StoreError> {
    match done {
        Err(IntakeError::Store(error)) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> Revoked {
        Revoked::Key(KeyId::from_bytes([number; 16]))
    }

    #[tokio::test]
    async fn a_watch_sees_what_comes_after_it_and_doubts_when_it_missed_something() {
        let revocations = Revocations::default();
        revocations.publish(key(1));
        let mut watch = revocations.watch();
        assert!(!watch.concerns(|_| true), "that was before");
        revocations.publish(key(2));
        revocations.publish(key(3));
        assert!(watch.concerns(|revoked| *revoked == key(2)));
        assert!(!watch.concerns(|_| true), "it was looked at");
        revocations.publish(key(4));
        assert!(!watch.concerns(|revoked| *revoked == key(3)));
        let mut other = revocations.watch();
        revocations.publish(key(5));
        other.next(|revoked| *revoked == key(5)).await;
        for _ in 0..=RECENT_MAX {
            revocations.publish(key(6));
        }
        assert!(watch.concerns(|_| false), "nobody knows what it missed");
        assert_eq!(revocations.count(), 5 + RECENT_MAX as u64 + 1);
    }
}
