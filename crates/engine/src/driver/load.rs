//! From the log into memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use toolgate_kernel::event::{Entry, Event, RunStart, Seq, Status};
use toolgate_kernel::id::{CallId, RunId, SpaceId};
use toolgate_kernel::name::ToolName;
use toolgate_kernel::run::{Arrival, Run};
use toolgate_kernel::tool::ResultSchema;

use super::{Driver, Lease, Pending, Seat, Watch};
use crate::Inner;
use crate::agents::{Compiled, Kit};
use crate::deliver::{Fate, Letter};
use crate::shares::share_of;
use crate::store::{LogPage, LogRange, Pages, RunRecord, StoreError};

/// How often a read is tried before the run is left for later.
const READ_ATTEMPTS: u32 = 6;
/// The first wait before a read is tried again; doubles each time.
const READ_DELAY: Duration = Duration::from_millis(10);

/// A run that could not be brought to memory, and the letters that wait for it.
pub(super) struct Unloaded {
    pub letters: mpsc::Receiver<Letter>,
    pub why: Why,
    pub seat: Seat,
}

pub(super) enum Why {
    NoRun,
    Store(StoreError),
}

impl Why {
    pub fn fate(&self) -> Fate<'static> {
        match self {
            Self::NoRun => Fate::NoRun,
            Self::Store(StoreError::Newer { run, kind }) => Fate::Failed(StoreError::Newer {
                run: *run,
                kind: kind.clone(),
            }),
            Self::Store(error) => Fate::Failed(StoreError::Unavailable(error.to_string())),
        }
    }
}

impl From<StoreError> for Why {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A run as its log tells it.
struct Loaded {
    record: RunRecord,
    home: SpaceId,
    run: Run,
    kit: Arc<Kit>,
    first: Seq,
    /// How often something of the space was deleted before the log was read.
    rewrites: u64,
}

impl Driver {
    /// Brings a run to memory. When something is due that nobody drives, takes the lease for it.
    pub(super) async fn load(
        inner: Arc<Inner>,
        id: RunId,
        letters: mpsc::Receiver<Letter>,
        mut seat: Seat,
    ) -> Result<(Self, Vec<Pending>), Unloaded> {
        let record = match patient(|| inner.store.run(id)).await {
            Ok(Some(record)) => record,
            Ok(None) => {
                return Err(Unloaded {
                    letters,
                    why: Why::NoRun,
                    seat,
                });
            }
            Err(error) => {
                return Err(Unloaded {
                    letters,
                    why: error.into(),
                    seat,
                });
            }
        };
        let driving = inner.feed.drive(record.space, record.lane);
        let (loaded, pending) = match claim_and_read(&inner, record, &mut seat).await {
            Ok(loaded) => loaded,
            Err(why) => return Err(Unloaded { letters, why, seat }),
        };
        let Loaded {
            record,
            home,
            run,
            kit,
            first,
            rewrites,
        } = loaded;
        let mut watch = Watch::default();
        if record.wakes > 0 {
            watch.want();
        }
        let mut driver = Self {
            id,
            project: record.project,
            space: record.space,
            home,
            root: record.root,
            parent: record.parent,
            above: None,
            run,
            kit,
            first,
            version: record.version,
            epoch: record.epoch,
            lease: Lease::of(record.node, inner.settings.node),
            stored_to: Seq(0),
            letters,
            early: Vec::new(),
            looks: 0,
            driving: Arc::new(driving),
            past: None,
            rewrites: Some(rewrites),
            window: None,
            vendor_status: None,
            asking: None,
            running: HashMap::new(),
            task_looks: HashMap::new(),
            watch,
            under_way: FuturesUnordered::new(),
            seat,
            inner,
        };
        driver.check_delegated();
        if let Err(error) = driver.restore_consents().await {
            return Err(Unloaded {
                letters: driver.letters,
                why: error.into(),
                seat: driver.seat,
            });
        }
        if !driver.driving.knows_place() {
            match patient(|| driver.inner.store.space_tail(driver.space)).await {
                Ok(last) => driver.driving.at_least(last),
                Err(error) => {
                    return Err(Unloaded {
                        letters: driver.letters,
                        why: error.into(),
                        seat: driver.seat,
                    });
                }
            }
        }
        Ok((driver, pending))
    }

