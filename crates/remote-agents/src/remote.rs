//! A2A as a client speaks it: one request each, bounded in bytes and time.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};
use toolgate_a2a::error::{Error, ErrorKind};
use toolgate_a2a::method::Operation;
use toolgate_a2a::request::{GetTask, SendMessage, TaskById};
use toolgate_a2a::stream::StreamResponse;
use toolgate_a2a::task::Task;
use toolgate_a2a::{Dialect, VERSION_HEADER, rpc};
use toolgate_egress::{BodyLimit, Client, Egress, EgressError, Policy, Request};
use url::Url;

use crate::card::cut;
use crate::endpoint::{Binding, Endpoint};
use crate::event_stream::EventStream;

/// Longest wait for an answer about a task. A message may be answered when the agent is done.
const ASK_TIMEOUT: Duration = Duration::from_secs(30);
/// Messages of a task's history that are asked for: the answer of an agent that gives none elsewhere is the last one.
const HISTORY: u32 = 10;
/// Characters of what a remote agent says of an error that are told.
const WORDS_CHARS_MAX: usize = 1_000;

/// A remote agent, as the requests of one call reach it.
pub(crate) struct Remote {
    pub endpoint: Endpoint,
    pub headers: HeaderMap,
    pub bytes_max: usize,
    /// For messages, whose answer may take as long as the agent works.
    patient: Client,
    /// For everything else.
    quick: Client,
}

/// Why a remote agent gave no answer that helps.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RemoteError {
    /// Nothing has reached it.
    NotSent(String),
    /// The gateway's policy does not permit the address.
    NotPermitted(String),
    /// The request may have reached it.
    Lost(String),
    /// It wants to know who is asking.
    Unauthorized(u16),
    /// It answered with an error.
    Told(Box<Error>),
    /// Its answer is not what the protocol says.
    Malformed(String),
}

impl RemoteError {
    /// Whether the agent does not know the task.
    pub fn is_unknown_task(&self) -> bool {
        matches!(self, Self::Told(error) if error.kind == ErrorKind::TaskNotFound)
    }
}

impl std::fmt::Display for RemoteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotSent(words) | Self::NotPermitted(words) | Self::Lost(words) => f.write_str(words),
            Self::Unauthorized(status) => {
                write!(f, "it answered {status}: it does not accept the credentials sent")
            }
            Self::Told(error) => write!(
                f,
                "it answered with an error: {}",
                cut(&error.to_string(), WORDS_CHARS_MAX)
            ),
            Self::Malformed(words) => {
                write!(f, "its answer is not valid A2A: {}", cut(words, WORDS_CHARS_MAX))
            }
        }
    }
}

impl From<EgressError> for RemoteError {
    fn from(error: EgressError) -> Self {
        let words = error.to_string();
        match error {
            EgressError::Refused(_) => Self::NotPermitted(words),
            EgressError::Unreached(_) => Self::NotSent(words),
            EgressError::Broken(_) | EgressError::TimedOut => Self::Lost(words),
            EgressError::Unusable(_) => Self::Malformed(words),
        }
    }
}

impl Remote {
    /// Speaks to `endpoint` as the policy permits. No redirect is followed: a message has a body and credentials.
    pub fn new(
        egress: &Egress,
        policy: Policy,
        endpoint: Endpoint,
        headers: HeaderMap,
        bytes_max: usize,
    ) -> Self {
        let policy = policy.without_redirects();
        Self {
            patient: egress.client(policy.clone()),
            quick: egress.client(policy.within(ASK_TIMEOUT)),
            endpoint,
            headers,
            bytes_max,
        }
    }

    /// Sends a message and waits for what it is answered with.
    pub async fn send(&self, message: &SendMessage) -> Result<StreamResponse, RemoteError> {
        let params = message.to_json(self.dialect());
        let request = match self.endpoint.binding {
            Binding::JsonRpc => self.rpc(Operation::SendMessage, params)?,
            Binding::Rest => self.rest(Method::POST, &["message:send"], "", Some(params))?,
        };
        let answer = self.answer(&self.patient, request).await?;
        self.event(answer)
    }

    /// Sends a message and opens the stream of what follows.
    pub async fn send_streaming(&self, message: &SendMessage) -> Result<EventStream, RemoteError> {
        let params = message.to_json(self.dialect());
        let request = match self.endpoint.binding {
            Binding::JsonRpc => self.rpc(Operation::SendStreamingMessage, params)?,
            Binding::Rest => self.rest(Method::POST, &["message:stream"], "", Some(params))?,
        };
        self.open(request).await
    }

    /// The task as it is now.
    pub async fn task(&self, id: &str) -> Result<Task, RemoteError> {
        let params = GetTask {
            id: id.to_owned(),
            history_length: Some(HISTORY),
        };
        let request = match self.endpoint.binding {
            Binding::JsonRpc => self.rpc(Operation::GetTask, params.to_json())?,
            Binding::Rest => {
                let mut request = self.rest(Method::GET, &["tasks", id], "", None)?;
                let history = HISTORY.to_string();
                request
                    .url
                    .query_pairs_mut()
                    .append_pair("historyLength", &history);
                request
            }
        };
        let answer = self.answer(&self.quick, request).await?;
        let task = Task::from_json(answer, self.dialect());
        let task = task.map_err(|invalid| RemoteError::Malformed(invalid.to_string()))?;
        match task.id == id {
            true => Ok(task),
            false => Err(RemoteError::Malformed(
                "it told of another task than it was asked about".into(),
            )),
        }
    }

