//! A client that comes back for an answer that is under way.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, StatusCode};
use toolgate_access::Principal;
use toolgate_engine::store::RunRecord;
use toolgate_http::Shared;
use toolgate_http::problem::Refusal;
use toolgate_http::query::Query;
use toolgate_http::stream::OpenStream;
use toolgate_kernel::id::RunId;
use toolgate_kernel::name::AgentName;

use crate::chat::{Chat, dialect_of, space_of};
use crate::chunk::Place;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Most chunks that a client may say it has read.
const INDEX_MAX: usize = 1_000_000_000;

/// The rest of a chat's last answer; nothing when that has ended and was read.
pub(crate) async fn resume_answer(
    door: &Shared,
    who: Principal,
    agent: AgentName,
    chat: &str,
    headers: &HeaderMap,
    query: &Query,
) -> Result<Response, Refusal> {
    let stream = OpenStream::reserve(door, &who)?;
    let cursor = Cursor::of(headers, query)?;
    let dialect = dialect_of(query)?;
    let asker = Chat {
        who,
        agent,
        dialect,
        stream,
    };
    let who = &asker.who;
    let run = match chat.parse::<RunId>() {
        Ok(run) => Some(door.access.run(who, run).await?),
        Err(_) => {
            let space = space_of(door, who, chat).await?;
            asker.last_run(door, space).await?
        }
    };
    let was_read = |run: &RunRecord| match &cursor {
        None => true,
        Some(Cursor::Place(place)) => place.seq >= run.version,
        Some(Cursor::Index(_)) => false,
    };
    match run {
        Some(run) if !(run.status.is_final() && was_read(&run)) => {
            asker.follow_last_answer(door, &run, cursor).await
        }
        _ => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// What the client has read of an answer.
pub(crate) enum Cursor {
    /// So many chunks.
    Index(usize),
    /// Everything up to here.
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
