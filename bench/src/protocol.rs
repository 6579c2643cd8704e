//! One run of a scenario in each server's own protocol, verified.

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use crate::http::{Connection, member};
use crate::stub::TOKEN;

/// The gateway's agent of the bench.
pub const AGENT: &str = "bench";
/// The same agent with a context window: its runs cost the same however long the space is.
pub const WINDOWED_AGENT: &str = "bench-windowed";
/// Tokens that the model of that agent is given.
const WINDOW_TOKENS: u64 = 4_000;
/// The gateway's key of the bench.
pub const KEY: &str = "sk_bench_000102030405060708090a0b0c0d0e0f";
const INSTRUCTIONS: &str = "You are a helpful assistant.";
const ANSWER: &str = r#"{"choice":"red"}"#;

/// How a server is spoken to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The gateway's own door: runs, events, tool results.
    Native,
    /// The AI SDK's UI message stream: every request carries the conversation.
    UiMessages,
    /// Chat completions: whoever asks runs the tools itself.
    Completions,
}

/// What a run consists of.
pub struct Scenario {
    pub name: &'static str,
    pub title: &'static str,
    tools: usize,
    tool: &'static str,
    pub tokens: usize,
}

/// The scenario of an agent whose tool is an MCP server's.
pub static MCP: Scenario = scenario(
    "M",
    "one call of an MCP server's tool, then 20 tokens",
    1,
    "echo",
    20,
);

pub const SCENARIOS: [Scenario; 4] = [
    scenario("A", "plain chat, 20 tokens", 0, "", 20),
    scenario("B", "three server tool calls, then 20 tokens", 3, "echo", 20),
    scenario("C", "client tool round trip, then 20 tokens", 1, CLIENT_TOOL, 20),
    scenario("D", "one answer of 2,000 tokens", 0, "", 2000),
];
const CLIENT_TOOL: &str = "ask_user";
/// The scenario that pauses.
pub const PAUSING: &Scenario = &SCENARIOS[2];

const fn scenario(
    name: &'static str,
    title: &'static str,
    tools: usize,
    tool: &'static str,
    tokens: usize,
) -> Scenario {
    Scenario {
        name,
        title,
        tools,
        tool,
        tokens,
    }
}

impl Scenario {
    fn pauses(&self) -> bool {
        self.tool == CLIENT_TOOL
    }
    /// The user's message, which is also the stub's script.
    pub fn prompt(&self) -> String {
        let Self {
            tools, tool, tokens, ..
        } = self;
        format!("A request from the bench. tools:{tools} call:{tool} text:{tokens}")
    }
}

/// How long a verified run took.
#[derive(Clone, Copy)]
pub struct Timing {
    pub whole: Duration,
    pub first_token: Duration,
}

/// A run that waits for its client tool.
pub struct Paused {
    started: Instant,
    call: Call,
    /// The run's id, or the assistant message's.
    id: String,
}

#[derive(Default)]
struct Call {
    id: String,
    name: String,
    input: String,
}

pub struct Client {
    connection: Connection,
    protocol: Protocol,
    /// Runs go on in this space; none gives each its own.
    space: Option<String>,
    agent: &'static str,
}

impl Client {
    pub fn new(server: SocketAddr, protocol: Protocol) -> Self {
        let key = match protocol {
            Protocol::Native => format!("authorization: Bearer {KEY}\r\n"),
            Protocol::UiMessages | Protocol::Completions => String::new(),
        };
        let connection = Connection::new(server, &format!("accept: text/event-stream\r\n{key}"));
        Self {
            connection,
            protocol,
            space: None,
            agent: AGENT,
        }
    }

    /// One whose runs are this agent's of the gateway.
    pub fn asking(self, agent: &'static str) -> Self {
        Self { agent, ..self }
    }

