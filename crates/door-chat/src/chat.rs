//! A turn of a chat: what the request says, and the stream that answers it.

use std::collections::HashSet;

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use sha2::{Digest, Sha256};
use toolgate_access::Principal;
use toolgate_engine::feed::{Scope, Subscription};
use toolgate_engine::intake::{Answer, IntakeError, Post, PostError, Posted, Submission};
use toolgate_engine::store::{LogRange, RunFilter, RunRecord};
use toolgate_http::Shared;
use toolgate_http::answer::{Answer as Answered, ok};
use toolgate_http::problem::Refusal;
use toolgate_http::query::Query;
use toolgate_http::stream::{Follow, Mark, Until};
use toolgate_http::ui_message::{ChatMessage, ChatRole, earlier};
use toolgate_http::wire::TextOr;
use toolgate_kernel::agent::History;
use toolgate_kernel::event::{Entry, Event, Seq};
use toolgate_kernel::id::{CallId, MessageId, RunId, SpaceId};
use toolgate_kernel::message::Message;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::problem::Problem;
use uuid::Uuid;

use crate::body::{ChatTurn, Dialect, Trigger};
use crate::chunk::Place;
use crate::client_updates::{ClientUpdates, Word, is_too_late, place_before, refused, settled_in};
use crate::ui_history::{self, ChatPast};
use crate::ui_stream::{From, Teller};

