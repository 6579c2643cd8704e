//! A client of either era, on the SDK.

use std::collections::HashMap;
use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderValue};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, Implementation, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{
    ClientLifecycleMode, NotificationContext, RequestContext, RoleClient, RunningService,
    serve_client_with_lifecycle,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ErrorData};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use toolgate_testkit_http::world::SECRET;

use crate::gateway::soon;

/// The era that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Modern,
    Legacy,
}

/// A person before a client: says yes to everything, and writes down what happens.
#[derive(Clone)]
pub struct Person {
    events: mpsc::UnboundedSender<String>,
    knows_tasks: bool,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation();
        let capabilities = match self.knows_tasks {
            true => capabilities.enable_tasks().build(),
            false => capabilities.build(),
        };
        let mut config = ClientConfig::new(capabilities, Implementation::new("matrix", "1"));
        config.protocol_version = ProtocolVersion::V_2025_11_25;
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = serde_json::to_value(&request).unwrap_or_default();
        self.note(format!("asked {}", asked["message"].as_str().unwrap_or_default()));
        let answer =
            json!({"action": "accept", "content": {"name": "Ada", "confirm": true, "color": "blue"}});
        Ok(serde_json::from_value(answer).unwrap())
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.note(format!("progress {}", progress.progress));
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.note("tools changed".into());
    }
}

impl Person {
    fn note(&self, event: String) {
        // A test that has seen enough reads no more.
        let _ = self.events.send(event);
    }
}

/// A client that is connected.
pub struct Client {
    pub service: RunningService<RoleClient, Person>,
    events: Arc<Mutex<mpsc::UnboundedReceiver<String>>>,
}

impl Client {
    pub async fn connect(url: &str, era: Era) -> Self {
        let (events, heard) = mpsc::unbounded_channel();
        let person = Person {
            events,
            knows_tasks: era == Era::Modern,
        };
        let key = HeaderValue::try_from(format!("Bearer {SECRET}")).unwrap();
        let config = StreamableHttpClientTransportConfig::with_uri(url)
            .custom_headers(HashMap::from([(AUTHORIZATION, key)]));
        let transport = StreamableHttpClientTransport::from_config(config);
        let lifecycle = match era {
            Era::Modern => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
            Era::Legacy => ClientLifecycleMode::Initialize,
        };
        let connecting = serve_client_with_lifecycle(person, transport, lifecycle);
        let service = soon("connect", connecting).await.unwrap();
        Self {
            service,
            events: Arc::new(Mutex::new(heard)),
        }
    }

    /// Calls a tool, and answers what it asks.
    pub async fn call(&self, tool: &str, arguments: Value) -> CallToolResult {
        let called = soon(tool, self.service.call_tool(params(tool, arguments))).await;
        called.unwrap_or_else(|error| panic!("{tool}: {error}"))
    }

    /// Waits until this has happened.
    pub async fn hears(&self, event: &str) {
        let mut events = self.events.lock().await;
        let heard = async {
            while let Some(heard) = events.recv().await {
                if heard == event {
                    return;
                }
            }
            panic!("the client has ended");
        };
        soon(event, heard).await;
    }
}

pub fn params(tool: &str, arguments: Value) -> CallToolRequestParams {
    let mut params = CallToolRequestParams::new(tool.to_owned());
    params.arguments = arguments.as_object().cloned();
    params
}

/// The text of a result.
pub fn text(result: &CallToolResult) -> String {
    let result = serde_json::to_value(result).unwrap();
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}
