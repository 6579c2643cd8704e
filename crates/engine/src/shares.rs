//! Who is counted together where there is not enough for all: the user whom the work is for, in its project.

use toolgate_fair::Share;
use toolgate_kernel::id::{EntityId, ProjectId};

/// The share of a user of a project; without one, of the project's backend.
pub fn share_of(project: ProjectId, user: Option<EntityId>) -> Share {
    Share {
        tenant: u128::from_be_bytes(project.to_bytes()),
        user: user.map(|user| u128::from_be_bytes(user.to_bytes())),
    }
}