    /// Reads the run again: somebody else wrote, or nobody knows whether we did.
    pub(super) async fn reload(&mut self) -> Result<(), StoreError> {
        let record = self.inner.store.run(self.id).await?;
        let Some(record) = record else {
            return Err(StoreError::Corrupt(format!("{} is gone", self.id)));
        };
        let Loaded {
            record,
            run,
            kit,
            first,
            rewrites,
            ..
        } = read(&self.inner, record).await?;
        if self.rewrites.replace(rewrites) != Some(rewrites) {
            self.past = None;
        }
        self.run = run;
        self.kit = kit;
        self.first = first;
        self.version = record.version;
        self.epoch = record.epoch;
        self.stored_to = Seq(0);
        self.lease = Lease::of(record.node, self.inner.settings.node);
        self.restore_consents().await
    }
}

async fn claim_and_read(
    inner: &Arc<Inner>,
    record: RunRecord,
    seat: &mut Seat,
) -> Result<(Loaded, Vec<Pending>), Why> {
    let id = record.id;
    let loaded = patient(|| read(inner, record.clone())).await?;
    let now = inner.clock.now();
    let queued = loaded.run.status() == Status::Queued;
    let idle = loaded.run.due().is_empty() && !queued;
    let orphaned = !record.status.is_final() && is_orphan(inner, &record).await?;
    let mut arrivals = Vec::new();
    arrivals.extend(orphaned.then_some(Arrival::Cancel));
    if record.status.is_final() || (idle && record.node.is_none()) {
        if loaded.run.wake_at().is_some_and(|moment| moment <= now) {
            arrivals.push(Arrival::Tick);
        }
        return Ok((loaded, arrivals.into_iter().map(Pending::own).collect()));
    }
    let share = share_of(record.project, loaded.run.speaker());
    if queued && record.parent.is_none() && !seat.try_take(share) {
        // Its letters are taken all the same: it may be cancelled before it begins.
        inner.wait_for_seat(id, share);
        return Ok((loaded, Vec::new()));
    }
    let Some(claimed) = patient(|| inner.store.claim(id, inner.settings.node, now)).await? else {
        // Another node drives it, or has ended it: its letters are taken as a guest.
        let record = patient(|| inner.store.run(id)).await?.ok_or(Why::NoRun)?;
        let loaded = match record.version == loaded.record.version {
            true => Loaded { record, ..loaded },
            false => patient(|| read(inner, record.clone())).await?,
        };
        return Ok((loaded, Vec::new()));
    };
    let loaded = patient(|| read(inner, claimed.clone())).await?;
    match loaded.run.status() {
        Status::Queued => arrivals.insert(0, Arrival::Begin),
        _ => arrivals.insert(0, Arrival::Recovered),
    }
    Ok((loaded, arrivals.into_iter().map(Pending::own).collect()))
}

/// Whether nobody waits for the run any more that some call started, which may have happened while nobody looked.
async fn is_orphan(inner: &Inner, record: &RunRecord) -> Result<bool, StoreError> {
    let Some(call) = record.parent else {
        return Ok(false);
    };
    match patient(|| inner.store.run(call.run)).await? {
        Some(parent) if !parent.status.is_final() => is_settled(inner, call, record.id).await,
        Some(_) | None => Ok(true),
    }
}

/// Whether a call has ended that `child` executes. Read from the end of the log back to where the child was
/// announced: nothing before that can say so.
async fn is_settled(inner: &Inner, call: CallId, child: RunId) -> Result<bool, StoreError> {
    let mut pages = Pages::of_run(call.run, LogRange::newest());
    while let Some(page) = next(&mut pages, inner).await? {
        for event in page.entries.iter().flat_map(|entry| entry.events.iter().rev()) {
            match event {
                Event::ToolExecuting(e) if e.child == Some(child) => return Ok(false),
                event if event.settles() == Some(call) => return Ok(true),
                _ => {}
            }
        }
    }
    Ok(false)
}

async fn read(inner: &Inner, record: RunRecord) -> Result<Loaded, StoreError> {
    let rewrites = inner.store.log_rewrites(record.space).await?;
    let mut pages = Pages::of_run(record.id, LogRange::default());
    let mut page = pages.next(&*inner.store).await?.unwrap_or_default();
    check(&page, record.id)?;
    let head = page.entries.first();
    let start = head.and_then(|entry| entry.events.iter().find_map(Event::run_start));
    let (Some(start), Some(first)) = (start, head.map(|entry| entry.first)) else {
        return Err(StoreError::Corrupt(format!("{} has no beginning", record.id)));
    };
    let compiled = agent_of(inner, &record, start)
        .await?
        .map(|compiled| compiled.with_result(result_of(start)))
        .ok_or_else(|| {
            StoreError::Corrupt(format!(
                "agent {} revision {} is gone",
                record.agent, record.revision
            ))
        })?;
    let kit = inner.pinned(record.project, &compiled, start).await?;
    let mut run = Run::new(record.id, compiled.agent, kit.toolbox.clone());
    let mut version = first;
    loop {
        for entry in &page.entries {
            run.extend(entry);
            version = entry.last();
        }
        match pages.next(&*inner.store).await? {
            Some(more) => page = more,
            None => break,
        }
        check(&page, record.id)?;
    }
    // The log is what happened; the row may have been read a moment earlier.
    let record = RunRecord { version, ..record };
    let home = match record.root == record.id {
        true => record.space,
        false => home(inner, record.root).await?,
    };
    Ok(Loaded {
        first,
        home,
        record,
        run,
        kit,
        rewrites,
    })
}

/// The agent that a run follows. A prompt tool that was a shared tool may be gone since: then it is the one that the run
/// above was told of.
async fn agent_of(
    inner: &Inner,
    record: &RunRecord,
    start: &RunStart,
) -> Result<Option<Compiled>, StoreError> {
    let compiled = inner
        .compiled(record.project, &record.agent, Some(record.revision))
        .await?;
    let Some(compiled) = compiled else {
        return Ok(None);
    };
    if let Some(found) = compiled.clone().behind(start.behind.as_ref()) {
        return Ok(Some(found));
    }
    let (Some(tool), Some(call)) = (&start.behind, record.parent) else {
        return Ok(None);
    };
    let mut pages = Pages::of_run(call.run, LogRange::default());
    let head = pages.next(&*inner.store).await?.unwrap_or_default();
    let events = head.entries.iter().flat_map(|entry| &entry.events);
    let pins = events
        .filter_map(Event::run_start)
        .find_map(|start| start.tools.read::<BTreeMap<ToolName, String>>().ok());
    let Some(hash) = pins.and_then(|pins| pins.get(tool).cloned()) else {
        return Ok(None);
    };
    let stored = inner.stored_tools(record.project, std::iter::once(&hash)).await?;
    Ok(stored.get(&hash).and_then(|tool| compiled.behind_tool(tool)))
}

/// What the answer of a run must be, when the call that started it says so.
fn result_of(start: &RunStart) -> Option<ResultSchema> {
    // It compiled when the agent was saved.
    ResultSchema::compile(start.result_schema.clone()?).ok()
}

/// Refuses a log that this version cannot replay.
fn check(page: &LogPage, run: RunId) -> Result<(), StoreError> {
    match page.entries.iter().find_map(Entry::beyond) {
        Some(event) => Err(StoreError::Newer {
            run,
            kind: event.kind().to_owned(),
        }),
        None => Ok(()),
    }
}

/// Leaves a run to nodes of a newer version: gives back its lease, and looks at it no more by itself.
pub(super) async fn leave_to_newer(inner: &Inner, id: RunId) -> Result<(), StoreError> {
    inner.beyond.add(id);
    match patient(|| inner.store.run(id)).await? {
        Some(record) if record.node == Some(inner.settings.node) => {
            // Work may be left: a node that can read the run finds it by its wake-up.
            patient(|| inner.store.release(id, record.epoch, 1)).await
        }
        Some(_) | None => Ok(()),
    }
}

async fn home(inner: &Inner, root: RunId) -> Result<SpaceId, StoreError> {
    let record = inner.store.run(root).await?;
    let home = record.map(|record| record.space);
    home.ok_or_else(|| StoreError::Corrupt(format!("{root} is gone, and runs below it are not")))
}

/// The next page of a log, tried a few times.
pub(super) async fn next(pages: &mut Pages, inner: &Inner) -> Result<Option<LogPage>, StoreError> {
    let (read, page) = patient(|| async {
        let mut read = *pages;
        let page = read.next(&*inner.store).await?;
        Ok((read, page))
    })
    .await?;
    *pages = read;
    Ok(page)
}

/// Tries a read a few times.
pub(crate) async fn patient<T, F>(mut read: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut delay = READ_DELAY;
    for _ in 1..READ_ATTEMPTS {
        match read().await {
            Err(StoreError::Unavailable(_) | StoreError::Timeout) => {}
            other => return other,
        }
        tokio::time::sleep(delay).await;
        delay *= 2;
    }
    read().await
}
