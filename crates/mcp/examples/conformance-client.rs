//! The client that the official conformance suite of MCP drives (`scripts/mcp-conformance`).
//!
//! The suite starts a server, names the scenario in the environment and gives the server's address as the last
//! argument. This program connects, lists, and calls every tool there is, through the crate's front door alone: what
//! the suite sees is what the gateway and the Rust SDK send.

use std::env;
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::Url;
use reqwest::header::LOCATION;
use serde_json::{Map, Value, json};
use toolgate_kernel::agent::Secret;
use toolgate_mcp::oauth::{
    Authorizer, BoxError, Browser, BrowserFlow, Callback, Flow, MemoryTokenStore, OAuth, SigningAlgorithm,
    SigningKey, direct,
};
use toolgate_mcp::{Abilities, CallRequest, Connection, Elicit, Elicitation, ElicitationAnswer, Server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let context = env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let url = env::args()
        .next_back()
        .ok_or("the address of a server is missing")?;
    let mut server = Server::http("conformance", &url).abilities(Abilities {
        elicitation: true,
        ..Abilities::default()
    });
    if scenario.starts_with("auth/") {
        server = server.authorizer(Arc::new(authorizer(&url, &scenario, &context)?));
    }
    let connection = server.connect().await?;
    let outcome = use_tools(&connection, &scenario, &context).await;
    connection.close().await?;
    outcome
}

/// Makes the calls that the suite asks for, or one of each tool.
async fn use_tools(connection: &Connection, scenario: &str, context: &Value) -> Result<(), BoxError> {
    let listed = connection.list().await?;
    let tools: Vec<_> = listed.into_iter().flatten().collect();
    let calls: Vec<(String, Value)> = match (scenario, context["toolCalls"].as_array()) {
        // Its server can be listed and nothing else.
        ("json-schema-ref-no-deref", _) => Vec::new(),
        ("json-schema-2020-12-preservation", _) => {
            let seen = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
            let schema = seen.map(|tool| tool.input_schema.clone());
            vec![("json_schema_echo".into(), json!({ "schema": schema }))]
        }
        (_, Some(calls)) => {
            let name = |call: &Value| call["name"].as_str().unwrap_or_default().to_owned();
            let read = |call: &Value| (name(call), call["arguments"].clone());
            calls.iter().map(read).collect()
        }
        (_, None) => {
            let sample = |tool: toolgate_mcp::Listed| (tool.name, sample(&tool.input_schema));
            tools.into_iter().map(sample).collect()
        }
    };
    for (tool, arguments) in calls {
        let request = CallRequest {
            tool,
            arguments: arguments.as_object().cloned(),
            ..CallRequest::default()
        };
        connection.caller().converse(request, Some(&Agreeable)).await?;
    }
    Ok(())
}

/// Arguments that fit a plain schema.
fn sample(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let value = |property: &Value| match property["type"].as_str() {
        Some("number" | "integer") => json!(2),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("text"),
    };
    properties
        .map(|(name, property)| (name.clone(), value(property)))
        .collect::<Map<_, _>>()
        .into()
}

/// Says yes, and leaves every value at its default.
struct Agreeable;

#[async_trait]
impl Elicit for Agreeable {
    async fn elicit(&self, _elicitation: Elicitation) -> ElicitationAnswer {
        ElicitationAnswer::Accept(None)
    }
}

fn authorizer(url: &str, scenario: &str, context: &Value) -> Result<Authorizer, BoxError> {
    let text = |name: &str| context[name].as_str().map(str::to_owned);
    let flow = match (scenario, text("private_key_pem")) {
        ("auth/client-credentials-jwt", Some(pem)) => {
            let algorithm = text("signing_algorithm").unwrap_or("ES256".into());
            let algorithm = SigningAlgorithm::named(&algorithm).ok_or("an unknown algorithm")?;
            let pem = Secret::new(pem);
            Flow::ClientCredentials(Some(SigningKey { pem, algorithm }))
        }
        ("auth/client-credentials-basic", _) => Flow::ClientCredentials(None),
        _ => Flow::Browser(BrowserFlow {
            redirect_uri: "http://localhost:3000/callback".into(),
            client_name: "Toolgate conformance".into(),
            client_metadata_url: Some("https://conformance-test.local/client-metadata.json".into()),
        }),
    };
    let settings = OAuth {
        client_id: text("client_id"),
        client_secret: text("client_secret").map(Secret::new),
        scopes: Vec::new(),
        flow,
    };
    let http = direct()?;
    let store = Arc::new(MemoryTokenStore::default());
    let authorizer = Authorizer::new(url, settings, store, Arc::new(http.clone()))?;
    Ok(authorizer.browser(Arc::new(Redirected(http))))
}

/// A person who agrees at once: the suite's authorization servers redirect without a page.
struct Redirected(reqwest::Client);

#[async_trait]
impl Browser for Redirected {
    async fn sign_in(&self, authorize_url: &Url) -> Result<Callback, BoxError> {
        let response = self.0.get(authorize_url.clone()).send().await?;
        let location = response.headers().get(LOCATION).ok_or("it does not redirect")?;
        Ok(Callback::from_url(&authorize_url.join(location.to_str()?)?)?)
    }
}
