//! A message into a space: to the run that is under way there, or to a new one.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use toolgate_fair::Share;
use toolgate_kernel::agent::{DEFAULT_AGENT, History, Starter};
use toolgate_kernel::event::{Entry, Event, Said, Seq};
use toolgate_kernel::history::{Earlier, newest_within};
use toolgate_kernel::id::{EntityId, MessageId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::name::{AgentName, ToolName};
use toolgate_kernel::run::{Arrival, Run, check_arguments};
use toolgate_kernel::tool::{Toolbox, settle_conflicts};
use uuid::Uuid;

use crate::agents::{Compiled, Kit};
use crate::budget::{Asked, BudgetError, BudgetRefusal};
use crate::feed::Subscription;
use crate::figures::count_refusal;
use crate::intake::{Answer, Charged, IntakeError, Post, PostError, Posted, RequestedCall, UnderWay};
use crate::run_tree::asked;
use crate::shares::share_of;
use crate::start::NewRun;
use crate::store::{
    Append, Holdings, IdempotencyRecord, LogRange, Pages, RunRecord, RunWrite, SpaceRecord, StoreError,
};
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
        self.post_again(space, &mut post).await
    }

    async fn post_again(self: &Arc<Self>, space: SpaceId, post: &mut Post) -> Result<Posted, PostError> {
        for _ in 1..POST_ATTEMPTS {
            // Boxed: it is large, and whoever awaits it would be copied with it, layer by layer.
            match Box::pin(self.try_post(space, post)).await {
                // Somebody else made the space, started the run, or sent the same request: look again, and join.
                Err(PostError::Store(StoreError::OpenRun(_) | StoreError::Exists)) => {}
                other => return other,
            }
        }
        Box::pin(self.try_post(space, post)).await
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
        let record = record.filter(|record| record.project == post.project);
        if record.is_none() && post.space.is_some() && !post.makes_space {
            return Err(PostError::NoSpace);
        }
        let own = record.as_ref().map_or_else(default_agent, SpaceRecord::own_agent);
        post.message.sender = self.sender(&post.message, record.as_ref()).await;
        let name = match &post.answer {
            Answer::None => None,
            Answer::Agent(name) => Some(name.clone()),
            Answer::Default => Some(own),
        };
        let open = match &name {
            Some(name) if record.is_some() && post.call.is_none() => self.store.open_run(space, name).await?,
            _ => None,
        };
        match (post.under_way, &open) {
            (UnderWay::Wait, Some(open)) => return Err(PostError::RunUnderWay(open.id)),
            (UnderWay::Only(wanted), open) if open.as_ref().is_none_or(|open| open.id != wanted) => {
                return Err(PostError::NotUnderWay(wanted));
            }
            (UnderWay::Join | UnderWay::Wait | UnderWay::Only(_), _) => {}
        }
        let adds = Holdings {
            spaces: record.is_none().into(),
            bytes: bytes_of(post) + told_bytes(post, record.as_ref()),
            // A message joins the agent's open run, or ends it.
            open_runs: (name.is_some() && open.is_none()).into(),
        };
        let reserved = self
            .reserve(post.project, charged(post, record.as_ref()), adds)
            .await?;
        let posted = match (name, record) {
            (None, None) => Err(PostError::NoSpace),
            (None, Some(_)) => self.post_unanswered(space, post).await,
            (Some(name), None) => self.post_new_space(space, name, post).await,
            (Some(name), Some(record)) => {
                let given = record.gives(&name);
                self.post_answered(space, name, given, open, post).await
            }
        };
        if posted.is_ok() {
            reserved.keep();
        }
        posted
    }

    /// A message to an agent in a space that is there.
    async fn post_answered(
        self: &Arc<Self>,
        space: SpaceId,
        name: AgentName,
        given: bool,
        open: Option<RunRecord>,
        post: &mut Post,
    ) -> Result<Posted, PostError> {
        let (agent, kit) = self.equip(name, given, post).await?;
        if agent.agent.history == History::Server && !post.history.is_empty() {
            return Err(PostError::HistoryNotTaken);
        }
        if let Some(open) = open
            && let Some(posted) = self.join_run(open, &agent, &kit, post).await?
        {
            return Ok(posted);
        }
        if let UnderWay::Only(wanted) = post.under_way {
            return Err(PostError::NotUnderWay(wanted));
        }
        self.post_new_run(space, None, agent, kit, post).await
    }

    async fn post_new_space(
        self: &Arc<Self>,
        space: SpaceId,
        name: AgentName,
        post: &mut Post,
    ) -> Result<Posted, PostError> {
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
        let agent = self.startable(post.project, &name, &post.starter, given).await?;
        let agent = agent.ok_or(PostError::NoAgent(name))?;
        let brought = std::mem::take(&mut post.client_tools);
        let conflict = self.project_settings(post.project).await?.conflict;
        post.client_tools =
            settle_conflicts(&agent.tools.toolbox, brought, conflict).map_err(PostError::Tools)?;
        let share = share_of(post.project, post.message.from);
        let _admitted = self.blocking.admit(share).map_err(PostError::TooManyWait)?;
        let kit = self.kit(share, &agent, &post.client_tools, post.categories.as_deref());
        let mut kit = kit.await.map_err(PostError::Tools)?;
        if let Some(call) = &post.call {
            kit = self.equip_call(share, &agent, kit, call, &post.starter).await?;
        }
        Ok((agent, kit))
    }

    /// The tools of a run that is one call, when that may be made: they hold its tool. The arguments are checked here
    /// too, so that nothing is stored of a request that is wrong.
    async fn equip_call(
        &self,
        share: Share,
        agent: &Compiled,
        kit: Arc<Kit>,
        call: &RequestedCall,
        starter: &Starter,
    ) -> Result<Arc<Kit>, PostError> {
        let (name, is_backend) = (&call.tool, *starter == Starter::Backend);
        let own = kit.toolbox.get(name.as_str()).cloned();
        let own = own.filter(|tool| tool.is_callable_by(starter));
        let (tool, kit) = match own {
            Some(tool) => (tool, kit),
            None if is_backend => {
                let tool = agent.named_tool(name);
                let tool = tool.ok_or_else(|| PostError::NoTool(unknown_tool(name, agent, &kit)))?;
                let mut toolbox = Toolbox::clone(&kit.toolbox);
                toolbox.insert(name.clone(), tool.clone());
                (tool, Arc::new(Kit::new(toolbox)))
            }
            None => {
                let words = format!("there is no tool named {name:?} that you may call here");
                return Err(PostError::NoTool(words));
            }
        };
        let input = call.input.clone();
        let check = move || check_arguments(&tool, &input);
        self.blocking
            .run(share, check)
            .await
            .map_err(PostError::Arguments)?;
        Ok(kit)
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
        let name = agent.agent.name.clone();
        let idempotency = self.remember(post, space, Some(id), Seq(0));
        // What a client tells is the past of a new space. Of one that is there, the log is.
        let history = match agent.agent.history {
            History::Client => post.history.clone(),
            History::Server if new_space.is_none() => Vec::new(),
            History::Server if post.told.is_empty() => post.history.clone(),
            History::Server => post.told.clone(),
        };
        let history = newest_within(history, self.settings.history_bytes_max);
        let admitted = self.admit_run(asked_by(post, &agent)).await;
        let _admitted = admitted.map_err(|error| self.over_budget(post, error))?;
        // Before it begins: its first call may be made at once.
        self.lend_token(post.project, id, &kit, post.user_token.as_ref())
            .await?;
        let entry = self
            .start(NewRun {
                kit,
                client_tools: post.client_tools.clone(),
                categories: post.categories.clone(),
                history,
                new_space,
                idempotency,
                call: post.call.clone(),
                ..NewRun::new(id, post.project, space, agent, post.message.clone())
            })
            .await
            .map_err(|error| match error {
                // Since it was looked up.
                StoreError::AgentRemoved => PostError::NoAgent(name),
                StoreError::SpaceDeleted => PostError::NoSpace,
                other => other.into(),
            })?;
        Ok(Posted {
            message_id,
            space_id: space,
            run_id: Some(id),
            seq: just_before(entry.first),
            repeated: false,
        })
    }

    /// The refusal of a message by a budget.
    fn over_budget(&self, post: &Post, error: BudgetError) -> PostError {
        match error {
            BudgetError::Exceeded(exceeded) => {
                count_refusal(post.project, &exceeded);
                PostError::Budget(Box::new(BudgetRefusal {
                    retry_after: exceeded.resets.since(self.clock.now()),
                    tells_amounts: post.starter == Starter::Backend,
                    exceeded,
                }))
            }
            BudgetError::Unpriced(unpriced) => PostError::Unpriced(unpriced),
            BudgetError::Store(error) => error.into(),
        }
    }

    /// Gives the message to the run that is under way in the space, if it fits. One that has other tools than the
    /// message brings, or another past than it tells, is ended instead.
    async fn join_run(
        self: &Arc<Self>,
        RunRecord {
            id, space, version, ..
        }: RunRecord,
        agent: &Compiled,
        kit: &Kit,
        post: &Post,
    ) -> Result<Option<Posted>, PostError> {
        let fits = self.fits(id, agent, kit, post).await?;
        // Before the run is given the message, or is ended for it: what nobody may pay for must not end it.
        match fits {
            true => self.check_budgets(asked_by(post, agent)).await,
            false => self.admit_run(asked_by(post, agent)).await.map(drop),
        }
        .map_err(|error| self.over_budget(post, error))?;
        if !fits && let UnderWay::Only(wanted) = post.under_way {
            return Err(PostError::OtherTools(wanted));
        }
        if !fits {
            return match self.cancel(id).await {
                Ok(_) => Ok(None),
                Err(IntakeError::Store(error)) => Err(error.into()),
                Err(other) => Err(PostError::Busy(other.to_string())),
            };
        }
        let message_id = post.message.message_id;
        let idempotency = self.remember(post, space, Some(id), version);
        self.lend_token(post.project, id, kit, post.user_token.as_ref())
            .await?;
        let arrival = Arrival::Message(post.message.clone());
        let place = move |run: &Run| run.state().message(message_id).map(|message| message.seq);
        match self.deliver_once(id, arrival, idempotency, place).await {
            Ok(place) => Ok(Some(Posted {
                message_id,
                space_id: space,
                run_id: Some(id),
                seq: just_before(place),
                // It was in the log before: the run had it already.
                repeated: place <= version,
            })),
            Err(IntakeError::Ended(_)) => Ok(None),
            Err(IntakeError::MessageIdReused) => Err(PostError::MessageIdReused),
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
        let before = match post.idempotency {
            Some(_) => self.store.space_tail(space).await?,
            None => Seq(0),
        };
        let idempotency = self.remember(post, space, None, before);
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
            consumption: Vec::new(),
            above: None,
            wakes: Vec::new(),
            time: self.clock.now(),
            idempotency,
        };
        let entry = self.store.append(append).await?;
        Ok(Posted {
            message_id,
            space_id: space,
            run_id: None,
            seq: just_before(entry.first),
            repeated: false,
        })
    }

    /// What makes a repeat of the request harmless: its receipt under the client's key, and under the message's id
    /// in the space. The receipt's place is not known before the write; it stands in the log after `before`.
    fn remember(
        &self,
        post: &Post,
        space: SpaceId,
        run: Option<RunId>,
        before: Seq,
    ) -> Vec<IdempotencyRecord> {
        let Some(by_client) = &post.idempotency else {
            return Vec::new();
        };
        let receipt = Receipt {
            message_id: post.message.message_id,
            space_id: space,
            run_id: run,
            after: Some(before),
        };
        let answer = Json::from(serde_json::to_value(receipt).expect("a receipt has text keys"));
        let time = self.clock.now();
        let keys = [Some(by_client.clone()), message_key(post, Some(space))]
            .into_iter()
            .flatten();
        keys.map(|(key, request)| IdempotencyRecord {
            project: post.project,
            key,
            request,
            answer: answer.clone(),
            time,
        })
        .collect()
    }

    /// The receipt of the same request, or of the same message. Anything else under the same key or id is refused.
    async fn answered_before(&self, post: &Post) -> Result<Option<Posted>, PostError> {
        let Some((key, request)) = &post.idempotency else {
            return Ok(None);
        };
        let known = self.store.idempotency(post.project, key).await?;
        let reused = match known {
            Some(record) if record.request == *request => return self.posted_before(&record).await,
            known => known.is_some(),
        };
        if let Some((key, message)) = message_key(post, post.space)
            && let Some(record) = self.store.idempotency(post.project, &key).await?
        {
            return match record.request == message {
                true => self.posted_before(&record).await,
                false => Err(PostError::MessageIdReused),
            };
        }
        match reused {
            true => Err(PostError::KeyReused),
            false => Ok(None),
        }
    }

    async fn posted_before(&self, record: &IdempotencyRecord) -> Result<Option<Posted>, PostError> {
        let receipt: Receipt = record
            .answer
            .read()
            .map_err(|e| StoreError::Corrupt(e.to_string()))?;
        Ok(Some(Posted {
            message_id: receipt.message_id,
            space_id: receipt.space_id,
            run_id: receipt.run_id,
            seq: self.place_of(&receipt).await?,
            repeated: true,
        }))
    }

    /// The cursor that the first request was given.
    async fn place_of(&self, receipt: &Receipt) -> Result<Seq, StoreError> {
        let range = LogRange::after(receipt.after.unwrap_or_default());
        let mut pages = match (receipt.run_id, receipt.after) {
            (Some(run), _) => Pages::of_run(run, range),
            (None, Some(_)) => Pages::of_space(receipt.space_id, range),
            // Written by a version that did not store the place.
            (None, None) => return Ok(Seq(0)),
        };
        while let Some(page) = pages.next(&*self.store).await? {
            let mut places = page.entries.iter();
            if let Some(place) = places.find_map(|entry| place_in(entry, receipt.message_id)) {
                return Ok(just_before(place));
            }
        }
        Ok(range.after)
    }
}

