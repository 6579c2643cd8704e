//! What has to be delivered outside: seen, and tried again. For backends only.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use toolgate_engine::outbox::{Channel, Delivery, State as Standing};
use toolgate_http::answer::{Answer, ok};
use toolgate_http::caller::Backend;
use toolgate_http::describe::{BackendOnly, BadQuery, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query};
use toolgate_http::schema;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

use crate::Resources;

/// Something that has to be delivered outside. What was taken is gone.
#[derive(Serialize, ToSchema)]
#[schema(as = Delivery)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeliveryBody {
    /// Which; a webhook is given it as `webhook-id`.
    id: String,
    /// Channel of the delivery.
    #[schema(value_type = ChannelWord)]
    channel: Channel,
    /// State of the delivery.
    #[schema(value_type = DeliveryStateWord)]
    state: Standing,
    /// How often it was tried.
    attempts: u32,
    /// Why it was not taken, the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Content of the notification.
    #[schema(value_type = Object)]
    payload: Value,
    /// When it was queued.
    #[schema(value_type = schema::Time)]
    created_at: Time,
    /// When it is tried next; left out when it was dead-lettered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Time>)]
    due_at: Option<Time>,
}

impl From<Delivery> for DeliveryBody {
    fn from(delivery: Delivery) -> Self {
        let state = delivery.state();
        Self {
            id: delivery.id,
            channel: delivery.parcel.channel,
            state,
            attempts: delivery.parcel.attempts,
            error: delivery.parcel.error,
            payload: delivery.parcel.payload,
            created_at: delivery.created,
            due_at: delivery.due,
        }
    }
}

/// Channel of a delivery.
#[derive(ToSchema)]
#[schema(as = DeliveryChannel, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes the engine's channels")]
pub(crate) enum ChannelWord {
    Webhook,
    Mail,
}

/// State of a delivery.
#[derive(ToSchema)]
#[schema(as = DeliveryState, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes the engine's states")]
pub(crate) enum DeliveryStateWord {
    /// It is tried again by itself.
    Pending,
    /// It was dead-lettered.
    Dead,
}

/// A page of deliveries, by id: those of older runs first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeliveryList {
    /// The deliveries.
    deliveries: Vec<DeliveryBody>,
    /// What to give as `after` for the next page; null on the last.
    next_cursor: Option<String>,
}

/// What has to be delivered still, and what was dead-lettered.
#[utoipa::path(
    get, path = "/v1/deliveries", operation_id = "list_deliveries", tag = "deliveries",
    params(
        ("state" = inline(Option<DeliveryStateWord>), Query, description = "Only what stands so."),
        ("after" = Option<String>, Query, description = "`nextCursor` of the page before."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "A page.", body = DeliveryList), BadQuery, BackendOnly, Refused),
)]
pub(crate) async fn list(
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    query: Query,
) -> Result<Answer<DeliveryList>, Refusal> {
    let limit = query.limit()?;
    let state = query.word(
        "state",
        &[("pending", Standing::Pending), ("dead", Standing::Dead)],
    )?;
    let after = query.text("after").map(str::to_owned);
    let found = resources.outbox.list(project, state, after, limit).await?;
    let next_cursor = found.last().filter(|_| found.len() == limit);
    Ok(ok(DeliveryList {
        next_cursor: next_cursor.map(|delivery| delivery.id.clone()),
        deliveries: found.into_iter().map(DeliveryBody::from).collect(),
    }))
}

/// Has a delivery tried now, and as often again as a new one.
#[utoipa::path(
    post, path = "/v1/deliveries/{delivery}/retry", operation_id = "retry_delivery", tag = "deliveries",
    params(("delivery" = String, Path)),
    responses((status = 200, description = "As it stands now.", body = DeliveryBody), Missing, BackendOnly, Refused),
)]
pub(crate) async fn retry(
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(id): At<String>,
) -> Result<Answer<DeliveryBody>, Refusal> {
    let delivery = resources.outbox.retry(project, &id).await?;
    let delivery = delivery.ok_or_else(|| Refusal::not_found("delivery"))?;
    Ok(ok(delivery.into()))
}
