//! Lets whoever runs a call ask the model of the run that made it: an MCP server that may sample. The run pays for it, and
//! what it cost is stored before the reply is passed on.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use futures_util::FutureExt as _;
use toolgate_fair::Share;
use toolgate_kernel::agent::ModelSpec;
use toolgate_kernel::event::{Budget, FinishReason, Usage};
use toolgate_kernel::id::{CallId, EntityId, ProjectId, RunId};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::prompt::{ToolChoice, Turn};
use toolgate_kernel::run::Arrival;

use crate::Inner;
use crate::budget::Asked;
use crate::estimate;
use crate::model::{Ask, Delta, ReplySink};
use crate::run_tree::beyond;

/// How often one call may have the model asked.
pub const SAMPLINGS_MAX: u32 = 16;
/// Longest reply in bytes; what the model writes beyond it is dropped.
pub const SAMPLED_BYTES_MAX: usize = 32 << 10;

/// Asks the model of the run that a call belongs to. Clones count together. The default asks nobody.
#[derive(Clone, Default)]
pub struct Sampling(Option<Arc<Asker>>);

/// What a model is asked on behalf of a tool. It is told nothing of the conversation.
#[derive(Debug, Clone, Default)]
pub struct SamplingRequest {
    /// The system prompt.
    pub instructions: String,
    /// What was said so far.
    pub turns: Vec<Turn>,
    /// Most tokens of the reply; that of the agent if it is less.
    pub max_output_tokens: u32,
    /// Sampling temperature; that of the agent if there is none.
    pub temperature: Option<f64>,
}

/// What a model replied to a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The reply.
    pub text: String,
    /// Vendor's name of the model.
    pub model: String,
    /// Whether the reply was cut for its length.
    pub is_cut: bool,
}

/// One call, and the model of its run.
pub(crate) struct Asker {
    /// Weak: a call that outlives the engine keeps nothing of it.
    pub inner: Weak<Inner>,
    pub root: RunId,
    pub project: ProjectId,
    /// The person that the run works for.
    pub user: Option<EntityId>,
    pub agent: AgentName,
    pub call: CallId,
    pub model: ModelSpec,
    pub budget: Budget,
    pub share: Share,
    /// Samplings of the call that are stored.
    pub asked: AtomicU32,
}

impl Sampling {
    pub(crate) fn new(asker: Asker) -> Self {
        Self(Some(Arc::new(asker)))
    }

    /// Asks the model. The error says in words why there is no reply. One at a time: of two at once, one is refused.
    pub async fn sample(&self, request: SamplingRequest) -> Result<Sampled, String> {
        let asker = self.0.as_ref().ok_or("no model can be asked for this call")?;
        let inner = asker.inner.upgrade().ok_or("the gateway is being stopped")?;
        let number = asker.asked.load(Ordering::Acquire) + 1;
        if number > SAMPLINGS_MAX {
            return Err(format!(
                "this call has had the model asked {SAMPLINGS_MAX} times, and may not any more"
            ));
        }
        let tree = inner.store.run_tree(asker.root).await;
        let tree = tree.map_err(|_| "what the run has used so far cannot be read now".to_owned())?;
        if let Some(words) = beyond(tree, asker.budget) {
            return Err(words);
        }
        if let Err(error) = inner.check_budgets(asker.asked_for()).await {
            let words = error.to_user();
            return Err(words.unwrap_or_else(|| "what was consumed so far cannot be read now".to_owned()));
        }
        let ask = asker.ask(request);
        let (words, reason, usage) = asker.reply(&inner, &ask).await?;
        let arrival = Arrival::Sampled {
            call: asker.call,
            number,
            usage,
        };
        let counted = inner.deliver(asker.call.run, arrival, |_| Some(())).await;
        counted.map_err(|error| format!("the reply of the model could not be counted: {error}"))?;
        asker.asked.store(number, Ordering::Release);
        Ok(Sampled {
            is_cut: words.is_cut || reason == FinishReason::Length,
            text: words.text,
            model: ask.model.name.name,
        })
    }
}

impl Asker {
    fn asked_for(&self) -> Asked<'_> {
        Asked {
            project: self.project,
            user: self.user,
            agent: &self.agent,
            model: Some(&self.model.name),
        }
    }

    fn ask(&self, request: SamplingRequest) -> Ask {
        let own = self.model.max_output_tokens.unwrap_or(u32::MAX);
        Ask {
            model: ModelSpec {
                max_output_tokens: Some(own.min(request.max_output_tokens)),
                temperature: request.temperature.or(self.model.temperature),
                reasoning_tokens: None,
                ..self.model.clone()
            },
            instructions: request.instructions.into(),
            today: "".into(),
            turns: request.turns.into_iter().map(Arc::new).collect(),
            tools: [].into(),
            tool_choice: ToolChoice::None,
        }
    }

    async fn reply(&self, inner: &Inner, ask: &Ask) -> Result<(Words, FinishReason, Usage), String> {
        let turn = inner.model_calls.turn(self.share, 0).await;
        let _turn = turn.map_err(|_| "too many requests wait for a model; try again in a moment")?;
        let mut words = Words::default();
        let replying = AssertUnwindSafe(inner.model.reply(ask, &mut words)).catch_unwind();
        let ending = replying.await.map_err(|_| "the model's adapter broke down")?;
        let ending = ending.map_err(|error| {
            // What a vendor says of its own is for the operator.
            tracing::warn!(%error, call = %self.call, "a model that a tool asked has failed");
            "the model gave no reply"
        })?;
        let usage = match ending.usage.total() {
            0 => estimate::usage_of(ask, words.text.len() as u64),
            _ => ending.usage,
        };
        Ok((words, ending.reason, usage))
    }
}

/// The text of a reply, up to its limit.
#[derive(Default)]
struct Words {
    text: String,
    is_cut: bool,
}

impl ReplySink for Words {
    fn delta(&mut self, delta: Delta<'_>) {
        let Delta::Text(more) = delta else { return };
        let room = SAMPLED_BYTES_MAX - self.text.len();
        let end = more.floor_char_boundary(room);
        self.text.push_str(&more[..end]);
        self.is_cut |= end < more.len();
    }
    fn flush(&mut self) {}
}
