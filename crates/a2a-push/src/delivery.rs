//! The deliveries of one configuration: follows its run and posts what it has not posted yet.

use std::sync::Arc;
use std::time::Duration;

use toolgate_a2a::stream::StreamResponse;
use toolgate_a2a::{Dialect, VERSION_03};
use toolgate_door_a2a::task::{Numbered, TaskFold};
use toolgate_egress::Client;
use toolgate_engine::Engine;
use toolgate_engine::feed::{Batch, End, Scope};
use toolgate_engine::push_configs::{PushConfig, PushConfigs};
use toolgate_engine::store::{Directory, StoreError};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{ProjectId, SpaceId};
use toolgate_kernel::tool::Decider;

use crate::notification::{Change, post};

/// How long a run is followed in which nothing happens. After that its row says when to look again.
const IDLE: Duration = Duration::from_secs(30);

/// What one configuration is delivered with.
pub(crate) struct Delivery {
    pub engine: Engine,
    pub directory: Arc<dyn Directory>,
    pub configs: PushConfigs,
    pub client: Client,
    pub secret: Option<Secret>,
    pub project: ProjectId,
    pub space: SpaceId,
    pub config: PushConfig,
    /// A change that is skipped: it was not accepted for too long.
    pub skipped: Option<u64>,
}

/// What came of working on a configuration.
#[derive(Debug, PartialEq)]
pub(crate) enum Came {
    /// There is nothing more to deliver: the run has ended, or the configuration is gone or its owner is.
    Done,
    /// There is nothing to deliver while the run stands at this place.
    Idle(Seq),
    /// The change of this number was not accepted.
    Failed(u64, String),
    /// Following the run was cut; it is followed again.
    Again,
}

impl Delivery {
    /// Delivers until there is nothing more to deliver, or something is not accepted.
    pub async fn run(mut self) -> Result<Came, StoreError> {
        let Some(reader) = self.reader().await? else {
            return Ok(Came::Done);
        };
        let mut fold = TaskFold::new(self.config.run, self.space, reader);
        let mut events = self
            .engine
            .subscribe(Scope::Run(self.config.run), Seq::default())
            .await?;
        loop {
            let batch = match tokio::time::timeout(IDLE, events.next()).await {
                Err(_) => return Ok(Came::Idle(fold.seq())),
                Ok(Err(End::Finished)) => return Ok(Came::Done),
                Ok(Err(End::Cut)) => return Ok(Came::Again),
                Ok(Ok(Batch::Live(_))) => continue,
                Ok(Ok(Batch::Stored(entry))) => entry,
            };
            let changes = fold.take(&batch);
            // What happened before somebody asked for notifications is in the task that they have read.
            if batch.time < self.config.since {
                continue;
            }
            for change in changes {
                if change.number <= self.config.delivered {
                    continue;
                }
                let change = self.change(&fold, change);
                if let Some(ended) = self.deliver(&change).await? {
                    return Ok(ended);
                }
            }
        }
    }

    /// Posts a change and counts it. None when the next one is to be posted.
    async fn deliver(&mut self, change: &Change) -> Result<Option<Came>, StoreError> {
        if self.skipped != Some(change.number) {
            // Whoever was taken out of the space while a receiver was slow learns no more of it.
            if self.reader().await?.is_none() {
                return Ok(Some(Came::Done));
            }
            let now = self.engine.clock().now();
            if let Err(why) = post(&self.client, &self.config, change, self.secret.as_ref(), now).await {
                return Ok(Some(Came::Failed(change.number, why)));
            }
        }
        let noted = self
            .configs
            .note_delivered(self.project, self.space, &self.config, change.number);
        if !noted.await? {
            // It was replaced or removed, or another node is further.
            return Ok(Some(Came::Again));
        }
        self.config.delivered = change.number;
        let ends = change.event.state().is_some_and(|state| state.is_terminal());
        Ok(ends.then_some(Came::Done))
    }

    /// Whose eyes the task is seen with; none when the user is no member of the space any more.
    async fn reader(&self) -> Result<Option<Decider>, StoreError> {
        let Some(entity) = self.config.by else {
            return Ok(Some(Decider::Backend));
        };
        let member = self.directory.member(self.space, entity).await?;
        Ok(member.map(|member| Decider::Member {
            entity,
            roles: member.role.into_iter().collect(),
            groups: Arc::default(),
        }))
    }

    /// A change as it is posted: the change itself, and for receivers of 0.3 the whole task.
    fn change(&self, fold: &TaskFold, Numbered { number, mut event }: Numbered) -> Change {
        let body = match self.config.form == VERSION_03 {
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
            event,
            body: body.to_string(),
        }
    }
}