    /// Posts messages to its space that nobody answers.
    pub async fn fill(&mut self, messages: usize) -> anyhow::Result<()> {
        let space = self.space.as_ref().context("no space to fill")?;
        let path = format!("/v1/spaces/{space}/messages");
        let body = json!({"message": SCENARIOS[0].prompt(), "respond": false}).to_string();
        for _ in 0..messages {
            self.connection.exchange("POST", &path, &body, |_| {}).await?;
        }
        Ok(())
    }

    /// Makes a space on the gateway and stays in it.
    pub async fn enter_new_space(&mut self) -> anyhow::Result<()> {
        let space = self.connection.json("POST", "/v1/spaces", "{}").await?;
        self.space = Some(string(&space, "id"));
        Ok(())
    }

    /// Runs a scenario to its end.
    pub async fn run(&mut self, scenario: &Scenario) -> anyhow::Result<Timing> {
        let started = Instant::now();
        if self.protocol == Protocol::Completions {
            return self.run_tools_here(scenario, started).await;
        }
        if scenario.pauses() {
            let paused = self.pause(scenario).await?;
            return self.resume(scenario, paused).await;
        }
        let seen = self.ask(&scenario.prompt()).await?;
        ensure!(
            seen.outputs == scenario.tools,
            "{} tool outputs instead of {}",
            seen.outputs,
            scenario.tools
        );
        seen.verify(scenario, started)
    }

    /// Runs a scenario up to the moment when it waits for its client tool.
    pub async fn pause(&mut self, scenario: &Scenario) -> anyhow::Result<Paused> {
        let started = Instant::now();
        let seen = self.ask(&scenario.prompt()).await?;
        ensure!(seen.paused, "the run does not wait");
        ensure!(seen.text_bytes == 0, "text before the client tool has run");
        Ok(Paused {
            started,
            call: seen.call.context("no call")?,
            id: seen.id,
        })
    }