/// Says that the body is a UI message stream.
const STREAM_VERSION: HeaderName = HeaderName::from_static("x-vercel-ai-ui-message-stream");
/// What the cursor transport of the AI SDK asks for the rest by.
const WORKFLOW_RUN: HeaderName = HeaderName::from_static("x-workflow-run-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Most chunks that a client may say it has read.
const INDEX_MAX: usize = 1_000_000_000;
/// Newest entries of a chat that its messages are made of.
const PAST_ENTRIES_MAX: usize = 20_000;
/// Bytes of them; the entry that goes beyond is still told.
const PAST_BYTES_MAX: usize = 4 << 20;
/// An answer begins with these however it is told: `start`, `start-step`, `data-run`.
const FIXED_CHUNKS: usize = 3;
/// Newest runs of a chat among which its last one is looked for.
const RECENT_RUNS: usize = 8;

pub(crate) async fn take(
    door: &Shared,
    who: Principal,
    agent: AgentName,
    query: &Query,
    turn: ChatTurn,
) -> Result<Response, Refusal> {
    let dialect = match turn.dialect {
        Some(dialect) => dialect,
        None => dialect_of(query)?,
    };
    let space = match &turn.id {
        Some(id) => Some(space_of(door, &who, &id.0).await?),
        None => None,
    };
    let client_tools = match &turn.client_tools {
        Some(tools) => tools
            .check(&door.engine, "/clientTools")
            .map_err(Refusal::invalid)?,
        None => Vec::new(),
    };
    let (mut messages, at) = match (turn.messages, turn.message) {
        (Some(messages), _) => (messages.0, "/messages"),
        (None, Some(TextOr::More(message))) => (vec![message], "/message"),
        (None, Some(TextOr::Text(words))) => (vec![ChatMessage::of_text(words)], "/message"),
        (None, None) => (Vec::new(), ""),
    };
    let updates = ClientUpdates::of(&messages);
    let chat = Chat { who, agent, dialect };
    let speaks = messages.last().is_some_and(|last| last.role == ChatRole::User);
    if !speaks {
        let Some(space) = space else {
            return Err(silent(at));
        };
        return chat.go_on(door, space, updates, at).await;
    }
    let last = messages.len() - 1;
    let place = if at == "/messages" {
        format!("{at}/{last}")
    } else {
        at.into()
    };
    let said = messages[last].said(&place).map_err(Refusal::invalid)?;
    // Everything of the request is sound: only now may it change something.
    if let Some(space) = space
        && let Some(run) = updates.run(door, &who, space).await
        && !door.access.run(&who, run).await?.status.is_final()
    {
        updates.submit(door, &who).await?;
    }
    let again = turn.trigger == Some(Trigger::Regenerate);
    let named = messages[last].id.as_ref().filter(|id| !id.0.is_empty() && !again);
    // Only within its chat can a message be the same as one before.
    let message_id = named
        .zip(space)
        .map(|(id, space)| message_of(space, &chat.agent, &id.0));
    let metadata = messages[last].metadata.take().map(|metadata| metadata.0);
    let history = match door.engine.agent(who.project, &chat.agent, None).await? {
        Some((_, agent)) if agent.history == History::Client => earlier(&messages[..last]),
        _ => Vec::new(),
    };
    let idempotency = message_id.map(|id| {
        let asked = serde_json::to_vec(&(&said, &history)).expect("parts are JSON");
        (format!("{}:{id}", whose(&who)), Sha256::digest(asked).into())
    });
    let fresh = || MessageId::new(Uuid::now_v7());
    let message = Message {
        message_id: message_id.unwrap_or_else(fresh),
        from: who.entity(),
        parts: said,
        metadata,
    };
    let mut post = Post {
        project: who.project,
        space,
        makes_space: true,
        message,
        answer: Answer::Agent(chat.agent.clone()),
        client_tools,
        categories: turn
            .categories
            .map(|list| list.0.into_iter().map(|name| name.0).collect()),
        history,
        idempotency,
    };
    let (posted, following) = match door.engine.post_and_follow(post.clone()).await {
        // Other words under a known id: the client edited its message, which makes it a new one.
        Err(PostError::KeyReused) => {
            post.message.message_id = fresh();
            post.idempotency = None;
            door.engine.post_and_follow(post).await?
        }
        posted => posted?,
    };
    chat.answer(door, posted, following)
}

/// Who reads what.
struct Chat {
    who: Principal,
    agent: AgentName,
    dialect: Dialect,
}

impl Chat {
    /// The answer to a message that was just stored.
    fn answer(
        self,
        door: &Shared,
        posted: Posted,
        events: Option<Subscription>,
    ) -> Result<Response, Refusal> {
        let (Some(run), Some(events)) = (posted.run_id, events) else {
            return Err(Refusal::not_found("answer"));
        };
        door.access.remember(self.who.project, run, posted.space_id);
        let mark = match posted.repeated {
            true => Mark::Present,
            false => Mark::Said(posted.message_id),
        };
        let from = From::Message(posted.message_id);
        let follow = self.follow(run, posted.space_id, posted.seq, mark);
        let teller = Teller::new(&follow, run, self.dialect, from, HashSet::new());
        Ok(respond(door, follow, events, teller))
    }

    /// What follows the client's word on calls that were open.
    async fn go_on(
        self,
        door: &Shared,
        space: SpaceId,
        updates: ClientUpdates,
        at: &str,
    ) -> Result<Response, Refusal> {
        let Some(run) = updates.run(door, &self.who, space).await else {
            // Nothing new: what is under way, or was last.
            let last = last_run(door, &self.who, space, &self.agent).await?;
            return match last {
                Some(record) => self.retell(door, &record, None).await,
                None => Err(silent(at)),
            };
        };
        if let [(call, Word::Result(result))] = updates.words.as_slice()
            && updates.calls.len() == 1
        {
            let (call, result) = (*call, result.clone());
            return self.go_on_with(door, space, call, result, updates.calls).await;
        }
        let calls = updates.calls.clone();
        updates.submit(door, &self.who).await?;
        self.go_on_from(door, run, space, &calls).await
    }

    /// As above for the usual case: one result for the one call of a step.
    async fn go_on_with(
        self,
        door: &Shared,
        space: SpaceId,
        call: CallId,
        result: Submission,
        calls: HashSet<CallId>,
    ) -> Result<Response, Refusal> {
        match door.engine.submit_and_follow(call, result).await {
            Ok((receipt, events)) => {
                let after = Seq(receipt.seq.0 - 1);
                let follow = self.follow(call.run, space, after, Mark::Moved);
                let from = From::Place(Place::after(after));
                let teller = Teller::new(&follow, call.run, self.dialect, from, calls);
                Ok(respond(door, follow, events, teller))
            }
            Err(error) if is_too_late(&error) => self.go_on_from(door, call.run, space, &calls).await,
            Err(IntakeError::Invalid(problems)) => {
                let refused = refused(&problems);
                Box::pin(self.go_on_with(door, space, call, refused, calls)).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What became of these calls, and all that followed.
    async fn go_on_from(
        self,
        door: &Shared,
        run: RunId,
        space: SpaceId,
        calls: &HashSet<CallId>,
    ) -> Result<Response, Refusal> {
        let log = door.engine.whole_run_log(run).await?;
        let end = log.last().map_or(Seq(0), Entry::last);
        let seq = place_before(&log, calls).unwrap_or(end);
        let events = door.engine.subscribe(Scope::Run(run), Seq(0)).await?;
        let follow = self.follow(run, space, Seq(0), Mark::Present);
        let from = From::Place(Place::after(seq));
        let teller =
            Teller::new(&follow, run, self.dialect, from, HashSet::new()).with_settled(settled_in(&log));
        Ok(respond(door, follow, events, teller))
    }

    /// A run's last answer, from its beginning or from where the client says.
    async fn retell(
        self,
        door: &Shared,
        run: &RunRecord,
        cursor: Option<Cursor>,
    ) -> Result<Response, Refusal> {
        let log = door.engine.whole_run_log(run.id).await?;
        let (seq, message) = last_said(&log).ok_or_else(|| Refusal::not_found("answer"))?;
        let after = Seq(seq.0 - 1);
        let from = match cursor {
            None => From::Message(message),
            Some(Cursor::Index(seen)) => From::Index(message, seen),
            Some(Cursor::Place(place)) => From::Place(place),
        };
        let events = door.engine.subscribe(Scope::Run(run.id), after).await?;
        if let From::Index(_, seen) = from
            && seen > FIXED_CHUNKS
            && is_folded(&door.engine.whole_run_log(run.id).await?, seq)
        {
            return Err(uncountable());
        }
        let follow = self.follow(run.id, run.space, after, Mark::Present);
        let teller =
            Teller::new(&follow, run.id, self.dialect, from, HashSet::new()).with_settled(settled_in(&log));
        Ok(respond(door, follow, events, teller))
    }

    fn follow(&self, run: RunId, space: SpaceId, after: Seq, mark: Mark) -> Follow {
        Follow {
            who: self.who,
            run: Some(run),
            space,
            after,
            until: Until::Pause(mark),
        }
    }
}

/// What the client has read of an answer.
enum Cursor {
    Index(usize),
    Place(Place),
}

impl Cursor {
    fn of(headers: &HeaderMap, query: &Query) -> Result<Option<Self>, Refusal> {
        let header = headers
            .get(LAST_EVENT_ID)
            .map(|value| value.to_str().unwrap_or_default());
        let place = |text: &str| {
            Place::parse(text)
                .map(Self::Place)
                .ok_or_else(|| Refusal::malformed("the cursor must be the id: of a chunk of this stream"))
        };
        let index = |text: &str| match text.parse() {
            Ok(index) if index <= INDEX_MAX => Ok(Self::Index(index)),
            _ => Err(Refusal::malformed(format!(
                "query startIndex: must be the number of chunks that were read, from 0 to {INDEX_MAX}"
            ))),
        };
        // All of them are read: a malformed one is refused also where another wins.
        let header = header.map(place).transpose()?;
        let after = query.text("after").map(place).transpose()?;
        let index = query.text("startIndex").map(index).transpose()?;
        Ok(header.or(after).or(index))
    }
}

pub(crate) async fn resumed(
    door: &Shared,
    who: Principal,
    agent: AgentName,
    chat: &str,
    headers: &HeaderMap,
    query: &Query,
) -> Result<Response, Refusal> {
    let cursor = Cursor::of(headers, query)?;
    let dialect = dialect_of(query)?;
    let run = match chat.parse::<RunId>() {
        Ok(run) => Some(door.access.run(&who, run).await?),
        Err(_) => {
            let space = space_of(door, &who, chat).await?;
            last_run(door, &who, space, &agent).await?
        }
    };
    let read = |run: &RunRecord| match &cursor {
        None => true,
        Some(Cursor::Place(place)) => place.seq >= run.version,
        Some(Cursor::Index(_)) => false,
    };
    match run {
        Some(run) if !(run.status.is_final() && read(&run)) => {
            Chat { who, agent, dialect }.retell(door, &run, cursor).await
        }
        _ => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

pub(crate) async fn read(
    door: &Shared,
    who: Principal,
    agent: AgentName,
    chat: String,
) -> Result<Answered<ChatPast>, Refusal> {
    let space = space_of(door, &who, &chat).await?;
    let last = last_run(door, &who, space, &agent).await?;
    let open = last.filter(|run| !run.status.is_final()).map(|run| run.id);
    let log = newest(door, space).await?;
    let messages = ui_history::messages(&log, who.audience(), open);
    Ok(ok(ChatPast { id: chat, messages }))
}

/// The newest entries of a chat, oldest first: as many as its messages may be made of. Read backwards, so that a long
/// chat costs no more than what is shown of it.
async fn newest(door: &Shared, space: SpaceId) -> Result<Vec<Entry>, Refusal> {
    let range = LogRange {
        limit: PAST_ENTRIES_MAX,
        bytes: PAST_BYTES_MAX,
        ..LogRange::newest()
    };
    let mut log = door.engine.space_log(space, range).await?.entries;
    log.reverse();
    Ok(log)
}

fn respond(door: &Shared, follow: Follow, events: Subscription, teller: Teller) -> Response {
    let run = follow.run.map(|run| run.to_string()).unwrap_or_default();
    let mut response = follow.respond(door, events, teller);
    let headers = response.headers_mut();
    headers.insert(STREAM_VERSION, HeaderValue::from_static("v1"));
    headers.insert(WORKFLOW_RUN, HeaderValue::try_from(run).expect("an id is ASCII"));
    response
}

/// The last run of a chat that answers people.
async fn last_run(
    door: &Shared,
    who: &Principal,
    space: SpaceId,
    agent: &AgentName,
) -> Result<Option<RunRecord>, Refusal> {
    let filter = RunFilter {
        space: Some(space),
        limit: RECENT_RUNS,
        ..RunFilter::default()
    };
    let runs = door.engine.runs(who.project, filter).await?;
    Ok(runs
        .into_iter()
        .find(|run| run.agent == *agent && run.parent.is_none()))
}

/// The space of a chat: the one that its id names, or one that belongs to the id and to whoever gives it, so that
/// nobody comes to another's chat by guessing.
async fn space_of(door: &Shared, who: &Principal, chat: &str) -> Result<SpaceId, Refusal> {
    if let Ok(space) = chat.parse::<SpaceId>() {
        door.access.reach_space(who, space).await?;
        return Ok(space);
    }
    let space = SpaceId::from_bytes(short_hash(&["chat", &whose(who), chat]));
    if who.user.is_some() {
        door.access.reach_if_made(who, space, "chat").await?;
    }
    Ok(space)
}

/// The message that a client calls so, in this chat with this agent.
fn message_of(space: SpaceId, agent: &AgentName, id: &str) -> MessageId {
    MessageId::from_bytes(short_hash(&["message", &space.to_string(), agent.as_str(), id]))
}

fn whose(who: &Principal) -> String {
    let entity = who.entity().map(|entity| entity.to_string()).unwrap_or_default();
    format!("{}:{entity}", who.project)
}

fn short_hash(texts: &[&str]) -> [u8; 16] {
    let hash = texts.iter().fold(Sha256::new(), |hash, text| {
        hash.chain_update(text).chain_update([0])
    });
    let hash = hash.finalize();
    hash[..16].try_into().expect("a hash has 32 bytes")
}

fn dialect_of(query: &Query) -> Result<Dialect, Refusal> {
    match query.text("dialect") {
        None | Some("v6") => Ok(Dialect::V6),
        Some("v5") => Ok(Dialect::V5),
        Some("v7") => Ok(Dialect::V7),
        Some(_) => Err(Refusal::malformed("query dialect: must be one of v5 v6 v7")),
    }
}

fn silent(at: &str) -> Refusal {
    let message = "nothing to answer: the last message must be the user's, or hold a result or a decision for \
                   something that is open in this chat";
    Refusal::invalid(vec![Problem::new(at, message)])
}

/// Whether something of the answer that begins here was streamed in more chunks than it is told in now.
fn is_folded(log: &[Entry], begin: Seq) -> bool {
    let mut answer = log.iter().flat_map(Entry::placed).filter(|(seq, _)| *seq > begin);
    answer.any(|(_, event)| matches!(event, Event::StepFinish(_) | Event::StepRetry(_)))
}

/// Going on by a guess would lose words or tell them twice.
fn uncountable() -> Refusal {
    let detail = "a step of this answer has ended and is told in fewer chunks than it was streamed in; come back \
                  with the last id: as Last-Event-ID, or read the answer anew with startIndex=0";
    Refusal::new(StatusCode::GONE, "FOLDED", detail)
}

/// The last message of a run, and where it stands.
fn last_said(log: &[Entry]) -> Option<(Seq, MessageId)> {
    let said = log
        .iter()
        .flat_map(Entry::placed)
        .filter_map(|(seq, event)| match event {
            Event::Said(said) => Some((seq, said.message.message_id)),
            _ => None,
        });
    said.last()
}
