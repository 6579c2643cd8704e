//! Requests of clients of the newer era, each by itself, and how they go to a server of the same era.

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::value::RawValue;
use toolgate_http::problem::Refusal;
use toolgate_http::stream::OpenStream;
use toolgate_mcp::link::message::{Members, Message, Outcome, Request};

use super::calls::{self, Counted, unreachable};
use super::era::{
    self, CAPABILITIES_KEY, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, META, METHOD_NOT_FOUND, MODERN,
    REMOVED, UNSUPPORTED_VERSION, VERSION_KEY,
};
use super::modern_link::ModernExchange;
use super::reply::{Closed, Era, Reply, refuse, refuse_with, respond};
use super::routes::Visit;
use super::turn::Turn;
use super::upstream::Lister;
use super::{headers, upwards};

/// What a request of the newer era says of its client.
pub(super) struct Client {
    pub(super) capabilities: Box<RawValue>,
    pub(super) meta: Members,
}

pub(super) async fn post(visit: Visit, shown: HeaderMap, message: Message) -> Result<Response, Refusal> {
    let request = match message {
        Message::Request(request) => request,
        // There is none that a server of this era waits for on HTTP.
        Message::Notification(_) => return Ok(StatusCode::ACCEPTED.into_response()),
        Message::Response(_) => {
            let outcome = Outcome::error(INVALID_REQUEST, "a server of 2026-07-28 asks by input_required");
            return Ok(refuse_with(StatusCode::BAD_REQUEST, None, outcome));
        }
    };
    let id = Some(request.id.clone());
    let client = match client(&shown, &request) {
        Ok(client) => client,
        Err(outcome) => return Ok(refuse_with(StatusCode::BAD_REQUEST, id, outcome)),
    };
    if REMOVED.contains(&request.method.as_str()) {
        let outcome = Outcome::error(
            METHOD_NOT_FOUND,
            format!("{} is not a method of {MODERN}", request.method),
        );
        return Ok(refuse(Era::Modern, id, outcome));
    }
    if let Err(outcome) = headers::check(&shown, &request) {
        return Ok(refuse_with(StatusCode::BAD_REQUEST, id, outcome));
    }
    let eras = match visit.upstream.eras().await {
        Ok(eras) => eras,
        Err(error) => return Ok(refuse(Era::Modern, id, unreachable(&visit.upstream, &error))),
    };
    let open = OpenStream::reserve(&visit.shared, &visit.who)?;
    let from = visit.clone();
    let drive = move |reply| async move {
        // A client that is gone needs no response.
        let _ = match eras.modern {
            true => forward(visit, shown, client, request, reply).await,
            false => upwards::forward(visit, shown, client, request, reply).await,
        };
    };
    Ok(respond(&from, Era::Modern, open, drive).await)
}

/// Checks what every request of this era has in `_meta`, against its header too.
fn client(shown: &HeaderMap, request: &Request) -> Result<Client, Outcome> {
    let meta = request
        .params
        .as_ref()
        .and_then(|params| params.object(META))
        .unwrap_or_default();
    let missing = |key: &str| {
        Outcome::error(
            INVALID_PARAMS,
            format!("params._meta[{key:?}] is missing or malformed"),
        )
    };
    let version: String = meta.read(VERSION_KEY).ok_or_else(|| missing(VERSION_KEY))?;
    let capabilities = meta
        .get(CAPABILITIES_KEY)
        .filter(|value| value.get().starts_with('{'));
    let capabilities = capabilities.ok_or_else(|| missing(CAPABILITIES_KEY))?.to_owned();
    let header = headers::text(shown, &headers::VERSION);
    if header != Some(&version) {
        let header = header.map_or("is missing".to_owned(), |header| format!("says {header:?}"));
        let words = format!("the header MCP-Protocol-Version {header}, the body says {version:?}");
        return Err(Outcome::error(HEADER_MISMATCH, words));
    }
    if version != MODERN {
        let words =
            format!("the protocol version {version:?} is not supported in a request; expected {MODERN:?}");
        let error = serde_json::json!({"code": UNSUPPORTED_VERSION, "message": words,
                                       "data": {"supported": [MODERN], "requested": version}});
        let error = serde_json::value::to_raw_value(&error).expect("an error can be written as JSON");
        return Err(Outcome::Error(error));
    }
    Ok(Client { capabilities, meta })
}

