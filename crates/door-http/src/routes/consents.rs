//! Consents of a space: approvals that are remembered. A backend sees and revokes all of them; a user those that it gave, and
//! those that were given for it.

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use toolgate_access::Principal;
use toolgate_engine::consents::ConsentRecord;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::caller::Caller;
use toolgate_http::describe::{Contended, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::At;
use toolgate_http::{Shared, schema};
use toolgate_kernel::id::{ApprovalId, EntityId, SpaceId};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

/// A yes that was remembered: calls of the tool run without being asked about.
#[derive(Serialize, ToSchema)]
#[schema(as = Consent)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConsentBody {
    /// Id, unique in its space.
    id: String,
    /// Agent whose calls it is for.
    #[schema(value_type = schema::AgentName)]
    agent: AgentName,
    /// Tool that it is for.
    tool_name: String,
    /// SHA-256 of the tool's definition, in hex: a changed tool asks again.
    tool_hash: String,
    /// Who gave it; absent for a secret key.
    #[schema(value_type = Option<schema::EntityId>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<EntityId>,
    /// Person whom the run worked for when it was given.
    #[schema(value_type = Option<schema::EntityId>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    given_for: Option<EntityId>,
    /// The question that was answered.
    #[schema(value_type = schema::ApprovalId)]
    approval_id: ApprovalId,
    /// When it was given.
    #[schema(value_type = schema::Time)]
    given_at: Time,
}

impl From<ConsentRecord> for ConsentBody {
    fn from(consent: ConsentRecord) -> Self {
        Self {
            id: consent.id,
            agent: consent.agent,
            tool_name: consent.tool.to_string(),
            tool_hash: consent.hash,
            by: consent.by.entity(),
            given_for: consent.given_for,
            approval_id: consent.approval,
            given_at: consent.given_at,
        }
    }
}

/// The consents of a space.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConsentList {
    /// All that the caller may see, newest first.
    consents: Vec<ConsentBody>,
}

/// The consents of a space: a backend's all, a user's those that it gave and those given for it.
///
/// One that is listed counts as long as its giver is a member that may decide, and the tool is as it was.
#[utoipa::path(
    get, path = "/v1/spaces/{space}/consents", operation_id = "list_consents", tag = "approvals",
    params(("space" = inline(schema::SpaceId), Path)),
    responses((status = 200, description = "All of them.", body = ConsentList), Missing, Refused),
)]
pub(crate) async fn list(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(space): At<SpaceId>,
) -> Result<Answer<ConsentList>, Refusal> {
    let space = door.access.space(&who, space).await?;
    let mut consents = door.engine.consents(who.project, space.id).await?;
    consents.retain(|consent| may_revoke(&who, consent));
    consents.sort_by_key(|consent| std::cmp::Reverse(consent.given_at));
    Ok(ok(ConsentList {
        consents: consents.into_iter().map(ConsentBody::from).collect(),
    }))
}

/// Revokes a remembered yes: the next call of its tool asks again. Calls under way go on.
#[utoipa::path(
    delete, path = "/v1/spaces/{space}/consents/{consent}", operation_id = "revoke_consent", tag = "approvals",
    params(
        ("space" = inline(schema::SpaceId), Path),
        ("consent" = String, Path, description = "Its id."),
    ),
    responses((status = 204, description = "Revoked."), Missing, Contended, Refused),
)]
pub(crate) async fn revoke(
    State(door): State<Shared>,
    Caller(who): Caller,
    At((space, consent)): At<(SpaceId, String)>,
) -> Result<StatusCode, Refusal> {
    let space = door.access.space(&who, space).await?;
    let may = |consent: &ConsentRecord| may_revoke(&who, consent);
    let revoked = door
        .engine
        .revoke_consent(who.project, space.id, &consent, may)
        .await?;
    match revoked {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Refusal::not_found("consent")),
    }
}

fn may_revoke(who: &Principal, consent: &ConsentRecord) -> bool {
    let person = who.entity();
    person.is_none() || consent.by.entity() == person || consent.given_for == person
}
