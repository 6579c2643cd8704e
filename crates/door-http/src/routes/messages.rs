//! Saying something: in a space, or to start a run.

use axum::extract::{FromRequestParts, State};
use axum::response::{IntoResponse, Response};
use http::request::Parts as RequestParts;
use http::{HeaderMap, HeaderName, StatusCode};
use serde::Serialize;
use sha2::{Digest, Sha256};
use toolgate_access::Principal;
use toolgate_engine::intake::{Answer as Answers, Post, PostError, UnderWay};
use toolgate_http::answer::Answer;
use toolgate_http::body::Body;
use toolgate_http::caller::Caller;
use toolgate_http::client_tools::{Categories, ClientTools};
use toolgate_http::describe::{BadBody, Contended, Missing, Refused};
use toolgate_http::executor::{MessageExecutor, sender};
use toolgate_http::problem::Refusal;
use toolgate_http::query::At;
use toolgate_http::stream::{Follow, Mark, Until};
use toolgate_http::ui_message::{Messages, earlier};
use toolgate_http::wait::{Awaited, Since, Wait, ended_or_waits};
use toolgate_http::wire::{AnyObject, TextOr, Words, wire};
use toolgate_http::{Shared, schema};
use toolgate_kernel::id::{MessageId, RunId, SpaceId};
use toolgate_kernel::message::Message;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::tool::ClientTool;
use utoipa::ToSchema;
use uuid::Uuid;

use super::message::{MessageObject, Parts, Said};
use crate::events::stream;
use crate::snapshot::RunBody;
use crate::until::{Saying, Streams};
use crate::waited::{answer_rested, answer_unfinished};

/// Makes a repeated request harmless.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;

wire! {
    /// A message for a space.
    PostMessage {
        /// The text.
        text "text": Option<Words>,
        /// Text, or the parts of the message.
        content "content": Option<TextOr<Parts>>,
        /// Parts of the message.
        parts "parts": Option<Parts>,
        /// Text, or a message object.
        message "message": Option<TextOr<MessageObject>>,
        /// Chosen by the sender: the same id again is the same message.
        message_id "messageId": Option<MessageId>,
        /// Who answers; otherwise the space's agent, or the project's `default`.
        agent "agent": Option<AgentName>,
        /// Tools that the caller executes itself.
        client_tools "clientTools": Option<ClientTools>,
        /// The sender, as a client that executes tools: calls are offered to it first.
        executor "executor": Option<MessageExecutor>,
        /// Of the agent's client tools only those of these categories, and those of none.
        categories "selectedToolCategories": Option<Categories>,
        /// Whether anybody answers; true unless said otherwise.
        respond "respond": Option<bool>,
        /// Whatever the sender attaches; never given to a model.
        metadata "metadata": Option<AnyObject>,
    }
    exactly one of [text "text", content "content", parts "parts", message "message"]
}

wire! {
    /// A message that starts a run.
    StartRun {
        /// The text.
        text "text": Option<Words>,
        /// Text, or the parts of the message.
        content "content": Option<TextOr<Parts>>,
        /// Parts of the message.
        parts "parts": Option<Parts>,
        /// Text, or a message object.
        message "message": Option<TextOr<MessageObject>>,
        /// Chosen by the sender: the same id again is the same message.
        message_id "messageId": Option<MessageId>,
        /// Who answers; otherwise the space's agent, or the project's `default`.
        agent "agent": Option<AgentName>,
        /// Where; otherwise in a space that is made for this run.
        space "space": Option<SpaceId>,
        /// The same as `space`.
        space_id "spaceId": Option<SpaceId>,
        /// Tools that the caller executes itself.
        client_tools "clientTools": Option<ClientTools>,
        /// The sender, as a client that executes tools: calls are offered to it first.
        executor "executor": Option<MessageExecutor>,
        /// Of the agent's client tools only those of these categories, and those of none.
        categories "selectedToolCategories": Option<Categories>,
        /// What was said before: the past of a space that the run makes, and for an agent with `history: client`. In a
        /// space that is there, other agents go by its log, and it is refused: 409 `HISTORY_NOT_TAKEN`.
        history "history": Option<Messages>,
        /// Whatever the sender attaches; never given to a model.
        metadata "metadata": Option<AnyObject>,
    }
    exactly one of [text "text", content "content", parts "parts", message "message"]
    at most one of [space "space", space_id "spaceId"]
}

