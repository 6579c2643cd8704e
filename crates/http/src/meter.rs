//! Something that there is only so much of, counted: bytes of bodies and answers in memory, open streams. There is a
//! limit for all callers together and a lower one for each user, so that no user takes everything.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolgate_access::Principal;
use toolgate_kernel::id::{EntityId, ProjectId};

/// Counts what is taken of a resource.
#[derive(Debug)]
pub struct Meter {
    limits: MeterLimits,
    taken: Mutex<Taken>,
}

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeterLimits {
    /// For all callers together.
    pub all: usize,
    /// For one user with a public key. A backend has no limit of its own.
    pub user: usize,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    users: HashMap<Whose, usize>,
}

type Whose = (ProjectId, EntityId);

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The one for all callers.
    All,
    /// The user's own.
    User,
}

impl Meter {
    /// Nothing is taken yet.
    pub fn new(limits: MeterLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            taken: Mutex::default(),
        })
    }

    /// How much there is.
    pub fn limits(&self) -> MeterLimits {
        self.limits
    }

    /// Takes nothing yet, for whoever asks.
    pub fn open(self: &Arc<Self>, who: Option<&Principal>) -> Metered {
        let user = who.and_then(|who| Some((who.project, who.entity()?)));
        Metered {
            of: self.clone(),
            user,
            amount: 0,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one request has taken. It is given back when this is dropped.
#[derive(Debug)]
pub struct Metered {
    of: Arc<Meter>,
    user: Option<Whose>,
    amount: usize,
}

impl Metered {
    /// Takes `more`, or nothing if that is too much.
    pub fn take(&mut self, more: usize) -> Result<(), Over> {
        let limits = self.of.limits;
        let mut taken = self.of.lock();
        if let Some(user) = self.user {
            let mine = taken.users.get(&user).copied().unwrap_or(0);
            if mine + more > limits.user {
                return Err(Over::User);
            }
        }
        if taken.all.saturating_add(more) > limits.all {
            return Err(Over::All);
        }
        if more == 0 {
            return Ok(());
        }
        taken.all += more;
        if let Some(user) = self.user {
            *taken.users.entry(user).or_default() += more;
        }
        self.amount += more;
        Ok(())
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Metered {
    /// Gives back everything that was taken.
    pub fn give_back(&mut self) {
        if self.amount == 0 {
            return;
        }
        let mut taken = self.of.lock();
        taken.all -= self.amount;
        if let Some(user) = self.user
            && let Some(mine) = taken.users.get_mut(&user)
        {
            *mine -= self.amount;
            if *mine == 0 {
                taken.users.remove(&user);
            }
        }
        self.amount = 0;
    }
}

#[cfg(test)]
mod tests {
    use toolgate_access::User;
    use toolgate_kernel::agent::Secret;
    use toolgate_kernel::time::Time;

    use super::*;

    fn user(number: u8) -> Principal {
        Principal {
            user: Some(User {
                entity: EntityId::from_bytes([number; 16]),
                expires: Time(0),
                token: Secret::new("none"),
                groups: Arc::default(),
                roles: Arc::default(),
                time_zone: None,
            }),
            ..Principal::backend(ProjectId::from_bytes([1; 16]))
        }
    }

    #[test]
    fn a_user_takes_no_more_than_its_share_and_gives_it_back() {
        let shares = Meter::new(MeterLimits { all: 10, user: 4 });
        let mut mine = shares.open(Some(&user(1)));
        assert_eq!(mine.take(4), Ok(()));
        assert_eq!(shares.open(Some(&user(1))).take(1), Err(Over::User));
        let mut others = shares.open(Some(&user(2)));
        assert_eq!(others.take(4), Ok(()));
        let mut backends = shares.open(Some(&Principal::backend(ProjectId::from_bytes([1; 16]))));
        assert_eq!(backends.take(3), Err(Over::All));
        assert_eq!(backends.take(2), Ok(()));
        drop(mine);
        assert_eq!(shares.open(Some(&user(1))).take(4), Ok(()));
        drop((others, backends));
        let taken = shares.lock();
        assert!(taken.all == 0 && taken.users.is_empty(), "{taken:?}");
    }
}
