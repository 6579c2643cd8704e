//! What projects consume: runs, requests to models, tokens and their cost. The append that creates a run counts the run, and
//! the append that stores what a model was asked counts its tokens, so the counters are as durable as the log, the same on
//! every node, and cannot disagree with it.
//!
//! A run counts for its own agent and for the person it works for: whoever wrote the message that the step answers, or asked
//! for the plan that posted it. A child run works for the same person as its parent.

use std::fmt;
use std::ops::{Add, Sub};

use toolgate_kernel::event::{Event, Usage};
use toolgate_kernel::id::{EntityId, ProjectId};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::run::Run;

use crate::Engine;
use crate::price::Prices;
use crate::store::StoreError;
use crate::usage::Day;

/// Most tokens of one kind that one request counts, so that sums do not overflow whatever a vendor reports.
const TOKENS_MAX: u64 = 1 << 40;

/// Stands for no person in the key of a group.
const NOBODY: &str = "nobody";

/// What one append adds to the counters of a day.
#[derive(Debug, Clone, PartialEq)]
pub struct Consumption {
    /// Project that owns the run.
    pub project: ProjectId,
    /// Agent of the run.
    pub agent: AgentName,
    /// The person that the run works for; none for a backend, and for a plan that nobody asked for.
    pub user: Option<EntityId>,
    /// The agent's model, as `provider:name`.
    pub model: String,
    /// What is added.
    pub consumed: Consumed,
}

/// Sums of what was consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Consumed {
    /// Runs that were created, child runs and requested calls among them.
    pub runs: u64,
    /// Replies of models: steps, summaries, and what tools had a model asked.
    pub requests: u64,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// Of those read, how many came from the vendor's cache.
    pub cached_tokens: u64,
    /// Cost by the prices of that time, in millionths of a unit of the currency.
    pub cost_micros: u64,
    /// Requests to models that had no price: what they cost is in no sum.
    pub unpriced_requests: u64,
}

impl Consumed {
    /// One run.
    pub const RUN: Self = Self {
        runs: 1,
        requests: 0,
        input_tokens: 0,
        output_tokens: 0,
        cached_tokens: 0,
        cost_micros: 0,
        unpriced_requests: 0,
    };

    /// Tokens read and written.
    pub fn tokens(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Each sum of both.
    fn zip(self, other: Self, sum: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            runs: sum(self.runs, other.runs),
            requests: sum(self.requests, other.requests),
            input_tokens: sum(self.input_tokens, other.input_tokens),
            output_tokens: sum(self.output_tokens, other.output_tokens),
            cached_tokens: sum(self.cached_tokens, other.cached_tokens),
            cost_micros: sum(self.cost_micros, other.cost_micros),
            unpriced_requests: sum(self.unpriced_requests, other.unpriced_requests),
        }
    }
}

impl Add for Consumed {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }
}

impl Sub for Consumed {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }
}

impl std::iter::Sum for Consumed {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
}

/// Days from the first to the last, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Days {
    /// The first one.
    pub first: Day,
    /// The last one.
    pub last: Day,
}

/// A part of a project whose consumption is summed up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Consumer {
    /// All of it.
    Project,
    /// What runs did for one person.
    User(EntityId),
    /// The runs of one agent.
    Agent(AgentName),
}

/// What consumption is grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumptionBy {
    /// By day.
    Day,
    /// By agent.
    Agent,
    /// By the person that runs worked for.
    User,
    /// By model.
    Model,
}

/// One group of a listing. Groups are listed in the order of their keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConsumptionKey {
    /// A day.
    Day(Day),
    /// An agent.
    Agent(AgentName),
    /// A person; none for runs of nobody.
    User(Option<EntityId>),
    /// A model, as `provider:name`.
    Model(String),
}