/// The message is stored.
#[derive(Serialize, ToSchema)]
#[schema(as = Posted)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PostedBody {
    /// Id of the message.
    #[schema(value_type = schema::MessageId)]
    message_id: MessageId,
    /// Space that the message stands in.
    #[schema(value_type = schema::SpaceId)]
    space_id: SpaceId,
    /// The run that answers: a new one, or the one that was under way. Null when nobody answers.
    #[schema(value_type = Option<schema::RunId>)]
    run_id: Option<RunId>,
    /// A cursor from which everything the message caused is seen.
    seq: u64,
}

/// The run that answers a message has ended, or waits for a client, an approval or a moment, as `status` and `pending`
/// tell.
#[derive(Serialize, ToSchema)]
#[schema(as = Answered)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AnsweredBody {
    /// Id of the message.
    #[schema(value_type = schema::MessageId)]
    message_id: MessageId,
    /// The same as `id`.
    #[schema(value_type = schema::RunId)]
    run_id: RunId,
    #[serde(flatten)]
    run: RunBody,
}

/// Says something in a space.
///
/// With `accept: text/event-stream` the answer is the event stream of the run that answers. With `prefer: wait=30` it is
/// the run once that has ended or waits for somebody, if that is within 30 seconds.
#[utoipa::path(
    post, path = "/v1/spaces/{space}/messages", operation_id = "post_message", tag = "messages",
    params(
        ("space" = inline(schema::SpaceId), Path),
        ("until" = inline(Option<crate::until::UntilWord>), Query, description = "When a stream ends; `pause` unless said otherwise."),
        ("wait" = Option<String>, Query, pattern = "^[0-9]+(ms|s|m)?$", description = "How long to wait for the run, such as `30s`."),
        ("prefer" = Option<String>, Header, description = "The same in seconds: `wait=30`."),
        ("idempotency-key" = inline(Option<schema::IdempotencyKey>), Header, description = "Makes a repeated request harmless for a day."),
    ),
    request_body = PostMessage,
    responses(
        (status = 202, description = "Stored.", body = PostedBody),
        (status = 200, description = "Stored; what follows, or the run that was waited for.", content(
            (AnsweredBody = "application/json"),
            (String = "text/event-stream"),
        )),
        BadBody, Contended, Missing, Refused,
    ),
)]
pub(crate) async fn post(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(space): At<SpaceId>,
    Saying(streams): Saying,
    wait: Wait,
    request: Repeatable,
    body: Body<PostMessage>,
) -> Result<Response, Refusal> {
    if who.user.is_some() {
        door.access.reach_space(&who, space).await?;
    }
    let Body { value: body, bytes } = body;
    let at = place(body.text.is_some(), body.content.is_some(), body.parts.is_some());
    let message = Said::of(body.text, body.content, body.parts, body.message);
    let message = message.with(body.message_id, body.metadata);
    let idempotency = request.idempotency(&who, &bytes, message.message_id);
    // Not in memory while somebody waits.
    drop(bytes);
    let message = message.by(&who, body.executor);
    door.settings.content.check_message(&message, at)?;
    let answer = match (body.respond, body.agent) {
        (Some(false), _) => Answers::None,
        (_, Some(agent)) => Answers::Agent(agent),
        (_, None) => Answers::Default,
    };
    let post = Post {
        user_token: who.user_token(),
        call: None,
        project: who.project,
        starter: who.starter(),
        charged: who.entity().into(),
        space: Some(space),
        message,
        answer,
        client_tools: checked(&door, &who, body.client_tools).await?,
        categories: chosen(body.categories),
        makes_space: false,
        under_way: UnderWay::Join,
        history: Vec::new(),
        told: Vec::new(),
        idempotency,
    };
    say(&door, who, post, StatusCode::ACCEPTED, (streams, wait)).await
}

