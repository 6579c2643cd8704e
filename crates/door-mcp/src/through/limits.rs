//! What the proxy holds in memory, and for how long.

use std::time::Duration;

/// Limits of the proxy.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Sessions of one user, or of one project's backends together.
    pub sessions_per_owner: usize,
    /// Sessions of all.
    pub sessions: usize,
    /// A session that nobody uses ends after this.
    pub session_idle: Duration,
    /// Calls of one owner that wait for an answer of their client. One more, and the one that has waited longest is given up.
    pub parked_per_owner: usize,
    /// Calls of all that wait for an answer of their client.
    pub parked: usize,
    /// Longest wait for an answer of a client.
    pub answer_wait: Duration,
    /// Connections to one server for one owner whose client speaks another revision.
    pub connections_per_owner: usize,
    /// A connection that nobody uses is closed after this.
    pub connection_idle: Duration,
    /// Longest wait for a server to say which protocol it speaks.
    pub handshake: Duration,
    /// How long it is remembered which tools and which protocol a server has.
    pub known_for: Duration,
    /// Longest time that a task of a server is polled for a client.
    pub task_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions_per_owner: 8,
            sessions: 256,
            session_idle: Duration::from_secs(30 * 60),
            parked_per_owner: 64,
            parked: 512,
            answer_wait: Duration::from_secs(10 * 60),
            connections_per_owner: 32,
            connection_idle: Duration::from_secs(2 * 60),
            handshake: Duration::from_secs(20),
            known_for: Duration::from_secs(60),
            task_wait: Duration::from_secs(60 * 60),
        }
    }
}
