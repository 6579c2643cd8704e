//! A server that is a child process: one line per message, both ways.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::mailbox::{Receiver, Sender, mailbox};
use super::message::{Id, Members, Message, Notification};
use super::{LinkError, MESSAGE_BYTES_MAX, WAITING_MAX};
use crate::process::{Launch, ServerProcess, skip_line};

/// A child and what waits for its messages.
pub(super) struct Pipe {
    desk: Arc<Desk>,
    lines: mpsc::Sender<Vec<u8>>,
    _writer: AbortOnDropHandle<()>,
    /// Has the child, and ends it when it says no more.
    _reader: AbortOnDropHandle<()>,
}

/// Who waits for which message.
pub(super) struct Desk {
    open: Mutex<Open>,
    unrelated: Sender,
}

#[derive(Default)]
struct Open {
    requests: HashMap<Id, Waiting>,
    /// Counts requests: the newest is given what names none.
    count: u64,
    is_closed: bool,
}

struct Waiting {
    number: u64,
    progress_token: Option<String>,
    replies: Sender,
}

impl Pipe {
    pub(super) fn start(launch: &Launch, unrelated: Sender) -> Result<Self, LinkError> {
        let started = launch.spawn();
        let (process, stdout, stdin) = started
            .map_err(|error| LinkError::Unreachable(format!("{} does not start: {error}", launch.name())))?;
        let desk = Arc::new(Desk {
            open: Mutex::default(),
            unrelated,
        });
        let (lines, to_write) = mpsc::channel(WAITING_MAX);
        Ok(Self {
            lines,
            _writer: AbortOnDropHandle::new(tokio::spawn(write(stdin, to_write, launch.restarted()))),
            _reader: AbortOnDropHandle::new(tokio::spawn(read(
                stdout,
                desk.clone(),
                launch.restarted(),
                process,
            ))),
            desk,
        })
    }

    pub(super) async fn send(&self, message: &Message) -> Result<(), LinkError> {
        let mut line = message.write();
        line.push(b'\n');
        self.lines.send(line).await.map_err(|_| LinkError::Gone)
    }

    /// Waits for what belongs to a request that is about to be sent.
    pub(super) fn expect(&self, id: Id, params: Option<&Members>) -> Result<Expected, LinkError> {
        let (replies, received) = mailbox();
        let mut open = self.desk.open();
        if open.is_closed {
            return Err(LinkError::Gone);
        }
        if open.requests.contains_key(&id) {
            return Err(LinkError::Repeated);
        }
        open.count += 1;
        let meta = params.and_then(|params| params.object("_meta"));
        let token = meta.as_ref().and_then(|meta| meta.get("progressToken"));
        let waiting = Waiting {
            number: open.count,
            progress_token: token.map(|token| token.get().to_owned()),
            replies,
        };
        open.requests.insert(id.clone(), waiting);
        Ok(Expected {
            id,
            received,
            desk: self.desk.clone(),
            lines: self.lines.clone(),
            is_over: false,
        })
    }
}

/// What comes back on a request to a child. Dropping it before the response tells the server to stop.
pub(super) struct Expected {
    id: Id,
    received: Receiver,
    desk: Arc<Desk>,
    lines: mpsc::Sender<Vec<u8>>,
    is_over: bool,
}

impl Expected {
    pub(super) async fn next(&mut self) -> Result<Option<Message>, LinkError> {
        let message = self.received.recv().await;
        match &message {
            Some(Message::Response(_)) => self.is_over = true,
            Some(_) => {}
            None if self.is_over => {}
            None => {
                self.is_over = true;
                return Err(LinkError::Gone);
            }
        }
        Ok(message)
    }

    /// Nothing more is wanted, and the server knows it.
    pub(super) fn forget(&mut self) {
        self.is_over = true;
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.desk.open().requests.remove(&self.id);
        if !self.is_over {
            let params = serde_json::json!({"requestId": self.id.raw()});
            let notice = Notification::new("notifications/cancelled", params);
            let mut line = Message::Notification(notice).write();
            line.push(b'\n');
            // A server that reads nothing any longer cannot be told either.
            let _ = self.lines.try_send(line);
        }
    }
}

impl Desk {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings a message of so many bytes to whoever waits for it. A reader for whom too many wait is cut: others share the pipe.
    fn bring(&self, message: Message, bytes: usize) {
        let mut open = self.open();
        let to = match &message {
            Message::Response(response) => response.id.clone(),
            Message::Request(_) => open.newest(),
            Message::Notification(notice) => match open.subject(notice) {
                Subject::Request(id) => Some(id),
                Subject::Nobody => return,
                // Several may be of several clients, and this one is for one of them.
                Subject::Unsaid => open.newest().filter(|_| open.requests.len() == 1),
            },
        };
        match to.and_then(|id| {
            open.requests
                .get(&id)
                .map(|waiting| (id, waiting.replies.clone()))
        }) {
            Some((id, replies)) => {
                if replies.try_send(message, bytes).is_err() {
                    open.requests.remove(&id);
                }
            }
            // A response to nobody is one that was given up.
            None if matches!(message, Message::Response(_)) => {}
            None => {
                // What nobody reads is dropped: lists can be asked for again.
                let _ = self.unrelated.try_send(message, bytes);
            }
        }
    }

