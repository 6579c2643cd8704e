//! A message into a space: to the run that is under way there, or to a new one.

use std::sync::Arc;

use toolgate_kernel::agent::{DEFAULT_AGENT, History, Starter};
use toolgate_kernel::event::{Entry, Event, Said, Seq};
use toolgate_kernel::history::newest_within;
use toolgate_kernel::id::{RunId, SpaceId};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::run::Arrival;
use toolgate_kernel::tool::settle_conflicts;
use uuid::Uuid;

use crate::agents::{Compiled, Kit};
use crate::feed::Subscription;
use crate::intake::{Answer, IntakeError, Post, PostError, Posted};
use crate::start::NewRun;
use crate::store::{Append, IdempotencyRecord, RunRecord, RunWrite, SpaceRecord, StoreError};
use crate::{Engine, Inner};

/// How often a message is tried that others to the same space, here or on other nodes, come between.
const POST_ATTEMPTS: usize = 16;

impl Engine {
    /// Stores a message, and starts or wakes the run that answers it.
    pub async fn post(&self, post: Post) -> Result<Posted, PostError> {
        let space = post.space.unwrap_or_else(|| SpaceId::new(Uuid::now_v7()));
        self.inner.post(space, post).await
    }

    /// As [`Engine::post`], and follows the run from just before the message; nothing to follow when nobody
    /// answers.
    pub async fn post_and_follow(&self, post: Post) -> Result<(Posted, Option<Subscription>), PostError> {
        let space = post.space.unwrap_or_else(|| SpaceId::new(Uuid::now_v7()));
        let following = self.inner.follow_from_now(space);
        let posted = self.inner.post(space, post).await?;
        let following = match posted.run_id {
            None => None,
            // What followed the first of the two requests may be over.
            Some(run) if posted.repeated => {
                Some(self.subscribe(crate::feed::Scope::Run(run), posted.seq).await?)
            }
            Some(run) => Some(following.only(run, posted.seq)),
        };
        Ok((posted, following))
    }
}

impl Inner {
    pub(crate) async fn post(self: &Arc<Self>, space: SpaceId, mut post: Post) -> Result<Posted, PostError> {
        if self.is_stopping() {
            return Err(PostError::Busy(
                "the gateway is going down; try again in a moment".into(),
            ));
        }
        for _ in 1..POST_ATTEMPTS {
            match self.try_post(space, &mut post).await {
                // Somebody else made the space, started the run, or sent the same request: look again, and join.
                Err(PostError::Store(StoreError::OpenRun(_) | StoreError::Exists)) => {}
                other => return other,
            }
        }
        self.try_post(space, &mut post).await
    }

    /// Reads what there is, decides, and writes. The store refuses a write that others came before: `Exists` when
    /// the space or the answer to the same request is there now, `OpenRun` when the agent's run is.
    async fn try_post(self: &Arc<Self>, space: SpaceId, post: &mut Post) -> Result<Posted, PostError> {
        if let Some(posted) = self.answered_before(post).await? {
            return Ok(posted);
        }
        let record = match post.space {
            Some(known) => self.store.space(known).await?,
            None => None,
        };
        let record = match record.filter(|record| record.project == post.project) {
            Some(record) => record,
            None if post.space.is_none() || post.makes_space => {
                return self.post_new_space(space, post).await;
            }
            None => return Err(PostError::NoSpace),
        };
        let own = record.agent.unwrap_or_else(default_agent);
        let name = match &post.answer {
            Answer::None => return self.post_unanswered(space, post).await,
            Answer::Agent(name) => name.clone(),
            Answer::Default => own.clone(),
        };
        let given = record.by_backend && name == own;
        let (agent, kit) = self.equip(name, given, post).await?;
        if let Some(posted) = self.join_run(space, &agent, &kit, post).await? {
            return Ok(posted);
        }
        self.post_new_run(space, None, agent, kit, post).await
    }

    async fn post_new_space(self: &Arc<Self>, space: SpaceId, post: &mut Post) -> Result<Posted, PostError> {
        let name = match &post.answer {
            Answer::None => return Err(PostError::NoSpace),
            Answer::Agent(name) => name.clone(),
            Answer::Default => default_agent(),
        };
        let (agent, kit) = self.equip(name.clone(), false, post).await?;
        let record = SpaceRecord {
            id: space,
            project: post.project,
            title: None,
            agent: Some(name),
            metadata: None,
            by_backend: post.starter == Starter::Backend,
            members: post.message.from.into_iter().collect(),
            created: self.clock.now(),
        };
        self.post_new_run(space, Some(record), agent, kit, post).await
    }

    /// The agent and its tools with the caller's, whose names no longer clash then. `given`: the space has this agent
    /// from a backend.
    async fn equip(
        &self,
        name: AgentName,
        given: bool,
        post: &mut Post,
    ) -> Result<(Compiled, Arc<Kit>), PostError> {
        let agent = self
            .compiled(post.project, &name, None)
            .await?
            .filter(|known| known.agent.access.admits(&post.starter, given))
            .ok_or(PostError::NoAgent(name))?;
        let brought = std::mem::take(&mut post.client_tools);
        let conflict = self.project_settings(post.project).await?.conflict;
        post.client_tools =
            settle_conflicts(&agent.tools.toolbox, brought, conflict).map_err(PostError::Tools)?;
        let kit = self.kit(
            post.project,
            &agent,
            &post.client_tools,
            post.categories.as_deref(),
        );
        let kit = kit.map_err(PostError::Tools)?;
        Ok((agent, kit))
    }

