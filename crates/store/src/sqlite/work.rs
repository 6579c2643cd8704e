//! One write, from the queue to its answer.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;
use toolgate_engine::store::{Append, RunWrite, StoreError};
use toolgate_kernel::event::{Entry, Seq};

use super::fault::Fault;
use super::log;
use super::session::Session;

/// What the writer does with a write, whatever it writes.
pub(crate) trait Work: Send {
    /// Does it inside the transaction. Called again when the transaction was undone.
    fn perform(&mut self, session: &mut Session) -> Result<(), Fault>;
    /// What it added to the log. Called once, after the commit.
    fn entry(&mut self) -> Option<Arc<Entry>> {
        None
    }
    /// Tells whoever waits, if anyone still does.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// Where an answer goes.
type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// Adds to the log.
pub(crate) struct AppendWork {
    append: Append,
    /// The events as they are stored.
    text: String,
    first: Seq,
    entry: Option<Arc<Entry>>,
    reply: Reply<Arc<Entry>>,
}

impl AppendWork {
    pub(crate) fn new(append: Append, text: String, reply: Reply<Arc<Entry>>) -> Self {
        Self {
            append,
            text,
            first: Seq::default(),
            entry: None,
            reply,
        }
    }
}

impl Work for AppendWork {
    fn perform(&mut self, session: &mut Session) -> Result<(), Fault> {
        self.first = log::append(session, &self.append, &self.text)?;
        Ok(())
    }

    fn entry(&mut self) -> Option<Arc<Entry>> {
        let append = &mut self.append;
        let run = match &append.run {
            RunWrite::None => None,
            RunWrite::Create { record, .. } => Some(record.id),
            RunWrite::Extend { id, .. } => Some(*id),
        };
        self.entry = Some(Arc::new(Entry {
            space: append.space,
            run,
            first: self.first,
            time: append.time,
            events: std::mem::take(&mut append.events),
        }));
        self.entry.clone()
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { entry, reply, .. } = *self;
        let answer = outcome.map(|()| entry.expect("a committed append has its entry"));
        // Nobody waits any more: it is stored all the same.
        let _ = reply.send(answer);
    }
}

/// Anything else.
pub(crate) struct OtherWork<F, T> {
    work: F,
    value: Option<T>,
    reply: Reply<T>,
}

impl<F, T> OtherWork<F, T> {
    pub(crate) fn new(work: F, reply: Reply<T>) -> Self {
        Self {
            work,
            value: None,
            reply,
        }
    }
}

impl<F, T> Work for OtherWork<F, T>
where
    F: FnMut(&Connection) -> Result<T, Fault> + Send,
    T: Send,
{
    fn perform(&mut self, session: &mut Session) -> Result<(), Fault> {
        self.value = Some((self.work)(&session.connection)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { value, reply, .. } = *self;
        let answer = outcome.map(|()| value.expect("committed work has its value"));
        // Nobody waits any more: it is stored all the same.
        let _ = reply.send(answer);
    }
}
