//! A call from its beginning to its result, with whoever can answer what the server asks meanwhile.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::call::{Answer, CallError, CallRequest, Caller, InputRequired, Step};
use crate::elicitation::{self, Elicit};
use crate::oauth::{Challenge, OAuthError, SIGN_INS_MAX};
use crate::result::ToolResult;

/// Most times that a server may ask before it gives a result.
const ROUNDS_MAX: u32 = 10;
/// First pause before a server that wants to be asked again later is asked again; doubled each time.
const PATIENCE: Duration = Duration::from_millis(100);
/// Longest such pause.
const PATIENCE_MAX: Duration = Duration::from_secs(5);

impl Caller {
    /// Calls a tool and waits for what it gives. What the server asks meanwhile `host` answers; without one it is
    /// declined, or fails the call. Dropping the future tells the server to stop.
    pub async fn converse(
        &self,
        mut request: CallRequest,
        host: Option<&dyn Elicit>,
    ) -> Result<ToolResult, CallError> {
        let mut sign_ins = 0;
        let mut rounds = 0;
        loop {
            match self.ask_once(request.clone(), host).await {
                Ok(Answer::Complete(result)) => return Ok(result),
                Ok(Answer::Task(_)) => return Err(CallError::Task),
                Ok(Answer::InputRequired(asked)) if rounds < ROUNDS_MAX => {
                    request.request_state = asked.request_state.clone();
                    request.input_responses = responses(asked, host, rounds).await?;
                    rounds += 1;
                }
                Ok(Answer::InputRequired(_)) => return Err(CallError::InputRequired),
                Err(CallError::NeedsAuthorization(challenge)) if sign_ins < SIGN_INS_MAX => {
                    self.sign_in(&challenge).await?;
                    sign_ins += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn ask_once(&self, request: CallRequest, host: Option<&dyn Elicit>) -> Result<Answer, CallError> {
        let mut open = self.open(request).await?;
        loop {
            match open.next().await {
                Step::Progress(_) | Step::Unasked => {}
                // Dropped without an answer, it is declined.
                Step::Asked(asked) => {
                    if let Some(host) = host.filter(|_| asked.method == "elicitation/create") {
                        let result = elicitation::answer(host, &asked.params).await;
                        asked.answer(result);
                    }
                }
                Step::Done(outcome) => return outcome,
            }
        }
    }

    async fn sign_in(&self, challenge: &Challenge) -> Result<(), CallError> {
        let Some(authorizer) = &self.authorizer else {
            return Err(CallError::NeedsAuthorization(challenge.clone()));
        };
        authorizer.satisfy(challenge).await.map_err(|error| match error {
            OAuthError::NeedsAuthorization(challenge) => CallError::NeedsAuthorization(challenge),
            error => CallError::Failed(error.to_string()),
        })
    }
}

/// Answers what a server asks before it goes on, by its keys.
async fn responses(
    asked: InputRequired,
    host: Option<&dyn Elicit>,
    round: u32,
) -> Result<Option<Map<String, Value>>, CallError> {
    if asked.requests.is_empty() {
        tokio::time::sleep(PATIENCE_MAX.min(PATIENCE * 2_u32.pow(round))).await;
        return Ok(None);
    }
    let mut responses = Map::new();
    for (key, request) in asked.requests {
        let response = match (request["method"].as_str(), host) {
            (Some("elicitation/create"), Some(host)) => elicitation::answer(host, &request["params"]).await,
            (Some("roots/list"), _) => json!({"roots": []}),
            _ => return Err(CallError::InputRequired),
        };
        responses.insert(key, response);
    }
    Ok(Some(responses))
}
