//! Requests of clients of the newer era to a server of the older one. Each has a connection for itself while it runs, so
//! that what the server asks belongs to it: the question becomes `input_required`, the server's call stays open, and the
//! client's next request brings the answers to it.

use std::sync::Arc;

use axum::http::HeaderMap;
use serde_json::{Value, json};
use toolgate_mcp::link::LinkError;
use toolgate_mcp::link::message::{Members, Message, Notification, Outcome, Request};

use super::calls::{self, Counted, no_lease, unreachable};
use super::era::{self, INTERNAL, INVALID_PARAMS, LOG_LEVEL_KEY, META, METHOD_NOT_FOUND};
use super::modern::Client;
use super::parked::{OpenCall, Question};
use super::reply::{Closed, Era, Reply};
use super::routes::Visit;
use super::subscriptions;
use super::turn::Turn;
use super::upstream::{Lease, Lister};

/// What a server of the older era may ask a client of the newer one.
const QUESTIONS: [&str; 3] = ["elicitation/create", "sampling/createMessage", "roots/list"];
/// Members of a request that are for the gateway.
const RETRY: [&str; 2] = ["inputResponses", "requestState"];

/// Where a request goes on.
enum Step {
    /// The server has answered.
    Done(Outcome),
    /// The server asks something.
    Asked,
}

pub(super) async fn forward(
    visit: Visit,
    shown: HeaderMap,
    client: Client,
    request: Request,
    reply: Reply,
) -> Result<(), Closed> {
    let id = request.id.clone();
    let counted = Counted::begin(&visit.upstream, &request);
    let outcome = match request.method.as_str() {
        "subscriptions/listen" => return subscriptions::listen(visit, client, request, reply).await,
        "tasks/get" | "tasks/update" | "tasks/cancel" => {
            Outcome::error(METHOD_NOT_FOUND, "this server has no tasks")
        }
        "server/discover" => discover(&visit, &client).await,
        _ => {
            let parked = match taken(&visit, &request) {
                Ok(parked) => parked,
                Err(outcome) => return reply.end(&id, outcome).await,
            };
            let turn = match &parked {
                Some(call) => Ok(call.turn.clone()),
                None => Turn::begin(&visit.upstream, visit.owner, &request).await,
            };
            let turn = match turn {
                Ok(turn) => turn,
                Err(outcome) => return reply.end(&id, outcome).await,
            };
            tokio::select! {
                outcome = call(&visit, &shown, &client, &request, &reply, parked, turn.clone()) => outcome?,
                () = turn.expired() => turn.late(Era::Modern),
            }
        }
    };
    counted.end(&outcome);
    reply.end(&id, outcome).await
}

/// What the server said of itself in its handshake.
async fn discover(visit: &Visit, client: &Client) -> Outcome {
    let lease = match visit.upstream.lease(visit.owner, &client.capabilities).await {
        Ok(lease) => lease,
        Err(error) => return no_lease(&visit.upstream, &error),
    };
    let said = Members::of(&lease.link.initialized).unwrap_or_default();
    let mut capabilities = lease.link.capabilities();
    if let Some(capabilities) = capabilities.as_object_mut() {
        // Tasks of the older era are not those of the newer one.
        capabilities.remove("tasks");
    }
    let mut result = Members::default();
    result.set("supportedVersions", era::spoken());
    result.set("capabilities", capabilities);
    if let Some(instructions) = said.get("instructions") {
        result.set("instructions", instructions);
    }
    if let Some(server) = said.get("serverInfo") {
        result.set(META, json!({era::SERVER_KEY: server}));
    }
    era::raised("server/discover", Outcome::Result(result.raw()))
}

async fn call(
    visit: &Visit,
    shown: &HeaderMap,
    client: &Client,
    request: &Request,
    reply: &Reply,
    parked: Option<OpenCall>,
    turn: Arc<Turn>,
) -> Result<Outcome, Closed> {
    let begun = match parked {
        Some(parked) => resume(parked, request).await,
        None => begin(visit, shown, client, request, turn).await,
    };
    let mut call = match begun {
        Ok(call) => call,
        Err(outcome) => return Ok(outcome),
    };
    // Some of the questions may be left from the last time.
    if !call.questions.is_empty() {
        return Ok(ask(visit, request, call));
    }
    let logs = client.meta.get(LOG_LEVEL_KEY).is_some();
    match follow(&mut call, reply, logs).await? {
        Step::Asked => Ok(ask(visit, request, call)),
        Step::Done(outcome) => {
            call.lease.is_sound = true;
            let outcome = match request.method.as_str() {
                "tools/list" => visit.upstream.passed_list(outcome),
                _ => outcome,
            };
            Ok(era::raised(&request.method, outcome))
        }
    }
}