    /// Opens the stream of a task that is under way.
    pub async fn subscribe(&self, id: &str) -> Result<EventStream, RemoteError> {
        let request = self.on_task(Operation::SubscribeToTask, id, ":subscribe")?;
        self.open(request).await
    }

    /// Cancels a task.
    pub async fn cancel(&self, id: &str) -> Result<(), RemoteError> {
        let request = self.on_task(Operation::CancelTask, id, ":cancel")?;
        self.answer(&self.quick, request).await.map(drop)
    }

    fn on_task(&self, operation: Operation, id: &str, verb: &str) -> Result<Request, RemoteError> {
        let params = TaskById {
            id: id.to_owned(),
            metadata: None,
        };
        match self.endpoint.binding {
            Binding::JsonRpc => self.rpc(operation, params.to_json()),
            Binding::Rest => self.rest(Method::POST, &["tasks", id], verb, Some(json!({}))),
        }
    }

    fn dialect(&self) -> Dialect {
        self.endpoint.version.dialect()
    }

    fn rpc(&self, operation: Operation, mut params: Value) -> Result<Request, RemoteError> {
        if let Some(tenant) = &self.endpoint.tenant {
            params["tenant"] = tenant.as_str().into();
        }
        let method = operation
            .method(self.dialect())
            .expect("both dialects have what a client asks for");
        let body = rpc::Request {
            id: json!(1),
            method: method.to_owned(),
            params,
        };
        let url = self.endpoint.address().map_err(RemoteError::Malformed)?;
        Ok(self.request(Method::POST, url, Some(body.to_json())))
    }

    fn rest(
        &self,
        method: Method,
        steps: &[&str],
        verb: &str,
        body: Option<Value>,
    ) -> Result<Request, RemoteError> {
        let url = self
            .endpoint
            .rest_address(steps, verb)
            .map_err(RemoteError::Malformed)?;
        Ok(self.request(method, url, body))
    }

    fn request(&self, method: Method, url: Url, body: Option<Value>) -> Request {
        let mut headers = self.headers.clone();
        let version = HeaderValue::from_static(self.endpoint.version.as_str());
        headers.insert(VERSION_HEADER, version);
        if body.is_some() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("application/json, application/a2a+json"),
        );
        Request {
            method,
            url,
            headers,
            body: body.map(|body| body.to_string().into()),
            limit: BodyLimit::Whole(self.bytes_max),
        }
    }

    async fn answer(&self, client: &Client, request: Request) -> Result<Value, RemoteError> {
        let answer = client.send(request).await?;
        self.read(answer.status, &answer.body)
    }

    /// The result in an answer, which is an error by its status or by its envelope.
    pub fn read(&self, status: StatusCode, body: &[u8]) -> Result<Value, RemoteError> {
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(RemoteError::Unauthorized(status.as_u16()));
        }
        let value: Option<Value> = serde_json::from_slice(body).ok();
        match (self.endpoint.binding, value) {
            (Binding::JsonRpc, Some(value)) if value.get("jsonrpc").is_some() => {
                rpc::response(value).map_err(|error| RemoteError::Told(Box::new(error)))
            }
            (Binding::Rest, Some(value)) if status.is_success() => Ok(value),
            (Binding::Rest, Some(value)) => Err(RemoteError::Told(Box::new(Error::from_rest(
                status.as_u16(),
                &value,
            )))),
            (_, _) if !status.is_success() => {
                let words = format!("it answered {}", status.as_u16());
                Err(RemoteError::Told(Box::new(Error::new(
                    ErrorKind::Internal,
                    words,
                ))))
            }
            (_, _) => Err(RemoteError::Malformed("it is not JSON of the protocol".into())),
        }
    }

    /// An event, or the answer to a message.
    pub fn event(&self, value: Value) -> Result<StreamResponse, RemoteError> {
        let event = StreamResponse::from_json(value, self.dialect());
        event.map_err(|invalid| RemoteError::Malformed(invalid.to_string()))
    }

    async fn open(&self, mut request: Request) -> Result<EventStream, RemoteError> {
        let accept = HeaderValue::from_static("text/event-stream, application/json;q=0.5");
        request.headers.insert(header::ACCEPT, accept);
        let client = self.patient.streaming(&request.url)?;
        let mut sent = client
            .request(request.method, request.url)
            .headers(request.headers);
        if let Some(body) = request.body {
            sent = sent.body(body);
        }
        let response = sent.send().await.map_err(|error| match error.is_connect() {
            true => RemoteError::NotSent("it cannot be reached".into()),
            false => RemoteError::Lost("the connection broke".into()),
        })?;
        EventStream::of(response, self).await
    }
}
