//! Calls that somebody else carries on. A run that waits for nothing else leaves memory; the end of a child run wakes
//! it, and then it looks at each of these calls once.
//!
//! The run's row counts the reasons to look (`RunRecord::wakes`). The write that delegates a call to a child run
//! counts one, and the write that creates the child takes it off; the write that ends the child counts one, and the
//! write that stores its outcome in the parent's log takes that off. So a crash between any two writes leaves a
//! count above zero, and whoever finds such a run looks at it again.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, join_all};
use toolgate_kernel::call::{Call, ErrorCode, Handle, Outcome};
use toolgate_kernel::event::{ChildStatus, Entry, Event, Seq, ToolProgress, ToolRef};
use toolgate_kernel::id::{CallId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::run::Arrival;
use toolgate_kernel::tool::{Execution, Tool};

use super::child::{Child, Found, signals};
use super::load::{next, patient};
use super::{Done, Driver};
use crate::Inner;
use crate::feed::Lane;
use crate::store::{LogRange, Pages, StoreError, Wake};

/// How often a look is made again because it has started child runs: the second time it starts none.
const ROUNDS_MAX: usize = 4;

/// What a driver knows of its delegated calls.
#[derive(Default)]
pub(super) struct Watch {
    /// There is a reason to look.
    wanted: bool,
    /// Stops the look under way.
    looking: Option<AbortHandle>,
    /// Wake-ups that were acted on: the next write takes them off the run's count.
    seen: i32,
}

impl Watch {
    /// Has the delegated calls looked at, after the look under way if there is one.
    pub fn want(&mut self) {
        self.wanted = true;
    }
    /// Stops the look under way and forgets what was seen: it is looked at again from the start.
    pub fn restart(&mut self) {
        if let Some(looking) = self.looking.take() {
            looking.abort();
        }
        *self = Self {
            wanted: true,
            ..Self::default()
        };
    }
    /// Whether nothing is to be looked at.
    pub fn is_idle(&self) -> bool {
        !self.wanted && self.looking.is_none()
    }
    /// Wake-ups that were acted on; the caller takes them off the run's count.
    pub fn take_seen(&mut self) -> i32 {
        std::mem::take(&mut self.seen)
    }
}

/// The call that a child run executes.
pub(super) struct Above {
    /// Where the parent's transient events stand.
    lane: Lane,
    tool: ToolRef,
}

/// What a look at the delegated calls of a run found.
pub(crate) struct Look {
    /// Wake-ups that are acted on once the outcomes are stored.
    seen: i32,
    /// Calls that have ended, and their legs.
    outcomes: Vec<(CallId, u32, Outcome)>,
    /// Calls whose child runs wait for a person or a client, or no longer do, and their legs.
    moved: Vec<(CallId, u32, RunId, ChildStatus)>,
}

/// A delegated call that is looked at.
struct Watched {
    call: CallId,
    leg: u32,
    by: Carrier,
}

enum Carrier {
    Child(Box<Child>),
    /// No source here can be asked about its tasks.
    Nobody(Arc<str>),
}

impl Driver {
    /// Begins to look at the delegated calls, when there is a reason to.
    pub(super) fn look(&mut self) {
        if self.run.status().is_final() {
            self.watch = Watch::default();
        }
        if !self.watch.wanted || self.watch.looking.is_some() {
            return;
        }
        let watched = self.run.delegated().filter_map(|(call, handle)| {
            Some(Watched {
                call: call.tool.call,
                leg: call.leg,
                by: self.carrier(call, handle)?,
            })
        });
        let looking = look(self.inner.clone(), self.id, watched.collect());
        let handle = self.undertake(looking.map(Done::Looked).boxed());
        // What was seen before is counted again by this look.
        self.watch = Watch {
            looking: Some(handle),
            ..Watch::default()
        };
    }

    /// Has delegated calls looked at whose time to look has come.
    pub(super) fn check_delegated(&mut self) {
        let now = self.inner.clock.now();
        let is_past = self.run.wake_at().is_some_and(|moment| moment <= now);
        if is_past && self.run.delegated().next().is_some() {
            self.watch.want();
        }
    }

    /// Who carries a call on, unless that is a task of a source, which is looked at by itself.
    fn carrier(&self, call: &Call, handle: &Handle) -> Option<Carrier> {
        let is_source = |tool: &Arc<Tool>| matches!(tool.execution, Execution::Source(_));
        match handle {
            Handle::Run(child) => Some(Carrier::Child(Box::new(self.child(call, *child)))),
            Handle::Task { .. } if call.definition.as_ref().is_some_and(is_source) => None,
            Handle::Task { source, .. } => Some(Carrier::Nobody(source.clone())),
        }
    }

    /// What a look found, as arrivals.
    pub(super) fn looked(&mut self, looked: Result<Look, StoreError>) -> Vec<Arrival> {
        self.watch.looking = None;
        let Look {
            seen,
            outcomes,
            moved,
        } = match looked {
            Ok(look) => look,
            Err(error) => {
                tracing::warn!(run = %self.id, %error, "delegated calls could not be looked at");
                self.inner.adrift(self.id);
                return Vec::new();
            }
        };
        self.watch.seen = seen;
        let ended = outcomes.into_iter().map(|(call, leg, outcome)| Arrival::Output {
            call,
            leg,
            outcome,
            log: None,
        });
        let moved = moved
            .into_iter()
            .map(|(call, leg, child, status)| Arrival::Delegated {
                call,
                leg,
                handle: Handle::Run(child),
                check_at: None,
                child: Some(status),
                questions: Vec::new(),
            });
        ended.chain(moved).collect()
    }

    /// What an append of these events does to counts of wake-ups: of this run, and of its parent when it ends or when
    /// what it asks has changed. `asked` is whether it waited for a person or a client before.
    pub(super) fn wakes_of(&self, events: &[Event], asked: bool) -> Vec<Wake> {
        let starts = events.iter().filter(|event| starts_child(event)).count() as i32;
        let own = Wake {
            run: self.id,
            change: starts - self.watch.seen,
        };
        let parent = self.parent.filter(|_| self.concerns_parent(events, asked));
        let parent = parent.map(|call| Wake::up(call.run));
        let own = Some(own).filter(|own| own.change != 0);
        own.into_iter().chain(parent).collect()
    }

    /// Whether the parent of a child run has a reason to look at it after these events.
    fn concerns_parent(&self, events: &[Event], asked: bool) -> bool {
        let asks = self.run.status().asks();
        let moves = |event: &Event| {
            let says = matches!(
                event,
                Event::ToolApprovalResponse(_)
                    | Event::ToolQuestion(_)
                    | Event::ToolQuestionResponse(_)
                    | Event::RunStatus(_)
            );
            says || event.settles().is_some()
        };
        let ends = events.iter().any(|event| matches!(event, Event::RunFinish(_)));
        ends || asks != asked || (asks && events.iter().any(moves))
    }

    /// After an append: starts the child runs that it announced, and tells the parent.
    pub(super) async fn after_append(&mut self, entry: &Entry, asked: bool) {
        self.watch.seen = 0;
        if let Some(parent) = self.parent.filter(|_| self.concerns_parent(&entry.events, asked)) {
            self.inner.poke(parent.run);
        }
        for event in &entry.events {
            match event {
                event if starts_child(event) => self.watch.want(),
                Event::ToolOutputAvailable(e) if self.parent.is_some() => {
                    let call = self.run.call(e.tool_call_id);
                    let tool = call.and_then(|call| call.definition.as_ref());
                    if tool.is_some_and(|tool| signals(tool)) {
                        self.signal_parent(e.output.clone()).await;
                    }
                }
                _ => {}
            }
        }
    }

    /// Shows a signal to whoever follows the parent's space. The parent itself reads it with the child's outcome.
    async fn signal_parent(&mut self, signal: Option<Json>) {
        let Some(parent) = self.parent else { return };
        if self.above.is_none() {
            self.above = match call_above(&self.inner, parent).await {
                Ok(above) => above,
                // Progress is shown if it can be, and never holds the run up.
                Err(error) => return tracing::warn!(run = %self.id, %error, "a signal is not shown"),
            };
        }
        let Some(above) = &self.above else { return };
        let feed = &self.inner.feed;
        let known = match feed.knows_place(above.lane.space) {
            true => Seq(0),
            false => match patient(|| self.inner.store.space_tail(above.lane.space)).await {
                Ok(last) => last,
                Err(_) => return,
            },
        };
        let event = ToolProgress::of(&above.tool, signal).into();
        feed.publish(above.lane, parent.run, known, self.inner.clock.now(), vec![event]);
    }
}

/// Whether an event announces a child run. A later one of the same call says what the child waits for.
fn starts_child(event: &Event) -> bool {
    matches!(event, Event::ToolExecuting(e) if e.child.is_some() && e.child_status.is_none())
}

async fn call_above(inner: &Inner, call: CallId) -> Result<Option<Above>, StoreError> {
    let Some(parent) = patient(|| inner.store.run(call.run)).await? else {
        return Ok(None);
    };
    let mut pages = Pages::of_run(call.run, LogRange::newest());
    while let Some(page) = next(&mut pages, inner).await? {
        let mut events = page.entries.iter().flat_map(|entry| &entry.events);
        let tool = events.find_map(|event| match event {
            Event::ToolInputAvailable(e) if e.tool_call_id == call => Some(e.tool()),
            _ => None,
        });
        if let Some(tool) = tool {
            let lane = Lane {
                space: parent.space,
                lane: parent.lane,
            };
            return Ok(Some(Above { lane, tool }));
        }
    }
    Ok(None)
}

/// Looks at each delegated call of a run: starts the child runs that are not there, reads the outcomes of those that
/// have ended.
async fn look(inner: Arc<Inner>, run: RunId, mut watched: Vec<Watched>) -> Result<Look, StoreError> {
    let mut outcomes = Vec::new();
    let mut moved = Vec::new();
    for _ in 0..ROUNDS_MAX {
        // Read before the children are: an end that comes later is counted later, and seen by the next look.
        let row = patient(|| inner.store.run(run)).await?;
        let seen = row.map_or(0, |row| row.wakes as i32);
        let looks = watched.into_iter().map(|one| look_at(&inner, one, seen > 0));
        let mut started = false;
        watched = Vec::new();
        for (one, found) in join_all(looks).await {
            match found? {
                Found::Started => {
                    started = true;
                    watched.push(one);
                }
                Found::Waits => watched.push(one),
                Found::Moved(status) => {
                    if let Carrier::Child(child) = &one.by {
                        moved.push((one.call, one.leg, child.id(), status));
                    }
                }
                Found::Ended(outcome) => outcomes.push((one.call, one.leg, outcome)),
            }
        }
        // The start of a child takes a wake-up off: what is left to be taken off is read again.
        if !started {
            return Ok(Look {
                seen,
                outcomes,
                moved,
            });
        }
    }
    Ok(Look {
        seen: 0,
        outcomes,
        moved,
    })
}

/// Without a wake-up no child has ended, and none is to be started.
async fn look_at(inner: &Arc<Inner>, one: Watched, woken: bool) -> (Watched, Result<Found, StoreError>) {
    let found = match &one.by {
        Carrier::Child(child) if woken => child.look(inner).await,
        Carrier::Child(_) => Ok(Found::Waits),
        Carrier::Nobody(source) => {
            let words = format!("nothing here can ask {source} about its tasks");
            Ok(Found::Ended(Outcome::error(ErrorCode::Unavailable, words)))
        }
    };
    (one, found)
}
