//! The model of agents that name none: where it is, how a start shows it, and addresses that cannot be right.

use std::time::Duration;

use serde::Deserialize;
use tokio::net::TcpStream;
use toolgate_kernel::agent::{ModelName, ModelSpec, Provider, Secret};
use url::Url;

use super::text;

/// Longest wait of a start for a model's server to take a connection.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// Ends of addresses that name a single operation. The gateway adds its own to the address.
const OPERATIONS: [&str; 5] = [
    "/chat/completions",
    "/completions",
    "/responses",
    "/messages",
    "/models",
];

/// The model of agents that name none; the demo when neither address nor name is set.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// An OpenAI-compatible server.
    #[serde(deserialize_with = "text::optional")]
    pub base_url: Option<String>,
    /// What the server calls the model.
    #[serde(deserialize_with = "text::optional")]
    pub name: Option<String>,
    /// The server's key.
    #[serde(deserialize_with = "text::secret")]
    pub api_key: Option<Secret>,
}

impl Model {
    /// As the engine is given it.
    pub fn spec(&self) -> ModelSpec {
        const NAME_WITHOUT_ONE: &str = "default";
        let name = match (&self.name, &self.base_url) {
            (None, None) => ModelName {
                provider: Provider::Demo,
                name: "demo".into(),
            },
            (name, _) => ModelName {
                provider: Provider::Openai,
                name: name.clone().unwrap_or_else(|| NAME_WITHOUT_ONE.into()),
            },
        };
        ModelSpec {
            name,
            base_url: self.base_url.clone(),
            api_key: self.api_key.clone(),
            temperature: None,
            top_p: None,
            max_output_tokens: None,
            reasoning_tokens: None,
        }
    }

    /// The address of its server, if one is set.
    pub fn address(&self) -> anyhow::Result<Option<Url>> {
        text::address("model.base_url", &self.base_url)
    }

    /// What answers to agents that name no model, in one sentence.
    pub fn sentence(&self) -> String {
        let name = self.spec().name.name;
        match (&self.base_url, &self.name) {
            (Some(url), _) => format!("{name} at {}", without_password(url)),
            (None, Some(_)) => format!("{name} at OpenAI"),
            (None, None) => "the built-in demo, which follows rules; set TOOLGATE_MODEL_BASE_URL and \
                             TOOLGATE_MODEL_NAME for a real one"
                .to_owned(),
        }
    }
}

/// Why `address` cannot be that of a model's server, if that shows: in its words, or because nobody listens there. `own` is
/// the port that the gateway listens on; `direct` tells that no proxy stands between.
pub async fn doubt(address: &Url, own: u16, direct: bool) -> Option<String> {
    let path = address.path().trim_end_matches('/');
    let shown = without_password(address.as_str());
    if let Some(operation) = OPERATIONS.iter().find(|operation| path.ends_with(*operation)) {
        let right = shown.trim_end_matches('/').trim_end_matches(operation);
        return Some(format!(
            "{shown} names an operation, leave out {operation}: {right}"
        ));
    }
    let host = address.host_str()?;
    let port = address.port_or_known_default()?;
    let is_loopback = matches!(host, "localhost" | "127.0.0.1" | "[::1]" | "0.0.0.0");
    if is_loopback && port == own {
        return Some(format!(
            "{shown} is the address of this gateway, not of a model's server"
        ));
    }
    if !direct || address.scheme() != "http" {
        return None;
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let reason = match tokio::time::timeout(CONNECT_MAX, TcpStream::connect((host, port))).await {
        Ok(Ok(_)) => return None,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no connection within {CONNECT_MAX:?}"),
    };
    Some(format!(
        "nobody answers at {host}:{port} ({reason}); runs fail until a model's server listens there"
    ))
}

/// The address without a password that stands in it.
fn without_password(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut url) if url.password().is_some() => {
            // Fails for addresses that can have no password, and this one has.
            let _ = url.set_password(None);
            url.into()
        }
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn doubts(address: &str) -> Option<String> {
        doubt(&Url::parse(address).unwrap(), 8787, false).await
    }

    #[tokio::test]
    async fn an_address_that_cannot_be_right_is_doubted_in_words() {
        for (address, words) in [
            (
                "http://box:1/v1/chat/completions",
                "leave out /chat/completions: http://box:1/v1",
            ),
            ("http://box:1/v1/models/", "leave out /models: http://box:1/v1"),
            ("http://localhost:8787/v1", "this gateway"),
        ] {
            let told = doubts(address).await.expect("is doubted");
            assert!(told.contains(words), "{told}");
        }
        for address in [
            "http://box:1/v1",
            "https://api.example.com",
            "http://127.0.0.1:8080/v1",
        ] {
            assert_eq!(doubts(address).await, None);
        }
    }

    #[tokio::test]
    async fn a_server_that_nobody_runs_is_doubted_and_one_that_listens_is_not() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let address = Url::parse(&address).unwrap();
        assert_eq!(doubt(&address, 8787, true).await, None);
        drop(listener);
        let told = doubt(&address, 8787, true).await.expect("nobody listens");
        assert!(told.contains("nobody answers at 127.0.0.1:"), "{told}");
    }

    #[test]
    fn a_password_in_the_address_is_not_printed() {
        let model = Model {
            base_url: Some("http://me:secret@box/v1".into()),
            ..Model::default()
        };
        assert_eq!(model.sentence(), "default at http://me@box/v1");
    }
}
