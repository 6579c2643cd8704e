//! Calls and questions become runs.

use rmcp::model::JsonObject;
use serde_json::Value;
use sha2::{Digest, Sha256};
use toolgate_engine::feed::Subscription;
use toolgate_engine::intake::{Answer, Post, PostError, RequestedCall, UnderWay};
use toolgate_http::Shared;
use toolgate_http::problem::Refusal;
use toolgate_kernel::agent::Agent;
use toolgate_kernel::id::{MessageId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::name::ToolName;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::schema::Misfit;
use uuid::Uuid;

use crate::visitor::Visitor;

/// A run that answers a call.
pub(crate) struct Started {
    pub run: RunId,
    pub space: SpaceId,
    /// Everything that happens to it, from its beginning.
    pub events: Subscription,
    /// The message that began it; another one was there before when the run was under way already.
    pub message: MessageId,
}

/// Why no run was started.
pub(crate) enum NotStarted {
    /// The arguments are wrong: the model that wrote them is told.
    Arguments(String),
    /// Anything else.
    Refused(Refusal),
}

impl<E: Into<Refusal>> From<E> for NotStarted {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

/// Starts a run that is one call. Without a space a backend's call has one made for it, and a user's is made in a space
/// of its own that lasts: one per user and agent, of which it is the only member.
pub(crate) async fn start_call(
    door: &Shared,
    visitor: &Visitor,
    space: Option<SpaceId>,
    tool: ToolName,
    arguments: Option<JsonObject>,
) -> Result<Started, NotStarted> {
    let input = input(arguments)?;
    door.settings.content.check_arguments(&input)?;
    let own = visitor.who.user.as_ref().map(|_| own_space(visitor));
    let makes_space = space.is_none() && own.is_some();
    match (space, own) {
        (Some(space), _) => door.access.reach_space(&visitor.who, space).await?,
        (None, Some(own)) => door.access.reach_if_made(&visitor.who, own, "space").await?,
        (None, None) => {}
    }
    let post = Post {
        space: space.or(own),
        makes_space,
        answer: Answer::Agent(visitor.agent.clone()),
        call: Some(RequestedCall { tool, input }),
        ..post(visitor, Vec::new())
    };
    started(door, visitor, post).await
}

/// Starts a run of an agent with a message, or gives the message to the one under way.
pub(crate) async fn start_ask(
    door: &Shared,
    visitor: &Visitor,
    space: Option<SpaceId>,
    agent: &Agent,
    arguments: Option<JsonObject>,
) -> Result<Started, NotStarted> {
    let mut arguments = arguments.unwrap_or_default();
    let Some(Value::String(text)) = arguments.remove("message").filter(|text| *text != "") else {
        return Err(NotStarted::Arguments(
            "Missing required parameter: message".into(),
        ));
    };
    let named = match arguments.remove("space") {
        None | Some(Value::Null) => None,
        Some(named) => {
            let space = named.as_str().and_then(|text| text.parse::<SpaceId>().ok());
            Some(space.ok_or_else(|| {
                NotStarted::Arguments("Parameter space must be the id of a space, such as space_…".into())
            })?)
        }
    };
    if let Some(unknown) = arguments.keys().next() {
        return Err(NotStarted::Arguments(format!("Unknown parameter: {unknown}")));
    }
    let space = named.or(space);
    if let Some(space) = space {
        door.access.reach_space(&visitor.who, space).await?;
    }
    let post = Post {
        space,
        answer: Answer::Agent(agent.name.clone()),
        ..post(visitor, vec![Part::Text { text }])
    };
    door.settings.content.check_message(&post.message, "/message")?;
    started(door, visitor, post).await
}

async fn started(door: &Shared, visitor: &Visitor, post: Post) -> Result<Started, NotStarted> {
    let message = post.message.message_id;
    let (posted, events) = match door.engine.post_and_follow(post).await {
        Ok(posted) => posted,
        Err(PostError::Arguments(misfit)) => return Err(NotStarted::Arguments(words(misfit))),
        Err(error) => return Err(error.into()),
    };
    let (Some(run), Some(events)) = (posted.run_id, events) else {
        return Err(Refusal::not_found("run").into());
    };
    door.access.remember(visitor.who.project, run, posted.space_id);
    Ok(Started {
        run,
        space: posted.space_id,
        events,
        message,
    })
}

fn post(visitor: &Visitor, parts: Vec<Part>) -> Post {
    let who = &visitor.who;
    Post {
        user_token: who.user_token(),
        project: who.project,
        starter: who.starter(),
        charged: who.entity().into(),
        space: None,
        makes_space: false,
        message: Message {
            sender: who.sender(),
            ..Message::new(MessageId::new(Uuid::now_v7()), who.entity(), parts)
        },
        answer: Answer::Default,
        client_tools: Vec::new(),
        categories: None,
        history: Vec::new(),
        told: Vec::new(),
        under_way: UnderWay::Join,
        call: None,
        idempotency: None,
    }
}

/// The space in which a user's calls are made when they name none.
fn own_space(visitor: &Visitor) -> SpaceId {
    let hash = ["mcp", &visitor.owner(), visitor.agent.as_str()]
        .iter()
        .fold(Sha256::new(), |hash, text| {
            hash.chain_update(text).chain_update([0])
        });
    let hash = hash.finalize();
    SpaceId::from_bytes(hash[..16].try_into().expect("a hash has 32 bytes"))
}

/// The arguments as one value that every later reader can take.
fn input(arguments: Option<JsonObject>) -> Result<Json, NotStarted> {
    let text = Value::Object(arguments.unwrap_or_default()).to_string();
    Json::parse(text).map_err(|error| NotStarted::Arguments(format!("the arguments cannot be read: {error}")))
}

fn words(misfit: Misfit) -> String {
    let told = |problem: &Problem| match problem.pointer.is_empty() {
        true => problem.message.clone(),
        false => format!("{} {}", problem.pointer, problem.message),
    };
    match misfit {
        Misfit::Invalid(problems) => problems.iter().map(told).collect::<Vec<_>>().join("\n"),
        Misfit::TooCostly(problem) => problem.message,
    }
}
