//! One request of a webhook, signed as Standard Webhooks says.

use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use toolgate_kernel::agent::Secret;
use toolgate_kernel::time::Time;

const TIMEOUT: Duration = Duration::from_secs(10);
/// What a secret begins with that is written in base64.
const ENCODED: &str = "whsec_";

/// Where notifications go, and what proves that they come from here.
#[derive(Debug, Clone, PartialEq)]
pub struct Webhook {
    /// The address.
    pub url: String,
    /// Signs each request; as it is, or `whsec_` and base64.
    pub secret: Option<Secret>,
}

impl Webhook {
    /// Sends a body; an error says why it was not taken.
    pub(super) async fn send(
        &self,
        client: &reqwest::Client,
        id: &str,
        body: String,
        now: Time,
    ) -> Result<(), String> {
        let seconds = now.0 / 1000;
        let mut request = client
            .post(&self.url)
            .header("content-type", "application/json")
            .header("user-agent", concat!("toolgate/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds);
        if let Some(secret) = &self.secret {
            request = request.header("webhook-signature", signature(secret, id, seconds, &body));
        }
        match request.body(body).send().await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => Err(format!("it answered with {}", response.status().as_u16())),
            Err(error) => Err(error.without_url().to_string()),
        }
    }
}

/// A client that follows no redirect: the address is the operator's word.
pub(super) fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .timeout(TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .expect("nothing in this can fail")
}

fn signature(secret: &Secret, id: &str, seconds: i64, body: &str) -> String {
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
