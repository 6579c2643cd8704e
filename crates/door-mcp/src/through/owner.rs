//! Whose session, connection or call something is.

use toolgate_access::Principal;
use toolgate_kernel::id::{EntityId, ProjectId};

/// A user, or the backends of a project: nobody else may go on with what it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    pub(super) project: ProjectId,
    pub(super) user: Option<EntityId>,
}

impl Owner {
    pub(super) fn of(who: &Principal) -> Self {
        Self {
            project: who.project,
            user: who.entity(),
        }
    }
}