impl ConsumptionKey {
    /// The key that was written as `text`; none if it is no key of such a group.
    pub fn parse(by: ConsumptionBy, text: &str) -> Option<Self> {
        Some(match by {
            ConsumptionBy::Day => Self::Day(text.parse().ok()?),
            ConsumptionBy::Agent => Self::Agent(text.parse().ok()?),
            ConsumptionBy::User if text == NOBODY => Self::User(None),
            ConsumptionBy::User => Self::User(Some(text.parse().ok()?)),
            ConsumptionBy::Model => Self::Model(text.to_owned()),
        })
    }
}

/// As it is written in lists; `nobody` for runs that work for no person.
impl fmt::Display for ConsumptionKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Day(day) => day.fmt(out),
            Self::Agent(agent) => agent.fmt(out),
            Self::User(None) => out.write_str(NOBODY),
            Self::User(Some(user)) => user.fmt(out),
            Self::Model(model) => model.fmt(out),
        }
    }
}

/// Which groups to list.
#[derive(Debug, Clone)]
pub struct ConsumptionFilter {
    /// On these days.
    pub days: Days,
    /// What they are grouped by.
    pub by: ConsumptionBy,
    /// Behind this group, which is by the same: the last one of the page before.
    pub after: Option<ConsumptionKey>,
    /// At most so many.
    pub limit: usize,
}

impl Engine {
    /// What a part of a project has consumed on some days.
    pub async fn consumed(
        &self,
        project: ProjectId,
        consumer: Consumer,
        days: Days,
    ) -> Result<Consumed, StoreError> {
        self.inner.store.consumed(project, consumer, days).await
    }

    /// What a project has consumed, in groups, in the order of their keys.
    pub async fn consumption(
        &self,
        project: ProjectId,
        filter: ConsumptionFilter,
    ) -> Result<Vec<(ConsumptionKey, Consumed)>, StoreError> {
        self.inner.store.consumption(project, filter).await
    }
}

/// What an append with these events of `run` adds. `user` is whom the run worked for before them, `cut_off` what a request has
/// used that they leave without a reply.
pub(crate) fn of(
    run: &Run,
    project: ProjectId,
    user: Option<EntityId>,
    events: &[Event],
    cut_off: Option<Usage>,
    prices: &Prices,
) -> Vec<Consumption> {
    // The only step of a requested call is written by the engine: no model was asked.
    let asks_model = run.request().is_none();
    let consumed: Consumed = events
        .iter()
        .filter_map(|event| match event {
            Event::RunStart(_) => Some(Consumed::RUN),
            Event::StepFinish(step) if asks_model => Some(request(run, step.usage, prices)),
            Event::ContextCut(cut) => cut.usage.map(|usage| request(run, usage, prices)),
            Event::ToolSampling(sampling) => Some(request(run, sampling.usage, prices)),
            _ => None,
        })
        .chain(cut_off.map(|usage| request(run, usage, prices)))
        .sum();
    if consumed == Consumed::default() {
        return Vec::new();
    }
    let agent = run.agent();
    vec![Consumption {
        project,
        agent: agent.name.clone(),
        user,
        model: agent.model.name.to_string(),
        consumed,
    }]
}

/// Whether these events hold anything that is counted by [`of`].
pub(crate) fn has_any(events: &[Event]) -> bool {
    events.iter().any(|event| {
        matches!(
            event,
            Event::RunStart(_) | Event::StepFinish(_) | Event::ContextCut(_) | Event::ToolSampling(_)
        )
    })
}

fn request(run: &Run, usage: Usage, prices: &Prices) -> Consumed {
    let price = prices.of(&run.agent().model.name);
    Consumed {
        runs: 0,
        requests: 1,
        input_tokens: usage.input_tokens.min(TOKENS_MAX),
        output_tokens: usage.output_tokens.min(TOKENS_MAX),
        cached_tokens: usage.cached_tokens.min(usage.input_tokens).min(TOKENS_MAX),
        cost_micros: price.map_or(0, |price| price.cost_micros(usage)),
        unpriced_requests: price.is_none().into(),
    }
}