/// Starts a run.
///
/// With `accept: text/event-stream` the answer is the run's event stream. With `prefer: wait=30` it is the run once that
/// has ended or waits for somebody, if that is within 30 seconds, and 202 otherwise.
#[utoipa::path(
    post, path = "/v1/runs", operation_id = "start_run", tag = "runs",
    params(
        ("until" = inline(Option<crate::until::UntilWord>), Query, description = "When a stream ends; `pause` unless said otherwise."),
        ("wait" = Option<String>, Query, pattern = "^[0-9]+(ms|s|m)?$", description = "How long to wait for the run, such as `30s`."),
        ("prefer" = Option<String>, Header, description = "The same in seconds: `wait=30`."),
        ("idempotency-key" = inline(Option<schema::IdempotencyKey>), Header, description = "Makes a repeated request harmless for a day."),
    ),
    request_body = StartRun,
    responses(
        (status = 201, description = "Started.", body = PostedBody),
        (status = 202, description = "Started, and under way after the wait.", body = PostedBody),
        (status = 200, description = "Started; what follows, or the run that was waited for.", content(
            (AnsweredBody = "application/json"),
            (String = "text/event-stream"),
        )),
        BadBody, Contended, Missing, Refused,
    ),
)]
pub(crate) async fn start(
    State(door): State<Shared>,
    Caller(who): Caller,
    Saying(streams): Saying,
    wait: Wait,
    request: Repeatable,
    body: Body<StartRun>,
) -> Result<Response, Refusal> {
    let Body { value: body, bytes } = body;
    let at = place(body.text.is_some(), body.content.is_some(), body.parts.is_some());
    let message = Said::of(body.text, body.content, body.parts, body.message);
    let message = message.with(body.message_id, body.metadata);
    let idempotency = request.idempotency(&who, &bytes, message.message_id);
    drop(bytes);
    let message = message.by(&who, body.executor);
    door.settings.content.check_message(&message, at)?;
    let space = body.space.or(body.space_id);
    if let (Some(space), Some(_)) = (space, &who.user) {
        door.access.reach_space(&who, space).await?;
    }
    let post = Post {
        user_token: who.user_token(),
        call: None,
        project: who.project,
        starter: who.starter(),
        charged: who.entity().into(),
        space,
        message,
        answer: body.agent.map_or(Answers::Default, Answers::Agent),
        client_tools: checked(&door, &who, body.client_tools).await?,
        categories: chosen(body.categories),
        makes_space: false,
        under_way: UnderWay::Join,
        history: body.history.map_or(Vec::new(), |history| earlier(&history.0)),
        told: Vec::new(),
        idempotency,
    };
    say(&door, who, post, StatusCode::CREATED, (streams, wait)).await
}

/// Where the content of a message stands in its body.
fn place(text: bool, content: bool, parts: bool) -> &'static str {
    match (text, content, parts) {
        (true, ..) => "/text",
        (_, true, _) => "/content",
        (_, _, true) => "/parts",
        (false, false, false) => "/message",
    }
}

