//! How many peers there are: of this node, of each project and of each user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use toolgate_access::Principal;
use toolgate_http::problem::Refusal;
use toolgate_kernel::id::{EntityId, ProjectId};

use crate::RtcLimits;

/// Counts peers.
#[derive(Default)]
pub(crate) struct PeerShares(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    all: usize,
    projects: HashMap<ProjectId, usize>,
    users: HashMap<(ProjectId, EntityId), usize>,
}

/// The right to one peer, until it is dropped.
pub(crate) struct PeerShare {
    of: Arc<PeerShares>,
    project: ProjectId,
    user: Option<EntityId>,
}

impl PeerShares {
    /// The right to one more peer, or which limit stands against it.
    pub fn take(self: &Arc<Self>, who: &Principal, limits: &RtcLimits) -> Result<PeerShare, Refusal> {
        let (project, user) = (who.project, who.entity());
        let mut counts = self.lock();
        let of_user = user.map_or(0, |user| counts.users.get(&(project, user)).copied().unwrap_or(0));
        if of_user >= limits.peers_per_user {
            return Err(too_many("one user", limits.peers_per_user, "rtc.peers_per_user"));
        }
        if counts.projects.get(&project).copied().unwrap_or(0) >= limits.peers_per_project {
            let (max, setting) = (limits.peers_per_project, "rtc.peers_per_project");
            return Err(too_many("the project on this node", max, setting));
        }
        if counts.all >= limits.peers_max {
            return Err(Refusal::unavailable(format!(
                "{} data channels are open, which is the most for this node; see rtc.peers_max",
                limits.peers_max
            )));
        }
        counts.all += 1;
        *counts.projects.entry(project).or_default() += 1;
        if let Some(user) = user {
            *counts.users.entry((project, user)).or_default() += 1;
        }
        Ok(PeerShare {
            of: self.clone(),
            project,
            user,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn too_many(whose: &str, max: usize, setting: &str) -> Refusal {
    let detail =
        format!("{max} data channels are open, which is the most for {whose}; close one, or see {setting}");
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_PEERS", detail)
}

impl Drop for PeerShare {
    fn drop(&mut self) {
        let mut counts = self.of.lock();
        counts.all -= 1;
        give_back(&mut counts.projects, self.project);
        if let Some(user) = self.user {
            give_back(&mut counts.users, (self.project, user));
        }
    }
}

fn give_back<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_takes_no_more_than_its_share_and_gives_it_back() {
        let limits = RtcLimits {
            peers_max: 3,
            peers_per_project: 2,
            ..RtcLimits::default()
        };
        let shares = Arc::new(PeerShares::default());
        let backend = |number| Principal::backend(ProjectId::from_bytes([number; 16]));
        let mine = [(); 2].map(|()| shares.take(&backend(1), &limits).unwrap());
        let refused = |number| {
            let refusal = shares.take(&backend(number), &limits).err().unwrap();
            refusal.into_body().status
        };
        assert_eq!(refused(1), 429);
        let _other = shares.take(&backend(2), &limits).unwrap();
        assert_eq!(refused(3), 503);
        drop(mine);
        assert!(shares.take(&backend(3), &limits).is_ok());
        assert_eq!(shares.lock().projects.len(), 1, "what nobody has is forgotten");
    }
}
