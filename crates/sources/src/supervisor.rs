//! The task that owns the connection to one server: starts it when somebody needs it, starts it again when it died, with
//! pauses that grow, and closes it when nobody needs it any more.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_egress::Secrets;
use toolgate_fair::{Limits, Permit, Queue, Shares, Spare};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;
use toolgate_mcp::{Caller, Connection};

use crate::servers::Inner;
use crate::snapshot::Configured;

/// How long a server that nobody uses stays connected.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// First pause before a server is started again; it doubles with each failure.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5 * 60);
/// Failures in a row after which a server is only started again when somebody needs it.
const EAGER_FAILURES_MAX: u32 = 5;
/// How long a connection has to last for earlier failures to be forgotten.
const STEADY: Duration = Duration::from_secs(60);
/// Shortest time between two listings that a server asks for by telling of changes: a flood of notices is one. It doubles with
/// each listing while the server goes on telling, because what has changed is stored.
const LIST_INTERVAL_MIN: Duration = Duration::from_secs(1);
/// Longest time between them, and how long a server has to be silent for the first listing to be at once again.
const LIST_INTERVAL_MAX: Duration = Duration::from_secs(60);
/// Requests that wait for the task. Whoever finds it full waits.
const COMMANDS_MAX: usize = 64;
/// Calls of one server that wait for their turn, and their bytes.
const WAITING_MAX: usize = 256;
const WAITING_BYTES_MAX: usize = 16 << 20;

/// Where the connection to a server stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// Nobody has needed it yet, or not for a while.
    Configured,
    /// It is started or reached.
    Connecting,
    /// It is connected.
    Ready,
    /// It failed.
    Failed {
        /// Why, in words.
        reason: String,
        /// Before this time it is not tried again.
        next_try: Time,
    },
}

/// The connection to one server, for those who use it. Cheap to clone. The task ends with the last of them.
#[derive(Clone)]
pub(crate) struct Handle {
    commands: mpsc::Sender<Command>,
    status: watch::Receiver<Status>,
    /// Where calls wait for their turn: users take turns.
    pub turns: Arc<Queue>,
    /// Counts the restarts: whoever passes messages on has connections of its own.
    restarts: Arc<watch::Sender<u64>>,
    since: Instant,
}

/// The right to use a connection, which is not closed meanwhile for want of use.
pub(crate) struct Lease {
    pub caller: Caller,
    _in_use: Arc<()>,
}

/// Whether a server that failed a moment ago is tried again at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// After the pause only.
    Wait,
    /// At once, and a connected server lists its tools again.
    Now,
}

enum Command {
    /// Somebody needs the connection.
    Lease {
        patience: Patience,
        reply: oneshot::Sender<Result<Lease, String>>,
    },
    /// The connection is made anew. The reply is sent when this has begun.
    Restart(oneshot::Sender<()>),
}

impl Handle {
    /// Starts the task.
    pub fn start(
        inner: &Arc<Inner>,
        project: ProjectId,
        key: String,
        configured: Configured,
        stop: CancellationToken,
    ) -> Self {
        let (commands, received) = mpsc::channel(COMMANDS_MAX);
        let (told, status) = watch::channel(Status::Configured);
        let calls = configured.config.calls;
        let turns = Queue::new(Limits {
            running: Shares {
                all: calls,
                tenant: calls,
                user: calls.div_ceil(2),
            },
            waiting: Shares::same(WAITING_MAX),
            waiting_bytes: Shares::same(WAITING_BYTES_MAX),
            spare: Spare::NONE,
        });
        let supervisor = Supervisor {
            spec: Arc::new(Spec {
                project,
                key,
                configured,
            }),
            inner: Arc::downgrade(inner),
            status: told,
            open: None,
            work: None,
            waiters: Vec::new(),
            failures: 0,
            next_try: None,
            in_use: Arc::new(()),
            used: Instant::now(),
            listed: Instant::now(),
            list_interval: LIST_INTERVAL_MIN,
        };
        inner.tasks.spawn(supervisor.run(received, stop));
        Self {
            commands,
            status,
            turns,
            restarts: Arc::new(watch::channel(0).0),
            since: Instant::now(),
        }
    }

    /// What is left of so long since somebody first asked for the server.
    pub fn left_of(&self, span: Duration) -> Option<Duration> {
        span.checked_sub(self.since.elapsed())
    }

    /// Changes when the server is restarted.
    pub fn restarts(&self) -> watch::Receiver<u64> {
        self.restarts.subscribe()
    }

    /// Where the connection stands.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// The connection, once there is one. The error says why there is none.
    pub async fn lease(&self, patience: Patience) -> Result<Lease, String> {
        let ended = || "the server was removed or is being stopped".to_owned();
        let (reply, answer) = oneshot::channel();
        let command = Command::Lease { patience, reply };
        self.commands.send(command).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }

