//! Webhook requests, signed as in Standard Webhooks.

use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, HeaderValue, Method, header};
use toolgate_egress::{BodyLimit, Client, Egress, Policy, Request};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::time::Time;
use url::Url;

const TIMEOUT: Duration = Duration::from_secs(10);
/// Prefix of a secret in base64.
const ENCODED: &str = "whsec_";

/// Address and secret of the webhook.
#[derive(Debug, Clone, PartialEq)]
pub struct Webhook {
    /// Address. The operator sets it, so it may be on this machine or in a private network.
    pub url: Url,
    /// Signing secret: plain text, or `whsec_` and base64.
    pub secret: Option<Secret>,
}

impl Webhook {
    /// An outbound client that may reach this address, and nothing else in private networks.
    pub(super) fn client(&self, egress: &Egress) -> Client {
        egress.client(Policy::server(&self.url).within(TIMEOUT).without_redirects())
    }

    /// Sends a body; the error says why it was not accepted. Redirects are not followed.
    pub(super) async fn send(
        &self,
        client: &Client,
        id: &str,
        body: String,
        now: Time,
    ) -> Result<(), String> {
        let ask = Request {
            method: Method::POST,
            url: self.url.clone(),
            headers: self.headers(id, &body, now.0 / 1000),
            body: Some(body.into()),
            limit: BodyLimit::Head,
        };
        match client.send(ask).await {
            Ok(answer) if answer.status.is_success() => Ok(()),
            Ok(answer) => Err(format!("it answered with {}", answer.status.as_u16())),
            Err(error) => Err(error.to_string()),
        }
    }

    fn headers(&self, id: &str, body: &str, seconds: i64) -> HeaderMap {
        let text = |text: &str| HeaderValue::from_str(text).expect("ids and signatures are plain text");
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert("webhook-id", text(id));
        headers.insert("webhook-timestamp", HeaderValue::from(seconds));
        if let Some(secret) = &self.secret {
            let signed = signature(secret, id, seconds, body);
            headers.insert("webhook-signature", text(&signed));
        }
        headers
    }
}

/// The value of `webhook-signature` (Standard Webhooks): the secret is plain text, or `whsec_` and base64.
pub fn signature(secret: &Secret, id: &str, seconds: i64, body: &str) -> String {
    let text = secret.expose();
    let encoded = text
        .strip_prefix(ENCODED)
        .and_then(|text| BASE64.decode(text).ok());
    let key = encoded.unwrap_or_else(|| text.as_bytes().to_vec());
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let tag = hmac::sign(&key, format!("{id}.{seconds}.{body}").as_bytes());
    format!("v1,{}", BASE64.encode(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_signed_as_the_standard_says() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signed = signature(
            &secret,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
