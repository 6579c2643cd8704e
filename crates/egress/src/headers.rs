//! What the names of request headers say.

/// Headers that say how a request is carried: the gateway sets them itself.
pub const OWN_HEADERS: [&str; 7] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
];
/// Headers that carry credentials, and endings of the names of such headers.
const CREDENTIAL_HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "apikey"];
const CREDENTIAL_ENDINGS: [&str; 5] = ["api-key", "-token", "-secret", "-password", "subscription-key"];

/// Whether a header of this name says who is asking. A token against forged requests does not.
pub fn carries_credentials(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let forgery = name.contains("csrf") || name.contains("xsrf");
    let ending = || CREDENTIAL_ENDINGS.iter().any(|ending| name.ends_with(ending));
    CREDENTIAL_HEADERS.contains(&name.as_str()) || (!forgery && ending())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_say_who_is_asking_are_known_by_name() {
        for name in [
            "Authorization",
            "proxy-authorization",
            "Cookie",
            "X-API-Key",
            "api-key",
            "X-Auth-Token",
            "Ocp-Apim-Subscription-Key",
        ] {
            assert!(carries_credentials(name), "{name}");
        }
        for name in [
            "Accept",
            "Idempotency-Key",
            "X-CSRF-Token",
            "X-Tokens",
            "Content-Type",
        ] {
            assert!(!carries_credentials(name), "{name}");
        }
    }
}