    async fn post_new_run(
        self: &Arc<Self>,
        space: SpaceId,
        new_space: Option<SpaceRecord>,
        agent: Compiled,
        kit: Arc<Kit>,
        post: &Post,
    ) -> Result<Posted, PostError> {
        let id = RunId::new(Uuid::now_v7());
        let message_id = post.message.message_id;
        let idempotency = self.remember(post, space, Some(id));
        let fresh_space = new_space.is_some();
        let entry = self
            .start(NewRun {
                kit,
                client_tools: post.client_tools.clone(),
                categories: post.categories.clone(),
                history: newest_within(post.history.clone(), self.settings.history_bytes_max),
                new_space,
                idempotency,
                ..NewRun::new(id, post.project, space, agent, post.message.clone())
            })
            .await?;
        let seq = if fresh_space { Seq(0) } else { just_before(&entry) };
        Ok(Posted {
            message_id,
            space_id: space,
            run_id: Some(id),
            seq,
            repeated: false,
        })
    }

    /// Gives the message to the run that is under way in the space, if there is one that it fits. One that has
    /// other tools than the message brings, or another past than it tells, is ended instead.
    async fn join_run(
        self: &Arc<Self>,
        space: SpaceId,
        agent: &Compiled,
        kit: &Kit,
        post: &Post,
    ) -> Result<Option<Posted>, PostError> {
        let open = self.store.open_run(space, &agent.agent.name).await?;
        let Some(RunRecord { id, version, .. }) = open else {
            return Ok(None);
        };
        if !self.fits(id, agent, kit, post).await? {
            return match self.cancel(id).await {
                Ok(_) => Ok(None),
                Err(IntakeError::Store(error)) => Err(error.into()),
                Err(other) => Err(PostError::Busy(other.to_string())),
            };
        }
        let idempotency = self.remember(post, space, Some(id));
        let arrival = Arrival::Message(post.message.clone());
        match self.deliver_once(id, arrival, idempotency, |_| Some(())).await {
            Ok(()) => Ok(Some(Posted {
                message_id: post.message.message_id,
                space_id: space,
                run_id: Some(id),
                seq: version,
                repeated: false,
            })),
            Err(IntakeError::Ended(_)) => Ok(None),
            Err(IntakeError::Store(error)) => Err(error.into()),
            Err(other) => Err(PostError::Busy(other.to_string())),
        }
    }

    /// Whether a run under way can go on with what the message brings.
    async fn fits(&self, run: RunId, agent: &Compiled, kit: &Kit, post: &Post) -> Result<bool, StoreError> {
        if agent.agent.history == History::Client {
            return Ok(false);
        }
        if post.client_tools.is_empty() && post.categories.is_none() {
            return Ok(true);
        }
        let first = self.store.run_start(run).await?;
        let start = first
            .iter()
            .flat_map(|entry| &entry.events)
            .find_map(Event::run_start);
        Ok(start.is_some_and(|start| start.tools == kit.pins))
    }

    /// A message that nobody is asked to answer.
    async fn post_unanswered(&self, space: SpaceId, post: &Post) -> Result<Posted, PostError> {
        let message_id = post.message.message_id;
        let idempotency = self.remember(post, space, None);
        let events = vec![
            Said {
                message: post.message.clone(),
            }
            .into(),
        ];
        let append = Append {
            space,
            run: RunWrite::None,
            events,
            usage: Vec::new(),
            wakes: Vec::new(),
            time: self.clock.now(),
            idempotency,
        };
        let entry = self.store.append(append).await?;
        let seq = just_before(&entry);
        Ok(Posted {
            message_id,
            space_id: space,
            run_id: None,
            seq,
            repeated: false,
        })
    }

    fn remember(&self, post: &Post, space: SpaceId, run: Option<RunId>) -> Option<IdempotencyRecord> {
        let (key, request) = post.idempotency.clone()?;
        let answer = serde_json::json!({
            "messageId": post.message.message_id, "spaceId": space, "runId": run,
        });
        let time = self.clock.now();
        Some(IdempotencyRecord {
            project: post.project,
            key,
            request,
            answer: answer.into(),
            time,
        })
    }

    async fn answered_before(&self, post: &Post) -> Result<Option<Posted>, PostError> {
        let Some((key, request)) = &post.idempotency else {
            return Ok(None);
        };
        let Some(record) = self.store.idempotency(post.project, key).await? else {
            return Ok(None);
        };
        if record.request != *request {
            return Err(PostError::KeyReused);
        }
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Told {
            message_id: toolgate_kernel::id::MessageId,
            space_id: SpaceId,
            run_id: Option<RunId>,
        }
        let told: Told = record
            .answer
            .read()
            .map_err(|e| StoreError::Corrupt(e.to_string()))?;
        let seq = match told.run_id {
            Some(run) => {
                let first = self.store.run_start(run).await?;
                first.as_ref().map_or(Seq(0), just_before)
            }
            None => Seq(0),
        };
        let Told {
            message_id,
            space_id,
            run_id,
        } = told;
        Ok(Some(Posted {
            message_id,
            space_id,
            run_id,
            seq,
            repeated: true,
        }))
    }
}

/// The agent that answers where nobody named one.
pub fn default_agent() -> AgentName {
    DEFAULT_AGENT.parse().expect("the default is a name")
}

/// A cursor from which this entry is the next.
fn just_before(entry: &Entry) -> Seq {
    Seq(entry.first.0 - 1)
}
