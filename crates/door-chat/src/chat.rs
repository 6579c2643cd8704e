//! Which chat a request means: its space, its messages, its last run.

use sha2::{Digest, Sha256};
use toolgate_access::Principal;
use toolgate_engine::store::{RunFilter, RunRecord};
use toolgate_http::Shared;
use toolgate_http::problem::Refusal;
use toolgate_http::query::Query;
use toolgate_http::stream::OpenStream;
use toolgate_kernel::id::{MessageId, SpaceId};
use toolgate_kernel::name::AgentName;

use crate::body::Dialect;

/// Newest runs of a chat among which its last one is looked for.
const RECENT_RUNS: usize = 8;

/// Who chats with which agent, in which version of the AI SDK.
pub(crate) struct Chat {
    pub who: Principal,
    pub agent: AgentName,
    pub dialect: Dialect,
    /// The stream that answers the request.
    pub stream: OpenStream,
}

impl Chat {
    /// The last run of the chat that answers people.
    pub async fn last_run(&self, door: &Shared, space: SpaceId) -> Result<Option<RunRecord>, Refusal> {
        last_run(door, &self.who, space, &self.agent).await
    }

    /// The message that a client calls so, in this chat with this agent.
    pub fn message_id(&self, space: SpaceId, id: &str) -> MessageId {
        MessageId::from_bytes(short_hash(&[
            "message",
            &space.to_string(),
            self.agent.as_str(),
            id,
        ]))
    }
}

/// The last run in a chat's space that answers people as `agent`.
pub(crate) async fn last_run(
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
        .runs
        .into_iter()
        .find(|run| run.agent == *agent && run.parent.is_none() && run.tool.is_none()))
}

/// The space of a chat: the one that its id names, or one that belongs to the id and to whoever gives it, so that
/// nobody comes to another's chat by guessing.
pub(crate) async fn space_of(door: &Shared, who: &Principal, chat: &str) -> Result<SpaceId, Refusal> {
    if let Ok(space) = chat.parse::<SpaceId>() {
        door.access.reach_space(who, space).await?;
        return Ok(space);
    }
    let space = SpaceId::from_bytes(short_hash(&["chat", &owner(who), chat]));
    if who.user.is_some() {
        door.access.reach_if_made(who, space, "chat").await?;
    }
    Ok(space)
}

/// Whom a chat id belongs to: the project, and the user if there is one.
pub(crate) fn owner(who: &Principal) -> String {
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

/// The dialect that the query names; v6 unless it says otherwise.
pub(crate) fn dialect_of(query: &Query) -> Result<Dialect, Refusal> {
    let known = [("v5", Dialect::V5), ("v6", Dialect::V6), ("v7", Dialect::V7)];
    Ok(query.word("dialect", &known)?.unwrap_or(Dialect::V6))
}
