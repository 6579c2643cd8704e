//! A message to an agent: what it answers is given to the task, what it says is posted.

use serde_json::Value;
use toolgate_a2a::Invalid;
use toolgate_a2a::client_tools::{AG2_URI, URI};
use toolgate_a2a::error::{Error, ErrorKind};
use toolgate_a2a::message::{Message, Role};
use toolgate_a2a::request::SendMessage;
use toolgate_engine::intake::{Answer as AnsweredBy, Post, PostError, UnderWay};
use toolgate_engine::store::RunRecord;
use toolgate_kernel::id::{MessageId, RunId, SpaceId};
use toolgate_kernel::message::{Message as Stored, Part as StoredPart};
use toolgate_kernel::tool::ClientTool;
use uuid::Uuid;

use crate::asking::Asking;
use crate::context::{self, CONTEXT_ID_BYTES_MAX};
use crate::follow::Start;
use crate::message::{Form, Origin, content, is_machinery};
use crate::offered_tools::{OfferedTools, is_ag2};
use crate::problem::{ended, no_task, not_posted, refused};
use crate::{answers, conformance, push};

/// A message that was taken.
pub(crate) struct Sent {
    pub run: RunId,
    pub space: SpaceId,
    /// The task as it was when it had taken the message.
    pub start: Start,
}

/// A message, checked and not yet acted upon.
struct Sending {
    message: Message,
    answers: Vec<answers::Answer>,
    content: Vec<StoredPart>,
    tools: Vec<ClientTool>,
    tools_at: String,
    form: Option<Form>,
    task: Option<RunRecord>,
}

/// Takes a message.
pub(crate) async fn send(
    asking: &mut Asking<'_>,
    request: SendMessage,
    tools_in_params: Option<Value>,
) -> Result<Sent, Error> {
    let push = request.configuration.push.clone();
    if let Some(push) = &push {
        push::check(asking.a2a, push)?;
    }
    let sending = Sending::read(asking, request, tools_in_params).await?;
    // What happens from here on is posted, however soon the task ends.
    let since = asking.door().engine.clock().now();
    let sent = sending.act(asking).await?;
    if let Some(push) = push {
        push::store(asking, sent.run, sent.space, push, since).await?;
    }
    Ok(sent)
}

impl Sending {
    async fn read(
        asking: &mut Asking<'_>,
        request: SendMessage,
        tools_in_params: Option<Value>,
    ) -> Result<Self, Error> {
        let message = request.message;
        if message.role == Role::Agent {
            return Err(Invalid::one("message.role", "a client sends messages of the user").into());
        }
        let offered = OfferedTools::find(&message, request.metadata.as_ref(), tools_in_params)?;
        asking.use_extensions(message.extensions.iter().map(String::as_str));
        let form = match &offered {
            Some(offered) => Some(offered.form),
            None => is_ag2(&message).then_some(Form::Ag2),
        };
        match form {
            Some(Form::Ag2) => asking.use_extensions([AG2_URI]),
            Some(Form::Tagged) => asking.use_extensions([URI]),
            None if message.tag(URI).is_some() => asking.use_extensions([URI]),
            None | Some(Form::Params) => {}
        }
        let task = match &message.task_id {
            Some(id) => Some(find_task(asking, id).await?),
            None => None,
        };
        let (answers, others) = answers::of_parts(&message.parts)?;
        let others: Vec<_> = others
            .into_iter()
            .filter(|(_, part)| !is_machinery(part))
            .collect();
        let content = match conformance::is_scripted(&asking.agent) {
            false => content(others.into_iter())?,
            // What the agent cannot read is refused as everywhere.
            true => content(others.into_iter()).map(|_| conformance::content(&message))?,
        };
        let tools = match &offered {
            Some(offered) => offered.check(asking.door(), &asking.who).await?,
            None => Vec::new(),
        };
        let sending = Self {
            answers,
            content,
            tools,
            tools_at: offered.map_or_else(String::new, |offered| offered.at),
            form,
            task,
            message,
        };
        sending.check(asking)?;
        Ok(sending)
    }