    /// Closes the connection and begins to make a new one, without a pause after earlier failures.
    pub async fn restart(&self) {
        self.restarts.send_modify(|count| *count += 1);
        let (reply, begun) = oneshot::channel();
        if self.commands.send(Command::Restart(reply)).await.is_ok() {
            // A task that has ended meanwhile has closed the connection, too.
            let _ = begun.await;
        }
    }
}

/// The server that a task looks after.
pub(crate) struct Spec {
    pub project: ProjectId,
    pub key: String,
    pub configured: Configured,
}

/// A connection, and what it takes.
pub(crate) struct Open {
    pub connection: Connection,
    /// What the server was given, and may repeat.
    pub secrets: Secrets,
    /// The right to run a process.
    pub _process: Option<Permit>,
}

type Work = Pin<Box<dyn Future<Output = Done> + Send>>;

/// What a piece of work came to.
enum Done {
    Connected(Result<Box<Open>, String>),
    Listed(Result<(), String>),
}

struct Connected {
    open: Box<Open>,
    changes: watch::Receiver<u64>,
    since: Instant,
}

struct Supervisor {
    spec: Arc<Spec>,
    /// Weak: whoever drops the servers ends the tasks.
    inner: Weak<Inner>,
    status: watch::Sender<Status>,
    open: Option<Connected>,
    /// Connecting or listing. One at a time.
    work: Option<Work>,
    waiters: Vec<oneshot::Sender<Result<Lease, String>>>,
    failures: u32,
    /// Not before this; and then by itself, unless it has failed too often.
    next_try: Option<Instant>,
    in_use: Arc<()>,
    used: Instant,
    /// When the tools were listed last.
    listed: Instant,
    /// The time to the next listing that the server asks for.
    list_interval: Duration,
}

impl Supervisor {
    async fn run(mut self, mut commands: mpsc::Receiver<Command>, stop: CancellationToken) {
        loop {
            let (restart, idle) = (self.restart_at(), self.used + IDLE);
            let list_at = self.listed + self.list_interval;
            let is_pausing = self.open.is_some() && Instant::now() < list_at;
            let can_list = self.work.is_none() && !is_pausing;
            tokio::select! {
                () = stop.cancelled() => break,
                command = commands.recv() => match command {
                    Some(Command::Lease { patience, reply }) => self.asked(patience, reply),
                    Some(Command::Restart(begun)) => {
                        self.restart();
                        // Whoever asked may not wait any more.
                        let _ = begun.send(());
                    }
                    None => break,
                },
                done = working(&mut self.work) => {
                    self.work = None;
                    self.done(done);
                }
                told = heard(&mut self.open, can_list) => match told {
                    Told::Ended => self.lost(),
                    Told::Changed => self.list_again(),
                },
                // Changes that were told meanwhile are listed now.
                () = tokio::time::sleep_until(list_at), if is_pausing => {}
                () = tokio::time::sleep_until(restart.unwrap_or(idle)), if restart.is_some() => self.connect(),
                () = tokio::time::sleep_until(idle), if self.open.is_some() => self.rest().await,
            }
        }
        // What is under way is given up, and what is open is closed in order.
        self.work = None;
        if let Some(open) = self.open.take()
            && let Err(reason) = open.open.connection.close().await
        {
            tracing::debug!(
                server = self.spec.key,
                reason,
                "an MCP server did not close in order"
            );
        }
    }

    fn asked(&mut self, patience: Patience, reply: oneshot::Sender<Result<Lease, String>>) {
        self.used = Instant::now();
        let now = patience == Patience::Now;
        if let Some(open) = &self.open {
            if now && self.work.is_none() {
                // The one who asks wants to see what the server lists now.
                self.waiters.push(reply);
                return self.list();
            }
            let _ = reply.send(Ok(self.lease(open)));
            return;
        }
        match self.next_try.filter(|at| !now && *at > Instant::now()) {
            Some(at) if self.work.is_none() => {
                let pause = at.duration_since(Instant::now()).as_secs() + 1;
                let reason = match &*self.status.borrow() {
                    Status::Failed { reason, .. } => reason.clone(),
                    Status::Configured | Status::Connecting | Status::Ready => String::new(),
                };
                let words = format!("{reason}; it is tried again in {pause} seconds");
                let _ = reply.send(Err(words));
            }
            _ => {
                self.waiters.push(reply);
                self.connect();
            }
        }
    }

    fn connect(&mut self) {
        if self.work.is_none() && self.open.is_none() {
            self.connect_after(None);
        }
    }

    /// Makes the connection anew. What is under way is given up; whoever waits for it gets the new connection.
    fn restart(&mut self) {
        tracing::info!(server = self.spec.key, project = %self.spec.project, "an MCP server is restarted");
        self.used = Instant::now();
        self.failures = 0;
        self.work = None;
        let before = self.open.take();
        self.connect_after(before);
    }

