//! The deliveries of one configuration: reads the log of its run and posts what it has not posted yet.

use std::sync::Arc;
use std::time::Duration;

use toolgate_a2a::stream::StreamResponse;
use toolgate_a2a::{Dialect, VERSION_03};
use toolgate_door_a2a::task::{Numbered, TaskFold};
use toolgate_egress::Client;
use toolgate_engine::Engine;
use toolgate_engine::feed::{Batch, End, Scope};
use toolgate_engine::push_configs::{OwnedConfig, PushConfig, PushConfigs};
use toolgate_engine::store::{Directory, RunRecord, StoreError};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::event::Seq;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Decider;

use crate::notification::{Change, post};

/// Longest wait for the next entry of a log that is known to have one.
const READ_MAX: Duration = Duration::from_secs(10);
/// Attempts before a change is skipped: spread over about a day.
const ATTEMPTS_MAX: u32 = 30;
/// Pause after the first failure; it doubles with each further one.
const PAUSE_FIRST: Duration = Duration::from_secs(2);
const PAUSE_MAX: Duration = Duration::from_secs(3600);
/// How soon a run that waits is looked at again, in case the notice of its change was lost: the longer it waits, the later.
const LOOK_FIRST: Duration = Duration::from_secs(30);
const LOOK_MAX: Duration = Duration::from_secs(300);
/// How long a configuration of a run that has ended is kept.
const KEPT_AFTER_END: Duration = Duration::from_secs(24 * 3600);

/// What one configuration is delivered with. It was claimed for this.
pub(crate) struct Delivery {
    pub engine: Engine,
    pub directory: Arc<dyn Directory>,
    pub configs: PushConfigs,
    pub client: Client,
    pub secret: Option<Secret>,
    pub owned: OwnedConfig,
    /// Place in the run's log up to which there is nothing to deliver.
    pub place: Seq,
}

/// What came of working on a configuration.
enum Came {
    /// The run has no more changes now.
    CaughtUp(Box<RunRecord>),
    /// The last change of the run is delivered.
    Over(Box<RunRecord>),
    /// The run, or all use for the configuration, is gone.
    Gone,
    /// The change of this number was not accepted.
    Failed(u64, String),
    /// Reading the run was cut; it is read again.
    Cut,
    /// The configuration was replaced or removed, or another node works on it.
    Lost,
}

/// When a configuration is looked at again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// When its run changes, or at this moment.
    At(Time, Seq),
    /// When the store says that it is due.
    Never,
}

impl Delivery {
    /// False when the configuration is no longer this process's to deliver.
    pub async fn renew_claim(&mut self) -> Result<bool, StoreError> {
        self.configs.claim(&mut self.owned).await
    }

    /// Delivers until there is nothing more to deliver, or something is not accepted, and stores how far it came.
    pub async fn run(mut self) -> Result<Next, StoreError> {
        let came = self.deliver_all().await?;
        let now = self.engine.clock().now();
        let config = &self.owned.config;
        let at = |due| PushConfig {
            due: Some(due),
            is_claimed: false,
            place: self.place,
            ..config.clone()
        };
        let is_over = matches!(came, Came::Over(_));
        let next = match came {
            Came::CaughtUp(run) => {
                let waits = now.since(run.updated).clamp(LOOK_FIRST, LOOK_MAX);
                at(now.after(waits))
            }
            Came::Over(run) => at(run.updated.after(KEPT_AFTER_END)),
            Came::Failed(number, why) => self.failed(number, &why, at(now)),
            Came::Cut => at(now.after(PAUSE_FIRST)),
            Came::Gone => {
                let OwnedConfig {
                    project,
                    space,
                    config,
                } = &self.owned;
                self.configs
                    .remove(*project, *space, config.run, &config.id)
                    .await?;
                return Ok(Next::Never);
            }
            Came::Lost => return Ok(Next::Never),
        };
        let due = next.due.unwrap_or(now);
        match self.configs.change(&mut self.owned, next).await? {
            true if !is_over => Ok(Next::At(due, self.place)),
            _ => Ok(Next::Never),
        }
    }

