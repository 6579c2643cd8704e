//! Works on the push configurations of all projects: on those that are due, and on those whose run has changed. A node
//! claims a configuration before it works on it, so that of several nodes one posts.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_egress::Egress;
use toolgate_engine::Engine;
use toolgate_engine::push_configs::{OwnedConfig, PushConfigs};
use toolgate_engine::run_changes::Changed;
use toolgate_engine::shares::share_of;
use toolgate_engine::store::{Directory, StoreError};
use toolgate_fair::{Limits, Queue, Share, Shares, Spare};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{ProjectId, RunId, SpaceId};
use toolgate_tools::OutboundResolver;

use crate::delivery::{Delivery, Next};
use crate::notification::client;

/// Configurations that are worked on at the same time; a part of them for one project and one user.
const RUNNING: usize = 512;
/// Configurations that are claimed and wait for their turn.
const WAITING: usize = 2_048;
/// Due configurations that are read at once.
const BATCH: usize = 256;
/// Configurations whose runs are watched. Those beyond are looked at when they are due.
const KNOWN_MAX: usize = 50_000;
/// A claim that has waited longer for its turn is renewed before the work begins.
const FRESH_FOR: Duration = Duration::from_secs(5);
/// Shortest time between two looks for due configurations: one of a newer version stays due.
const LOOK_MIN: Duration = Duration::from_millis(100);
/// Longest time between two looks for configurations that another node has stored or left.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What notifications are delivered with.
pub struct PushParts {
    /// Runs, and their logs.
    pub engine: Engine,
    /// Who is a member of a space.
    pub directory: Arc<dyn Directory>,
    /// The configurations.
    pub configs: PushConfigs,
    /// Connections to servers of others.
    pub egress: Egress,
    /// What a project may reach.
    pub outbound: Arc<dyn OutboundResolver>,
    /// Signs notifications; without one the token of a configuration does.
    pub secret: Option<Secret>,
}

/// Delivers push notifications.
pub struct Pusher {
    parts: PushParts,
    turns: Arc<Queue>,
    active: JoinSet<Ended>,
    known: BTreeMap<Key, Known>,
    /// Counts the works that were begun.
    begun: u64,
    /// When to look for due configurations.
    look_at: Instant,
}

/// A configuration: its run and its id.
type Key = (RunId, String);

/// What came of a work: its configuration, its number, and when to look again.
type Ended = (Key, u64, Result<Next, StoreError>);

/// A configuration whose run is watched.
struct Known {
    project: ProjectId,
    space: SpaceId,
    work: Work,
    /// Place in the run's log up to which there was nothing to deliver at the last look.
    place: Seq,
}

/// Whether this process works on a configuration, and whether its run has changed since the work began.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    None,
    /// Under the number of the work. A configuration that was replaced meanwhile has another.
    UnderWay {
        number: u64,
        has_changed: bool,
    },
}

impl Pusher {
    /// Works on the configurations in `parts`. Nothing is sent until [`Pusher::run`].
    pub fn new(parts: PushParts) -> Self {
        Self {
            parts,
            turns: Queue::new(Limits {
                running: Shares::of(RUNNING),
                waiting: Shares::of(WAITING),
                waiting_bytes: Shares::UNLIMITED,
                spare: Spare::NONE,
            }),
            active: JoinSet::new(),
            known: BTreeMap::new(),
            begun: 0,
            look_at: Instant::now(),
        }
    }

    /// Delivers until `stop` fires. What is under way then is repeated after the next start.
    pub async fn run(mut self, stop: CancellationToken) {
        // Watched before anything is read, so that no change falls between.
        let mut watch = self.parts.engine.watch_runs();
        let mut is_loaded = false;
        let configs = self.parts.configs.clone();
        while !stop.is_cancelled() {
            if self.look_at <= Instant::now() {
                let looked = match is_loaded {
                    true => self.start_due().await,
                    false => self.load().await,
                };
                is_loaded |= looked.is_ok();
                if looked.is_err() {
                    self.look_at = Instant::now() + LOOK_AGAIN;
                }
                report(looked, "push configurations cannot be read now");
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep_until(self.look_at) => {}
                () = configs.changed() => self.look_at = Instant::now(),
                Some(ended) = self.active.join_next() => {
                    let noted = self.note(ended).await;
                    report(noted, "push notifications wait for the store");
                }
                changed = watch.next() => {
                    let woken = self.wake(changed).await;
                    report(woken, "push notifications wait for the store");
                }
            }
        }
        self.active.shutdown().await;
    }

    /// Learns of every configuration there is, and works on those whose run has changed while nobody watched.
    async fn load(&mut self) -> Result<(), StoreError> {
        let configs = self.parts.configs.clone();
        let known = &mut self.known;
        let each = |of_space: Vec<OwnedConfig>| {
            for owned in of_space {
                watch(known, &owned, Work::None);
            }
        };
        configs.for_each_space(each).await?;
        self.look_at_all().await
    }

    /// Works on what is due, as far as there is room.
    async fn start_due(&mut self) -> Result<(), StoreError> {
        let room = (RUNNING + WAITING).saturating_sub(self.active.len()).min(BATCH);
        let due = self.parts.configs.due(room).await?;
        let is_all = due.len() < room;
        for owned in due {
            self.start(owned).await?;
        }
        let now = self.parts.engine.clock().now();
        let next = match is_all {
            // Without room there is the next look when some work has ended.
            false => (room > 0).then_some(now),
            true => self.parts.configs.next_due().await?,
        };
        let pause = next.map_or(LOOK_AGAIN, |next| next.since(now));
        self.look_at = Instant::now() + pause.clamp(LOOK_MIN, LOOK_AGAIN);
        Ok(())
    }

