//! The fixture as a handler of the SDK.

#![expect(
    deprecated,
    reason = "clients of the older protocol set the level of logs this way"
)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, GetTaskParams, GetTaskResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, RequestStateCodec, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use crate::asking::{Retry, Round, form};
use crate::changes::Changes;
use crate::tools::{Meeting, PIXEL};
use crate::{Eras, catalog, made, unknown};

/// Signs the states of the fixture. Nothing secret depends on it.
const STATE_KEY: &[u8] = b"the key of a fixture, known to all of its readers";

/// A server with everything that the conformance suite calls. Clones share tasks, changes and counts.
#[derive(Clone)]
pub struct Fixture {
    eras: Eras,
    pub(crate) tasks: TaskManager,
    pub(crate) changes: Arc<Changes>,
    pub(crate) states: Arc<RequestStateCodec>,
    cancelled: Arc<AtomicU64>,
    pub(crate) meeting: Arc<Meeting>,
}

impl Fixture {
    /// A fixture that speaks these revisions.
    pub fn new(eras: Eras) -> Self {
        Self {
            eras,
            tasks: TaskManager::new(),
            changes: Changes::new(),
            states: Arc::new(RequestStateCodec::try_new(STATE_KEY).expect("the key is long enough")),
            cancelled: Arc::default(),
            meeting: Arc::default(),
        }
    }

    /// Calls of `wait_until_cancelled` that were cancelled.
    pub fn cancelled_calls(&self) -> u64 {
        self.cancelled.load(Ordering::SeqCst)
    }

    pub(crate) fn count_cancelled(&self) {
        self.cancelled.fetch_add(1, Ordering::SeqCst);
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        made(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {
                "tools": {"listChanged": true},
                "prompts": {"listChanged": true},
                "resources": {"listChanged": true, "subscribe": true},
                "completions": {},
                "logging": {},
                "extensions": {"io.modelcontextprotocol/tasks": {}},
            },
            "serverInfo": {"name": "mcp-fixture", "version": env!("CARGO_PKG_VERSION")},
            "instructions": "A fixture for tests",
        }))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(self.eras.versions())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.changes.remember(context.peer);
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match crate::asking::is_modern(&context) {
            true => Err(ErrorData::new(
                rmcp::model::ErrorCode::METHOD_NOT_FOUND,
                "logging/setLevel",
                None,
            )),
            false => Ok(()),
        }
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(catalog::tools()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        catalog::tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, context).await
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(catalog::resources()))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(catalog::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let template = uri
            .strip_prefix("test://template/")
            .and_then(|rest| rest.strip_suffix("/data"));
        let content = match (uri.as_str(), template) {
            ("test://static-text", _) => {
                json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
            }
            ("test://static-binary", _) => json!({"uri": uri, "mimeType": "image/png", "blob": PIXEL}),
            (crate::changes::WATCHED, _) => json!({"uri": uri, "mimeType": "text/plain", "text": "Watched"}),
            (_, Some(id)) => {
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
            }
            _ => {
                return Err(ErrorData::resource_not_found(
                    "Resource not found",
                    Some(json!({"uri": uri})),
                ));
            }
        };
        let read: ReadResourceResult = made(json!({"resultType": "complete", "contents": [content]}));
        Ok(read.into())
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.changes.follow(&context).await;
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(catalog::prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let given = |name: &str| {
            let value = request.arguments.as_ref().and_then(|given| given.get(name));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let say = |words: String| json!({"type": "text", "text": words});
        let contents = match request.name.as_str() {
            "test_simple_prompt" => vec![say("This is a simple prompt for testing.".into())],
            "test_prompt_with_arguments" => {
                let words = format!(
                    "Prompt with arguments: arg1='{}', arg2='{}'",
                    given("arg1"),
                    given("arg2")
                );
                vec![say(words)]
            }
            "test_prompt_with_embedded_resource" => vec![
                json!({"type": "resource", "resource": {"uri": given("resourceUri"), "mimeType": "text/plain",
                       "text": "Embedded resource content for testing."}}),
                say("Please process the embedded resource above.".into()),
            ],
            "test_prompt_with_image" => vec![
                json!({"type": "image", "data": PIXEL, "mimeType": "image/png"}),
                say("Please analyze the image above.".into()),
            ],
            "test_input_required_result_prompt" => {
                let question = form("What context should the prompt use?", "context", "string");
                let asked = BTreeMap::from([("user_context".to_owned(), question)]);
                let retry = Retry::new(request.input_responses, request.request_state);
                match self.ask(asked, None, &retry, &context).await? {
                    Round::Ask(question) => return Ok(question.into()),
                    Round::Answered(answers) => {
                        let context = &answers["user_context"]["content"]["context"];
                        vec![say(format!("Context: {}", context.as_str().unwrap_or_default()))]
                    }
                }
            }
            name => return Err(unknown("prompt", name)),
        };
        let message = |content: Value| json!({"role": "user", "content": content});
        let messages: Vec<Value> = contents.into_iter().map(message).collect();
        let prompt: GetPromptResult = made(json!({"resultType": "complete", "messages": messages}));
        Ok(prompt.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let value = &request.argument.value;
        Ok(made(
            json!({"resultType": "complete", "completion": {"values": [format!("{value}-completed")], "total": 1, "hasMore": false}}),
        ))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}