/// Passes a request on to a server of the same era, and everything that comes back.
async fn forward(
    visit: Visit,
    shown: HeaderMap,
    client: Client,
    request: Request,
    reply: Reply,
) -> Result<(), Closed> {
    let id = request.id.clone();
    let turn = match Turn::begin(&visit.upstream, visit.owner, &request).await {
        Ok(turn) => turn,
        Err(outcome) => return reply.end(&id, outcome).await,
    };
    let counted = Counted::begin(&visit.upstream, &request);
    let made = async {
        match begin(&visit, &shown, client, request.clone()).await {
            Ok(exchange) => follow(&visit, exchange, &reply).await,
            Err(outcome) => Ok(outcome),
        }
    };
    let outcome = tokio::select! {
        outcome = made => outcome?,
        () = turn.expired() => turn.late(Era::Modern),
    };
    let outcome = passed(&visit, &request, outcome);
    counted.end(&outcome);
    reply.end(&id, outcome).await
}

async fn begin(
    visit: &Visit,
    shown: &HeaderMap,
    client: Client,
    mut request: Request,
) -> Result<ModernExchange, Outcome> {
    let upstream = &visit.upstream;
    let link = upstream
        .modern_link()
        .await
        .map_err(|error| unreachable(upstream, &error))?;
    let checked = calls::check(
        upstream,
        &request,
        Lister::Modern(&link),
        Some(shown),
        Era::Modern,
    )
    .await?;
    let stranger = tasks_of(&request)
        .into_iter()
        .find(|task| !upstream.tasks.may_own(task, visit.owner));
    if let Some(task) = stranger {
        return Err(Outcome::error(
            INVALID_PARAMS,
            format!("there is no task {task:?}"),
        ));
    }
    let mut params = request.params.take().unwrap_or_default();
    params.set(META, era::modern_meta(Some(client.meta), &client.capabilities));
    request.params = Some(params);
    let made = headers::made(&request, &checked.header_params, &checked.arguments);
    let begun = link.request(request, made).await;
    begun.map_err(|error| unreachable(upstream, &error))
}

/// The tasks that a request names: to ask after, or to be told of.
fn tasks_of(request: &Request) -> Vec<String> {
    if request.method.starts_with("tasks/") {
        return request.param("taskId").into_iter().collect();
    }
    let wanted: serde_json::Value = request.param("notifications").unwrap_or_default();
    let tasks = wanted["taskIds"].as_array().into_iter().flatten();
    tasks
        .filter_map(|task| task.as_str().map(str::to_owned))
        .collect()
}

async fn follow(visit: &Visit, mut exchange: ModernExchange, reply: &Reply) -> Result<Outcome, Closed> {
    loop {
        match exchange.next().await {
            Ok(Some(Message::Response(response))) => return Ok(response.outcome),
            Ok(Some(Message::Notification(notice))) => {
                if notice.method == "notifications/tools/list_changed" {
                    visit.upstream.tools.forget();
                }
                reply.send(Message::Notification(notice)).await?;
            }
            // A server of this era asks nothing by itself.
            Ok(Some(Message::Request(_))) => {}
            Ok(None) => {
                let gone = toolgate_mcp::link::LinkError::Gone;
                return Ok(unreachable(&visit.upstream, &gone));
            }
            Err(error) => return Ok(unreachable(&visit.upstream, &error)),
        }
    }
}

/// Takes note of a result, and leaves out what is held back.
fn passed(visit: &Visit, request: &Request, outcome: Outcome) -> Outcome {
    match (request.method.as_str(), &outcome) {
        ("tools/list", _) => visit.upstream.passed_list(outcome),
        ("tools/call", Outcome::Result(result)) => {
            let task = Members::of(result).and_then(|result| result.read::<String>("taskId"));
            if let Some(task) = task {
                visit.upstream.tasks.remember(&task, visit.owner);
            }
            outcome
        }
        _ => outcome,
    }
}
