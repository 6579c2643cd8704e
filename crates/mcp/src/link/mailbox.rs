//! Messages of a server that wait for their reader, within a number and within bytes: a server may send much that nobody
//! reads.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::message::Message;
use super::{MESSAGE_BYTES_MAX, WAITING_MAX};

/// Most bytes that wait for one reader.
const WAITING_BYTES_MAX: usize = 2 * MESSAGE_BYTES_MAX;

/// A mailbox: where messages are put, and where they are read.
pub fn mailbox() -> (Sender, Receiver) {
    let (letters, received) = mpsc::channel(WAITING_MAX);
    let room = Arc::new(Semaphore::new(WAITING_BYTES_MAX));
    (Sender { letters, room }, Receiver(received))
}

/// Puts messages into a mailbox.
#[derive(Clone)]
pub struct Sender {
    letters: mpsc::Sender<Letter>,
    room: Arc<Semaphore>,
}

/// Reads a mailbox.
pub struct Receiver(mpsc::Receiver<Letter>);

struct Letter {
    message: Message,
    /// The bytes that it takes.
    _room: OwnedSemaphorePermit,
}

/// The mailbox is full, or nobody reads it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotTaken;

impl Sender {
    /// Puts a message of so many bytes into the mailbox, unless it is full.
    pub fn try_send(&self, message: Message, bytes: usize) -> Result<(), NotTaken> {
        let room = self.room.clone().try_acquire_many_owned(permits(bytes));
        let room = room.map_err(|_| NotTaken)?;
        let letter = Letter { message, _room: room };
        self.letters.try_send(letter).map_err(|_| NotTaken)
    }

    /// Puts a message of so many bytes into the mailbox, once there is room.
    pub async fn send(&self, message: Message, bytes: usize) -> Result<(), NotTaken> {
        let room = self.room.clone().acquire_many_owned(permits(bytes)).await;
        let room = room.map_err(|_| NotTaken)?;
        let letter = Letter { message, _room: room };
        self.letters.send(letter).await.map_err(|_| NotTaken)
    }
}

impl Receiver {
    /// The next message; none when nobody puts any in and all are read. Nothing is lost when the future is dropped.
    pub async fn recv(&mut self) -> Option<Message> {
        Some(self.0.recv().await?.message)
    }
}

/// A message that was changed on its way may be longer than one that a server can send. It passes alone.
fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes.min(WAITING_BYTES_MAX)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::message::Notification;
    use super::*;

    fn notice() -> Message {
        Message::Notification(Notification::new("notifications/message", serde_json::json!({})))
    }

    #[tokio::test]
    async fn a_mailbox_holds_so_many_messages_and_so_many_bytes() {
        let (sender, mut receiver) = mailbox();
        for _ in 0..WAITING_MAX {
            assert_eq!(sender.try_send(notice(), 10), Ok(()));
        }
        assert_eq!(sender.try_send(notice(), 10), Err(NotTaken));
        for _ in 0..WAITING_MAX {
            assert!(receiver.recv().await.is_some());
        }
        assert_eq!(sender.try_send(notice(), MESSAGE_BYTES_MAX), Ok(()));
        assert_eq!(sender.try_send(notice(), MESSAGE_BYTES_MAX), Ok(()));
        assert_eq!(sender.try_send(notice(), 1), Err(NotTaken));
        assert!(receiver.recv().await.is_some());
        assert_eq!(sender.try_send(notice(), MESSAGE_BYTES_MAX), Ok(()));
    }
}