    /// Answers the client tool and takes the rest of the run. The times count from the start of the run.
    pub async fn resume(&mut self, scenario: &Scenario, paused: Paused) -> anyhow::Result<Timing> {
        let Paused { started, call, id } = paused;
        let seen = match self.protocol {
            Protocol::Native => {
                let body = format!(r#"{{"toolCallId":"{}","result":{ANSWER}}}"#, call.id);
                self.post(&format!("/v1/runs/{id}/tool-results"), &body).await?
            }
            Protocol::UiMessages => {
                let mut part = json!({"type": format!("tool-{}", call.name), "toolCallId": call.id, "state": "output-available"});
                part["input"] = serde_json::from_str(&call.input)?;
                part["output"] = serde_json::from_str(ANSWER)?;
                let assistant =
                    json!({"id": id, "role": "assistant", "parts": [{"type": "step-start"}, part]});
                self.post("/api/chat", &ui_messages(&scenario.prompt(), Some(assistant)))
                    .await?
            }
            Protocol::Completions => bail!("a relay pauses nothing"),
        };
        ensure!(!seen.paused, "the run waits again");
        seen.verify(scenario, started)
    }

    async fn ask(&mut self, prompt: &str) -> anyhow::Result<Seen> {
        match self.protocol {
            Protocol::Native => {
                let mut body = json!({"agent": self.agent, "message": prompt});
                if let Some(space) = &self.space {
                    body["spaceId"] = space.as_str().into();
                }
                self.post("/v1/runs", &body.to_string()).await
            }
            Protocol::UiMessages => self.post("/api/chat", &ui_messages(prompt, None)).await,
            Protocol::Completions => bail!("the relay has no agent to ask"),
        }
    }

    /// The relay has no agent: the conversation grows here.
    async fn run_tools_here(&mut self, scenario: &Scenario, started: Instant) -> anyhow::Result<Timing> {
        let mut turns = json!({"role": "user", "content": scenario.prompt()}).to_string();
        for _ in 0..scenario.tools {
            let seen = self.complete(&turns).await?;
            let call = seen.call.context("no call")?;
            let output = if scenario.pauses() { ANSWER } else { &call.input };
            let function = json!({"name": call.name, "arguments": call.input});
            let asked = json!({"role": "assistant", "content": null, "tool_calls": [{"id": call.id, "type": "function", "function": function}]});
            let result = json!({"role": "tool", "tool_call_id": call.id, "content": output});
            turns += &format!(",{asked},{result}");
        }
        self.complete(&turns).await?.verify(scenario, started)
    }

    async fn complete(&mut self, turns: &str) -> anyhow::Result<Seen> {
        let body = format!("{}{turns}]}}", *COMPLETION_HEAD);
        self.post("/v1/chat/completions", &body).await
    }

    async fn post(&mut self, path: &str, body: &str) -> anyhow::Result<Seen> {
        let mut seen = Seen::default();
        let take = match self.protocol {
            Protocol::Native => Seen::native,
            Protocol::UiMessages => Seen::ui_message,
            Protocol::Completions => Seen::completion,
        };
        self.connection
            .events(path, body, |event| take(&mut seen, event))
            .await?;
        if let Some(fault) = seen.fault.take() {
            bail!(fault);
        }
        ensure!(
            seen.ended || seen.paused,
            "the stream stopped before the run ended"
        );
        Ok(seen)
    }
}

fn ui_messages(prompt: &str, assistant: Option<Value>) -> String {
    let user = json!({"id": "message-1", "role": "user", "parts": [{"type": "text", "text": prompt}]});
    let messages: Vec<Value> = [Some(user), assistant].into_iter().flatten().collect();
    json!({"id": "chat-1", "trigger": "submit-message", "messages": messages}).to_string()
}

/// What one streamed answer said.
#[derive(Default)]
struct Seen {
    first_token: Option<Instant>,
    text_bytes: usize,
    outputs: usize,
    call: Option<Call>,
    id: String,
    paused: bool,
    ended: bool,
    fault: Option<String>,
}

impl Seen {
    fn verify(&self, scenario: &Scenario, started: Instant) -> anyhow::Result<Timing> {
        let expected = scenario.tokens * TOKEN.len();
        ensure!(self.ended, "the run did not end");
        ensure!(
            self.text_bytes == expected,
            "{} bytes of text instead of {expected}",
            self.text_bytes
        );
        let first = self.first_token.context("no text")?;
        Ok(Timing {
            whole: started.elapsed(),
            first_token: first - started,
        })
    }

    fn text(&mut self, delta: Option<&[u8]>) {
        let bytes = delta.map_or(0, <[u8]>::len);
        if bytes > 0 {
            self.first_token.get_or_insert_with(Instant::now);
            self.text_bytes += bytes;
        }
    }