    /// Everything that can be known to be wrong before something changes.
    fn check(&self, asking: &Asking<'_>) -> Result<(), Error> {
        if let (Some(task), Some(named)) = (&self.task, &self.message.context_id)
            && context::space_of(&asking.who, named) != task.space
        {
            return Err(Invalid::one("message.contextId", "the task belongs to another context").into());
        }
        if self
            .message
            .context_id
            .as_ref()
            .is_some_and(|id| id.len() > CONTEXT_ID_BYTES_MAX)
        {
            let words = format!("may have {CONTEXT_ID_BYTES_MAX} bytes at most");
            return Err(Invalid::one("message.contextId", words).into());
        }
        // Whoever repeats a result is told what holds, also when the task has ended meanwhile.
        if self.answers.is_empty() && self.task.as_ref().is_some_and(|task| task.status.is_final()) {
            return Err(ended());
        }
        if self.task.is_none() && !self.answers.is_empty() {
            let words = "is required where results, decisions or answers are given";
            return Err(Invalid::one("message.taskId", words).into());
        }
        if self.answers.is_empty() && self.content.is_empty() {
            return Err(Invalid::one("message.parts", "say nothing that the agent reads").into());
        }
        let limits = &asking.door().settings.content;
        let checked = limits.check_parts(&self.content, "/parts");
        checked.map_err(|refusal| refused(refusal, "message"))
    }

    async fn act(mut self, asking: &Asking<'_>) -> Result<Sent, Error> {
        let door = asking.door();
        let answered = match &self.task {
            Some(task) if !self.answers.is_empty() => {
                let answers = std::mem::take(&mut self.answers);
                let taken = answers::take(door, &asking.who, task.id, answers).await?;
                Some(Sent {
                    run: task.id,
                    space: task.space,
                    start: taken.newest.map_or(Start::Present, Start::Place),
                })
            }
            _ => None,
        };
        match answered {
            Some(sent) if self.content.is_empty() => Ok(sent),
            _ => self.post(asking).await,
        }
    }

    async fn post(self, asking: &Asking<'_>) -> Result<Sent, Error> {
        let (door, who) = (asking.door(), &asking.who);
        let (space, name) = match (&self.task, &self.message.context_id) {
            (Some(task), named) => {
                let name = named.clone().filter(|name| name.parse::<SpaceId>().is_err());
                (Some(task.space), name)
            }
            (None, Some(named)) => {
                let found = context::find(door, who, named).await?;
                (Some(found.space), found.name)
            }
            (None, None) => (None, None),
        };
        let mut origin = Origin::of(&self.message, name, self.form);
        if conformance::is_scripted(&asking.agent) {
            origin.keep_parts(&self.message);
        }
        let metadata = origin.metadata();
        if metadata.as_str().len() > door.settings.content.message {
            let words = "has too many bytes with its metadata and files, see content.message_bytes_max";
            return Err(Invalid::one("message", words).into());
        }
        let id = MessageId::new(Uuid::now_v7());
        let post = Post {
            user_token: who.user_token(),
            call: None,
            project: who.project,
            starter: who.starter(),
            charged: who.entity().into(),
            space,
            makes_space: self.task.is_none(),
            under_way: match &self.task {
                Some(task) => UnderWay::Only(task.id),
                None => UnderWay::Join,
            },
            message: Stored {
                sender: who.sender(),
                metadata: Some(metadata),
                ..Stored::new(id, who.entity(), self.content)
            },
            answer: AnsweredBy::Agent(asking.agent.clone()),
            client_tools: self.tools,
            categories: None,
            history: Vec::new(),
            told: Vec::new(),
            idempotency: None,
        };
        let posted = door.engine.post(post).await.map_err(|error| match error {
            PostError::NoAgent(_) | PostError::NoSpace => no_agent(),
            other => not_posted(other, &self.tools_at),
        })?;
        let run = posted.run_id.ok_or_else(no_agent)?;
        door.access.remember(who.project, run, posted.space_id);
        Ok(Sent {
            run,
            space: posted.space_id,
            start: Start::Message(id),
        })
    }
}

/// A task of this agent that the caller may reach. Whose it is otherwise makes no difference: there is none.
pub(crate) async fn find_task(asking: &Asking<'_>, id: &str) -> Result<RunRecord, Error> {
    let run: RunId = id.parse().map_err(|_| no_task())?;
    let record = asking.door().access.run(&asking.who, run).await;
    let record = record.map_err(|error| refused(error, ""))?;
    let is_task = record.agent == asking.agent && record.parent.is_none() && record.tool.is_none();
    is_task.then_some(record).ok_or_else(no_task)
}

/// An agent that one may not start looks like one that does not exist.
pub(crate) fn no_agent() -> Error {
    Error::new(ErrorKind::TaskNotFound, "there is no such agent")
}
