//! Agents as prompts: a prompt of an agent's name tells the client's model to ask it.

use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, GetPromptRequestParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument,
    PromptMessage, Role,
};
use serde_json::Value;

use crate::listing::{agents, ask_name};
use crate::visitor::Visitor;
use crate::{Mcp, problem};

/// The one argument of every prompt.
const MESSAGE: &str = "message";

/// `prompts/list`: every agent that the caller may start, by name.
pub(crate) async fn list(mcp: &Mcp, visitor: &Visitor) -> Result<ListPromptsResult, ErrorData> {
    let agents = agents(&mcp.shared, visitor).await.map_err(problem::error)?;
    let argument = PromptArgument::new(MESSAGE)
        .with_description("What to say to the agent.")
        .with_required(true);
    let prompt = |agent: &std::sync::Arc<toolgate_kernel::agent::Agent>| {
        Prompt::new(
            agent.name.to_string(),
            agent.description.clone(),
            Some(vec![argument.clone()]),
        )
    };
    let prompts = agents.iter().map(prompt).collect();
    Ok(ListPromptsResult::with_all_items(prompts)
        .with_ttl_ms(0)
        .with_cache_scope(CacheScope::Private))
}

/// `prompts/get`. An agent's instructions are its own and are not told.
pub(crate) async fn get(
    mcp: &Mcp,
    visitor: &Visitor,
    request: GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let mut agents = agents(&mcp.shared, visitor)
        .await
        .map_err(problem::error)?
        .into_iter();
    let Some(agent) = agents.find(|agent| agent.name.as_str() == request.name) else {
        let words = format!("there is no prompt named {:?}; see prompts/list", request.name);
        return Err(ErrorData::invalid_params(words, None));
    };
    let given = request.arguments.as_ref().and_then(|given| given.get(MESSAGE));
    let Some(message) = given.and_then(Value::as_str) else {
        return Err(ErrorData::invalid_params(
            "the prompt needs its argument message, a text",
            None,
        ));
    };
    let text = format!(
        "Call the tool {} with this message, and answer with what it says:\n\n{message}",
        ask_name(&agent.name)
    );
    let mut result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
    result.description = agent.description.clone();
    Ok(result)
}
