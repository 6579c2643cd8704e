//! What the proxy holds in memory, and for how long.

use std::sync::Arc;
use std::time::Duration;

use toolgate_fair::{Limits as FairLimits, Queue, Shares, Spare};

/// Limits of the proxy.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Sessions that are open.
    pub sessions: Places,
    /// A session that nobody uses ends after this.
    pub session_idle: Duration,
    /// Calls that wait for an answer of their client. One more of the same owner, and the one that has waited longest is
    /// given up.
    pub parked: Places,
    /// Longest wait for an answer of a client.
    pub answer_wait: Duration,
    /// Connections to one server for one owner whose client speaks another revision.
    pub connections_per_owner: usize,
    /// A connection that nobody uses is closed after this.
    pub connection_idle: Duration,
    /// Longest wait for a server to say which protocol it speaks, and for a list of its tools.
    pub handshake: Duration,
    /// How long it is remembered which tools and which protocol a server has.
    pub known_for: Duration,
    /// A connection that has listed all tools lists them again for an unknown one after this, or when they have changed.
    pub listing_pause: Duration,
    /// Longest time that a task of a server is polled for a client.
    pub task_wait: Duration,
}

/// How many there may be of something that lasts, and whose.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    /// For all projects together.
    pub all: usize,
    /// For one project, its backends included.
    pub project: usize,
    /// For one user.
    pub user: usize,
    /// Beyond `all` and `project`, for users who have none; a quarter of them for the users of one project.
    pub spare: usize,
}

impl Places {
    pub(super) fn places(self) -> Arc<Queue> {
        Queue::new(FairLimits {
            running: Shares {
                all: self.all,
                tenant: self.project,
                user: self.user,
            },
            // Nobody waits for a place: its holder may keep it for long.
            waiting: Shares::same(0),
            waiting_bytes: Shares::same(0),
            spare: Spare {
                all: self.spare,
                tenant: self.spare.div_ceil(4),
            },
        })
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: Places {
                all: 256,
                project: 128,
                user: 8,
                spare: 32,
            },
            session_idle: Duration::from_secs(30 * 60),
            parked: Places {
                all: 512,
                project: 256,
                user: 32,
                spare: 32,
            },
            answer_wait: Duration::from_secs(10 * 60),
            connections_per_owner: 32,
            connection_idle: Duration::from_secs(2 * 60),
            handshake: Duration::from_secs(20),
            known_for: Duration::from_secs(60),
            listing_pause: Duration::from_secs(10),
            task_wait: Duration::from_secs(60 * 60),
        }
    }
}
