//! Limits of the data channel.

use std::time::Duration;

/// How much one peer, one user, one project and all of them together may take of this node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RtcLimits {
    /// Bytes of one message, in either direction.
    pub message_bytes_max: usize,
    /// Messages of one peer per second in the long run.
    pub messages_per_second: u32,
    /// Messages of one peer at once.
    pub messages_burst: u32,
    /// Peers of this node.
    pub peers_max: usize,
    /// Peers of one project.
    pub peers_per_project: usize,
    /// Peers of one user with a public key. A backend has no limit of its own.
    pub peers_per_user: usize,
    /// Bytes that one peer has not acknowledged. At least one message fits.
    pub buffered_bytes_max: usize,
    /// Longest time from the answer to the open channel.
    pub handshake_timeout: Duration,
    /// Longest time in which a peer takes nothing of what waits for it.
    pub stall: Duration,
}

impl Default for RtcLimits {
    fn default() -> Self {
        Self {
            message_bytes_max: 64 * 1024,
            messages_per_second: 20,
            messages_burst: 40,
            peers_max: 1000,
            peers_per_project: 500,
            peers_per_user: 8,
            buffered_bytes_max: 128 * 1024,
            handshake_timeout: Duration::from_secs(15),
            stall: Duration::from_secs(30),
        }
    }
}

impl RtcLimits {
    /// Messages of a client that wait to be handled, in bytes.
    pub(crate) fn inbox_bytes_max(&self) -> usize {
        INBOX_MESSAGES_OF_MOST_BYTES * self.message_bytes_max
    }
}

/// Messages of the largest size that may wait to be handled.
const INBOX_MESSAGES_OF_MOST_BYTES: usize = 4;
