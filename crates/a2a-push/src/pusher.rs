//! Works on the push configurations of all projects: which are delivered now, which later, and which are over.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_egress::Egress;
use toolgate_engine::Engine;
use toolgate_engine::push_configs::{LOOK_AGAIN, PushConfig, PushConfigs};
use toolgate_engine::shares::share_of;
use toolgate_engine::store::{Directory, StoreError};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::time::Time;
use toolgate_tools::OutboundResolver;

use crate::delivery::{Came, Delivery};
use crate::notification::client;

/// Configurations that are worked on at the same time, for all and for one user.
const ACTIVE_MAX: usize = 512;
const ACTIVE_OF_USER_MAX: usize = 64;
/// Attempts before a change is skipped: spread over about a day.
const ATTEMPTS_MAX: u32 = 30;
/// Pause after the first failure; it doubles with each further one.
const PAUSE_FIRST: Duration = Duration::from_secs(2);
const PAUSE_MAX: Duration = Duration::from_secs(3600);
/// Shortest time between two looks at the configurations.
const PASS_EVERY_MIN: Duration = Duration::from_millis(100);
/// How long a configuration of a run that has ended is kept.
const KEPT_AFTER_END: Duration = Duration::from_secs(24 * 3600);

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
    active: JoinSet<(Key, Result<Came, StoreError>)>,
    known: HashMap<Key, Standing>,
}

/// A configuration.
type Key = (RunId, String);

/// Where a configuration stands in this process.
struct Standing {
    project: ProjectId,
    by: Option<EntityId>,
    /// From when on it is posted to: one of the same id may be stored anew.
    since: Time,
    state: State,
    /// The change that was not accepted, and how often.
    failed: Option<(u64, u32)>,
}

enum State {
    Active,
    /// Nothing is to be delivered while the run stands there.
    Idle(Seq),
    /// It is tried again at this moment.
    Later(Instant),
    Done,
}

impl Pusher {
    /// Works on the configurations in `parts`. Nothing is sent until [`Pusher::run`].
    pub fn new(parts: PushParts) -> Self {
        Self {
            parts,
            active: JoinSet::new(),
            known: HashMap::new(),
        }
    }

