//! The Tasks extension over the store of runs: a task is a run, its id is the run's.

use rmcp::model::{CancelTaskParams, GetTaskParams, GetTaskResult, UpdateTaskParams};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use toolgate_engine::store::RunRecord;
use toolgate_http::problem::Refusal;
use toolgate_kernel::id::RunId;

use crate::answer::Form;
use crate::following::look;
use crate::tool_call::elicited;
use crate::visitor::{Abilities, Visitor};
use crate::{Mcp, problem, questions};

/// `tasks/get`: where the run stands, with its result once it has ended.
pub(crate) async fn get(
    mcp: &Mcp,
    params: GetTaskParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetTaskResult, ErrorData> {
    let visitor = Visitor::of(&context.extensions)?;
    let run = id(&params.task_id)?;
    let task = detailed(mcp, visitor, run, Abilities::of(context)).await;
    Ok(GetTaskResult::new(task.map_err(problem::error)?))
}

/// `tasks/update`: answers to what the run asks.
pub(crate) async fn update(
    mcp: &Mcp,
    params: UpdateTaskParams,
    context: &RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    let who = &Visitor::of(&context.extensions)?.who;
    let run = id(&params.task_id)?;
    mcp.shared.access.run(who, run).await.map_err(problem::fault)?;
    for (key, answer) in &params.input_responses {
        let answer = elicited(answer)?;
        questions::take(&mcp.shared, who, run, key, &answer).await?;
    }
    Ok(())
}

/// `tasks/cancel`: cancels the run and everything below it.
pub(crate) async fn cancel(
    mcp: &Mcp,
    params: CancelTaskParams,
    context: &RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    let who = &Visitor::of(&context.extensions)?.who;
    let run = id(&params.task_id)?;
    mcp.shared.access.run(who, run).await.map_err(problem::fault)?;
    mcp.shared.engine.cancel(run).await.map_err(problem::fault)?;
    Ok(())
}

/// A run as a task, if the caller may reach it.
pub(crate) async fn detailed(
    mcp: &Mcp,
    visitor: &Visitor,
    run: RunId,
    abilities: Abilities,
) -> Result<rmcp::model::DetailedTask, Refusal> {
    let look = look(&mcp.shared, &visitor.who, run).await?;
    let form = Form::new(has_output_schema(mcp, &look.record).await?, abilities);
    let result = look.result_with_files(mcp, &visitor.who, form).await;
    Ok(look.task(result, abilities))
}

/// Whether the tool that a run is one call of has a schema of its output.
async fn has_output_schema(mcp: &Mcp, record: &RunRecord) -> Result<bool, Refusal> {
    let Some(tool) = &record.tool else {
        return Ok(true);
    };
    let engine = &mcp.shared.engine;
    let agent = engine
        .agent(record.project, &record.agent, Some(record.revision))
        .await?;
    if let Some(own) = agent.as_ref().and_then(|(_, agent)| agent.tools.get(tool)) {
        return Ok(own.output_schema.is_some());
    }
    let named = engine
        .tools_by_name(record.project, vec![tool.to_string()])
        .await?;
    Ok(named.first().is_some_and(|tool| tool.output_schema.is_some()))
}

/// The run that a task id names.
fn id(task: &str) -> Result<RunId, ErrorData> {
    let words = || "there is no such task: its id is the id of a run, such as run_…";
    task.parse().map_err(|_| ErrorData::invalid_params(words(), None))
}
