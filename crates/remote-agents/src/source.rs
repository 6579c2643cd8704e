//! The source of tools that are remote agents.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use tokio::time::Instant;
use toolgate_egress::{Egress, Policy, Secrets, USER_TOKEN};
use toolgate_engine::clock::Clock;
use toolgate_engine::records::Records;
use toolgate_engine::tools::{CallContext, CallFailure, Called, ToolSource};
use toolgate_engine::workspace::Workspace;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::members::Members;
use toolgate_kernel::problem::{Problem, Problems};
use toolgate_kernel::question::Answer;
use toolgate_kernel::tool::{Binding, Listed, SourceTool, ToolList};
use toolgate_tools::{OutboundResolver, OutboundSettings};

use crate::card::{self, KnownCard, NoCard};
use crate::cards::{Cards, card_in};
use crate::config::AgentConfig;
use crate::endpoint::Endpoint;
use crate::open_streams::OpenStreams;
use crate::remote::Remote;
use crate::remote_call::RemoteCall;
use crate::task_handle::TaskHandle;

/// Name of the source, which stands in every definition that a run has pinned.
pub const SOURCE: &str = "remote-agent";
/// The execution type, which is this source's where the execution has an address.
const EXECUTION_TYPE: &str = "ai-agent";
/// Longest time that a card is waited for.
const CARD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a card that was fetched counts for calls.
const CARD_FRESH_FOR: Duration = Duration::from_secs(300);
/// Cards that are in memory.
const FETCHED_MAX: usize = 1_000;
/// Members of a tool that a card gives where its author says nothing.
const TOLD_BY_CARD: [&str; 2] = ["name", "description"];

/// What remote agents are reached with.
pub struct RemoteAgentParts {
    /// Store of the cards.
    pub records: Arc<dyn Records>,
    /// Clock of the engine.
    pub clock: Arc<dyn Clock>,
    /// Connections to servers of others.
    pub egress: Egress,
    /// What the tools of a project may reach, and with which secrets.
    pub outbound: Arc<dyn OutboundResolver>,
    /// Takes files that agents give.
    pub workspace: Workspace,
}

/// Agents of other servers as tools: `{"executionType": "ai-agent", "execution": {"url": "https://…"}}`.
pub struct RemoteAgents {
    cards: Cards,
    clock: Arc<dyn Clock>,
    egress: Egress,
    outbound: Arc<dyn OutboundResolver>,
    workspace: Workspace,
    streams: OpenStreams,
    fetched: Mutex<FetchedCards>,
}

/// Cards that were fetched lately, by project and address.
type FetchedCards = HashMap<(ProjectId, String), (Instant, Arc<KnownCard>)>;

impl RemoteAgents {
    /// A source that keeps cards in `parts.records`.
    pub fn new(parts: RemoteAgentParts) -> Self {
        Self {
            cards: Cards::new(parts.records, parts.clock.clone()),
            clock: parts.clock,
            egress: parts.egress,
            outbound: parts.outbound,
            workspace: parts.workspace,
            streams: OpenStreams::default(),
            fetched: Mutex::default(),
        }
    }

    /// Fetches a card, and keeps it in memory.
    async fn fetch(&self, project: ProjectId, config: &AgentConfig) -> Result<Arc<KnownCard>, NoCard> {
        let outbound = self.outbound.outbound_settings(project).await;
        let outbound = outbound.map_err(|_| "the project's settings cannot be read now".to_owned())?;
        // A card is fetched for nobody in particular, so no user's token is sent.
        let of_everybody = AgentConfig {
            headers: config
                .headers
                .iter()
                .filter(|(_, value)| !value.contains(USER_TOKEN))
                .cloned()
                .collect(),
            ..config.clone()
        };
        let headers = headers(&of_everybody, &outbound.secrets).map_err(|failure| failure.message)?;
        let client = self.egress.client(policy(&outbound).within(CARD_TIMEOUT));
        let card = card::fetch(&client, &config.url, &headers).await;
        let card = Arc::new(card.map_err(|words| outbound.secrets.hide(&words))?);
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        if fetched.len() >= FETCHED_MAX {
            fetched.clear();
        }
        fetched.insert((project, config.url.to_string()), (Instant::now(), card.clone()));
        Ok(card)
    }

