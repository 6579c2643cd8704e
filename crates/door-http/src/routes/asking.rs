//! Pages of what runs ask people: approvals, and questions of tools.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::Serialize;
use toolgate_access::{AccessError, Principal, Top};
use toolgate_engine::OpenQuestions;
use toolgate_engine::store::{AskingFilter, RunRecord};
use toolgate_http::problem::Refusal;
use toolgate_http::query::Query;
use toolgate_http::{Shared, schema};
use toolgate_kernel::id::{RunId, SpaceId};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::problem::one_of;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Decider;
use utoipa::ToSchema;

/// Most runs that one page looks at.
const RUNS_READ_MAX: usize = 64;
/// Bytes of logs after which a page ends.
const PAGE_BYTES: usize = 1 << 20;

/// Where a question stands.
#[derive(ToSchema)]
#[schema(as = ApprovalStatus, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes a word of the query")]
pub(crate) enum StatusWord {
    Open,
}

/// What a run asks, and who reads it.
pub(crate) struct Asking<'a> {
    /// The run that asks.
    pub run: &'a RunRecord,
    /// Where it is answered.
    pub top: &'a Top,
    /// The caller, in the space where it is answered.
    pub reader: &'a Decider,
    /// The questions that nobody has answered.
    pub open: OpenQuestions,
}

/// Where and when people are asked.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AskedIn {
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
}

impl Asking<'_> {
    /// Where this was asked, at this time.
    pub fn place(&self, requested_at: Time) -> AskedIn {
        AskedIn {
            run_id: self.run.id,
            root_run_id: Some(self.top.run).filter(|top| *top != self.run.id),
            space_id: self.top.space,
            agent: self.run.agent.clone(),
            requested_at,
        }
    }
}

/// A page of what the runs ask that the caller may see, as `told` reads it, and the cursor of the next.
pub(crate) async fn page<B>(
    door: &Shared,
    who: &Principal,
    query: &Query,
    told: impl Fn(Asking<'_>) -> Vec<B>,
) -> Result<(Vec<B>, Option<RunId>), Refusal> {
    if let Some(status) = query.text("status").filter(|status| *status != "open") {
        return Err(Refusal::malformed(format!(
            "query status: {}; what was answered stands in the events of its run",
            one_of(status, &["open"])
        )));
    }
    let space = query.read::<SpaceId>("space")?;
    if let Some(space) = space {
        door.access.reach_space(who, space).await?;
    }
    let limit = query.limit()?;
    let filter = AskingFilter {
        member: who.entity(),
        space,
        agent: query.read("agent")?,
        before: query.read("before")?,
        limit: limit.min(RUNS_READ_MAX),
        ..AskingFilter::default()
    };
    let asked = door.engine.asking(who.project, filter).await?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    let mut readers = HashMap::new();
    let mut last = None;
    for run in &asked.runs {
        if found.len() >= limit || bytes >= PAGE_BYTES {
            break;
        }
        last = Some(run.id);
        let top = match door.access.reach_top(who, run.id, "run").await {
            // A member that was removed since the page was read.
            Err(AccessError::NotFound(_)) => continue,
            other => other?,
        };
        let reader = match readers.entry(top.space) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(door.access.decider(who, top.space).await?),
        };
        let open = door.engine.open_questions(run.id).await?;
        bytes += open.bytes_read;
        found.extend(told(Asking {
            run,
            top: &top,
            reader,
            open,
        }));
    }
    let is_cut = last != asked.runs.last().map(|run| run.id);
    Ok((found, if is_cut { last } else { asked.next }))
}
