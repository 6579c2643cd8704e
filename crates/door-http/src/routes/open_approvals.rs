//! What waits for the caller's decision.

use axum::extract::State;
use serde::Serialize;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::caller::Caller;
use toolgate_http::describe::{BadQuery, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::Query;
use toolgate_http::{Shared, schema};
use toolgate_kernel::event::{Event, ToolApprovalRequest};
use toolgate_kernel::id::{ApprovalId, CallId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Remember;
use toolgate_kernel::view::view;
use utoipa::ToSchema;

use super::asking::{self, AskedIn, Asking, StatusWord};

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
    /// Whether a yes stands for later calls too, and for which: `first-in-space`, `until-revoked`.
    #[schema(value_type = Option<RememberWord>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    remember: Option<Remember>,
    /// What is said aloud to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    voice: Option<String>,
    #[serde(flatten)]
    asked: AskedIn,
    /// When silence becomes a no.
    #[schema(value_type = schema::Time)]
    expires_at: Time,
}

/// Which later calls a remembered yes stands for.
#[derive(ToSchema)]
#[schema(as = Remember, rename_all = "kebab-case")]
#[expect(dead_code, reason = "describes the kernel's words")]
pub(crate) enum RememberWord {
    FirstInSpace,
    UntilRevoked,
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
    let told = |asking: Asking<'_>| {
        let approvals = asking.open.approvals.iter();
        let seen = approvals.filter_map(|(time, asked)| ApprovalBody::of(&asking, *time, asked));
        seen.collect()
    };
    let (approvals, next_cursor) = asking::page(&door, &who, &query, told).await?;
    Ok(ok(ApprovalList {
        approvals,
        next_cursor,
    }))
}

impl ApprovalBody {
    fn of(asking: &Asking<'_>, requested_at: Time, asked: &ToolApprovalRequest) -> Option<Self> {
        let who = asking.reader;
        // By the terms as stored: their public form does not say who asked.
        let terms = asked.terms.clone().unwrap_or_default();
        if !terms.admit(who) {
            return None;
        }
        let editable = terms.may_edit(who, asked.tool().is_seen_by_members());
        let event = Event::from(asked.clone());
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
            remember: terms.remember,
            voice: seen.voice.as_ref().map(|voice| voice.text.clone()),
            asked: asking.place(requested_at),
            expires_at: seen.expires_at,
        })
    }
}
