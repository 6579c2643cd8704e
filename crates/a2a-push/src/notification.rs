//! One push notification: the request, its headers and its signature.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use toolgate_a2a::VERSION_HEADER;
use toolgate_egress::{BodyLimit, Client, Egress, Policy, Request};
use toolgate_engine::push_configs::PushConfig;
use toolgate_kernel::agent::Secret;
use toolgate_kernel::time::Time;
use toolgate_tools::OutboundSettings;
use toolgate_tools::notify::signature;
use url::Url;

/// Longest time that a receiver is given.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Header that carries the token of a configuration.
const TOKEN: HeaderName = HeaderName::from_static("x-a2a-notification-token");

/// A change of a task, numbered.
pub(crate) struct Change {
    pub number: u64,
    /// The body that is posted.
    pub body: String,
}

/// Connections for the notifications of a configuration: to public addresses and those that the project allows. A
/// redirect is not followed, since the request carries credentials.
pub(crate) fn client(egress: &Egress, outbound: &OutboundSettings) -> Client {
    let policy = Policy::public(outbound.allow.clone());
    egress.client(policy.within(TIMEOUT).without_redirects())
}

/// Posts a change; the error says why it was not accepted. `secret` signs it, or else the token of the configuration.
pub(crate) async fn post(
    client: &Client,
    config: &PushConfig,
    change: &Change,
    secret: Option<&Secret>,
    now: Time,
) -> Result<(), String> {
    let url = Url::parse(&config.url).map_err(|_| "its address is none".to_owned())?;
    let request = Request {
        method: Method::POST,
        url,
        headers: headers(config, change, secret, now.0 / 1000)?,
        body: Some(change.body.clone().into()),
        limit: BodyLimit::Head,
    };
    match client.send(request).await {
        Ok(answer) if answer.status.is_success() => Ok(()),
        Ok(answer) => Err(format!("it answered with {}", answer.status.as_u16())),
        Err(error) => Err(error.to_string()),
    }
}

fn headers(
    config: &PushConfig,
    change: &Change,
    secret: Option<&Secret>,
    seconds: i64,
) -> Result<HeaderMap, String> {
    let text =
        |text: &str| HeaderValue::from_str(text).map_err(|_| "a value does not fit a header".to_owned());
    let hidden = |value: &str| {
        text(value).map(|mut value| {
            value.set_sensitive(true);
            value
        })
    };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(VERSION_HEADER, text(&config.form)?);
    if let Some((scheme, credentials)) = &config.authorization {
        let value = format!("{scheme} {}", credentials.expose());
        headers.insert(header::AUTHORIZATION, hidden(value.trim())?);
    }
    if let Some(token) = &config.token {
        headers.insert(TOKEN, hidden(token.expose())?);
    }
    // The same in every attempt: the receiver's idempotency key.
    let id = format!("{}.{}", config.run, change.number);
    headers.insert("webhook-id", text(&id)?);
    headers.insert("webhook-timestamp", HeaderValue::from(seconds));
    if let Some(secret) = secret.or(config.token.as_ref()) {
        headers.insert(
            "webhook-signature",
            text(&signature(secret, &id, seconds, &change.body))?,
        );
    }
    Ok(headers)
}
