//! The way from a session to its peer: bounded in bytes, so that a peer that does not read holds up its own session and
//! nothing else.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::peers::PeerId;

/// What a session asks of the task that owns the peers.
pub(crate) enum Command {
    /// Send this text; the permit is given back when the connection has taken it.
    Write {
        peer: PeerId,
        text: String,
        permit: OwnedSemaphorePermit,
    },
    /// Send what waits, then close the connection.
    Close { peer: PeerId, why: &'static str },
}

/// Sends to one peer.
pub(crate) struct Outlet {
    peer: PeerId,
    commands: mpsc::Sender<Command>,
    room: Arc<Semaphore>,
    bytes_max: usize,
    stall: Duration,
}

/// Why nothing can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendError {
    /// The peer takes nothing of what waits for it.
    Slow,
    /// The peer is gone.
    Gone,
}

impl Outlet {
    /// To `peer`, with `bytes_max` bytes on the way to its connection at most.
    pub fn new(peer: PeerId, commands: mpsc::Sender<Command>, bytes_max: usize, stall: Duration) -> Self {
        Self {
            peer,
            commands,
            room: Arc::new(Semaphore::new(bytes_max)),
            bytes_max,
            stall,
        }
    }

    /// Sends a text, once there is room for it.
    pub async fn send(&self, text: String) -> Result<(), SendError> {
        // A text that is larger than all the room travels alone.
        let bytes = text.len().clamp(1, self.bytes_max);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let room = self.room.clone().acquire_many_owned(bytes);
        let permit = match tokio::time::timeout(self.stall, room).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(SendError::Gone),
            Err(_) => return Err(SendError::Slow),
        };
        let write = Command::Write {
            peer: self.peer,
            text,
            permit,
        };
        self.commands.send(write).await.map_err(|_| SendError::Gone)
    }

    /// The last words, if there is room for them right now, and the end of the connection.
    pub async fn close(&self, last: Option<String>, why: &'static str) {
        let peer = self.peer;
        if let Some(text) = last {
            let bytes = u32::try_from(text.len().clamp(1, self.bytes_max)).unwrap_or(u32::MAX);
            if let Ok(permit) = self.room.clone().try_acquire_many_owned(bytes) {
                // A task that has ended has closed every connection.
                let _ = self.commands.send(Command::Write { peer, text, permit }).await;
            }
        }
        let _ = self.commands.send(Command::Close { peer, why }).await;
    }
}
