//! The operations, the same for both bindings and both dialects.

use axum::extract::FromRequestParts as _;
use http::HeaderName;
use serde_json::{Value, json};
use toolgate_a2a::error::{Error, ErrorKind};
use toolgate_a2a::method::Operation;
use toolgate_a2a::push::PushConfig;
use toolgate_a2a::request::{GetTask, ListTasks, PushConfigOf, SendMessage, TaskById};
use toolgate_a2a::stream::StreamResponse;
use toolgate_a2a::{Dialect, Invalid};
use toolgate_engine::feed::Scope;
use toolgate_http::stream::OpenStream;
use toolgate_http::wait::{Awaited, OpenWait, Since, Wait};
use toolgate_kernel::event::Status;
use toolgate_kernel::id::{RunId, SpaceId};
use uuid::Uuid;

use crate::asking::{Asking, Reply};
use crate::follow::{Ends, Start, read, stream, to_json};
use crate::problem::refused;
use crate::send::{Sent, find_task, send};
use crate::{answers, card, conformance, list, push};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Does what the client asks for.
pub(crate) async fn perform(
    asking: &mut Asking<'_>,
    operation: Operation,
    params: Value,
) -> Result<Reply, Error> {
    let dialect = asking.dialect;
    let value = match operation {
        Operation::SendMessage => return send_and_wait(asking, params).await,
        Operation::SendStreamingMessage => return send_and_stream(asking, params).await,
        Operation::SubscribeToTask => {
            let TaskById { id, .. } = TaskById::from_json(params)?;
            return subscribe(asking, &id).await;
        }
        Operation::ResumeTask => return resume(asking, params).await,
        Operation::GetTask => get(asking, GetTask::from_json(params)?).await?,
        Operation::ListTasks => list::list(asking, ListTasks::from_json(params)?).await?,
        Operation::CancelTask => cancel(asking, &TaskById::from_json(params)?.id).await?,
        Operation::CreatePushConfig => push::create(asking, PushConfig::from_json(params, dialect)?).await?,
        Operation::GetPushConfig => push::get(asking, PushConfigOf::from_json(params, dialect)?).await?,
        Operation::ListPushConfigs => push::list(asking, PushConfigOf::from_json(params, dialect)?).await?,
        Operation::DeletePushConfig => {
            push::delete(asking, PushConfigOf::from_json(params, dialect)?).await?
        }
        Operation::GetExtendedAgentCard => card::extended(asking).await?,
    };
    Ok(Reply::Json(value))
}

/// Takes out of the parameters what is no part of the protocol: `tools`, for clients that bring them there. Such clients
/// may leave out the id of their message.
fn tools_in_params(params: &mut Value) -> Option<Value> {
    let members = params.as_object_mut()?;
    let tools = members.remove("tools").filter(|tools| !tools.is_null())?;
    if let Some(message) = members.get_mut("message").and_then(Value::as_object_mut) {
        message
            .entry("messageId")
            .or_insert_with(|| json!(Uuid::now_v7().to_string()));
    }
    Some(tools)
}

async fn send_and_wait(asking: &mut Asking<'_>, mut params: Value) -> Result<Reply, Error> {
    let tools = tools_in_params(&mut params);
    let request = SendMessage::from_json(params, asking.dialect)?;
    if let Some(answer) = conformance::direct_answer(asking, &request) {
        return Ok(Reply::Json(answer.to_json(asking.dialect)));
    }
    let history = request.configuration.history_length;
    let wait = match request.configuration.return_immediately {
        true => None,
        false => Some(reserve_wait(asking).await?),
    };
    let sent = send(asking, request, tools).await?;
    if let Some(wait) = wait {
        rest(asking, &wait, &sent).await?;
    }
    let read = read(asking.door(), &asking.who, (sent.run, sent.space), Start::Present).await?;
    let task = StreamResponse::Task(read.fold.task(history, true));
    Ok(Reply::Json(to_json(&task, asking.dialect, read.fold.form())))
}

/// The right to wait for the task, before anything is stored: for as long as the client prefers, and no longer than
/// `http.wait_max`.
async fn reserve_wait(asking: &mut Asking<'_>) -> Result<OpenWait, Error> {
    let door = asking.a2a.shared.clone();
    let wait = Wait::from_request_parts(&mut asking.parts, &door).await;
    let wait = wait.map_err(|error| refused(error, ""))?;
    let reserved = wait.or(&door, door.settings.wait_max).reserve(&door, &asking.who);
    let reserved = reserved.map_err(|error| refused(error, ""))?;
    Ok(reserved.expect("a wait was asked for"))
}

