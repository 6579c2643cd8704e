//! Streams of a task: the task first, then its numbered events, with pieces of text between them that have no number.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolgate_a2a::Dialect;
use toolgate_a2a::error::{Error, ErrorKind};
use toolgate_a2a::stream::StreamResponse;
use toolgate_access::Principal;
use toolgate_engine::feed::{Batch, Scope};
use toolgate_http::Shared;
use toolgate_http::in_flight::too_much;
use toolgate_http::meter::Metered;
use toolgate_http::problem::Refusal;
use toolgate_http::stream::{Cut, Follow, OpenStream, Page, Until, Watch};
use toolgate_kernel::event::{Event, Seq};
use toolgate_kernel::id::{MessageId, RunId, SpaceId};
use toolgate_kernel::tool::Decider;
use toolgate_kernel::view::view;

use crate::asking::{Asking, Envelope, Reply};
use crate::message::Form;
use crate::pause::openai_calls;
use crate::problem::refused;
use crate::task::{Numbered, TaskFold};

/// From where a task is streamed: as what the task is told first, with every later event after it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Start {
    /// As it is now.
    Present,
    /// As it was after the event of this number.
    Number(u64),
    /// As it was when it took this message.
    Message(MessageId),
    /// As it was when its log had come to this place.
    Place(Seq),
}

/// When a stream ends, besides the end of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// When the task waits for its client.
    AtPause,
    /// Only with the task.
    AtEnd,
}

/// A task as it was read from its log.
pub(crate) struct Read {
    pub fold: TaskFold,
    /// The task as it was at the start, and what happened since.
    first: Option<Numbered>,
    since: Vec<Numbered>,
    /// The part of the bytes in flight that it takes.
    _bytes: Metered,
}

/// Reads a task, if the caller may.
pub(crate) async fn read(
    door: &Shared,
    who: &Principal,
    (run, space): (RunId, SpaceId),
    start: Start,
) -> Result<Read, Error> {
    let pass = door.access.admit(who, space).await;
    let reader = pass.map_err(|error| refused(error, ""))?.reader().clone();
    let mut bytes = door.in_flight.open(Some(who));
    let count = |more| bytes.take(more).map_err(|over| too_much(door, over));
    let mut fold = TaskFold::new(run, space, reader);
    let (mut first, mut since) = (None, Vec::new());
    let read = door.engine.each_entry(run, count, |entry| {
        let events = fold.take(entry);
        if first.is_some() {
            since.extend(events);
        } else if fold.has_come_to(start) {
            if let Start::Number(seen) = start {
                since.extend(events.into_iter().filter(|event| event.number > seen.max(1)));
            }
            first = Some(fold.snapshot(start));
        }
    });
    read.await.map_err(|error: Refusal| refused(error, ""))?;
    Ok(Read {
        fold,
        first,
        since,
        _bytes: bytes,
    })
}

impl TaskFold {
    fn has_come_to(&self, start: Start) -> bool {
        match start {
            Start::Present => false,
            Start::Number(number) => self.number() >= number.max(1),
            Start::Message(message) => self.has(message),
            Start::Place(place) => self.seq() >= place,
        }
    }

    /// The task as it stands, under the number that a reader has seen.
    fn snapshot(&self, start: Start) -> Numbered {
        let number = match start {
            Start::Number(seen) => seen.max(1),
            Start::Present | Start::Message(_) | Start::Place(_) => self.number(),
        };
        Numbered {
            number,
            event: StreamResponse::Task(self.task(None, true)),
        }
    }
}

/// The answer that streams a task.
pub(crate) async fn stream(
    asking: &Asking<'_>,
    open: OpenStream,
    (run, space): (RunId, SpaceId),
    start: Start,
    ends: Ends,
) -> Result<Reply, Error> {
    let door = asking.door();
    let read = read(door, &asking.who, (run, space), start).await?;
    let after = read.fold.seq();
    let events = door.engine.subscribe(Scope::Run(run), after).await;
    let events = events.map_err(|error| refused(error, ""))?;
    let follow = Follow {
        who: asking.who.clone(),
        run: Some(run),
        space,
        after,
        until: Until::End,
    };
    let ends = match read.fold.form() {
        // Such a client posts its results beside the stream and goes on reading it.
        Form::Params if asking.dialect == Dialect::V03 => Ends::AtEnd,
        _ => ends,
    };
    let page = TaskPage {
        watch: Watch::new(&follow),
        reader: read.reader().clone(),
        read,
        dialect: asking.dialect,
        envelope: asking.envelope.clone(),
        ends,
        begun: HashSet::new(),
    };
    let response = follow.respond(door, open, events, page).await;
    response.map(Reply::Stream).map_err(|error| refused(error, ""))
}

