//! What waits for the caller's decision.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use axum::extract::State;
use serde::Serialize;
use toolgate_access::{AccessError, Principal, Top};
use toolgate_engine::store::{AskingFilter, RunRecord};
use toolgate_http::answer::{Answer, ok};
use toolgate_http::caller::Caller;
use toolgate_http::describe::{BadQuery, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::Query;
use toolgate_http::{Shared, schema};
use toolgate_kernel::event::{Event, ToolApprovalRequest};
use toolgate_kernel::id::{ApprovalId, CallId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Decider;
use toolgate_kernel::view::view;
use utoipa::ToSchema;

/// Most runs that one page looks at.
const RUNS_READ_MAX: usize = 64;
/// Bytes of logs, or of inputs, after which a page ends.
const PAGE_BYTES: usize = 1 << 20;

/// A question that waits for the caller.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenApproval)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApprovalBody {
    /// Where to send the decision.
    #[schema(value_type = schema::ApprovalId)]
    approval_id: ApprovalId,
    /// The call it is about.
    #[schema(value_type = schema::CallId)]
    tool_call_id: CallId,
    /// The tool.
    tool_name: String,
    /// Exactly what will run, less what the tool hides from its approvers.
    #[schema(value_type = schema::Any)]
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Json>,
    /// Whether the caller may send another input with a yes.
    editable: bool,
    /// The run of the call; a child run's question is one of the run at the top, too.
    #[schema(value_type = schema::RunId)]
    run_id: RunId,
    /// The run at the top, when the run of the call is a child run.
    #[schema(value_type = Option<schema::RunId>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    root_run_id: Option<RunId>,
    /// The space whose members may answer: that of the run at the top.
    #[schema(value_type = schema::SpaceId)]
    space_id: SpaceId,
    /// The agent that asks.
    #[schema(value_type = schema::AgentName)]
    agent: AgentName,
    /// When it was asked.
    #[schema(value_type = schema::Time)]
    requested_at: Time,
    /// When silence becomes a no.
    #[schema(value_type = schema::Time)]
    expires_at: Time,
}

/// A page of open questions, newest run first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApprovalList {
    /// The questions.
    approvals: Vec<ApprovalBody>,
    /// What to give as `before` for the next page; null on the last. A page may be empty and not the last.
    #[schema(value_type = Option<schema::RunId>)]
    next_cursor: Option<RunId>,
}

/// Where a question stands.
#[derive(ToSchema)]
#[schema(as = ApprovalStatus, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes a word of the query")]
pub(crate) enum StatusWord {
    Open,
}

/// The questions that the caller may decide and that nobody has answered: a backend's all, a user's those of the spaces
/// it is a member of.
#[utoipa::path(
    get, path = "/v1/approvals", operation_id = "list_approvals", tag = "approvals",
    params(
        ("status" = inline(Option<StatusWord>), Query, description = "Only open ones are listed."),
        ("space" = inline(Option<schema::SpaceId>), Query, description = "In this space only."),
        ("agent" = inline(Option<schema::AgentName>), Query, description = "Of this agent only."),
        ("before" = inline(Option<schema::RunId>), Query, description = "`nextCursor` of the page before."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "A page.", body = ApprovalList), BadQuery, Missing, Refused),
)]
pub(crate) async fn list(
    State(door): State<Shared>,
    Caller(who): Caller,
    query: Query,
) -> Result<Answer<ApprovalList>, Refusal> {
    if query.text("status").is_some_and(|status| status != "open") {
        return Err(Refusal::malformed(
            "query status: must be open, answered questions stand in the events of their runs",
        ));
    }
    let space = query.read::<SpaceId>("space")?;
    if let Some(space) = space {
        door.access.reach_space(&who, space).await?;
    }
    let limit = query.limit()?;
    let filter = AskingFilter {
        member: who.entity(),
        space,
        agent: query.read("agent")?,
        before: query.read("before")?,
        limit: limit.min(RUNS_READ_MAX),
    };
    let asked_for = filter.limit;
    let runs = door.engine.asking(who.project, filter).await?;
    let mut page = Page::default();
    let mut last = None;
    for run in &runs {
        if page.approvals.len() >= limit || page.bytes >= PAGE_BYTES {
            break;
        }
        page.add(&door, &who, run).await?;
        last = Some(run.id);
    }
    let more = runs.len() == asked_for || last != runs.last().map(|run| run.id);
    Ok(ok(ApprovalList {
        approvals: page.approvals,
        next_cursor: last.filter(|_| more),
    }))
}

#[derive(Default)]
struct Page {
    approvals: Vec<ApprovalBody>,
    /// Bytes of logs that were read for it, inputs included.
    bytes: usize,
    /// Who the caller is in each space.
    deciders: HashMap<SpaceId, Decider>,
}

impl Page {
    /// Adds the open questions of a run that the caller may decide.
    async fn add(&mut self, door: &Shared, who: &Principal, run: &RunRecord) -> Result<(), Refusal> {
        let top = match door.access.reach_top(who, run.id, "approval").await {
            // A member that was removed since the page was read.
            Err(AccessError::NotFound(_)) => return Ok(()),
            other => other?,
        };
        let decider = match self.deciders.entry(top.space) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(door.access.decider(who, top.space).await?),
        };
        let open = door.engine.open_questions(run.id).await?;
        self.bytes += open.bytes_read;
        for (time, question) in open.asked {
            self.approvals
                .extend(ApprovalBody::of(run, &top, time, question, decider));
        }
        Ok(())
    }
}

impl ApprovalBody {
    fn of(
        run: &RunRecord,
        top: &Top,
        requested_at: Time,
        asked: ToolApprovalRequest,
        who: &Decider,
    ) -> Option<Self> {
        // By the terms as stored: their public form does not say who asked.
        let terms = asked.terms.clone().unwrap_or_default();
        if !terms.admit(who) {
            return None;
        }
        let editable = terms.may_edit(who, asked.tool().is_seen_by_members());
        let event = Event::from(asked);
        let seen = view(&event, who)?;
        let Event::ToolApprovalRequest(seen) = seen.as_ref() else {
            return None;
        };
        Some(Self {
            approval_id: seen.approval_id,
            tool_call_id: seen.tool_call_id,
            tool_name: seen.tool_name.to_string(),
            input: seen.input.clone(),
            editable,
            run_id: run.id,
            root_run_id: Some(top.run).filter(|top| *top != run.id),
            space_id: top.space,
            agent: run.agent.clone(),
            requested_at,
            expires_at: seen.expires_at,
        })
    }
}