    /// The card that a call goes by: a fresh one, or else the stored one.
    async fn card(&self, project: ProjectId, config: &AgentConfig) -> Result<Arc<KnownCard>, CallFailure> {
        let url = config.url.to_string();
        let fresh = {
            let fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
            let known = fetched.get(&(project, url.clone()));
            known
                .filter(|(since, _)| since.elapsed() < CARD_FRESH_FOR)
                .map(|(_, card)| card.clone())
        };
        if let Some(card) = fresh {
            return Ok(card);
        }
        let stored = self.cards.get(project, &url).await?;
        match (self.fetch(project, config).await, stored) {
            (Ok(card), Some(_)) => Ok(card),
            (Ok(card), None) => {
                self.cards.put(project, &url, &card).await?;
                Ok(card)
            }
            (Err(_), Some(stored)) => Ok(Arc::new(stored)),
            (Err(words), None) => Err(CallFailure::unavailable(format!(
                "the remote agent is not available, and the message was not sent: {words}"
            ))),
        }
    }

    /// A call that speaks to the agent at `endpoint`.
    async fn call_at<'a>(
        &'a self,
        config: &'a AgentConfig,
        endpoint: Endpoint,
        credentials: Vec<String>,
        context: &'a CallContext,
    ) -> Result<RemoteCall<'a>, CallFailure> {
        let outbound = self.outbound.outbound_settings(context.project).await?;
        let secrets = match config.passes_user_token() {
            false => outbound.secrets.clone(),
            true => with_user_token(config, context, &outbound)?,
        };
        let headers = headers(config, &secrets)?;
        let egress = self.egress.within(context.share());
        Ok(RemoteCall {
            config,
            remote: Remote::new(&egress, policy(&outbound), endpoint, headers, config.bytes_max),
            secrets,
            credentials,
            streams: &self.streams,
            workspace: &self.workspace,
            clock: &*self.clock,
            context,
        })
    }

    /// Fetches and stores the card of one tool of an agent that is about to be saved. A problem when the tool cannot do
    /// without it.
    async fn prepare(&self, project: ProjectId, index: usize, tool: &Value) -> Option<Problem> {
        let problems = Problems::default();
        let pointer = format!("/tools/{index}");
        let known: Vec<&str> = tool.as_object()?.keys().map(String::as_str).collect();
        let config = AgentConfig::read(&Members::open(tool, &pointer, &known, &problems)?)?;
        let url = config.url.to_string();
        match self.fetch(project, &config).await {
            // What cannot be stored now is fetched again at the first call.
            Ok(card) => {
                if let Err(error) = self.cards.put(project, &url, &card).await {
                    tracing::warn!(%error, "the card of a remote agent is not stored");
                }
                unknown_skill(&config, &card)
                    .map(|words| Problem::new(format!("{pointer}/execution/skill"), words))
            }
            Err(words) => {
                let needs = TOLD_BY_CARD
                    .iter()
                    .any(|member| tool.get(member).is_none_or(Value::is_null));
                let is_stored = self
                    .cards
                    .get(project, &url)
                    .await
                    .is_ok_and(|card| card.is_some());
                (needs && !is_stored).then(|| {
                    let words = format!(
                        "the remote agent's card is needed, since the tool has no name or no description of its own: {words}"
                    );
                    Problem::new(format!("{pointer}/execution/url"), words)
                })
            }
        }
    }
}

/// Public addresses and those on the project's list.
fn policy(outbound: &OutboundSettings) -> Policy {
    Policy::public(outbound.allow.clone())
}

fn headers(config: &AgentConfig, secrets: &Secrets) -> Result<HeaderMap, CallFailure> {
    let mut headers = HeaderMap::new();
    for (name, written) in &config.headers {
        let text = secrets.fill(written, str::to_owned).map_err(|name| {
            CallFailure::failed(format!(
                "the gateway has no secret named {name:?}; its operator has to set one"
            ))
        })?;
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            let words = format!(
                "the header {name} would hold a character that no header can carry, such as a line break"
            );
            CallFailure::failed(words)
        })?;
        value.set_sensitive(true);
        headers.insert(name.clone(), value);
    }
    Ok(headers)
}

/// The secrets with the user's token, if the operator lets it be passed on to the agent.
fn with_user_token(
    config: &AgentConfig,
    context: &CallContext,
    outbound: &OutboundSettings,
) -> Result<Secrets, CallFailure> {
    let origin = config.url.origin();
    if !outbound.user_token.contains(&origin) {
        let words = format!(
            "the user's token may not be passed on to {}; the operator can allow it with the setting outside.user_token",
            origin.ascii_serialization()
        );
        return Err(CallFailure::new(ErrorCode::PermissionDenied, words));
    }
    let token = context.user_token.clone();
    let token = token.map_err(|why| CallFailure::unavailable(why.to_string()))?;
    Ok(outbound.secrets.with_user_token(token))
}

