//! How a tool or a prompt of the fixture asks its client for something: by a request of its own in the older protocol, by
//! the result `input_required` in the newer one.

use std::collections::BTreeMap;

use rmcp::model::{
    CallToolRequestParams, InputRequest, InputRequests, InputRequiredResult, InputResponses, ProtocolVersion,
    ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServiceError};
use serde_json::{Value, json};

use crate::{Fixture, made};

/// What a client sends again with its answers.
pub(crate) struct Retry {
    answers: InputResponses,
    pub(crate) state: Option<String>,
}

impl Retry {
    pub(crate) fn new(answers: Option<InputResponses>, state: Option<String>) -> Self {
        Self {
            answers: answers.unwrap_or_default(),
            state,
        }
    }

    pub(crate) fn of(request: &CallToolRequestParams) -> Self {
        Self::new(request.input_responses.clone(), request.request_state.clone())
    }
}

pub(crate) enum Round {
    /// The client has to answer first.
    Ask(InputRequiredResult),
    /// All answers, by the names of the questions.
    Answered(InputResponses),
}

impl Fixture {
    /// Asks the client, or takes its answers. `state` goes with the questions and must come back with the answers.
    pub(crate) async fn ask(
        &self,
        asked: InputRequests,
        state: Option<&str>,
        retry: &Retry,
        context: &RequestContext<RoleServer>,
    ) -> Result<Round, ErrorData> {
        if !is_modern(context) {
            let mut answers = BTreeMap::new();
            for (name, question) in asked {
                answers.insert(name, ask_peer(question, context).await?);
            }
            return Ok(Round::Answered(answers));
        }
        let is_answered = |name: &String| retry.answers.get(name).is_some_and(Value::is_object);
        if asked.keys().all(is_answered) {
            self.check_state(state, retry)?;
            return Ok(Round::Answered(retry.answers.clone()));
        }
        let sealed = state.map(|state| self.states.seal(state.as_bytes()));
        Ok(Round::Ask(InputRequiredResult::new(Some(asked), sealed)))
    }

    fn check_state(&self, expected: Option<&str>, retry: &Retry) -> Result<(), ErrorData> {
        let Some(expected) = expected else { return Ok(()) };
        let opened = retry
            .state
            .as_deref()
            .and_then(|state| self.states.open(state).ok());
        match opened.as_deref() == Some(expected.as_bytes()) {
            true => Ok(()),
            false => Err(ErrorData::invalid_params("requestState does not verify", None)),
        }
    }

    /// The state that came back, when it is one of the fixture's.
    pub(crate) fn opened(&self, retry: &Retry) -> Option<String> {
        let opened = self.states.open(retry.state.as_deref()?).ok()?;
        String::from_utf8(opened).ok()
    }
}

/// Whether the request is one of 2026-07-28.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

async fn ask_peer(question: InputRequest, context: &RequestContext<RoleServer>) -> Result<Value, ErrorData> {
    let request: ServerRequest = made(serde_json::to_value(question).unwrap_or_default());
    let answer = context
        .peer
        .send_request(request)
        .await
        .map_err(|error| match error {
            ServiceError::McpError(error) => error,
            other => ErrorData::internal_error(other.to_string(), None),
        })?;
    serde_json::to_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// A form with one field.
pub(crate) fn form(message: &str, field: &str, kind: &str) -> InputRequest {
    let properties = json!({field: {"type": kind}});
    elicitation(
        message,
        json!({"type": "object", "properties": properties, "required": [field]}),
    )
}

pub(crate) fn elicitation(message: &str, schema: Value) -> InputRequest {
    made(json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}))
}

pub(crate) fn sampling(prompt: &str, tokens: u32) -> InputRequest {
    made(json!({"method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}], "maxTokens": tokens}}))
}

pub(crate) fn roots() -> InputRequest {
    made(json!({"method": "roots/list", "params": {}}))
}