    /// The configuration after a change was not accepted: it is tried again later, and skipped in the end.
    fn failed(&self, number: u64, why: &str, config: PushConfig) -> PushConfig {
        let attempts = config.failures + 1;
        let given_up = attempts >= ATTEMPTS_MAX;
        tracing::warn!(
            run = %config.run, config = config.id, number, attempts, given_up, why,
            "a push notification is not accepted"
        );
        match given_up {
            true => PushConfig {
                delivered: number,
                failures: 0,
                ..config
            },
            false => PushConfig {
                failures: attempts,
                due: config.due.map(|now| now.after(pause(attempts))),
                ..config
            },
        }
    }

    async fn deliver_all(&mut self) -> Result<Came, StoreError> {
        let Some(run) = self.engine.run(self.owned.config.run).await? else {
            return Ok(Came::Gone);
        };
        if run.version <= self.owned.config.place {
            return Ok(self.at_rest(run));
        }
        let Some(reader) = self.reader().await? else {
            return Ok(Came::CaughtUp(Box::new(run)));
        };
        let mut fold = TaskFold::new(run.id, self.owned.space, reader);
        let scope = Scope::Run(run.id);
        let mut events = self.engine.subscribe(scope, Seq::default()).await?;
        let mut place = Seq::default();
        while place < run.version {
            let entry = match tokio::time::timeout(READ_MAX, events.next()).await {
                Err(_) | Ok(Err(End::Cut)) => return Ok(Came::Cut),
                Ok(Err(End::Finished)) => break,
                Ok(Ok(Batch::Live(_))) => continue,
                Ok(Ok(Batch::Stored(entry))) => entry,
            };
            place = entry.last();
            let changes = fold.take(&entry);
            // What happened before somebody asked for notifications is in the task that they have read.
            if entry.time < self.owned.config.since {
                continue;
            }
            for change in changes {
                if change.number <= self.owned.config.delivered {
                    continue;
                }
                let change = self.change(&fold, change);
                if let Some(ended) = self.deliver(&change).await? {
                    return Ok(ended);
                }
            }
        }
        self.place = place;
        Ok(self.at_rest(run))
    }

    /// What there is to do for a run of which everything is delivered.
    fn at_rest(&self, run: RunRecord) -> Came {
        let now = self.engine.clock().now();
        match run.status.is_final() {
            true if now.since(run.updated) >= KEPT_AFTER_END => Came::Gone,
            true => Came::Over(Box::new(run)),
            false => Came::CaughtUp(Box::new(run)),
        }
    }

    /// Posts a change and counts it. None when the next one is to be posted.
    async fn deliver(&mut self, change: &Change) -> Result<Option<Came>, StoreError> {
        // Whoever was taken out of the space while a receiver was slow learns no more of it.
        if self.reader().await?.is_none() {
            return Ok(Some(Came::Cut));
        }
        let now = self.engine.clock().now();
        let config = &self.owned.config;
        if let Err(why) = post(&self.client, config, change, self.secret.as_ref(), now).await {
            return Ok(Some(Came::Failed(change.number, why)));
        }
        let noted = self.configs.note_delivered(&mut self.owned, change.number);
        Ok((!noted.await?).then_some(Came::Lost))
    }

    /// Whose eyes the task is seen with; none when the user is no member of the space any more.
    async fn reader(&self) -> Result<Option<Decider>, StoreError> {
        let Some(entity) = self.owned.config.by else {
            return Ok(Some(Decider::Backend));
        };
        let member = self.directory.member(self.owned.space, entity).await?;
        Ok(member.map(|member| Decider::Member {
            entity,
            roles: member.role.into_iter().collect(),
            token_roles: Arc::default(),
            groups: Arc::default(),
        }))
    }

    /// A change as it is posted: the change itself, and for receivers of 0.3 the whole task.
    fn change(&self, fold: &TaskFold, Numbered { number, mut event }: Numbered) -> Change {
        let body = match self.owned.config.form == VERSION_03 {
            true => fold.task(None, true).to_json(Dialect::V03),
            false => {
                if let StreamResponse::StatusUpdate(update) = &mut event {
                    let state = update.status.state;
                    update.is_final = state.is_terminal() || state.is_interrupted();
                }
                event.to_json(Dialect::V1)
            }
        };
        Change {
            number,
            body: body.to_string(),
        }
    }
}

fn pause(attempts: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1).min(16));
    PAUSE_FIRST.saturating_mul(doubled).min(PAUSE_MAX)
}