    /// Delivers until `stop` fires. What is under way then is repeated after the next start.
    pub async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            if let Err(error) = self.pass().await {
                tracing::warn!(%error, "push configurations cannot be read now");
            }
            let pause = tokio::time::sleep(PASS_EVERY_MIN);
            if stop.run_until_cancelled(pause).await.is_none() {
                break;
            }
            let until = Instant::now() + self.until_next();
            let configs = self.parts.configs.clone();
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep_until(until) => {}
                () = configs.changed() => {}
                Some(ended) = self.active.join_next() => self.note(ended),
            }
        }
        self.active.shutdown().await;
    }

    fn until_next(&self) -> Duration {
        let later = self.known.values().filter_map(|standing| match standing.state {
            State::Later(moment) => Some(moment.saturating_duration_since(Instant::now())),
            _ => None,
        });
        later.min().unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN)
    }

    /// Starts what is to be delivered now.
    async fn pass(&mut self) -> Result<(), StoreError> {
        while let Some(ended) = self.active.try_join_next() {
            self.note(ended);
        }
        let configs = self.parts.configs.clone();
        let mut seen = HashSet::new();
        for (project, space) in configs.spaces().await? {
            for config in configs.of_space(project, space).await? {
                seen.insert((config.run, config.id.clone()));
                self.consider(project, space, config).await?;
            }
        }
        self.known
            .retain(|key, standing| matches!(standing.state, State::Active) || seen.contains(key));
        Ok(())
    }

    async fn consider(
        &mut self,
        project: ProjectId,
        space: SpaceId,
        config: PushConfig,
    ) -> Result<(), StoreError> {
        let key = (config.run, config.id.clone());
        let known = self.known.get(&key).filter(|known| known.since == config.since);
        let due = match known.map(|known| &known.state) {
            None => true,
            Some(State::Active) => false,
            Some(State::Later(moment)) => *moment <= Instant::now(),
            Some(State::Idle(place)) => {
                let run = self.parts.engine.run(config.run).await?;
                run.is_none_or(|run| run.version > *place)
            }
            Some(State::Done) => {
                self.remove_old(project, space, &config).await?;
                false
            }
        };
        if due && self.has_room(project, config.by) {
            self.start(project, space, config).await?;
        }
        Ok(())
    }

    fn has_room(&self, project: ProjectId, by: Option<EntityId>) -> bool {
        let active = self
            .known
            .values()
            .filter(|standing| matches!(standing.state, State::Active));
        let (mut all, mut mine) = (0, 0);
        for standing in active {
            all += 1;
            mine += usize::from(standing.project == project && standing.by == by);
        }
        all < ACTIVE_MAX && mine < ACTIVE_OF_USER_MAX
    }

    async fn start(
        &mut self,
        project: ProjectId,
        space: SpaceId,
        config: PushConfig,
    ) -> Result<(), StoreError> {
        let outbound = self.parts.outbound.outbound_settings(project).await?;
        let egress = self.parts.egress.within(share_of(project, config.by));
        let key = (config.run, config.id.clone());
        let failed = self.known.get(&key).and_then(|known| known.failed);
        let skipped = failed.filter(|(_, attempts)| *attempts >= ATTEMPTS_MAX);
        let standing = Standing {
            project,
            by: config.by,
            since: config.since,
            state: State::Active,
            failed,
        };
        self.known.insert(key.clone(), standing);
        let delivery = Delivery {
            engine: self.parts.engine.clone(),
            directory: self.parts.directory.clone(),
            configs: self.parts.configs.clone(),
            client: client(&egress, &outbound),
            secret: self.parts.secret.clone(),
            project,
            space,
            config,
            skipped: skipped.map(|(number, _)| number),
        };
        self.active.spawn(async move {
            let delivered = AssertUnwindSafe(delivery.run()).catch_unwind().await;
            let broken = |_| Ok(Came::Failed(0, "the delivery broke down".into()));
            (key, delivered.unwrap_or_else(broken))
        });
        Ok(())
    }

    fn note(&mut self, ended: Result<(Key, Result<Came, StoreError>), JoinError>) {
        let (key, came) = ended.expect("a delivery catches its panics, and is aborted at the end only");
        let Some(standing) = self.known.get_mut(&key) else {
            return;
        };
        standing.state = match came {
            Ok(Came::Done) => State::Done,
            Ok(Came::Idle(place)) => State::Idle(place),
            Ok(Came::Again) => State::Later(Instant::now()),
            Ok(Came::Failed(number, why)) => {
                let before = standing.failed.filter(|(earlier, _)| *earlier == number);
                let attempts = before.map_or(1, |(_, attempts)| attempts + 1);
                standing.failed = Some((number, attempts));
                let given_up = attempts >= ATTEMPTS_MAX;
                tracing::warn!(run = %key.0, config = key.1, number, attempts, given_up, why, "a push notification is not accepted");
                State::Later(Instant::now() + pause(attempts))
            }
            Err(error) => {
                tracing::warn!(%error, "push notifications wait for the store");
                State::Later(Instant::now() + PAUSE_FIRST)
            }
        };
    }

    /// Removes a configuration that nothing is delivered to any more.
    async fn remove_old(
        &self,
        project: ProjectId,
        space: SpaceId,
        config: &PushConfig,
    ) -> Result<(), StoreError> {
        let now = self.parts.engine.clock().now();
        let run = self.parts.engine.run(config.run).await?;
        let is_old = run.is_none_or(|run| run.status.is_final() && now.since(run.updated) > KEPT_AFTER_END);
        match is_old {
            true => {
                self.parts
                    .configs
                    .remove(project, space, config.run, &config.id)
                    .await
            }
            false => Ok(()),
        }
    }
}

fn pause(attempts: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1).min(16));
    PAUSE_FIRST.saturating_mul(doubled).min(PAUSE_MAX)
}
