//! The routes of the chat door.

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use toolgate_engine::default_agent;
use toolgate_http::Shared;
use toolgate_http::answer::Answer as Answered;
use toolgate_http::body::Untyped;
use toolgate_http::caller::{Caller, Reader};
use toolgate_http::describe::{BackendOnly, BadBody, BadQuery, Expired, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query};
use toolgate_http::schema;
use toolgate_kernel::name::AgentName;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::body::ChatTurn;
use crate::resume::resume_answer;
use crate::turn::handle_turn;
use crate::ui_history::{ChatPast, read_history};

/// A turn of a chat with the project's `default` agent, as a UI message stream.
#[utoipa::path(
    post, path = "/api/chat", operation_id = "default_chat", tag = "chat",
    params(("dialect" = inline(Option<DialectWord>), Query, description = "As in the body.")),
    request_body = ChatTurn,
    responses(
        (status = 200, description = "A UI message stream.", body = ChatEvent, content_type = "text/event-stream"),
        BadBody, Missing, BackendOnly, Refused,
    ),
)]
pub(crate) async fn post_default(
    State(door): State<Shared>,
    Caller(who): Caller,
    query: Query,
    Untyped(turn): Untyped<ChatTurn>,
) -> Result<Response, Refusal> {
    let agent = default_agent();
    handle_turn(&door, who, agent, &query, turn).await
}

/// A turn of a chat, as a UI message stream.
///
/// The stream ends when the run ends or waits for the client; results, and decisions on approvals, come with the
/// next request.
#[utoipa::path(
    post, path = "/v1/agents/{agent}/chat", operation_id = "chat", tag = "chat",
    params(
        ("agent" = inline(schema::AgentName), Path),
        ("dialect" = inline(Option<DialectWord>), Query, description = "As in the body."),
    ),
    request_body = ChatTurn,
    responses(
        (status = 200, description = "A UI message stream.", body = ChatEvent, content_type = "text/event-stream"),
        BadBody, Missing, BackendOnly, Refused,
    ),
)]
pub(crate) async fn post(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(agent): At<AgentName>,
    query: Query,
    Untyped(turn): Untyped<ChatTurn>,
) -> Result<Response, Refusal> {
    handle_turn(&door, who, agent, &query, turn).await
}

/// The answer under way in a chat, from its beginning or from a cursor; 204 when there is none.
#[utoipa::path(
    get, path = "/v1/agents/{agent}/chat/{chat}/stream", operation_id = "resume_chat", tag = "chat",
    params(
        ("agent" = inline(schema::AgentName), Path),
        ("chat" = String, Path, description = "The chat's id, or a run's."),
        ("dialect" = inline(Option<DialectWord>), Query, description = "As in the body of a turn."),
        ("startIndex" = Option<u32>, Query, maximum = 1_000_000_000, description = "Chunks of the answer that were read."),
        ("after" = inline(Option<ChatPlace>), Query, description = "The `id:` of the last chunk that was read."),
        ("last-event-id" = inline(Option<ChatPlace>), Header, description = "The same as `after`."),
    ),
    responses(
        (status = 200, description = "A UI message stream.", body = ChatEvent, content_type = "text/event-stream"),
        (status = 204, description = "Nothing is under way."),
        BadQuery, Expired, Missing, Refused,
    ),
)]
pub(crate) async fn resume(
    State(door): State<Shared>,
    Reader(who): Reader,
    At((agent, chat)): At<(AgentName, String)>,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, Refusal> {
    resume_answer(&door, who, agent, &chat, &headers, &query).await
}

/// What was said in a chat, as the messages that a client begins with. The answer that is under way is left out: its
/// stream tells it.
#[utoipa::path(
    get, path = "/v1/agents/{agent}/chat/{chat}", operation_id = "chat_messages", tag = "chat",
    params(
        ("agent" = inline(schema::AgentName), Path),
        ("chat" = String, Path, description = "The chat's id."),
    ),
    responses((status = 200, description = "The messages.", body = ChatPast), Missing, Refused),
)]
pub(crate) async fn messages(
    State(door): State<Shared>,
    Caller(who): Caller,
    At((agent, chat)): At<(AgentName, String)>,
) -> Result<Answered<ChatPast>, Refusal> {
    read_history(&door, who, agent, chat).await
}

/// The same for the project's `default` agent.
#[utoipa::path(
    get, path = "/api/chat/{chat}", operation_id = "default_chat_messages", tag = "chat",
    params(("chat" = String, Path, description = "The chat's id.")),
    responses((status = 200, description = "The messages.", body = ChatPast), Missing, Refused),
)]
pub(crate) async fn messages_default(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(chat): At<String>,
) -> Result<Answered<ChatPast>, Refusal> {
    read_history(&door, who, default_agent(), chat).await
}

/// The same for the project's `default` agent.
#[utoipa::path(
    get, path = "/api/chat/{chat}/stream", operation_id = "resume_default_chat", tag = "chat",
    params(
        ("chat" = String, Path, description = "The chat's id, or a run's."),
        ("dialect" = inline(Option<DialectWord>), Query, description = "As in the body of a turn."),
        ("startIndex" = Option<u32>, Query, maximum = 1_000_000_000, description = "Chunks of the answer that were read."),
        ("after" = inline(Option<ChatPlace>), Query, description = "The `id:` of the last chunk that was read."),
        ("last-event-id" = inline(Option<ChatPlace>), Header, description = "The same as `after`."),
    ),
    responses(
        (status = 200, description = "A UI message stream.", body = ChatEvent, content_type = "text/event-stream"),
        (status = 204, description = "Nothing is under way."),
        BadQuery, Expired, Missing, Refused,
    ),
)]
pub(crate) async fn resume_default(
    State(door): State<Shared>,
    Reader(who): Reader,
    At(chat): At<String>,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, Refusal> {
    let agent = default_agent();
    resume_answer(&door, who, agent, &chat, &headers, &query).await
}

/// A version of the AI SDK's UI message stream.
#[derive(ToSchema)]
#[schema(as = Dialect, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes the words of `Dialect`")]
pub(crate) enum DialectWord {
    V5,
    V6,
    V7,
}

/// One event of a UI message stream.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `ui_stream` writes")]
pub(crate) struct ChatEvent {
    /// A chunk as JSON text, or `[DONE]`.
    data: String,
    /// Where the stream can be taken up again.
    id: Option<String>,
}

/// A place in a chat's stream.
pub(crate) struct ChatPlace;

impl PartialSchema for ChatPlace {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(r"^[0-9]{1,16}(-[0-9]{1,9}(\.[0-9]{1,9}){0,8})?$"))
            .into()
    }
}
impl ToSchema for ChatPlace {}