/// What the message asks for, as the budgets see it.
fn asked_by<'a>(post: &Post, agent: &'a Compiled) -> Asked<'a> {
    let asked = asked(post.project, agent, &post.message);
    Asked {
        // A call that is requested asks no model.
        model: asked.model.filter(|_| post.call.is_none()),
        ..asked
    }
}

/// The user whose quotas the message counts against.
fn charged(post: &Post, space: Option<&SpaceRecord>) -> Option<EntityId> {
    match post.charged {
        Charged::Nobody => None,
        Charged::User(user) => Some(user),
        Charged::SpaceOwner => space
            .filter(|space| !space.by_backend)
            .and_then(|space| space.members.first().copied()),
    }
}

/// What a client tells of the past, at most: whether all of it is stored depends on the agent.
fn told_bytes(post: &Post, space: Option<&SpaceRecord>) -> u64 {
    let told = post.told.iter().filter(|_| space.is_none());
    let bytes: usize = told.chain(&post.history).map(Earlier::bytes).sum();
    bytes as u64
}

/// The words for a tool that there is not.
fn unknown_tool(name: &ToolName, agent: &Compiled, kit: &Kit) -> String {
    let known: Vec<&str> = kit.toolbox.keys().map(|name| name.as_str()).collect();
    let known = match known.as_slice() {
        [] => "none".to_owned(),
        known => known.join(", "),
    };
    let agent = &agent.agent.name;
    format!("the project has no tool named {name:?}, and agent {agent} has {known}; see GET /v1/tools")
}

