//! Whose the tasks of a server are. A server that knows the gateway's credentials alone would show every task to everybody.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use super::owner::Owner;

/// Tasks of one owner that are remembered. One more, and the oldest of the same owner is forgotten: nobody's tasks push out
/// another's.
const TASKS_PER_OWNER: usize = 1_000;
/// Owners whose tasks are remembered. One more, and the one whose first task is the oldest is forgotten.
const OWNERS_MAX: usize = 1_000;

/// Stands for the id of a task, which is as long as its server likes.
type TaskDigest = [u8; 32];

/// Owners of tasks.
#[derive(Default)]
pub(super) struct TaskOwners(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    owners: HashMap<TaskDigest, Owner>,
    tasks: HashMap<Owner, VecDeque<TaskDigest>>,
    /// Owners by their first task.
    order: VecDeque<Owner>,
}

impl TaskOwners {
    /// Remembers whose a task is. A task that is another's stays theirs, whatever a server says.
    pub(super) fn remember(&self, task: &str, owner: Owner) {
        let task = digest(task);
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.owners.contains_key(&task) {
            return;
        }
        remembered.make_room(owner);
        remembered.owners.insert(task, owner);
        remembered.tasks.entry(owner).or_default().push_back(task);
    }

    /// Whether a task may be one of this owner. Of a task that the gateway has not seen nothing is known: a user's is not.
    pub(super) fn may_own(&self, task: &str, owner: Owner) -> bool {
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match remembered.owners.get(&digest(task)) {
            Some(known) => *known == owner,
            None => owner.user.is_none(),
        }
    }
}

impl Remembered {
    fn make_room(&mut self, owner: Owner) {
        if let Some(tasks) = self.tasks.get_mut(&owner) {
            if tasks.len() >= TASKS_PER_OWNER
                && let Some(oldest) = tasks.pop_front()
            {
                self.owners.remove(&oldest);
            }
            return;
        }
        self.order.push_back(owner);
        if self.order.len() > OWNERS_MAX
            && let Some(gone) = self.order.pop_front()
        {
            for task in self.tasks.remove(&gone).unwrap_or_default() {
                self.owners.remove(&task);
            }
        }
    }
}

fn digest(task: &str) -> TaskDigest {
    Sha256::digest(task).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_kernel::id::{EntityId, ProjectId};
    use uuid::Uuid;

    fn user(number: u128) -> Owner {
        Owner {
            project: ProjectId::new(Uuid::from_u128(1)),
            user: Some(EntityId::new(Uuid::from_u128(number))),
        }
    }

    #[test]
    fn the_tasks_of_one_user_push_out_nobody_elses() {
        let owners = TaskOwners::default();
        owners.remember("ann's", user(1));
        for number in 0..2 * TASKS_PER_OWNER {
            owners.remember(&format!("bob's {number}"), user(2));
        }
        assert!(owners.may_own("ann's", user(1)));
        assert!(!owners.may_own("bob's 0", user(2)), "the oldest is forgotten");
        assert!(owners.may_own(&format!("bob's {}", 2 * TASKS_PER_OWNER - 1), user(2)));
        assert_eq!(owners.0.lock().unwrap().owners.len(), TASKS_PER_OWNER + 1);
    }

    #[test]
    fn a_task_stays_its_first_owners() {
        let owners = TaskOwners::default();
        owners.remember("task", user(1));
        owners.remember("task", user(2));
        assert!(owners.may_own("task", user(1)));
        assert!(!owners.may_own("task", user(2)));
        assert!(!owners.may_own("unseen", user(1)));
    }
}
