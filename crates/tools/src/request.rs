//! `request`: an HTTP call that an agent's author described, filled with what the model gave.

mod config;
mod fill;

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use toolgate_egress::{BodyLimit, Client, EgressError, Request, Response, Secrets};
use toolgate_engine::tools::{CallContext, CallFailure, Called, ToolSource};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::json::Json;
use toolgate_kernel::members::Members;
use toolgate_kernel::tool::{Binding, SourceTool, ToolList};

use crate::outbound::{self, Outbound, OutboundSettings};
use crate::toolkit::configured;
use config::HttpCall;

/// First wait before a request is tried again; doubles each time.
const BACKOFF: Duration = Duration::from_millis(250);
/// Longest wait between two tries; who asks for more is not asked again.
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// How much of an answer that is an error the model is told.
const ERROR_CHARS_MAX: usize = 1_000;

/// The source of `request` tools. None is listed: each is defined by its configuration.
pub(crate) struct Requests(pub Outbound);

#[async_trait]
impl ToolSource for Requests {
    fn name(&self) -> &'static str {
        "request"
    }
    fn execution_types(&self) -> &'static [&'static str] {
        &["request"]
    }
    fn read(&self, tool: &Members<'_>, _: &ToolList) -> Option<Binding> {
        let retry = match config::read(tool)?.method.is_idempotent() {
            true => "safe",
            false => "never",
        };
        let config = tool.get("execution")?.into();
        Some(Binding::configured("request", config, json!({ "retry": retry })))
    }
    fn passes_user_token(&self, tool: &SourceTool) -> bool {
        configured(tool, config::read).is_ok_and(|call| call.passes_user_token())
    }
    async fn call(
        &self,
        tool: &SourceTool,
        input: &Json,
        context: &CallContext,
    ) -> Result<Called, CallFailure> {
        let call = configured(tool, config::read)?;
        let input = with_context(input.to_value(), context);
        let (world, client) = self.0.of(context).await?;
        let secrets = match call.passes_user_token() {
            false => world.secrets.clone(),
            true => with_user_token(&call, &input, context, &world)?,
        };
        let result = run(&call, &input, context, &client, &secrets);
        Ok(Json::from(result.await?).into())
    }
}

/// The input with what only the gateway knows: `context.user` and `context.space`. The model cannot write them.
fn with_context(mut input: Value, context: &CallContext) -> Value {
    let Some(members) = input.as_object_mut() else {
        return input;
    };
    let own = members.entry("context").or_insert_with(|| json!({}));
    if !own.is_object() {
        *own = json!({});
    }
    own["space"] = json!({ "id": context.space });
    // Nobody when the run works for a backend or a plan: a place for them is an error then.
    own["user"] = context.profile.as_ref().map_or(json!({}), |person| {
        let mut metadata = person.metadata.as_ref().map_or(json!({}), Json::to_value);
        drop_empty(&mut metadata);
        json!({ "id": person.id, "subject": person.subject, "metadata": metadata })
    });
    input
}

/// Takes out members without a value: a place for one is an error then, as for one that is not there.
fn drop_empty(metadata: &mut Value) {
    let Value::Object(members) = metadata else { return };
    members.values_mut().for_each(drop_empty);
    members.retain(|_, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    });
}

/// The secrets with the user's token, if the operator lets it be passed on to where the call goes.
fn with_user_token(
    call: &HttpCall,
    input: &Value,
    context: &CallContext,
    world: &OutboundSettings,
) -> Result<Secrets, CallFailure> {
    let secrets = &world.secrets;
    let filling = fill::Filling { input, secrets };
    let url = filling.url(&call.url, &call.query);
    let url = url.map_err(|words| hidden(CallFailure::failed(words), secrets))?;
    let origin = url.origin();
    if !world.user_token.contains(&origin) {
        let words = format!(
            "the user's token may not be passed on to {}; the operator can allow it with the setting outside.user_token",
            origin.ascii_serialization()
        );
        return Err(CallFailure::new(ErrorCode::PermissionDenied, words));
    }
    let token = context.user_token.clone();
    let token = token.map_err(|why| CallFailure::unavailable(why.to_string()))?;
    Ok(secrets.with_user_token(token))
}

/// Makes the call, again where that can help, and reads the answer. No secret is in what it returns.
async fn run(
    call: &HttpCall,
    input: &Value,
    context: &CallContext,
    client: &Client,
    secrets: &Secrets,
) -> Result<Value, CallFailure> {
    let ask =
        ask(call, input, context, secrets).map_err(|words| hidden(CallFailure::failed(words), secrets))?;
    let mut tried = 0;
    let answer = loop {
        tried += 1;
        let sent = client.send(ask.clone()).await;
        let wait = again(call, &sent).map(|asked| asked.unwrap_or(BACKOFF * (1 << (tried - 1).min(16))));
        match wait.filter(|wait| tried < call.attempts && *wait <= BACKOFF_MAX) {
            Some(wait) => {
                tracing::debug!(call = %context.call, tried, ?wait, "asking again");
                context.tell("no answer that helps; asking again in a moment");
                tokio::time::sleep(wait).await;
            }
            None => break sent,
        }
    };
    let result = answer
        .map_err(outbound::failed)
        .and_then(|answer| result(call, &answer, secrets));
    match result {
        Ok(value) => Ok(secrets.hide_in(value)),
        Err(failure) => Err(hidden(failure, secrets)),
    }
}