    /// Connects, once `before` is closed: two programs of one server may want the same port or file.
    fn connect_after(&mut self, before: Option<Connected>) {
        self.next_try = None;
        self.status.send_replace(Status::Connecting);
        let (inner, spec) = (self.inner.clone(), self.spec.clone());
        self.work = Some(Box::pin(async move {
            if let Some(before) = before {
                let Open {
                    connection, _process, ..
                } = *before.open;
                // It is gone either way.
                let _ = connection.close().await;
            }
            let Some(inner) = inner.upgrade() else {
                return Done::Connected(Err("the gateway is being stopped".into()));
            };
            Done::Connected(inner.connect(&spec).await.map(Box::new))
        }));
    }

    /// The server has told that its tools have changed.
    fn list_again(&mut self) {
        self.list_interval = match self.listed.elapsed() >= LIST_INTERVAL_MAX {
            true => LIST_INTERVAL_MIN,
            false => (2 * self.list_interval).min(LIST_INTERVAL_MAX),
        };
        self.list();
    }

    fn list(&mut self) {
        let Some(open) = &self.open else { return };
        let (inner, spec) = (self.inner.clone(), self.spec.clone());
        let (caller, about) = (open.open.connection.caller(), open.open.connection.about());
        let secrets = open.open.secrets.clone();
        self.listed = Instant::now();
        self.work = Some(Box::pin(async move {
            let hidden = |error| secrets.hide(&String::from(error));
            let tools: Result<Vec<Value>, String> = caller.list_raw().await.map_err(hidden);
            Done::Listed(match (tools, inner.upgrade()) {
                (Ok(tools), Some(inner)) => inner.listed(&spec, about, tools).await,
                (Ok(_), None) => Ok(()),
                (Err(reason), _) => Err(reason),
            })
        }));
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Connected(Ok(open)) => {
                tracing::info!(server = self.spec.key, project = %self.spec.project, "an MCP server is connected");
                (self.used, self.listed) = (Instant::now(), Instant::now());
                self.open = Some(Connected {
                    changes: open.connection.changes(),
                    since: Instant::now(),
                    open,
                });
                self.status.send_replace(Status::Ready);
                self.answer(None);
            }
            Done::Connected(Err(reason)) => self.failed(reason),
            Done::Listed(listed) => {
                if let Err(reason) = &listed {
                    tracing::warn!(
                        server = self.spec.key,
                        reason,
                        "the tools of an MCP server cannot be listed"
                    );
                }
                self.answer(listed.err());
            }
        }
    }

    /// Answers everybody who waits: with the connection, or with the reason why there is none.
    fn answer(&mut self, reason: Option<String>) {
        for waiter in std::mem::take(&mut self.waiters) {
            let answer = match (&reason, &self.open) {
                (None, Some(open)) => Ok(self.lease(open)),
                (Some(reason), _) => Err(reason.clone()),
                (None, None) => Err("it has ended".to_owned()),
            };
            // One that waits no longer needs no answer.
            let _ = waiter.send(answer);
        }
    }

    fn lost(&mut self) {
        let Some(open) = self.open.take() else { return };
        if open.since.elapsed() >= STEADY {
            self.failures = 0;
        }
        // A listing under way has nobody to ask any more.
        self.work = None;
        self.failed("the server has ended".into());
    }

    fn failed(&mut self, reason: String) {
        let pause = (PAUSE_FIRST * 2_u32.saturating_pow(self.failures)).min(PAUSE_MAX);
        self.failures = (self.failures + 1).min(16);
        self.next_try = Some(Instant::now() + pause);
        tracing::warn!(server = self.spec.key, project = %self.spec.project, reason, ?pause, "an MCP server failed");
        let now = self.inner.upgrade().map(|inner| inner.clock.now());
        self.status.send_replace(Status::Failed {
            reason: reason.clone(),
            next_try: now.unwrap_or(Time(0)).after(pause),
        });
        self.answer(Some(reason));
    }

    /// When it is started again by itself.
    fn restart_at(&self) -> Option<Instant> {
        self.next_try
            .filter(|_| self.work.is_none() && self.failures <= EAGER_FAILURES_MAX)
    }

    /// Closes a connection that nobody uses.
    async fn rest(&mut self) {
        self.used = Instant::now();
        if Arc::strong_count(&self.in_use) > 1 {
            return;
        }
        if let Some(open) = self.open.take() {
            self.work = None;
            self.status.send_replace(Status::Configured);
            // It is gone either way.
            let _ = open.open.connection.close().await;
        }
    }

    fn lease(&self, open: &Connected) -> Lease {
        Lease {
            caller: open.open.connection.caller(),
            _in_use: self.in_use.clone(),
        }
    }
}

async fn working(work: &mut Option<Work>) -> Done {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// What a connection tells by itself.
enum Told {
    Ended,
    Changed,
}

/// What the connection tells next; of changes only when they can be listed.
async fn heard(open: &mut Option<Connected>, can_list: bool) -> Told {
    let Some(open) = open else {
        return std::future::pending().await;
    };
    tokio::select! {
        () = open.open.connection.ended() => Told::Ended,
        // A sender that is gone tells of no more changes: the connection ends then.
        Ok(()) = open.changes.changed(), if can_list => Told::Changed,
    }
}
