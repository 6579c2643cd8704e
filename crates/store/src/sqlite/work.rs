//! One write, from the queue to its reply.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;
use toolgate_engine::store::{Append, RunWrite, StoreError};
use toolgate_kernel::event::Entry;

use super::fault::Fault;
use super::log::{self, Written};
use super::session::Session;

/// A write, as the writer thread handles it.
pub(crate) trait Work: Send {
    /// Writes inside the transaction. Called again if the transaction was rolled back.
    fn perform(&mut self, session: &mut Session) -> Result<(), Fault>;
    /// The entries that it appended to the log. Called once, after the commit.
    fn entries(&mut self) -> Vec<Arc<Entry>> {
        Vec::new()
    }
    /// Sends the outcome to the caller, if it still waits.
    fn reply(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// Channel to the waiting caller.
type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// An append to the log.
pub(crate) struct AppendWork {
    append: Append,
    /// The events in their stored form.
    text: String,
    written: Option<Written>,
    entry: Option<Arc<Entry>>,
    reply: Reply<Arc<Entry>>,
}

impl AppendWork {
    pub(crate) fn new(append: Append, text: String, reply: Reply<Arc<Entry>>) -> Self {
        Self {
            append,
            text,
            written: None,
            entry: None,
            reply,
        }
    }
}

impl Work for AppendWork {
    fn perform(&mut self, session: &mut Session) -> Result<(), Fault> {
        self.written = Some(log::append(session, &self.append, &self.text)?);
        Ok(())
    }

    fn entries(&mut self) -> Vec<Arc<Entry>> {
        let append = &mut self.append;
        let written = self.written.take().expect("a committed append was written");
        let run = match &append.run {
            RunWrite::None => None,
            RunWrite::Create { record, .. } => Some(record.id),
            RunWrite::Extend { id, .. } => Some(*id),
        };
        let entry = Arc::new(Entry {
            space: append.space,
            run,
            first: written.first,
            time: append.time,
            events: std::mem::take(&mut append.events),
        });
        self.entry = Some(entry.clone());
        let above = append.above.take().zip(written.above);
        let above = above.map(|(above, (first, run))| {
            Arc::new(Entry {
                space: above.space,
                run,
                first,
                time: append.time,
                events: above.events,
            })
        });
        std::iter::once(entry).chain(above).collect()
    }

    fn reply(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { entry, reply, .. } = *self;
        let result = outcome.map(|()| entry.expect("a committed append has its entry"));
        // An error means that the caller went away; the write is stored all the same.
        let _ = reply.send(result);
    }
}

/// Any other write.
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

    fn reply(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { value, reply, .. } = *self;
        let result = outcome.map(|()| value.expect("committed work has its value"));
        // An error means that the caller went away; the write is stored all the same.
        let _ = reply.send(result);
    }
}