    fn close(&self) {
        let mut open = self.open();
        open.is_closed = true;
        open.requests.clear();
    }
}

/// Whom a notification is about.
enum Subject {
    Request(Id),
    /// A request that is over.
    Nobody,
    /// It does not say.
    Unsaid,
}

impl Open {
    fn newest(&self) -> Option<Id> {
        let newest = self.requests.iter().max_by_key(|(_, waiting)| waiting.number);
        newest.map(|(id, _)| id.clone())
    }

    fn subject(&self, notice: &Notification) -> Subject {
        let Some(params) = &notice.params else {
            return Subject::Unsaid;
        };
        if let Some(token) = params.get("progressToken").map(RawValue::get) {
            let mut requests = self.requests.iter();
            let of_token = requests.find(|(_, waiting)| waiting.progress_token.as_deref() == Some(token));
            return of_token.map_or(Subject::Nobody, |(id, _)| Subject::Request(id.clone()));
        }
        let meta = params.object("_meta");
        let subscription = meta
            .as_ref()
            .and_then(|meta| meta.get("io.modelcontextprotocol/subscriptionId"));
        match subscription.and_then(Id::read) {
            Some(id) if self.requests.contains_key(&id) => Subject::Request(id),
            Some(_) => Subject::Nobody,
            None => Subject::Unsaid,
        }
    }
}

/// Writes lines until nobody has any more, or until the server is restarted: a child whose input is closed ends.
async fn write(
    mut stdin: ChildStdin,
    mut lines: mpsc::Receiver<Vec<u8>>,
    restarted: impl Future<Output = ()>,
) {
    let written = async {
        while let Some(line) = lines.recv().await {
            if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = written => {}
        () = restarted => {}
    }
}

/// Reads lines until the child has no more, or until the server is restarted, and ends the child: one that does not care
/// about its input would go on for as long as somebody holds the connection.
async fn read(
    stdout: ChildStdout,
    desk: Arc<Desk>,
    restarted: impl Future<Output = ()>,
    process: ServerProcess,
) {
    tokio::select! {
        () = read_lines(stdout, &desk) => {}
        () = restarted => {}
    }
    desk.close();
    process.end().await;
}

/// Brings what the child says to whoever waits for it. A line that is no message is left out: some servers print before
/// they speak.
async fn read_lines(stdout: ChildStdout, desk: &Desk) {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = MESSAGE_BYTES_MAX as u64;
        match (&mut stdout).take(limit).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => break,
            Ok(read) if read == MESSAGE_BYTES_MAX && !line.ends_with(b"\n") => {
                // Others share the pipe: the request that it answers gets no response, and ends at its timeout.
                tracing::warn!(
                    limit,
                    "an MCP server sent a message that is too large, and it is left out"
                );
                match skip_line(&mut stdout).await {
                    true => continue,
                    false => break,
                }
            }
            Ok(_) => {}
        }
        match Message::read(&line) {
            Ok(message) => desk.bring(message, line.len()),
            Err(error) => tracing::debug!(%error, "an MCP server printed something that is no message"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each of `count` waiting requests is brought of a notice that names none of them.
    async fn brought(count: u64) -> Vec<bool> {
        let (unrelated, _dropped) = mailbox();
        let desk = Desk {
            open: Mutex::default(),
            unrelated,
        };
        let wait = |number: u64| {
            let (replies, received) = mailbox();
            let waiting = Waiting {
                number,
                progress_token: None,
                replies,
            };
            desk.open()
                .requests
                .insert(Id::text(&number.to_string()), waiting);
            received
        };
        let mut requests: Vec<_> = (0..count).map(wait).collect();
        let notice = serde_json::json!({"level": "info", "data": "for somebody"});
        let notice = Message::Notification(Notification::new("notifications/message", notice));
        desk.bring(notice, 1);
        desk.close();
        let mut told = Vec::new();
        for request in &mut requests {
            told.push(request.recv().await.is_some());
        }
        told
    }

    #[tokio::test]
    async fn a_notice_that_names_no_request_is_for_the_only_one_or_for_nobody() {
        assert_eq!(brought(1).await, [true]);
        assert_eq!(brought(2).await, [false, false]);
    }
}
