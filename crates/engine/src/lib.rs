//! Drives runs: asks the kernel what is due, stores what happened, and only then acts. Owns the tasks of
//! runs and defines the seams to models, stores, tools and time. Knows no protocol.
//!
//! Start with [`Engine`]; then `driver` (one task per run that has work), `feed` (live events), and the
//! seams `store`, `model`, `tools`, `clock`.

pub mod activity;
pub mod budget;
pub mod bus;
pub mod call_log;
pub mod clock;
pub mod consents;
pub mod consumption;
pub mod deletion;
pub mod feed;
pub mod intake;
pub mod knowledge;
pub mod model;
pub mod outbox;
pub mod price;
pub mod project;
pub mod push_configs;
pub mod quota;
pub mod record_index;
pub mod record_updater;
pub mod records;
pub mod retention;
pub mod revocation;
pub mod run_changes;
pub mod sampling;
pub mod shared_tools;
pub mod shares;
pub mod sources;
pub mod state_editor;
pub mod store;
pub mod tool_match;
pub mod tool_names;
pub mod tools;
pub mod usage;
pub mod user_tokens;
pub mod workspace;

mod agent_warnings;
mod agents;
mod blocking;
mod call_tools;
mod definitions;
mod deliver;
mod directory;
mod driver;
mod estimate;
mod figures;
mod missed;
mod overflow;
mod post;
mod progress;
mod readiness;
mod reads;
mod reply;
mod run_tree;
mod scheduled_message;
mod seats;
mod sender;
mod start;
mod summary;
mod timekeeper;
mod today;