/// About what a message adds to the log. What it makes an agent say is counted when it is stored.
fn bytes_of(Post { message, call, .. }: &Post) -> u64 {
    // The request, and the call that it becomes.
    let input = call.as_ref().map_or(0, |call| 2 * call.input.as_str().len());
    let parts: usize = message.parts.iter().map(Part::bytes).sum();
    let metadata = message
        .metadata
        .as_ref()
        .map_or(0, |metadata| metadata.as_str().len());
    (parts + metadata + input).max(1) as u64
}

/// What is stored to answer a repeated request.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Receipt {
    message_id: MessageId,
    space_id: SpaceId,
    run_id: Option<RunId>,
    /// The message stands in the log after this place.
    #[serde(default)]
    after: Option<Seq>,
}

/// The key of the message's id in its space, and the hash of everything that makes it the same message. None without
/// a space, and for a message that cannot come again.
fn message_key(post: &Post, space: Option<SpaceId>) -> Option<(String, [u8; 32])> {
    let space = space.filter(|_| post.idempotency.is_some() && post.call.is_none())?;
    let answer = match &post.answer {
        Answer::None => "none",
        Answer::Default => "default",
        Answer::Agent(name) => name.as_str(),
    };
    let history = serde_json::to_vec(&post.history).expect("history has text keys");
    let hash = Sha256::new()
        .chain_update(message_digest(&post.message))
        .chain_update(Sha256::digest(answer))
        .chain_update(Sha256::digest(history));
    let key = format!("message/{space}/{}", post.message.message_id);
    Some((key, hash.finalize().into()))
}

/// SHA-256 of a message: tells a repeated post from another message under the same id.
fn message_digest(message: &Message) -> [u8; 32] {
    // Who the sender is, is known by `from`: a new name must not make the same message another one.
    let message = Message {
        sender: None,
        ..message.clone()
    };
    Sha256::digest(serde_json::to_vec(&message).expect("a message has text keys")).into()
}

/// Place of the first event that a message caused; none when the entry does not hold the message.
fn place_in(entry: &Entry, id: MessageId) -> Option<Seq> {
    let mut events = entry.placed();
    let said = events.find(|(_, event)| matches!(event, Event::Said(said) if said.message.message_id == id));
    let starts = entry.events.iter().any(|event| event.run_start().is_some());
    said.map(|(seq, _)| if starts { entry.first } else { seq })
}

/// The agent that answers where nobody named one.
pub fn default_agent() -> AgentName {
    DEFAULT_AGENT.parse().expect("the default is a name")
}

/// A cursor from which the event at this place is the next.
fn just_before(place: Seq) -> Seq {
    match place.index() {
        0 | 1 => Seq(0),
        _ => Seq(place.0 - 1),
    }
}
