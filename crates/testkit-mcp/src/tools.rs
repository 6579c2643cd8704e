//! What the tools of the fixture do.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, InputRequest, InputRequests,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::asking::{Retry, Round, elicitation, form, is_modern, roots, sampling};
use crate::changes::Change;
use crate::{Fixture, made, text, unknown};

/// A red pixel as PNG.
pub(crate) const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A wave without samples.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
/// Between two messages of one call, which the suite wants apart.
const PAUSE: Duration = Duration::from_millis(50);

impl Fixture {
    pub(crate) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = |name: &str| {
            let value = request.arguments.as_ref().and_then(|given| given.get(name));
            value.cloned().unwrap_or_default()
        };
        let word = |name: &str| given(name).as_str().unwrap_or_default().to_owned();
        let done = match request.name.as_ref() {
            "test_simple_text" | "test_reconnection" => text("This is a simple text response for testing."),
            "test_image_content" => content(json!({"type": "image", "data": PIXEL, "mimeType": "image/png"})),
            "test_audio_content" => {
                content(json!({"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}))
            }
            "test_embedded_resource" => content(json!({"type": "resource", "resource": {
                "uri": "test://embedded-resource", "mimeType": "text/plain",
                "text": "This is an embedded resource content."}})),
            "test_multiple_content_types" => made(json!({"resultType": "complete", "content": [
                {"type": "text", "text": "Multiple content types test:"},
                {"type": "image", "data": PIXEL, "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "test://mixed-content-resource",
                 "mimeType": "application/json", "text": r#"{"test":"data","value":123}"#}}]})),
            "test_tool_with_logging" | "test_logging_tool" => log_thrice(&context).await,
            "test_tool_with_progress" => progress_thrice(&context).await,
            "test_error_handling" => made(json!({"resultType": "complete", "isError": true, "content": [
                {"type": "text", "text": "This tool intentionally returns an error for testing"}]})),
            "test_header_param" => text(format!("Region: {}", word("region"))),
            "json_schema_2020_12_tool" => text("Valid"),
            "structured" => {
                let sum = given("a").as_i64().unwrap_or_default() + given("b").as_i64().unwrap_or_default();
                made(
                    json!({"resultType": "complete", "content": [{"type": "text", "text": json!({"sum": sum}).to_string()}],
                            "structuredContent": {"sum": sum}, "_meta": {"example.org/kept": true}}),
                )
            }
            "greet" => text(format!("Hello, {}!", word("name"))),
            "test_trigger_tool_change" => self.changed(Change::Tools).await,
            "test_trigger_prompt_change" => self.changed(Change::Prompts).await,
            "test_trigger_resource_update" => self.changed(Change::Watched).await,
            "wait_until_cancelled" => return self.wait_until_cancelled(&context).await,
            "log_when_watched" => self.log_when_watched(&context).await,
            "watch" => self.watch().await,
            "cancelled_calls" => text(self.cancelled_calls().to_string()),
            "slow_compute"
            | "failing_job"
            | "protocol_error_job"
            | "confirm_delete"
            | "multi_input"
            | "test_tool_with_task" => return self.job(&request, &context).await,
            name => {
                return self
                    .call_asking(name, &word, &Retry::of(&request), &context)
                    .await;
            }
        };
        Ok(done.into())
    }

    /// Tools that ask their client.
    async fn call_asking(
        &self,
        name: &str,
        word: &(dyn Fn(&str) -> String + Sync),
        retry: &Retry,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let has =
            |pick: fn(&ClientCapabilities) -> bool| context.client_capabilities().as_ref().is_some_and(pick);
        let one = |name: &str, question: InputRequest| BTreeMap::from([(name.to_owned(), question)]);
        let confirm = || form("Please confirm", "ok", "boolean");
        let (asked, state): (InputRequests, Option<&str>) = match name {
            "test_sampling" => (one("answer", sampling(&word("prompt"), 100)), None),
            "test_elicitation" => (one("answer", elicitation(&word("message"), user_schema())), None),
            "test_elicitation_sep1034_defaults" => {
                (one("answer", elicitation("Please fill in", defaults())), None)
            }
            "test_elicitation_sep1330_enums" => (one("answer", elicitation("Please choose", enums())), None),
            "test_streaming_elicitation" => (one("answer", confirm()), None),
            "test_missing_capability" if !has(|has| has.sampling.is_some()) => {
                let required = made(json!({"sampling": {}}));
                return Err(ErrorData::missing_required_client_capability(required));
            }
            "test_missing_capability" => return Ok(text("The client can sample").into()),
            "test_input_required_result_elicitation" => (
                one("user_name", form("What is your name?", "name", "string")),
                None,
            ),
            "test_input_required_result_sampling" => (
                one(
                    "capital_question",
                    sampling("What is the capital of France?", 100),
                ),
                None,
            ),
            "test_input_required_result_list_roots" => (one("client_roots", roots()), None),
            "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
                (one("confirm", confirm()), Some("confirm"))
            }
            "test_input_required_result_multiple_inputs" => {
                let mut asked = one("user_name", form("What is your name?", "name", "string"));
                asked.insert("greeting".into(), sampling("Generate a greeting", 50));
                asked.insert("client_roots".into(), roots());
                (asked, Some("multiple"))
            }
            "test_input_required_result_capabilities" => {
                let mut asked = InputRequests::new();
                if has(|has| has.elicitation.is_some()) {
                    asked.insert("confirm".into(), confirm());
                }
                if has(|has| has.sampling.is_some()) {
                    asked.insert("greeting".into(), sampling("Generate a greeting", 50));
                }
                (asked, None)
            }
            "test_input_required_result_multi_round" => return self.two_rounds(retry, context).await,
            name => return Err(unknown("tool", name)),
        };
        match self.ask(asked, state, retry, context).await? {
            Round::Ask(question) => Ok(question.into()),
            Round::Answered(answers) => Ok(text(told(name, &answers)).into()),
        }
    }

    /// Two questions, the second after the answer to the first.
    async fn two_rounds(
        &self,
        retry: &Retry,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let step = |name: &str, message: &str, field: &str| {
            BTreeMap::from([(name.to_owned(), form(message, field, "string"))])
        };
        let second = || step("step2", "Step 2: What is your favorite color?", "color");
        if is_modern(context) && self.opened(retry).as_deref() == Some("round 2") {
            return match self.ask(second(), Some("round 2"), retry, context).await? {
                Round::Ask(question) => Ok(question.into()),
                Round::Answered(answers) => Ok(text(told("two rounds", &answers)).into()),
            };
        }
        let first = step("step1", "Step 1: What is your name?", "name");
        match self.ask(first, Some("round 1"), retry, context).await? {
            Round::Ask(question) => Ok(question.into()),
            Round::Answered(_) => {
                let nothing = Retry::new(None, None);
                match self.ask(second(), Some("round 2"), &nothing, context).await? {
                    Round::Ask(question) => Ok(question.into()),
                    Round::Answered(answers) => Ok(text(told("two rounds", &answers)).into()),
                }
            }
        }
    }

    async fn changed(&self, change: Change) -> CallToolResult {
        self.changes.announce(change).await;
        text("Changed")
    }

    /// Tells by progress that it has begun, and goes on until it is cancelled.
    async fn wait_until_cancelled(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        progress(context, 0).await;
        context.ct.cancelled().await;
        self.count_cancelled();
        Ok(text("Cancelled").into())
    }
}

/// Two calls that meet: one logs while the other is under way.
#[derive(Default)]
pub(crate) struct Meeting {
    watched: Notify,
    logged: Notify,
}

impl Fixture {
    /// Tells by progress that it has begun, and logs once a call of `watch` is under way.
    async fn log_when_watched(&self, context: &RequestContext<RoleServer>) -> CallToolResult {
        progress(context, 0).await;
        self.meeting.watched.notified().await;
        log(context, "Seen by nobody else").await;
        // The next message on the same pipe comes after the log.
        progress(context, 100).await;
        self.meeting.logged.notify_one();
        text("Logged")
    }

    /// Ends after a call of `log_when_watched` has logged.
    async fn watch(&self) -> CallToolResult {
        self.meeting.watched.notify_one();
        self.meeting.logged.notified().await;
        text("Watched")
    }
}

fn content(block: Value) -> CallToolResult {
    made(json!({"resultType": "complete", "content": [block]}))
}

/// The answers, in the words that the suite looks for.
fn told(tool: &str, answers: &BTreeMap<String, Value>) -> String {
    let only = || answers.values().next().cloned().unwrap_or_default();
    match tool {
        "test_sampling" => {
            let said = &only()["content"];
            let said = said
                .get("text")
                .or_else(|| said[0].get("text"))
                .cloned()
                .unwrap_or_default();
            format!("LLM response: {}", said.as_str().unwrap_or_default())
        }
        "test_elicitation" => {
            let answer = only();
            format!(
                "User response: action: {}, content: {}",
                answer["action"], answer["content"]
            )
        }
        "test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums" => {
            let answer = only();
            let action = answer["action"].as_str().unwrap_or_default();
            format!(
                "Elicitation completed: action={action}, content={}",
                answer["content"]
            )
        }
        "test_input_required_result_elicitation" => {
            let name = &answers["user_name"]["content"]["name"];
            format!("Hello, {}!", name.as_str().unwrap_or_default())
        }
        "test_input_required_result_request_state" => "state-ok".into(),
        _ => serde_json::to_string(answers).unwrap_or_default(),
    }
}

/// Logs to a client that wants it: one of the newer protocol says so in its request.
async fn log_thrice(context: &RequestContext<RoleServer>) -> CallToolResult {
    let is_wanted = !is_modern(context) || context.meta.log_level().is_some();
    for words in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        if is_wanted {
            log(context, words).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
    text("Logged three times")
}

async fn log(context: &RequestContext<RoleServer>, words: &str) {
    let message = made(json!({"level": "info", "logger": "fixture", "data": words}));
    // A client that is gone hears nothing.
    #[expect(deprecated, reason = "clients of the older protocol still log this way")]
    let _ = context.peer.notify_logging_message(message).await;
}

async fn progress_thrice(context: &RequestContext<RoleServer>) -> CallToolResult {
    for done in [0, 50, 100] {
        progress(context, done).await;
        tokio::time::sleep(PAUSE).await;
    }
    text("Progressed three times")
}

async fn progress(context: &RequestContext<RoleServer>, done: u32) {
    if let Some(token) = context.meta.get_progress_token() {
        let progress = made(json!({"progressToken": token, "progress": done, "total": 100}));
        // A client that is gone hears nothing.
        let _ = context.peer.notify_progress(progress).await;
    }
}

fn user_schema() -> Value {
    json!({"type": "object", "required": ["username", "email"], "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"}}})
}

fn defaults() -> Value {
    json!({"type": "object", "required": [], "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true}}})
}

fn enums() -> Value {
    let titled = |word: &str| {
        let one =
            |n: u32, place: &str| json!({"const": format!("value{n}"), "title": format!("{place} {word}")});
        json!([one(1, "First"), one(2, "Second"), one(3, "Third")])
    };
    json!({"type": "object", "required": [], "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                       "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}}}})
}