/// Stores a message and answers with the receipt, or with what the run makes of it. A stream goes before a wait.
async fn say(
    door: &Shared,
    who: Principal,
    post: Post,
    done: StatusCode,
    (streams, wait): (Streams, Wait),
) -> Result<Response, Refusal> {
    let open = streams.reserve(door, &who)?;
    let wait = match open {
        None => wait.reserve(door, &who)?,
        Some(_) => None,
    };
    // Without a key of its own the request is known by the id of its message.
    let names_message = post.is_known_by_message();
    let posted = match open.is_some() || wait.is_some() {
        false => door.engine.post(post).await.map(|posted| (posted, None)),
        true => door.engine.post_and_follow(post).await,
    };
    let (posted, following) = posted.map_err(|error| match error {
        PostError::KeyReused if names_message => PostError::MessageIdReused,
        other => other,
    })?;
    if let Some(run) = posted.run_id {
        door.access.remember(who.project, run, posted.space_id);
    }
    let body = PostedBody {
        message_id: posted.message_id,
        space_id: posted.space_id,
        run_id: posted.run_id,
        seq: posted.seq.0,
    };
    if let (Some(wait), Some(run)) = (&wait, posted.run_id) {
        let awaited = Awaited {
            who,
            run,
            space: posted.space_id,
            since: Since::Now,
            is_rest: ended_or_waits,
        };
        let events = following.expect("what a run answers is followed");
        let told = |run_id, run| AnsweredBody {
            message_id: posted.message_id,
            run_id,
            run,
        };
        return match wait.rest(door, &awaited, events).await? {
            Some(rested) => answer_rested(door, wait, rested, told).await,
            None => Ok(answer_unfinished(wait, run, body)),
        };
    }
    if let Some((open, events)) = open.zip(following) {
        let until = match streams {
            Streams::UntilPause => Until::Pause(Mark::Said(posted.message_id)),
            Streams::UntilEnd | Streams::No => Until::End,
        };
        let follow = Follow {
            who,
            run: posted.run_id,
            space: posted.space_id,
            after: posted.seq,
            until,
        };
        return stream(follow, door, open, events).await;
    }
    if posted.repeated {
        // Whoever was told then may have been taken out since.
        door.access.admit(&who, posted.space_id).await?;
    }
    Ok(Answer(done, body).into_response())
}

/// The tools that a request brings.
pub(crate) async fn checked(
    door: &Shared,
    who: &Principal,
    tools: Option<ClientTools>,
) -> Result<Vec<ClientTool>, Refusal> {
    match tools {
        Some(tools) => Ok(tools.check(&door.engine, who, "/clientTools").await?),
        None => Ok(Vec::new()),
    }
}

fn chosen(categories: Option<Categories>) -> Option<Vec<String>> {
    categories.map(|list| list.0.into_iter().map(|name| name.0).collect())
}

impl Said {
    /// What stands beside the message counts where the message itself says nothing.
    fn with(self, id: Option<MessageId>, metadata: Option<AnyObject>) -> Self {
        Self {
            message_id: self.message_id.or(id),
            metadata: self.metadata.or(metadata.map(|metadata| metadata.0)),
            ..self
        }
    }
    fn by(self, who: &Principal, executor: Option<MessageExecutor>) -> Message {
        let message_id = self.message_id.unwrap_or_else(|| MessageId::new(Uuid::now_v7()));
        Message {
            sender: sender(who, executor),
            metadata: self.metadata,
            ..Message::new(message_id, who.entity(), self.parts)
        }
    }
}

/// A request that may come again.
pub(crate) struct Repeatable {
    /// What the client calls it.
    key: Option<String>,
    /// The hash of all but its body.
    request: Sha256,
}

impl Repeatable {
    /// The key under which the answer is remembered, and the hash of what was asked. Users of one project
    /// choose their keys apart from each other.
    pub(crate) fn idempotency(
        self,
        who: &Principal,
        body: &[u8],
        message: Option<MessageId>,
    ) -> Option<(String, [u8; 32])> {
        // A message whose id the sender chose is the same message however often it comes.
        let key = self.key.or_else(|| message.map(|id| id.to_string()))?;
        let whose = who.entity().map_or("backend".into(), |entity| entity.to_string());
        Some((
            format!("{whose}:{key}"),
            self.request.chain_update(body).finalize().into(),
        ))
    }
}

impl<S: Sync> FromRequestParts<S> for Repeatable {
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut RequestParts, _: &S) -> Result<Self, Refusal> {
        let request = Sha256::new()
            .chain_update(parts.method.as_str())
            .chain_update([0])
            .chain_update(parts.uri.path())
            .chain_update([0]);
        Ok(Self {
            key: idempotency_key(&parts.headers)?,
            request,
        })
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let sane = (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&value.len());
    match value.to_str() {
        Ok(key) if sane && key.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Some(key.to_owned())),
        _ => Err(Refusal::malformed(format!(
            "idempotency-key must have 1 to {IDEMPOTENCY_KEY_BYTES_MAX} visible ASCII characters"
        ))),
    }
}
