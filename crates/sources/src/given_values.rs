//! Values of headers and variables that stand in a server's configuration as they are: a server may repeat them, so they are
//! hidden in what it says as secrets by name are.

use toolgate_kernel::agent::Secret;
use url::Url;

use crate::config::{Reach, ServerConfig};
use crate::oauth::Auth;

/// Shorter values are not hidden: `true`, `8080` and `info` are found in every other text.
const VALUE_CHARS_MIN: usize = 8;
/// Headers that say how a request is to be read, not who sends it.
const PLAIN_HEADERS: [&str; 5] = [
    "accept",
    "accept-language",
    "content-type",
    "mcp-protocol-version",
    "user-agent",
];

/// What is hidden of a server's configuration, each with the mark that stands for it. Not paths and addresses without a
/// password, which results are full of; not what names a secret, which is hidden by its name.
pub(crate) fn given_values(config: &ServerConfig) -> Vec<(String, Secret)> {
    let (kind, values, token) = match &config.reach {
        Reach::Http { headers, auth, .. } => {
            let token = match auth {
                Auth::Bearer(token) => Some(("[token]".to_owned(), token.as_str())),
                _ => None,
            };
            ("header", headers, token)
        }
        Reach::Command { environment, .. } => ("env", environment, None),
    };
    let is_plain =
        |name: &str| kind == "header" && PLAIN_HEADERS.iter().any(|plain| name.eq_ignore_ascii_case(plain));
    let values = values.iter().filter(|(name, _)| !is_plain(name));
    let values = values.map(|(name, value)| (format!("[{kind} {name}]"), value.as_str()));
    let mut hidden = Vec::new();
    for (mark, value) in values.chain(token) {
        hidden.extend(
            parts(value)
                .into_iter()
                .map(|part| (mark.clone(), Secret::new(part))),
        );
    }
    hidden
}

/// A value, what follows `Bearer` or `Basic` in it, and the password of an address.
fn parts(value: &str) -> Vec<String> {
    let value = value.trim();
    if value.contains("${") || is_path(value) {
        return Vec::new();
    }
    let mut parts = vec![value];
    parts.extend(value.split_once(' ').map(|(_, credentials)| credentials.trim()));
    let url = Url::parse(value).ok().filter(Url::has_host);
    if let Some(url) = &url {
        match url.password() {
            Some(password) => parts.push(password),
            None => return Vec::new(),
        }
    }
    let is_long = |part: &&str| part.chars().count() >= VALUE_CHARS_MIN;
    parts.into_iter().filter(is_long).map(str::to_owned).collect()
}

fn is_path(value: &str) -> bool {
    ["/", "~/", "./", "../"]
        .iter()
        .any(|start| value.starts_with(start))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(config: Value, expected: &[&str]) {
        let config = ServerConfig::read(&config, "").unwrap();
        let hidden = given_values(&config);
        let texts: Vec<&str> = hidden.iter().map(|(_, value)| value.expose()).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn values_that_may_be_keys_are_hidden_and_plain_ones_are_not() {
        let variables = json!({
            "API_KEY": "k-1234567890", "PORT": "8080", "ROOT": "/srv/files/of/all", "NAMED": "${secret.TOKEN}",
            "BASE": "https://api.example.com/v1", "DATABASE": "postgres://app:hunter2hunter2@db/app",
        });
        let expected = [
            "k-1234567890",
            "postgres://app:hunter2hunter2@db/app",
            "hunter2hunter2",
        ];
        check(json!({"command": "server", "env": variables}), &expected);
        let headers =
            json!({"Authorization": "Bearer abcdefgh", "Accept": "application/json", "X-Team": "red"});
        let expected = ["Bearer abcdefgh", "abcdefgh"];
        check(
            json!({"url": "https://mcp.example.com", "headers": headers}),
            &expected,
        );
    }
}