/// Waits until the task has ended or waits for its client.
async fn rest(asking: &Asking<'_>, wait: &OpenWait, sent: &Sent) -> Result<(), Error> {
    let door = asking.door();
    let read = read(door, &asking.who, (sent.run, sent.space), Start::Present).await?;
    let state = read.fold.task_state();
    if state.is_terminal() || state.is_interrupted() {
        return Ok(());
    }
    let after = read.fold.seq();
    // The log may still say that the run waits, for a child run that was just answered.
    let since = match read.fold.state().status().asks() {
        true => Since::StatusAfter(after),
        false => Since::Now,
    };
    drop(read);
    let awaited = Awaited {
        who: asking.who.clone(),
        run: sent.run,
        space: sent.space,
        since,
        is_rest: |status: Status| status.asks() || status.is_final(),
    };
    let events = door.engine.subscribe(Scope::Run(sent.run), after).await;
    let events = events.map_err(|error| refused(error, ""))?;
    let rested = wait.rest(door, &awaited, events).await;
    rested.map(drop).map_err(|error| refused(error, ""))
}

async fn send_and_stream(asking: &mut Asking<'_>, mut params: Value) -> Result<Reply, Error> {
    let tools = tools_in_params(&mut params);
    let request = SendMessage::from_json(params, asking.dialect)?;
    if let Some(answer) = conformance::direct_answer(asking, &request) {
        return Ok(conformance::streamed(asking, &answer));
    }
    let open = OpenStream::reserve(asking.door(), &asking.who);
    let open = open.map_err(|error| refused(error, ""))?;
    let Sent { run, space, start } = send(asking, request, tools).await?;
    stream(asking, open, (run, space), start, Ends::AtPause).await
}

/// A task that has ended has nothing to stream, unless the client says how far it had read it.
async fn subscribe(asking: &Asking<'_>, id: &str) -> Result<Reply, Error> {
    let task = find_task(asking, id).await?;
    let header = asking.parts.headers.get(LAST_EVENT_ID);
    let start = match header.map(|value| value.to_str().unwrap_or_default()) {
        None | Some("") => Start::Present,
        Some(text) => Start::Number(text.parse().map_err(|_| {
            Invalid::one(
                "Last-Event-ID",
                "must be the id of the last event that was read, a number",
            )
        })?),
    };
    if task.status.is_final() && start == Start::Present {
        let words = "the task has ended, read it with GetTask";
        return Err(Error::new(ErrorKind::UnsupportedOperation, words));
    }
    let open = OpenStream::reserve(asking.door(), &asking.who);
    let open = open.map_err(|error| refused(error, ""))?;
    stream(asking, open, (task.id, task.space), start, Ends::AtEnd).await
}

/// `tasks/resume`: results of client tools by their calls, without a message. Answers at once with the task, or with a
/// stream where the client accepts one.
async fn resume(asking: &mut Asking<'_>, mut params: Value) -> Result<Reply, Error> {
    let results = params.get_mut("toolResults").map(Value::take).unwrap_or_default();
    let task = params.get("taskId").and_then(Value::as_str);
    let task = task.ok_or_else(|| Invalid::one("taskId", "is required, and must be a string"))?;
    let task = find_task(asking, task).await?;
    let answers = answers::of_tool_results(results)?;
    let open = match asking.accepts_events() {
        true => {
            let open = OpenStream::reserve(asking.door(), &asking.who);
            Some(open.map_err(|error| refused(error, ""))?)
        }
        false => None,
    };
    let taken = answers::take(asking.door(), &asking.who, task.id, answers).await?;
    let place = (task.id, task.space);
    match open {
        Some(open) => {
            let start = taken.newest.map_or(Start::Present, Start::Place);
            stream(asking, open, place, start, Ends::AtPause).await
        }
        None => told(asking, place, None).await.map(Reply::Json),
    }
}

async fn get(asking: &Asking<'_>, request: GetTask) -> Result<Value, Error> {
    let task = find_task(asking, &request.id).await?;
    told(asking, (task.id, task.space), request.history_length).await
}

async fn cancel(asking: &Asking<'_>, id: &str) -> Result<Value, Error> {
    let task = find_task(asking, id).await?;
    let not_cancelable = || {
        Error::new(
            ErrorKind::TaskNotCancelable,
            "the task has ended and cannot be canceled",
        )
    };
    if task.status.is_final() {
        return Err(not_cancelable());
    }
    let status = asking.door().engine.cancel(task.id).await;
    if status.map_err(|error| refused(error, ""))? != Status::Cancelled {
        return Err(not_cancelable());
    }
    told(asking, (task.id, task.space), None).await
}

/// A task as it is now, as both dialects answer it where a task was asked for.
async fn told(asking: &Asking<'_>, place: (RunId, SpaceId), history: Option<u32>) -> Result<Value, Error> {
    let read = read(asking.door(), &asking.who, place, Start::Present).await?;
    let task = read.fold.task(history, true);
    Ok(match asking.dialect {
        Dialect::V1 => task.to_json(Dialect::V1),
        Dialect::V03 => to_json(&StreamResponse::Task(task), Dialect::V03, read.fold.form()),
    })
}

impl Asking<'_> {
    fn accepts_events(&self) -> bool {
        let accept = self.parts.headers.get(http::header::ACCEPT);
        accept.is_some_and(|accept| accept.to_str().unwrap_or_default().contains("text/event-stream"))
    }
}
