//! The methods of MCP, one line each: what they do stands in the modules beside.

#![expect(
    deprecated,
    reason = "clients of the older protocol set the level of logs this way"
)]

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio_util::task::AbortOnDropHandle;

use crate::listing::offers;
use crate::subscriptions::{self, SessionFiles};
use crate::visitor::{Abilities, Visitor};
use crate::{Mcp, problem, prompts, resources, tasks, tool_call};

/// Tools of one page.
const TOOLS_PAGE: usize = 500;

/// Answers the requests of one legacy session, or one request of a modern client.
pub(crate) struct Handler {
    mcp: Arc<Mcp>,
    /// The tool that the request at hand calls, for the check of its parameter headers.
    called: Option<Tool>,
    files: SessionFiles,
    /// Tells a session of changed lists.
    lists: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Handler {
    /// One for a session, or for a request.
    pub fn new(mcp: Arc<Mcp>, called: Option<Tool>) -> Self {
        Self {
            mcp,
            called,
            files: SessionFiles::default(),
            lists: Mutex::default(),
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_tasks()
            .build();
        let instructions = "Tools, agents (ask_<agent>) and workspace files of a Toolgate project. A call may wait for \
                            a person or for another client; it goes on without you and can be read by its run's id.";
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("toolgate", env!("CARGO_PKG_VERSION")).with_title("Toolgate"),
            )
            .with_instructions(instructions)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Ok(visitor) = Visitor::of(&context.extensions) else {
            return;
        };
        let telling =
            subscriptions::follow_lists(self.mcp.clone(), visitor.who.clone(), context.peer.clone());
        *self.lists.lock().unwrap_or_else(PoisonError::into_inner) = Some(telling);
    }

    // Some clients of the older protocol set a level whatever the server can do. Accepted, and nothing is logged: how far a
    // call is, is told by progress.
    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match Abilities::of(&context).modern {
            false => Ok(()),
            true => Err(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                "logging/setLevel is not a method of 2026-07-28",
                None,
            )),
        }
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.called.clone().filter(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let visitor = Visitor::of(&context.extensions)?;
        let abilities = Abilities::of(&context);
        let offers = offers(&self.mcp.shared, visitor).await.map_err(problem::error)?;
        let after = request.and_then(|request| request.cursor).unwrap_or_default();
        let rest = offers.range::<str, _>((
            std::ops::Bound::Excluded(after.as_str()),
            std::ops::Bound::Unbounded,
        ));
        let mut rest = rest.map(|(name, offer)| offer.listed(name, abilities)).peekable();
        let tools: Vec<Tool> = rest.by_ref().take(TOOLS_PAGE).collect();
        let last = tools.last().map(|tool| tool.name.to_string());
        let mut listed = ListToolsResult::with_all_items(tools)
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Private);
        listed.next_cursor = last.filter(|_| rest.peek().is_some());
        Ok(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tool_call::call(&self.mcp, request, context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        tasks::get(&self.mcp, request, &context).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::update(&self.mcp, request, &context).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::cancel(&self.mcp, request, &context).await
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        prompts::list(&self.mcp, Visitor::of(&context.extensions)?).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let prompt = prompts::get(&self.mcp, Visitor::of(&context.extensions)?, request).await?;
        Ok(prompt.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        resources::list(&self.mcp, Visitor::of(&context.extensions)?, cursor.as_deref()).await
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = resources::read(&self.mcp, Visitor::of(&context.extensions)?, &request.uri).await?;
        Ok(read.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        resources::complete(&self.mcp, Visitor::of(&context.extensions)?, request).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(subscriptions::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        subscriptions::listen(&self.mcp, context).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let visitor = Visitor::of(&context.extensions)?;
        self.files
            .subscribe(&self.mcp, visitor, &context.peer, request.uri)
            .await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.files.unsubscribe(&request.uri).await;
        Ok(())
    }
}