use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_fair::{Queue, Share, Shares, Spare};
use toolgate_kernel::call::{CallState, Outcome};
use toolgate_kernel::event::{Claim, Seq, Status};
use toolgate_kernel::id::{ApprovalId, CallId, EntityId, NodeId, QuestionId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::question::Response;
use toolgate_kernel::run::{Arrival, Run, Verdict};
use toolgate_kernel::tool::Decider;

use agents::Agents;
use blocking::BlockingPool;
use bus::{Bus, BusHealth};
use call_tools::CallTools;
use clock::Clock;
use consents::Consents;
use deliver::Active;
use feed::{BacklogLimits, Feed, Scope, Subscription};
use intake::{Claimed, Decided, Decision, IntakeError, Receipt, Responded, Submission};
use model::Model;
use progress::OpenCalls;
use project::Projects;
use quota::{QuotaLimits, Quotas};
use revocation::Revocations;
use run_changes::RunChanges;
use seats::Seats;
use sources::Sources;
use store::{Store, StoreError};

pub use agents::AgentError;
pub use blocking::TooManyWait;
pub use call_tools::CallTool;
pub use intake::RESULT_BYTES_UNCHECKED;
pub use overflow::OUTPUT_BYTES_MAX;
pub use post::default_agent;
pub use reads::{CursorPlace, OpenQuestions};
pub use scheduled_message::ScheduledMessage;

/// Tasks of tool sources that are abandoned at once; of more the sources are not told.
const ABANDONS_AT_ONCE: usize = 64;

/// Settings of the engine.
#[derive(Clone)]
pub struct Settings {
    /// This process. The same one after a restart takes up its own runs at once.
    pub node: NodeId,
    /// Runs that may be at work at once; further ones wait as `queued`.
    pub runs_active: Shares,
    /// Requests to models at once; further ones wait.
    pub model_calls: Shares,
    /// Calls of one run on the gateway's side at once.
    pub parallel_calls: usize,
    /// How far a reader may lag behind before it is cut.
    pub reader_backlog: BacklogLimits,
    /// Stored bytes of a space after which a model is given no older entries.
    pub history_bytes_max: usize,
    /// What one user with a public key may have.
    pub quotas: QuotaLimits,
    /// How long a step under way may go on once the gateway is told to stop.
    pub drain: Duration,
    /// How long a node may be silent before others take over its runs.
    pub node_lease: Duration,
    /// Settings of projects: default model, limits and policies.
    pub projects: Arc<dyn Projects>,
    /// Drop a run from memory after every append and rebuild it from its log: for tests.
    pub always_evict: bool,
}

/// Everything the engine works with.
pub struct Parts {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The language models.
    pub model: Arc<dyn Model>,
    /// Where the tools on the gateway's side come from.
    pub tools: Sources,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Joins the nodes that share the store.
    pub bus: Arc<dyn Bus>,
}

/// The handle that doors hold. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

/// What every task of the engine shares.
struct Inner {
    store: Arc<dyn Store>,
    model: Arc<dyn Model>,
    tools: Sources,
    clock: Arc<dyn Clock>,
    bus: Arc<dyn Bus>,
    missed: missed::Missed,
    settings: Settings,
    agents: Agents,
    feed: Arc<Feed>,
    run_changes: Arc<RunChanges>,
    active: Active,
    seats: Seats,
    model_calls: Arc<Queue>,
    open_calls: OpenCalls,
    call_tools: CallTools,
    revocations: Revocations,
    readiness: readiness::Readiness,
    blocking: BlockingPool,
    quotas: Quotas,
    budgets: budget::Budgets,
    user_tokens: user_tokens::UserTokens,
    consents: Consents,
    pasts: driver::Pasts,
    tasks: TaskTracker,
    /// As many tasks of sources are abandoned at once.
    abandons: Arc<Semaphore>,
    /// A run may have a new earliest deadline, or the last run may have left a gateway that goes down.
    look: Notify,
    /// The earliest deadline known here, in milliseconds.
    next_wake: AtomicI64,
    /// Runs to be looked at again, and when.
    figures: figures::Figures,
    adrift: Mutex<Vec<(RunId, Instant)>>,
    /// Runs that only a newer version can drive.
    beyond: timekeeper::Beyond,
    /// Nothing new is begun.
    stopping: CancellationToken,
    /// What is still under way is dropped.
    halt: CancellationToken,
}

impl Engine {
    /// Puts the parts together; nothing runs by itself until [`Engine::drive`].
    pub fn new(parts: Parts, settings: Settings) -> Self {
        let Parts {
            store,
            model,
            tools,
            clock,
            bus,
        } = parts;
        let node = settings.node;
        let feed = Arc::new(Feed::new(bus.clone(), node));
        store.listen(feed.clone());
        let run_changes = Arc::new(RunChanges::default());
        store.listen(run_changes.clone());
        let seats = Seats::new(settings.runs_active);
        let model_calls = Queue::new(toolgate_fair::Limits {
            running: settings.model_calls,
            // One of each run in memory at most.
            waiting: Shares::UNLIMITED,
            waiting_bytes: Shares::UNLIMITED,
            spare: Spare::NONE,
        });
        let consents = Consents::new(tools.records().clone());
        let inner = Inner {
            store,
            model,
            tools,
            clock,
            bus: bus.clone(),
            missed: missed::Missed::default(),
            quotas: Quotas::new(settings.quotas),
            settings,
            agents: Agents::default(),
            feed,
            run_changes,
            active: Active::default(),
            seats,
            model_calls,
            open_calls: OpenCalls::default(),
            call_tools: CallTools::default(),
            revocations: Revocations::default(),
            readiness: readiness::Readiness::default(),
            blocking: BlockingPool::new(),
            budgets: budget::Budgets::default(),
            user_tokens: user_tokens::UserTokens::default(),
            consents,
            pasts: driver::Pasts::default(),
            tasks: TaskTracker::new(),
            abandons: Arc::new(Semaphore::new(ABANDONS_AT_ONCE)),
            look: Notify::new(),
            next_wake: AtomicI64::new(i64::MAX),
            figures: figures::Figures::default(),
            adrift: Mutex::new(Vec::new()),
            beyond: timekeeper::Beyond::default(),
            stopping: CancellationToken::new(),
            halt: CancellationToken::new(),
        };
        let inner = Arc::new(inner);
        bus.join(node, Arc::new(Arc::downgrade(&inner)));
        Self { inner }
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// Access that has ended, as this node and the others say.
    pub fn revocations(&self) -> &Revocations {
        &self.inner.revocations
    }

    /// How well notices travel between this node and the others.
    pub fn bus_health(&self) -> BusHealth {
        self.inner.bus.health()
    }

    /// How many nodes there are, this one included: those that the bus has heard lately, or those whose heartbeat the store has
    /// while the bus is away.
    pub async fn nodes(&self) -> Result<u64, StoreError> {
        if self.inner.bus.health() == BusHealth::Away {
            let living = self.inner.store.live_nodes(self.inner.clock.now()).await?;
            return Ok(living.max(1));
        }
        Ok(1 + self.inner.bus.others(self.inner.settings.node).len() as u64)
    }

    /// How many runs are in this process's memory: those with work under way, not those that only wait.
    pub fn active_runs(&self) -> usize {
        self.inner.active.count()
    }

    /// How many requests to models wait for their turn.
    pub fn waiting_model_calls(&self) -> usize {
        self.inner.model_calls.waiting()
    }

    /// Does work of a request that keeps a thread busy, off the runtime's threads, when it is the turn of `share`.
    /// Refused when too many requests of the share wait.
    pub async fn run_blocking<T: Send + 'static>(
        &self,
        share: Share,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, TooManyWait> {
        let _admitted = self.inner.blocking.admit(share)?;
        Ok(self.inner.blocking.run(share, work).await)
    }

    /// Takes a result from whoever executes a client call.
    pub async fn submit(
        &self,
        call: CallId,
        submission: Submission,
        by: Option<EntityId>,
    ) -> Result<Receipt, IntakeError> {
        self.check_size(call, &submission).await?;
        let outcome = match submission {
            Submission::Output(output) => Outcome::Output(output),
            Submission::Error(message) => {
                Outcome::error(toolgate_kernel::call::ErrorCode::ExecutionFailed, message)
            }
        };
        let arrival = Arrival::Result { call, outcome, by };
        self.inner
            .deliver(call.run, arrival, move |run| receipt(run, call))
            .await
    }

    async fn check_size(&self, call: CallId, submission: &Submission) -> Result<(), IntakeError> {
        let seen = submission.bytes();
        if seen <= RESULT_BYTES_UNCHECKED {
            return Ok(());
        }
        let record = self.inner.store.run(call.run).await?;
        let project = record.ok_or(IntakeError::Unknown("call"))?.project;
        let max = self
            .inner
            .project_settings(project)
            .await?
            .client_tools
            .result_bytes;
        match seen > max {
            true => Err(IntakeError::TooLarge { seen, max }),
            false => Ok(()),
        }
    }

    /// As [`Engine::submit`], and follows the run from just before the result.
    pub async fn submit_and_follow(
        &self,
        call: CallId,
        submission: Submission,
        by: Option<EntityId>,
    ) -> Result<(Receipt, Subscription), IntakeError> {
        let record = self
            .inner
            .store
            .run(call.run)
            .await?
            .ok_or(IntakeError::Unknown("call"))?;
        let following = self.inner.follow_from_now(record.space);
        let receipt = self.submit(call, submission, by).await?;
        let cursor = Seq(receipt.seq.0 - 1);
        if record.version >= receipt.seq {
            // A repeat: what followed the result is in the store by now.
            return Ok((receipt, self.subscribe(Scope::Run(call.run), cursor).await?));
        }
        Ok((receipt, following.only(call.run, cursor)))
    }

    /// Tells the space how far a client call is.
    pub async fn progress(
        &self,
        call: CallId,
        progress: Json,
        by: Option<EntityId>,
    ) -> Result<(), IntakeError> {
        self.inner.tell_progress(call, progress, by).await
    }

    /// Gives a signal to a call that waits for one.
    pub async fn signal_call(&self, call: CallId, value: Json) -> Result<Receipt, IntakeError> {
        self.inner
            .deliver(call.run, Arrival::Signal { call, value }, move |run| {
                receipt(run, call)
            })
            .await
    }

    /// Claims an open client call, or keeps a claim alive that has the same holder and principal.
    pub async fn claim_call(
        &self,
        call: CallId,
        holder: String,
        by: Option<EntityId>,
        lease: Duration,
    ) -> Result<Claimed, IntakeError> {
        let claim = Claim {
            holder,
            until: self.inner.clock.now().after(lease),
            by,
        };
        self.inner
            .deliver(call.run, Arrival::Claim { call, claim }, move |run| {
                claimed(run, call)
            })
            .await
    }

    /// Gives a claim back: the call is offered again.
    pub async fn release_call(
        &self,
        call: CallId,
        holder: String,
        by: Option<EntityId>,
    ) -> Result<(), IntakeError> {
        self.inner
            .deliver(call.run, Arrival::Release { call, holder, by }, |_| Some(()))
            .await
    }

    /// Takes a person's decision.
    pub async fn decide(
        &self,
        approval: ApprovalId,
        decision: Decision,
        by: Decider,
    ) -> Result<Decided, IntakeError> {
        self.decide_with(approval, decision, None, by).await
    }

    /// Takes a person's decision, and whether a yes is to stand for later calls; as the tool says when not given.
    pub async fn decide_with(
        &self,
        approval: ApprovalId,
        decision: Decision,
        remember: Option<bool>,
        by: Decider,
    ) -> Result<Decided, IntakeError> {
        let verdict = match decision {
            Decision::Approve(input) => Verdict::Approve(input),
            Decision::Deny(reason) => Verdict::Deny(reason),
        };
        let arrival = Arrival::Decide {
            approval,
            verdict,
            remember,
            by: Box::new(by),
        };
        self.inner
            .deliver(approval.run, arrival, move |run| decided(run, approval))
            .await
    }

    /// Takes an answer to a question that a tool asked in the middle of a call. Members of the space of the run at the top
    /// and backends may answer: whoever calls this has asked `toolgate_access`.
    pub async fn respond(
        &self,
        question: QuestionId,
        response: Response,
        by: Decider,
    ) -> Result<Responded, IntakeError> {
        let arrival = Arrival::Answer {
            question,
            response,
            by: Box::new(by),
        };
        self.inner
            .deliver(question.call.run, arrival, move |run| responded(run, question))
            .await
    }

    /// Cancels a run and everything below it; gives where it stands then. A run that has ended stays so.
    pub async fn cancel(&self, run: RunId) -> Result<Status, IntakeError> {
        self.inner.cancel(run).await
    }

    /// Follows a space or a run from a cursor.
    pub async fn subscribe(&self, scope: Scope, after: Seq) -> Result<Subscription, StoreError> {
        let (space, run) = match scope {
            Scope::Space(space) => (space, None),
            Scope::Run(run) => match self.inner.store.run(run).await? {
                Some(record) => (record.space, Some(run)),
                None => return Err(StoreError::Corrupt(format!("{run} is not in the store"))),
            },
        };
        let inner = &self.inner;
        let backlog = inner.settings.reader_backlog;
        Ok(Subscription::open(
            inner.feed.clone(),
            inner.store.clone(),
            space,
            run,
            after,
            backlog,
        ))
    }
}

impl Inner {
    fn follow_from_now(&self, space: toolgate_kernel::id::SpaceId) -> Subscription {
        Subscription::from_now(
            self.feed.clone(),
            self.store.clone(),
            space,
            self.settings.reader_backlog,
        )
    }

    async fn cancel(self: &Arc<Self>, run: RunId) -> Result<Status, IntakeError> {
        match self.deliver(run, Arrival::Cancel, |run| Some(run.status())).await {
            Err(IntakeError::Ended(status)) => {
                if status == Status::Cancelled {
                    self.cancel_children(run).await?;
                }
                Ok(status)
            }
            other => other,
        }
    }

    /// Ends what a crash left below a run that was cancelled.
    async fn cancel_children(self: &Arc<Self>, run: RunId) -> Result<(), IntakeError> {
        let Some(record) = self.store.run(run).await? else {
            return Ok(());
        };
        for child in self.children(record.project, run).await? {
            if !child.status.is_final() {
                Box::pin(self.cancel(child.id)).await?;
            }
        }
        Ok(())
    }
}

fn receipt(run: &Run, call: CallId) -> Option<Receipt> {
    match &run.call(call)?.state {
        CallState::Settled(settled) => Some(Receipt {
            tool_call_id: call,
            run_id: run.id(),
            seq: settled.seq,
            time: settled.time,
        }),
        _ => None,
    }
}

fn decided(run: &Run, approval: ApprovalId) -> Option<Decided> {
    let record = run.decision(approval)?;
    Some(Decided {
        approval_id: approval,
        tool_call_id: approval.call(),
        run_id: run.id(),
        approved: matches!(record.verdict, Verdict::Approve(_)),
        remembered: record.remembered,
        seq: record.seq,
        time: record.time,
    })
}

fn responded(run: &Run, question: QuestionId) -> Option<Responded> {
    let record = run.question(question)?.response.as_ref()?;
    Some(Responded {
        question_id: question,
        tool_call_id: question.call,
        run_id: run.id(),
        action: record.response.action,
        seq: record.seq,
        time: record.time,
    })
}

fn claimed(run: &Run, call: CallId) -> Option<Claimed> {
    let known = run.call(call)?;
    let CallState::Open {
        deadline,
        claim: Some(claim),
    } = &known.state
    else {
        return None;
    };
    Some(Claimed {
        tool_call_id: call,
        run_id: run.id(),
        tool_name: known.tool.name.to_string(),
        input: known.input(),
        holder: claim.holder.clone(),
        until: claim.until,
        deadline: *deadline,
    })
}
