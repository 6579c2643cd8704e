//! A turn of a chat: what the client says of open calls is submitted, its message is posted, and the answer is
//! followed.

use axum::response::Response;
use sha2::{Digest, Sha256};
use toolgate_access::Principal;
use toolgate_engine::feed::Subscription;
use toolgate_engine::intake::{Answer, Post, PostError, Posted, UnderWay};
use toolgate_http::Shared;
use toolgate_http::content::ContentLimits;
use toolgate_http::executor::sender;
use toolgate_http::problem::Refusal;
use toolgate_http::query::Query;
use toolgate_http::stream::OpenStream;
use toolgate_http::ui_message::{ChatMessage, ChatRole, earlier};
use toolgate_http::wire::TextOr;
use toolgate_kernel::agent::History;
use toolgate_kernel::history::Earlier;
use toolgate_kernel::id::{MessageId, SpaceId};
use toolgate_kernel::message::{Message, Part, Sender};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::tool::ClientTool;
use uuid::Uuid;

use crate::body::{ChatTurn, Trigger};
use crate::chat::{Chat, dialect_of, owner, space_of};
use crate::client_updates::ClientUpdates;

/// Answers one posted turn.
pub(crate) async fn handle_turn(
    door: &Shared,
    who: Principal,
    agent: AgentName,
    query: &Query,
    body: ChatTurn,
) -> Result<Response, Refusal> {
    let turn = Turn::read(door, who, agent, query, body).await?;
    let updates = ClientUpdates::of(&turn.messages);
    let Some(parts) = turn.new_message(&door.settings.content)? else {
        return turn.go_on(door, updates).await;
    };
    // Everything of the request is sound: only now may it change something.
    turn.submit_to_open_run(door, updates).await?;
    let past = turn.past(door).await?;
    let warning = match (&past, turn.space) {
        (Past::Known, Some(space)) => turn.chat.compare(door, space, turn.earlier()).await?,
        _ => None,
    };
    let (posted, events) = post(door, turn.post(parts, past)).await?;
    turn.chat.follow_message(door, posted, events, warning).await
}

/// What becomes of the messages that a client posts before its new one.
enum Past {
    /// The agent takes the client's word for them.
    Claimed(Vec<Earlier>),
    /// They are the past of a chat that is new.
    New(Vec<Earlier>),
    /// Nothing: the chat has a log.
    Known,
}

/// A turn as it was posted, checked and not yet acted upon.
struct Turn {
    chat: Chat,
    /// None for a chat without an id, which is new.
    space: Option<SpaceId>,
    messages: Vec<ChatMessage>,
    /// Where the messages stand in the body.
    at: &'static str,
    client_tools: Vec<ClientTool>,
    /// Who sends the message, with the client that it is sent from.
    sender: Option<Sender>,
    categories: Option<Vec<String>>,
    /// The last message is to be answered once more.
    regenerates: bool,
}

impl Turn {
    async fn read(
        door: &Shared,
        who: Principal,
        agent: AgentName,
        query: &Query,
        body: ChatTurn,
    ) -> Result<Self, Refusal> {
        let stream = OpenStream::reserve(door, &who)?;
        let dialect = match body.dialect {
            Some(dialect) => dialect,
            None => dialect_of(query)?,
        };
        let space = match &body.id {
            Some(id) => Some(space_of(door, &who, &id.0).await?),
            None => None,
        };
        let client_tools = match &body.client_tools {
            Some(tools) => tools.check(&door.engine, &who, "/clientTools").await?,
            None => Vec::new(),
        };
        let (messages, at) = match (body.messages, body.message) {
            (Some(messages), _) => (messages.0, "/messages"),
            (None, Some(TextOr::More(message))) => (vec![message], "/message"),
            (None, Some(TextOr::Text(words))) => (vec![ChatMessage::of_text(words)], "/message"),
            (None, None) => (Vec::new(), ""),
        };
        let sender = sender(&who, body.executor);
        Ok(Self {
            chat: Chat {
                who,
                agent,
                dialect,
                stream,
            },
            space,
            messages,
            at,
            client_tools,
            sender,
            categories: body
                .categories
                .map(|list| list.0.into_iter().map(|name| name.0).collect()),
            regenerates: body.trigger == Some(Trigger::Regenerate),
        })
    }

    /// What the user says with the last message; none when that is not the user's.
    fn new_message(&self, limits: &ContentLimits) -> Result<Option<Vec<Part>>, Refusal> {
        let Some(last) = self.messages.last().filter(|last| last.role == ChatRole::User) else {
            return Ok(None);
        };
        let at = match self.at {
            "/messages" => format!("/messages/{}", self.messages.len() - 1),
            at => at.to_owned(),
        };
        let parts = last.said(&at).map_err(Refusal::invalid)?;
        limits.check_parts(&parts, &at)?;
        let metadata = last.metadata.as_ref().map(|metadata| &metadata.0);
        limits.check_metadata(metadata, &format!("{at}/metadata"))?;
        Ok(Some(parts))
    }

