//! The REST binding: its addresses become the parameters of the operations.

use axum::body::Body;
use axum::extract::FromRequestParts as _;
use axum::response::{IntoResponse, Response};
use http::Method;
use http::request::Parts;
use serde_json::{Map, Value, json};
use toolgate_a2a::error::{Error, ErrorKind};
use toolgate_a2a::method::Operation;
use toolgate_a2a::{Dialect, VERSION_03};
use toolgate_http::caller::Caller;
use toolgate_http::query::Query;
use toolgate_kernel::name::AgentName;

use crate::A2a;
use crate::asking::{Asking, Envelope, named_extensions, unsupported, version};
use crate::entry::{read_body, rest_media_type};
use crate::operations::perform;

/// Settings of a query that are passed on.
const QUERY: [&str; 7] = [
    "contextId",
    "status",
    "pageSize",
    "pageToken",
    "historyLength",
    "statusTimestampAfter",
    "includeArtifacts",
];

/// What an address asks for, and the parameters that stand in it.
struct Addressed {
    operation: Operation,
    params: Map<String, Value>,
    has_body: bool,
}

pub(crate) async fn enter(
    a2a: &A2a,
    mut parts: Parts,
    body: Body,
    agent: AgentName,
    below: &[&str],
) -> Response {
    let envelope = Envelope::Rest(rest_media_type(&parts));
    let who = match Caller::from_request_parts(&mut parts, &a2a.shared).await {
        Ok(Caller(who)) => who,
        Err(refusal) => return refusal.into_response(),
    };
    let mut asking = Asking {
        a2a,
        who,
        agent,
        dialect: Dialect::V1,
        envelope,
        parts,
        extensions: Vec::new(),
    };
    let named = named_extensions(&asking.parts.headers);
    asking.use_extensions(named.iter().map(String::as_str));
    let addressed = match address(&asking.parts, below) {
        Ok(addressed) => addressed,
        Err(error) => return asking.respond(Err(error)),
    };
    let mut params = match addressed.has_body {
        true => match read_body(&asking, body).await {
            Ok(params) => params,
            Err(response) => return response,
        },
        false => json!({}),
    };
    match version(&asking.parts) {
        Ok(None | Some(Dialect::V1)) => {}
        Ok(Some(Dialect::V03)) => return asking.respond(Err(unsupported(VERSION_03))),
        Err(error) => return asking.respond(Err(error)),
    }
    if let Some(members) = params.as_object_mut() {
        members.extend(addressed.params);
    }
    let answered = perform(&mut asking, addressed.operation, params).await;
    asking.respond(answered)
}

/// The operation of an address. `:verb` is parsed by hand: the router has no words for it.
fn address(parts: &Parts, below: &[&str]) -> Result<Addressed, Error> {
    let method = &parts.method;
    let (get, post, delete) = (
        *method == Method::GET,
        *method == Method::POST,
        *method == Method::DELETE,
    );
    let of = |operation, params: &[(&str, &str)], has_body| {
        let params = params.iter();
        let params = params.map(|(name, value)| ((*name).to_owned(), json!(decoded(value))));
        Ok(Addressed {
            operation,
            params: params.collect(),
            has_body,
        })
    };
    match below {
        ["message:send"] if post => of(Operation::SendMessage, &[], true),
        ["message:stream"] if post => of(Operation::SendStreamingMessage, &[], true),
        ["extendedAgentCard"] if get => of(Operation::GetExtendedAgentCard, &[], false),
        ["tasks"] if get => Ok(Addressed {
            operation: Operation::ListTasks,
            params: query(parts),
            has_body: false,
        }),
        ["tasks", task] => match task.split_once(':') {
            None if get => Ok(Addressed {
                operation: Operation::GetTask,
                params: query(parts)
                    .into_iter()
                    .chain([("id".to_owned(), json!(task))])
                    .collect(),
                has_body: false,
            }),
            Some((id, "cancel")) if post => of(Operation::CancelTask, &[("id", id)], true),
            Some((id, "subscribe")) if post || get => of(Operation::SubscribeToTask, &[("id", id)], false),
            _ => Err(nothing(parts)),
        },
        ["tasks", task, "pushNotificationConfigs"] if post => {
            of(Operation::CreatePushConfig, &[("taskId", task)], true)
        }
        ["tasks", task, "pushNotificationConfigs"] if get => {
            of(Operation::ListPushConfigs, &[("taskId", task)], false)
        }
        ["tasks", task, "pushNotificationConfigs", id] if get => {
            of(Operation::GetPushConfig, &[("taskId", task), ("id", id)], false)
        }
        ["tasks", task, "pushNotificationConfigs", id] if delete => of(
            Operation::DeletePushConfig,
            &[("taskId", task), ("id", id)],
            false,
        ),
        _ => Err(nothing(parts)),
    }
}

fn nothing(parts: &Parts) -> Error {
    let words = format!("A2A has nothing to {} at this address", parts.method);
    Error::new(ErrorKind::MethodNotFound, words)
}

/// The settings that the query may have. Numbers are read from text; yes and no are not.
fn query(parts: &Parts) -> Map<String, Value> {
    let query = Query::of(&parts.uri).unwrap_or_default();
    let known = QUERY
        .into_iter()
        .filter_map(|name| Some((name, query.text(name)?)));
    known
        .map(|(name, text)| {
            let value = match text {
                "true" => json!(true),
                "false" => json!(false),
                text => json!(text),
            };
            (name.to_owned(), value)
        })
        .collect()
}

/// A segment without its percent signs; as it is when they mean nothing.
fn decoded(segment: &str) -> String {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let [first, more @ ..] = rest {
        let hex = more.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        (rest, _) = match (*first, byte) {
            (b'%', Some(byte)) => (&more[2..], bytes.push(byte)),
            (other, _) => (more, bytes.push(other)),
        };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| segment.to_owned())
}
