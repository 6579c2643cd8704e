//! `subscriptions/listen` of clients of the newer era on a server of the older one: a session of its own, whose notices are
//! those that the client asked for.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolgate_mcp::link::LinkError;
use toolgate_mcp::link::message::{Id, Members, Message, Notification, Outcome, Request};

use super::calls::{no_lease, unreachable};
use super::era::{META, SUBSCRIPTION_KEY};
use super::modern::Client;
use super::reply::{Closed, Reply};
use super::routes::Visit;
use super::upstream::Lease;

/// Most resources that one subscription may name.
pub(super) const RESOURCES_MAX: usize = 256;

pub(super) async fn listen(
    visit: Visit,
    client: Client,
    request: Request,
    reply: Reply,
) -> Result<(), Closed> {
    let upstream = &visit.upstream;
    let mut lease = match upstream.lease(visit.owner, &client.capabilities).await {
        Ok(lease) => lease,
        Err(error) => return reply.end(&request.id, no_lease(upstream, &error)).await,
    };
    // Not for the next one: the server goes on telling.
    lease.is_sound = false;
    let wanted: Value = request.param("notifications").unwrap_or_default();
    let accepted = accepted(&wanted, &lease.link.capabilities());
    for uri in uris(&accepted) {
        let subscribed = tokio::time::timeout(upstream.limits.handshake, subscribe(&lease, uri)).await;
        let late = |_| Err(LinkError::Unreachable("it does not subscribe in time".into()));
        if let Err(error) = subscribed.unwrap_or_else(late) {
            return reply.end(&request.id, unreachable(upstream, &error)).await;
        }
    }
    let Some(mut notices) = lease.link.unrelated() else {
        return reply
            .end(&request.id, unreachable(upstream, &LinkError::Gone))
            .await;
    };
    let mut params = Members::default();
    params.set("notifications", &accepted);
    let acknowledged = Notification {
        method: "notifications/subscriptions/acknowledged".to_owned(),
        params: Some(params),
    };
    reply.send(tagged(acknowledged, &request.id)).await?;
    while let Some(message) = notices.recv().await {
        let Message::Notification(notice) = message else {
            continue;
        };
        if notice.method == "notifications/tools/list_changed" {
            upstream.tools.forget();
        }
        if is_wanted(&notice, &accepted) {
            reply.send(tagged(notice, &request.id)).await?;
        }
    }
    let ended = json!({"resultType": "complete", META: {SUBSCRIPTION_KEY: request.id.raw()}});
    reply.end(&request.id, Outcome::result(ended)).await
}

/// What of a filter a server with these capabilities can tell.
fn accepted(wanted: &Value, capabilities: &Value) -> Value {
    let can = |list: &str, what: &str| capabilities[list][what] == true;
    let mut accepted = json!({});
    for (name, list) in [
        ("toolsListChanged", "tools"),
        ("promptsListChanged", "prompts"),
        ("resourcesListChanged", "resources"),
    ] {
        if wanted[name] == true && can(list, "listChanged") {
            accepted[name] = true.into();
        }
    }
    if can("resources", "subscribe") {
        let uris: Vec<&str> = uris(wanted).take(RESOURCES_MAX).collect();
        if !uris.is_empty() {
            accepted["resourceSubscriptions"] = uris.into();
        }
    }
    accepted
}

fn uris(filter: &Value) -> impl Iterator<Item = &str> {
    let uris = filter["resourceSubscriptions"].as_array();
    uris.into_iter().flatten().filter_map(Value::as_str)
}

fn is_wanted(notice: &Notification, accepted: &Value) -> bool {
    match notice.method.as_str() {
        "notifications/tools/list_changed" => accepted["toolsListChanged"] == true,
        "notifications/prompts/list_changed" => accepted["promptsListChanged"] == true,
        "notifications/resources/list_changed" => accepted["resourcesListChanged"] == true,
        "notifications/resources/updated" => {
            let uri: Option<String> = notice.params.as_ref().and_then(|params| params.read("uri"));
            uri.is_some_and(|uri| uris(accepted).any(|wanted| wanted == uri))
        }
        _ => false,
    }
}

async fn subscribe(lease: &Lease, uri: &str) -> Result<(), LinkError> {
    let mut params = Members::default();
    params.set("uri", uri);
    let request = Request {
        id: lease.link.fresh_id(),
        method: "resources/subscribe".to_owned(),
        params: Some(params),
    };
    let mut exchange = lease.link.request(request).await?;
    while let Some(message) = exchange.next().await? {
        if matches!(message, Message::Response(_)) {
            break;
        }
    }
    Ok(())
}

/// Names the subscription that a notice belongs to.
fn tagged(mut notice: Notification, id: &Id) -> Message {
    let mut params = notice.params.take().unwrap_or_default();
    let mut meta = params.object(META).unwrap_or_default();
    let id: Box<RawValue> = id.raw();
    meta.set(SUBSCRIPTION_KEY, id);
    params.set(META, meta);
    notice.params = Some(params);
    Message::Notification(notice)
}
