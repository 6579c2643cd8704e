//! Whose legacy sessions are, and which one gives way to a new one where there are too many: first one of the same caller,
//! then one of the project that has most of all, and in it of the caller that has most. So whoever opens many closes their
//! own, and others do not notice.

use std::collections::HashMap;
use std::hash::Hash;

use tokio::time::Instant;
use toolgate_access::Principal;
use toolgate_kernel::id::{EntityId, KeyId, ProjectId};

/// Who began a session: nobody else may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    project: ProjectId,
    entity: Option<EntityId>,
    key: Option<KeyId>,
}

impl Owner {
    pub fn of(who: &Principal) -> Self {
        Self {
            project: who.project,
            entity: who.entity(),
            key: who.key.map(|key| key.id()),
        }
    }
}

/// A session that somebody has.
pub(crate) struct Held {
    pub owner: Owner,
    /// When it was last used.
    pub used: Instant,
}

/// How many sessions there may be.
pub(crate) struct SessionLimits {
    /// Of one user.
    pub user: usize,
    /// Of one secret key, which many people may share.
    pub key: usize,
    /// Of all callers.
    pub all: usize,
}

impl SessionLimits {
    /// The session that gives way to one more of this caller, if one has to.
    pub fn gives_way(&self, sessions: &HashMap<String, Held>, newcomer: Owner) -> Option<String> {
        let most = match newcomer.entity {
            Some(_) => self.user,
            None => self.key,
        };
        let own = sessions.values().filter(|held| held.owner == newcomer).count();
        if own >= most {
            return oldest(sessions, |owner| owner == newcomer);
        }
        if sessions.len() < self.all {
            return None;
        }
        // The newcomer counts: of two projects with as many, its own gives way.
        let owners = || sessions.values().map(|held| held.owner).chain([newcomer]);
        let project = largest(owners().map(|owner| owner.project), newcomer.project);
        let of_project = owners().filter(|owner| owner.project == project);
        let caller = largest(of_project, newcomer);
        oldest(sessions, |owner| owner == caller)
            .or_else(|| oldest(sessions, |owner| owner.project == project))
            .or_else(|| oldest(sessions, |_| true))
    }
}

/// What occurs most often; of those that occur as often as `preferred`, that one.
fn largest<T: Hash + Eq + Copy>(all: impl Iterator<Item = T>, preferred: T) -> T {
    let mut counts: HashMap<T, usize> = HashMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    let largest = counts
        .into_iter()
        .max_by_key(|(one, count)| (*count, *one == preferred));
    largest.map_or(preferred, |(one, _)| one)
}

fn oldest(sessions: &HashMap<String, Held>, of: impl Fn(Owner) -> bool) -> Option<String> {
    let held = sessions.iter().filter(|(_, held)| of(held.owner));
    let oldest = held.min_by_key(|(_, held)| held.used);
    oldest.map(|(id, _)| id.clone())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use uuid::Uuid;

    const LIMITS: SessionLimits = SessionLimits {
        user: 3,
        key: 4,
        all: 6,
    };

    fn owner(project: u128, user: u128) -> Owner {
        Owner {
            project: ProjectId::new(Uuid::from_u128(project)),
            entity: Some(EntityId::new(Uuid::from_u128(user))),
            key: None,
        }
    }

    /// Sessions by their owners, from the one that was used longest ago.
    fn check(held: &[(&str, Owner)], newcomer: Owner, expected: Option<&str>) {
        let start = Instant::now();
        let sessions = held.iter().zip(1..).map(|((id, owner), age)| {
            let used = start + Duration::from_secs(age);
            (id.to_string(), Held { owner: *owner, used })
        });
        let gives_way = LIMITS.gives_way(&sessions.collect(), newcomer);
        assert_eq!(gives_way.as_deref(), expected);
    }

    #[test]
    fn nobody_gives_way_while_there_is_room() {
        check(&[("a", owner(1, 1)), ("b", owner(1, 1))], owner(1, 1), None);
    }

    #[test]
    fn the_oldest_of_the_same_user_gives_way() {
        let (ann, bob) = (owner(1, 1), owner(1, 2));
        check(
            &[("b", bob), ("a1", ann), ("a2", ann), ("a3", ann)],
            ann,
            Some("a1"),
        );
    }

    #[test]
    fn a_project_with_few_takes_from_the_one_with_most() {
        let (greedy, other, few) = (owner(1, 1), owner(1, 2), owner(2, 3));
        let held = [
            ("few", few),
            ("other", other),
            ("g1", greedy),
            ("g2", greedy),
            ("g3", greedy),
            ("last", owner(1, 4)),
        ];
        // Neither the oldest of all nor the oldest of the project: one of the user who has most.
        check(&held, owner(2, 5), Some("g1"));
        check(&held, owner(3, 6), Some("g1"));
    }

    #[test]
    fn a_project_with_most_takes_from_itself() {
        let held = [
            ("few", owner(2, 9)),
            ("1", owner(1, 1)),
            ("2", owner(1, 2)),
            ("3", owner(1, 3)),
            ("4", owner(1, 4)),
            ("5", owner(1, 5)),
        ];
        check(&held, owner(1, 6), Some("1"));
    }
}