impl Read {
    fn reader(&self) -> &Decider {
        self.fold.reader()
    }
}

/// Writes a task's events.
struct TaskPage {
    read: Read,
    watch: Watch,
    reader: Decider,
    dialect: Dialect,
    envelope: Envelope,
    ends: Ends,
    /// Texts of which a piece was written.
    begun: HashSet<String>,
}

impl TaskPage {
    fn tell(&self, number: Option<u64>, mut event: StreamResponse, out: &mut Vec<u8>) {
        if let StreamResponse::StatusUpdate(update) = &mut event {
            let state = update.status.state;
            update.is_final = state.is_terminal() || (state.is_interrupted() && self.ends == Ends::AtPause);
        }
        let value = to_json(&event, self.dialect, self.read.fold.form());
        if let Some(number) = number {
            out.extend_from_slice(format!("id: {number}\n").as_bytes());
        }
        data(&self.envelope.event(value), out);
    }

    /// A piece of a text that is being written.
    fn tell_live(&mut self, event: &Event, out: &mut Vec<u8>) {
        // Clients of AG2's add up everything they read, the whole text at the end included.
        if self.read.fold.form() == Form::Ag2 {
            return;
        }
        if let Some(Event::TextDelta(delta)) = view(event, &self.reader).as_deref()
            && self.read.fold.shows_pieces(&delta.delta)
        {
            let is_first = self.begun.insert(delta.id.to_string());
            let chunk = self.read.fold.chunk(&delta.id, delta.delta.clone(), !is_first);
            self.tell(None, chunk, out);
        }
    }
}

impl Page for TaskPage {
    fn reader(&self) -> &Decider {
        &self.reader
    }

    fn open(&mut self, out: &mut Vec<u8>) {
        let first = self.read.first.take();
        let first = first.unwrap_or_else(|| self.read.fold.snapshot(Start::Present));
        self.tell(Some(first.number), first.event, out);
        for Numbered { number, event } in std::mem::take(&mut self.read.since) {
            self.tell(Some(number), event, out);
        }
    }

    fn write(&mut self, batch: &Batch, out: &mut Vec<u8>) {
        match batch {
            Batch::Stored(entry) => {
                if entry
                    .events
                    .iter()
                    .any(|event| matches!(event, Event::StepRetry(_)))
                {
                    // What was streamed is void: the next piece begins the text anew.
                    self.begun.clear();
                }
                for Numbered { number, event } in self.read.fold.take(entry) {
                    self.tell(Some(number), event, out);
                }
            }
            Batch::Live(live) => live.events.iter().for_each(|event| self.tell_live(event, out)),
        }
    }

    fn watch(&mut self) -> &mut Watch {
        &mut self.watch
    }

    fn is_over(&mut self) -> bool {
        let state = self.read.fold.task_state();
        state.is_terminal() || (state.is_interrupted() && self.ends == Ends::AtPause)
    }

    /// The close of a stream tells that it is complete, so one that is not breaks off.
    fn part(&mut self, why: &str, _: &mut Vec<u8>) -> Result<(), Cut> {
        Err(Cut(why.to_owned()))
    }

    fn end_access(&mut self, out: &mut Vec<u8>) {
        let error = Error::new(ErrorKind::TaskNotFound, "there is no such task any more for you");
        data(&self.envelope.error_event(&error), out);
    }
}

fn data(value: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(value.to_string().as_bytes());
    out.extend_from_slice(b"\n\n");
}

/// An event as JSON. A client whose tools came in `params` is told its calls in `toolCalls` too.
pub(crate) fn to_json(event: &StreamResponse, dialect: Dialect, form: Form) -> Value {
    let mut value = event.to_json(dialect);
    let status = match event {
        StreamResponse::Task(task) => &task.status,
        StreamResponse::StatusUpdate(update) => &update.status,
        StreamResponse::Message(_) | StreamResponse::ArtifactUpdate(_) => return value,
    };
    let calls = status.message.as_ref().map(openai_calls).unwrap_or_default();
    if form == Form::Params && dialect == Dialect::V03 && !calls.is_empty() {
        value["status"]["message"]["toolCalls"] = json!(calls);
    }
    value
}