    /// Works on a configuration, unless another node does.
    async fn start(&mut self, mut owned: OwnedConfig) -> Result<(), StoreError> {
        let outbound = self.parts.outbound.outbound_settings(owned.project).await?;
        if !self.parts.configs.claim(&mut owned).await? {
            return Ok(());
        }
        self.begun += 1;
        let (key, number) = ((owned.config.run, owned.config.id.clone()), self.begun);
        let work = Work::UnderWay {
            number,
            has_changed: false,
        };
        watch(&mut self.known, &owned, work);
        let share = share_of(owned.project, owned.config.by);
        let delivery = Delivery {
            engine: self.parts.engine.clone(),
            directory: self.parts.directory.clone(),
            configs: self.parts.configs.clone(),
            client: client(&self.parts.egress.within(share), &outbound),
            secret: self.parts.secret.clone(),
            place: owned.config.place,
            owned,
        };
        let turns = self.turns.clone();
        self.active.spawn(async move {
            let worked = AssertUnwindSafe(in_turn(&turns, share, delivery))
                .catch_unwind()
                .await;
            let broken = |_| {
                tracing::error!("the delivery of a push notification broke down");
                Ok(Next::Never)
            };
            (key, number, worked.unwrap_or_else(broken))
        });
        Ok(())
    }

    /// Notes what came of the work on a configuration.
    async fn note(&mut self, ended: Result<Ended, JoinError>) -> Result<(), StoreError> {
        let (key, ended, next) =
            ended.expect("a delivery catches its panics, and is aborted at the end only");
        let now = self.parts.engine.clock().now();
        if let Ok(Next::At(due, _)) = &next {
            self.look_at = self.look_at.min(Instant::now() + due.since(now));
        }
        let Some(known) = self.known.get_mut(&key) else {
            return next.map(drop);
        };
        let has_changed = match known.work {
            Work::UnderWay { number, has_changed } if number == ended => has_changed,
            Work::None | Work::UnderWay { .. } => return next.map(drop),
        };
        known.work = Work::None;
        match next {
            Ok(Next::At(_, place)) => known.place = place,
            Ok(Next::Never) => drop(self.known.remove(&key)),
            Err(error) => return Err(error),
        }
        match has_changed {
            true => self.look(&key).await,
            false => Ok(()),
        }
    }

    /// Works on the configurations of runs that have changed.
    async fn wake(&mut self, changed: Changed) -> Result<(), StoreError> {
        if changed.missed {
            self.look_at_all().await?;
        }
        for run in changed.runs {
            let of_run = self.known.range((run, String::new())..);
            let of_run = of_run.map(|(key, _)| key).take_while(|key| key.0 == run);
            for key in of_run.cloned().collect::<Vec<_>>() {
                self.look(&key).await?;
            }
        }
        Ok(())
    }

    async fn look_at_all(&mut self) -> Result<(), StoreError> {
        for key in self.known.keys().cloned().collect::<Vec<_>>() {
            self.look(&key).await?;
        }
        Ok(())
    }

    /// Works on a configuration if its run has changed since the last look.
    async fn look(&mut self, key: &Key) -> Result<(), StoreError> {
        let Some(known) = self.known.get_mut(key) else {
            return Ok(());
        };
        if let Work::UnderWay { has_changed, .. } = &mut known.work {
            *has_changed = true;
            return Ok(());
        }
        let run = self.parts.engine.run(key.0).await?;
        if run.is_some_and(|run| run.version <= known.place) {
            return Ok(());
        }
        let (project, space) = (known.project, known.space);
        match self.parts.configs.get(project, space, key.0, &key.1).await? {
            // It is tried again in its time, or another node is at work on it and hears of the change too.
            Some(config) if config.is_claimed || config.failures > 0 => {}
            Some(config) => {
                let owned = OwnedConfig {
                    project,
                    space,
                    config,
                };
                self.start(owned).await?;
            }
            None => drop(self.known.remove(key)),
        }
        Ok(())
    }
}

/// Delivers when it is the turn of the configuration's owner.
async fn in_turn(turns: &Arc<Queue>, share: Share, mut delivery: Delivery) -> Result<Next, StoreError> {
    let claimed = Instant::now();
    // Without room to wait the claim ends by itself, and then the configuration is due again.
    let Ok(_permit) = turns.turn(share, 0).await else {
        return Ok(Next::Never);
    };
    match claimed.elapsed() < FRESH_FOR || delivery.renew_claim().await? {
        true => delivery.run().await,
        false => Ok(Next::Never),
    }
}

/// Watches the run of a configuration from now on, if there is room.
fn watch(known: &mut BTreeMap<Key, Known>, owned: &OwnedConfig, work: Work) {
    let key = (owned.config.run, owned.config.id.clone());
    if known.len() >= KNOWN_MAX && !known.contains_key(&key) {
        return;
    }
    let watched = Known {
        project: owned.project,
        space: owned.space,
        work,
        place: owned.config.place,
    };
    known.insert(key, watched);
}

fn report(done: Result<(), StoreError>, what: &str) {
    if let Err(error) = done {
        tracing::warn!(%error, "{what}");
    }
}