    fn native(&mut self, event: &[u8]) {
        match member(event, r#""type":""#).unwrap_or_default() {
            b"text-delta" => self.text(member(event, r#""delta":""#)),
            b"tool-output-available" => self.outputs += 1,
            b"tool-input-available" => self.called(event),
            b"run-start" => self.id = member(event, r#""runId":""#).map_or_else(String::new, lossy),
            b"run-status" => self.paused = member(event, r#""status":""#) == Some(b"waiting_tool"),
            b"run-finish" if member(event, r#""status":""#) == Some(b"completed") => self.ended = true,
            b"run-finish" | b"tool-output-error" | b"tool-output-denied" => self.fault = Some(lossy(event)),
            _ => {}
        }
    }

    fn ui_message(&mut self, event: &[u8]) {
        match member(event, r#""type":""#).unwrap_or_default() {
            b"text-delta" => self.text(member(event, r#""delta":""#)),
            b"tool-output-available" => self.outputs += 1,
            b"tool-input-available" => self.called(event),
            b"start" => self.id = member(event, r#""messageId":""#).map_or_else(|| "message-2".into(), lossy),
            // A stream that ends on an open call has no other sign of it.
            b"finish" if self.text_bytes == 0 => self.paused = true,
            b"finish" => self.ended = true,
            b"error" | b"abort" | b"tool-input-error" | b"tool-output-error" => {
                self.fault = Some(lossy(event))
            }
            _ => {}
        }
    }

    fn completion(&mut self, event: &[u8]) {
        if event == b"[DONE]" {
            self.ended = true;
        } else if let Some(delta) = member(event, r#""content":""#) {
            self.text(Some(delta));
        } else if memchr::memmem::find(event, br#""tool_calls":["#).is_some() {
            let chunk: Value = serde_json::from_slice(event).unwrap_or_default();
            let piece = &chunk["choices"][0]["delta"]["tool_calls"][0];
            let call = self.call.get_or_insert_default();
            call.id += &string(piece, "id");
            call.name += &string(&piece["function"], "name");
            call.input += &string(&piece["function"], "arguments");
        }
    }

    fn called(&mut self, event: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Value>(event) else {
            self.fault = Some("an event is not JSON".into());
            return;
        };
        let (id, name) = (string(&event, "toolCallId"), string(&event, "toolName"));
        self.call = Some(Call {
            id,
            name,
            input: event["input"].to_string(),
        });
    }
}

fn string(object: &Value, name: &str) -> String {
    object[name].as_str().unwrap_or_default().into()
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// The gateway's configuration of the bench's agent. Its `echo` is that of the gateway, or of the MCP server `upstream`.
pub fn agent_config(name: &str, model: &str, upstream: Option<&str>) -> String {
    let schema = |text: &str| serde_json::from_str::<Value>(text).expect("a schema is JSON");
    let context = match name {
        WINDOWED_AGENT => json!({"maxTokens": WINDOW_TOKENS}),
        _ => json!({}),
    };
    let (kind, execution) = match upstream {
        Some(server) => ("mcp", json!({"server": server, "tool": "echo"})),
        None => ("basic", json!({"mode": "pass-through"})),
    };
    json!({
        "agent": {"name": name, "system": INSTRUCTIONS},
        "context": context,
        "model": {"provider": "openai", "name": "stub", "baseUrl": model, "apiKey": "none"},
        "loop": {"maxSteps": 10},
        "tools": [
            {"name": "echo", "description": "Echo the given text back.", "parameters": schema(ECHO_SCHEMA),
             "executionType": kind, "execution": execution},
            {"name": "ask_user", "description": "Ask the user to choose.", "parameters": schema(ASK_SCHEMA),
             "executionType": "basic", "execution": null},
        ],
    })
    .to_string()
}

/// A chat completions request up to the first turn.
static COMPLETION_HEAD: LazyLock<String> = LazyLock::new(|| {
    let tool = |name, description, schema| {
        format!(
            r#"{{"type":"function","function":{{"name":"{name}","description":"{description}","parameters":{schema}}}}}"#
        )
    };
    let echo = tool("echo", "Echo the given text back.", ECHO_SCHEMA);
    let ask = tool("ask_user", "Ask the user to choose.", ASK_SCHEMA);
    format!(
        r#"{{"model":"stub","stream":true,"stream_options":{{"include_usage":true}},"tools":[{echo},{ask}],"messages":[{{"role":"system","content":"{INSTRUCTIONS}"}},"#
    )
});
pub const ECHO_SCHEMA: &str = r#"{"type":"object","properties":{"text":{"type":"string","minLength":1,"maxLength":200},"count":{"type":"integer","minimum":0,"maximum":100},"tags":{"type":"array","items":{"type":"string"},"maxItems":10},"options":{"type":"object","properties":{"upper":{"type":"boolean"},"lang":{"type":"string","enum":["en","de","fr"]}},"required":["upper","lang"],"additionalProperties":false}},"required":["text","count","tags","options"],"additionalProperties":false}"#;
const ASK_SCHEMA: &str = r#"{"type":"object","properties":{"question":{"type":"string"},"choices":{"type":"array","items":{"type":"string"},"minItems":1}},"required":["question","choices"],"additionalProperties":false}"#;