fn unknown_skill(config: &AgentConfig, card: &KnownCard) -> Option<String> {
    let wanted = config.skill.as_ref()?;
    let there: Vec<&str> = card.skills.iter().map(|skill| skill.id.as_str()).collect();
    let is_there = there.contains(&wanted.as_str());
    (!is_there).then(|| {
        format!(
            "the card of the agent has no skill {wanted:?}; there are: {}",
            there.join(", ")
        )
    })
}

#[async_trait]
impl ToolSource for RemoteAgents {
    fn name(&self) -> &'static str {
        SOURCE
    }
    fn execution_types(&self) -> &'static [&'static str] {
        &[EXECUTION_TYPE]
    }
    fn read(&self, tool: &Members<'_>, list: &ToolList) -> Option<Binding> {
        let config = AgentConfig::read(tool)?;
        let card = card_in(list, config.url.as_str());
        let usual = card::usual(card.as_ref(), config.skill.as_deref(), &config.url);
        let pinned = config.pinned(tool.get("execution")?);
        Some(Binding::configured("agent", pinned.into(), usual))
    }
    /// A card alone is no tool: agents say which they use, and by which name.
    fn written_out(&self, _name: &str, _listed: &Listed) -> Option<Value> {
        None
    }
    fn passes_user_token(&self, tool: &SourceTool) -> bool {
        AgentConfig::of(tool).is_ok_and(|config| config.passes_user_token())
    }
    async fn check_agent(&self, project: ProjectId, config: &Value) -> Vec<Problem> {
        let tools = config.get("tools").and_then(Value::as_array);
        let tools = tools.into_iter().flatten().enumerate();
        let remote = tools.filter(|(_, tool)| {
            tool["executionType"] == EXECUTION_TYPE && tool["execution"].get("url").is_some()
        });
        let prepared = join_all(remote.map(|(index, tool)| self.prepare(project, index, tool))).await;
        prepared.into_iter().flatten().collect()
    }
    async fn list(&self, project: ProjectId) -> Result<Arc<ToolList>, CallFailure> {
        Ok(self.cards.list(project).await?)
    }
    /// Its list holds cards, which take no names.
    async fn names(&self, _: ProjectId) -> Result<Vec<String>, CallFailure> {
        Ok(Vec::new())
    }
    async fn call(
        &self,
        tool: &SourceTool,
        input: &Json,
        context: &CallContext,
    ) -> Result<Called, CallFailure> {
        let config = AgentConfig::of(tool)?;
        let card = self.card(context.project, &config).await?;
        let endpoint = card.endpoint(&config.url).map_err(|words| {
            CallFailure::unavailable(format!(
                "the remote agent cannot be spoken to, and the message was not sent: {words}"
            ))
        })?;
        let call = self
            .call_at(&config, endpoint, card.credentials.clone(), context)
            .await?;
        call.begin(input, card.reads_json).await
    }
    async fn resume(
        &self,
        tool: &SourceTool,
        _: &Json,
        task: &str,
        answers: &[Answer],
        context: &CallContext,
    ) -> Result<Called, CallFailure> {
        let handle = TaskHandle::read(task)
            .ok_or_else(|| CallFailure::failed("the task of this call cannot be read"))?;
        let config = AgentConfig::of(tool)?;
        let call = self
            .call_at(&config, handle.endpoint.clone(), Vec::new(), context)
            .await?;
        call.resume(handle, answers).await
    }
    async fn abandon(&self, tool: &SourceTool, task: &str, project: ProjectId) {
        let Some(handle) = TaskHandle::read(task) else {
            return;
        };
        drop(self.streams.take(handle.call));
        let Ok(config) = AgentConfig::of(tool) else { return };
        let Ok(outbound) = self.outbound.outbound_settings(project).await else {
            return;
        };
        // A user's token cannot be had any more: the agent is told without it, and may refuse.
        let Ok(headers) = headers(&config, &outbound.secrets) else {
            return;
        };
        let remote = Remote::new(
            &self.egress,
            policy(&outbound),
            handle.endpoint,
            headers,
            config.bytes_max,
        );
        if let Err(error) = remote.cancel(&handle.id).await {
            tracing::debug!(%error, "the task of a remote agent is not cancelled");
        }
    }
}