/// Begins a call on a connection of its own.
async fn begin(
    visit: &Visit,
    shown: &HeaderMap,
    client: &Client,
    request: &Request,
    turn: Arc<Turn>,
) -> Result<OpenCall, Outcome> {
    let upstream = &visit.upstream;
    let lease = upstream.lease(visit.owner, &client.capabilities).await;
    let mut lease = lease.map_err(|error| no_lease(upstream, &error))?;
    calls::check(
        upstream,
        request,
        Lister::Legacy(&lease.link),
        Some(shown),
        Era::Modern,
    )
    .await?;
    let failed = |error: LinkError| unreachable(upstream, &error);
    set_log_level(&lease, client).await.map_err(failed)?;
    let mut params = request.params.clone().unwrap_or_default();
    params.retain(|name| !RETRY.contains(&name));
    params.remove(META);
    if let Some(meta) = era::legacy_meta(Some(client.meta.clone())) {
        params.set(META, meta);
    }
    let request = Request {
        id: lease.link.fresh_id(),
        method: request.method.clone(),
        params: (!params.is_empty()).then_some(params),
    };
    lease.is_sound = false;
    let exchange = lease.link.request(request).await.map_err(failed)?;
    Ok(OpenCall {
        exchange,
        lease,
        upstream: upstream.clone(),
        turn,
        questions: Vec::new(),
        asked: 0,
    })
}

/// A client of the newer era says with each request whether it wants logs.
async fn set_log_level(lease: &Lease, client: &Client) -> Result<(), LinkError> {
    let Some(level) = client.meta.get(LOG_LEVEL_KEY) else {
        return Ok(());
    };
    if lease.link.capabilities().get("logging").is_none() {
        return Ok(());
    }
    let mut params = Members::default();
    params.set("level", level);
    let request = Request {
        id: lease.link.fresh_id(),
        method: "logging/setLevel".to_owned(),
        params: Some(params),
    };
    let mut exchange = lease.link.request(request).await?;
    while let Some(message) = exchange.next().await? {
        if matches!(message, Message::Response(_)) {
            break;
        }
    }
    Ok(())
}

/// The call that the request goes on with; none when it begins one.
fn taken(visit: &Visit, request: &Request) -> Result<Option<OpenCall>, Outcome> {
    let Some(state) = request.param::<String>("requestState") else {
        return Ok(None);
    };
    let taken = visit.through.0.parked.take(visit.owner, request, &state);
    taken.map(Some).ok_or_else(|| {
        let words = "requestState is not known: it has expired, was used already, or belongs to another request; \
                     send the request again without it";
        Outcome::error(INVALID_PARAMS, words)
    })
}

/// Goes on with a call that waits, with the answers of the client.
async fn resume(mut call: OpenCall, request: &Request) -> Result<OpenCall, Outcome> {
    call.lease
        .wake()
        .map_err(|error| no_lease(&call.upstream, &error))?;
    let answers = request
        .params
        .as_ref()
        .and_then(|params| params.object("inputResponses"));
    let answers = answers.unwrap_or_default();
    let mut open = Vec::new();
    for question in std::mem::take(&mut call.questions) {
        match answers
            .get(&question.name)
            .filter(|answer| answer.get().starts_with('{'))
        {
            Some(answer) => {
                let answered = call
                    .lease
                    .link
                    .answer(question.id, Outcome::Result(answer.to_owned()))
                    .await;
                answered.map_err(|error| unreachable(&call.upstream, &error))?;
                call.turn.resume();
            }
            None => open.push(question),
        }
    }
    call.questions = open;
    Ok(call)
}

/// Passes on what the server says until it answers or asks.
async fn follow(call: &mut OpenCall, reply: &Reply, logs: bool) -> Result<Step, Closed> {
    loop {
        let message = match call.exchange.next().await {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(Step::Done(unreachable(&call.upstream, &LinkError::Gone))),
            Err(error) => return Ok(Step::Done(unreachable(&call.upstream, &error))),
        };
        match message {
            Message::Response(response) => return Ok(Step::Done(response.outcome)),
            Message::Notification(notice) => {
                if notice.method == "notifications/tools/list_changed" {
                    call.upstream.tools.forget();
                }
                if is_for_client(&notice, logs) {
                    reply.send(Message::Notification(notice)).await?;
                }
            }
            Message::Request(question) if QUESTIONS.contains(&question.method.as_str()) => {
                call.asked += 1;
                call.turn.pause();
                call.questions.push(Question {
                    name: format!("question_{}", call.asked),
                    id: question.id,
                    method: question.method,
                    params: question.params,
                });
                return Ok(Step::Asked);
            }
            Message::Request(other) => {
                let outcome = match other.method.as_str() {
                    "ping" => Outcome::result(json!({})),
                    _ => Outcome::error(METHOD_NOT_FOUND, "the client does not know this method"),
                };
                // A server that is gone is noticed at the next message.
                let _ = call.lease.link.answer(other.id, outcome).await;
            }
        }
    }
}

/// Only progress, and logs where they are wanted, belong on the stream of a request.
fn is_for_client(notice: &Notification, logs: bool) -> bool {
    match notice.method.as_str() {
        "notifications/progress" => true,
        "notifications/message" => logs,
        _ => false,
    }
}

/// Parks the call and asks the client.
fn ask(visit: &Visit, request: &Request, call: OpenCall) -> Outcome {
    let mut asked = Members::default();
    for question in &call.questions {
        let params = question
            .params
            .as_ref()
            .map_or_else(|| json!({}), |params| json!(params));
        let question_of_client: Value = json!({"method": question.method, "params": params});
        asked.set(&question.name, question_of_client);
    }
    let Some(handle) = visit.through.0.parked.park(visit.owner, request, call) else {
        let words = "too many calls wait for answers already; answer one of them, or wait until they expire";
        return Outcome::error(INTERNAL, words);
    };
    let mut result = Members::default();
    result.set("resultType", "input_required");
    result.set("inputRequests", asked);
    result.set("requestState", handle);
    Outcome::Result(result.raw())
}