/// The request, with everything in its place.
fn ask(call: &HttpCall, input: &Value, context: &CallContext, secrets: &Secrets) -> Result<Request, String> {
    let filling = fill::Filling { input, secrets };
    let headers = headers(call, &filling, context)?;
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let body = call
        .body
        .as_ref()
        .map(|body| filling.body(body, kind))
        .transpose()?;
    let (body, kind) = body
        .flatten()
        .map_or((None, None), |(body, kind)| (Some(body), Some(kind)));
    let mut ask = Request {
        method: call.method.clone(),
        url: filling.url(&call.url, &call.query)?,
        headers,
        body: body.map(Into::into),
        limit: BodyLimit::Whole(call.bytes_max),
    };
    if let Some(kind) = kind {
        ask.headers
            .entry(header::CONTENT_TYPE)
            .or_insert(HeaderValue::from_static(kind));
    }
    Ok(ask)
}

fn headers(call: &HttpCall, filling: &fill::Filling<'_>, context: &CallContext) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("application/json, */*;q=0.5"),
    );
    // The same however often it is sent, also after a crash: whoever keeps such keys does it once.
    let key = HeaderValue::from_str(&context.call.to_string()).expect("an id is plain text");
    headers.insert("idempotency-key", key);
    for (name, template) in &call.headers {
        let Some(text) = filling.text(template)? else {
            continue;
        };
        let name: HeaderName = name
            .parse()
            .map_err(|_| format!("{name:?} is no name of a header"))?;
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            format!("the header {name} would hold a character that no header can carry, such as a line break")
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Whether the same request may fare better later, and when, if the server says so.
fn again(call: &HttpCall, sent: &Result<Response, EgressError>) -> Option<Option<Duration>> {
    match sent {
        // Nothing has happened there.
        Err(EgressError::Unreached(_)) => Some(None),
        Err(EgressError::Broken(_) | EgressError::TimedOut) if call.method.is_idempotent() => Some(None),
        Err(
            EgressError::Broken(_)
            | EgressError::TimedOut
            | EgressError::Refused(_)
            | EgressError::Unusable(_),
        ) => None,
        Ok(answer) => match answer.status {
            // The server says that it did not do it.
            StatusCode::TOO_MANY_REQUESTS => Some(retry_after(answer)),
            StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
            | StatusCode::REQUEST_TIMEOUT
                if call.method.is_idempotent() =>
            {
                Some(retry_after(answer))
            }
            _ => None,
        },
    }
}

/// Seconds, or a moment by the server's own clock.
fn retry_after(answer: &Response) -> Option<Duration> {
    let text = answer.headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let moment = httpdate::parse_http_date(text).ok()?;
    let date = answer
        .headers
        .get(header::DATE)
        .and_then(|date| date.to_str().ok());
    let now = date.and_then(|date| httpdate::parse_http_date(date).ok());
    Some(
        moment
            .duration_since(now.unwrap_or_else(SystemTime::now))
            .unwrap_or_default(),
    )
}

/// What the model is told of an answer: status and body, or the part of the body that the author wants.
fn result(call: &HttpCall, answer: &Response, secrets: &Secrets) -> Result<Value, CallFailure> {
    let status = answer.status;
    let text = String::from_utf8_lossy(&answer.body);
    let json: Option<Value> = serde_json::from_slice(&answer.body).ok();
    if status.is_client_error() || status.is_server_error() {
        // Half a secret would not be found any more: it is hidden before the text is cut.
        let told = json.map_or_else(|| secrets.hide(&text), |json| secrets.hide_in(json).to_string());
        let start: String = told.chars().take(ERROR_CHARS_MAX).collect();
        let reason = status.canonical_reason().unwrap_or_default();
        let words = format!(
            "the server answered {} {reason}: {}",
            status.as_u16(),
            start.trim()
        );
        return Err(CallFailure::failed(words.trim_end_matches([':', ' '])));
    }
    match &call.result {
        None => {
            let body = json.unwrap_or_else(|| if text.is_empty() { Value::Null } else { text.into() });
            Ok(json!({"status": status.as_u16(), "body": body}))
        }
        Some(pointer) => {
            let json = json.ok_or_else(|| CallFailure::failed("the server's answer is not JSON"))?;
            let found = json.pointer(pointer).cloned();
            found.ok_or_else(|| CallFailure::failed(format!("the server's answer has nothing at {pointer}")))
        }
    }
}

fn hidden(failure: CallFailure, secrets: &Secrets) -> CallFailure {
    CallFailure::new(failure.code, secrets.hide(&failure.message))
}