    /// Nothing new was said: the turn is about calls that were open, or asks for what is under way.
    async fn go_on(self, door: &Shared, updates: ClientUpdates) -> Result<Response, Refusal> {
        let Some(space) = self.space else {
            return Err(nothing_to_answer(self.at));
        };
        if let Some(run) = updates.run(door, &self.chat.who, space).await? {
            return self.chat.follow_updates(door, run, space, updates).await;
        }
        match self.chat.last_run(door, space).await? {
            Some(record) => self.chat.follow_last_answer(door, &record, None).await,
            None => Err(nothing_to_answer(self.at)),
        }
    }

    /// Gives the client's updates to the run that they are about, unless that has ended.
    async fn submit_to_open_run(&self, door: &Shared, updates: ClientUpdates) -> Result<(), Refusal> {
        let who = &self.chat.who;
        if let Some(space) = self.space
            && let Some(run) = updates.run(door, who, space).await?
            && !door.access.run(who, run).await?.status.is_final()
        {
            updates.submit(door, who).await?;
        }
        Ok(())
    }

    /// The messages before the last one.
    fn earlier(&self) -> &[ChatMessage] {
        &self.messages[..self.messages.len().saturating_sub(1)]
    }

    async fn past(&self, door: &Shared) -> Result<Past, Refusal> {
        let project = self.chat.who.project;
        let agent = door.engine.agent(project, &self.chat.agent, None).await?;
        if agent.is_some_and(|(_, agent)| agent.history == History::Client) {
            return Ok(Past::Claimed(earlier(self.earlier())));
        }
        let record = match self.space {
            Some(space) if !self.earlier().is_empty() => door.engine.space(space).await?,
            _ => None,
        };
        Ok(match record {
            Some(_) => Past::Known,
            None => Past::New(earlier(self.earlier())),
        })
    }

    fn post(&self, parts: Vec<Part>, past: Past) -> Post {
        let (history, told) = match past {
            Past::Claimed(history) => (history, Vec::new()),
            Past::New(told) => (Vec::new(), told),
            Past::Known => (Vec::new(), Vec::new()),
        };
        let who = &self.chat.who;
        let last = self.messages.last();
        let id = last.and_then(|last| last.id.as_ref());
        let named = id.filter(|id| !id.0.is_empty() && !self.regenerates);
        // Only within its chat can a message be the same as one before.
        let message_id = named
            .zip(self.space)
            .map(|(id, space)| self.chat.message_id(space, &id.0));
        let idempotency = message_id.map(|id| {
            let asked = serde_json::to_vec(&(&parts, &history)).expect("parts are JSON");
            (format!("{}:{id}", owner(who)), Sha256::digest(asked).into())
        });
        let metadata = last.and_then(|last| last.metadata.clone());
        Post {
            user_token: who.user_token(),
            call: None,
            project: who.project,
            starter: who.starter(),
            charged: who.entity().into(),
            space: self.space,
            makes_space: true,
            under_way: UnderWay::Join,
            message: Message {
                sender: self.sender.clone(),
                metadata: metadata.map(|metadata| metadata.0),
                ..Message::new(message_id.unwrap_or_else(fresh_id), who.entity(), parts)
            },
            answer: Answer::Agent(self.chat.agent.clone()),
            client_tools: self.client_tools.clone(),
            categories: self.categories.clone(),
            history,
            told,
            idempotency,
        }
    }
}

async fn post(door: &Shared, post: Post) -> Result<(Posted, Option<Subscription>), Refusal> {
    match door.engine.post_and_follow(post.clone()).await {
        // Other words under a known id: the client edited its message, which makes it a new one. The same id of
        // another member is another message too: these ids are the clients' own.
        Err(PostError::KeyReused | PostError::MessageIdReused) => {
            let post = edited(post);
            Ok(door.engine.post_and_follow(post).await?)
        }
        posted => Ok(posted?),
    }
}

/// The message under an id of its own, which follows from the client's id, the sender and the words: sent again, it is
/// the same message.
fn edited(mut post: Post) -> Post {
    if let Some((key, request)) = &mut post.idempotency {
        let hash = Sha256::new()
            .chain_update(&*key)
            .chain_update([0])
            .chain_update(*request);
        let hash = <[u8; 32]>::from(hash.finalize());
        let id = MessageId::from_bytes(hash[..16].try_into().expect("a hash has 32 bytes"));
        post.message.message_id = id;
        *key = format!("{key}/{id}");
    }
    post
}

fn fresh_id() -> MessageId {
    MessageId::new(Uuid::now_v7())
}

fn nothing_to_answer(at: &str) -> Refusal {
    let message = "nothing to answer: the last message must be the user's, or hold a result or a decision for \
                   something that is open in this chat";
    Refusal::invalid(vec![Problem::new(at, message)])
}
