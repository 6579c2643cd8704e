//! A fresh QuickJS runtime, and the one call that it runs.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use rquickjs::context::EvalOptions;
use rquickjs::promise::PromiseState;
use rquickjs::{
    CatchResultExt as _, CaughtError, Context, Ctx, Function, Object, Persistent, Promise, Runtime, Value,
};
use rustix::time::{ClockId, clock_gettime};

use crate::failure::{Failure, FailureKind};
use crate::host::{Host, HostGone};
use crate::natives::{self, Outgoing, Queue};

/// What the author's code is called in stack traces.
pub(crate) const SCRIPT_NAME: &str = "tool.js";
/// Stands in front of the author's code, on its first line, so that lines keep their numbers.
const HEAD: &str = "(function(args){return(async()=>{";
/// Stands after it. The line break ends a comment on the last line.
const TAIL: &str = "\n})()})";
/// Deepest native stack.
const STACK_BYTES_MAX: usize = 512 << 10;
/// Memory that a realm may use before its call is known.
const PREPARED_BYTES_MAX: usize = 8 << 20;

/// What a call may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// CPU time, as far as QuickJS looks at it.
    pub cpu: Duration,
    /// Memory of the realm.
    pub memory_bytes: usize,
    /// Largest result, as JSON.
    pub output_bytes: usize,
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub struct Script<'a> {
    /// A function body, which may be asynchronous, with `args`.
    pub code: &'a str,
    /// What `args` is, as JSON.
    pub args: &'a str,
    /// What it may use.
    pub limits: Limits,
}

/// A fresh QuickJS runtime with everything that the code finds. Runs one call.
pub struct Realm {
    // Before the runtime: what it holds is freed first.
    hooks: Persistent<Object<'static>>,
    context: Context,
    runtime: Runtime,
    clock: Rc<CpuClock>,
    queue: Rc<RefCell<Queue>>,
}

/// A realm after its call. It runs nothing more, and is there to be dropped.
pub struct Spent(#[expect(dead_code, reason = "freed when it is dropped")] Realm);

/// The CPU time of the thread, and when it is used up.
#[derive(Default)]
struct CpuClock {
    ends: Cell<Option<Duration>>,
    is_over: Cell<bool>,
}

impl CpuClock {
    fn start(&self, limit: Duration) {
        self.ends.set(Some(cpu_time() + limit));
    }
    /// Whether the time is used up. Once it is, it stays so.
    fn check(&self) -> bool {
        if self.ends.get().is_some_and(|ends| cpu_time() > ends) {
            self.is_over.set(true);
        }
        self.is_over.get()
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap_or_default(),
        time.tv_nsec.try_into().unwrap_or_default(),
    )
}

impl Realm {
    /// A realm that waits for its call. Fails only when there is no memory.
    pub fn new() -> Result<Self, Failure> {
        Self::prepare()
            .map_err(|error| Failure::new(FailureKind::Memory, format!("no realm can be made: {error}")))
    }

    fn prepare() -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(PREPARED_BYTES_MAX);
        runtime.set_max_stack_size(STACK_BYTES_MAX);
        let clock = Rc::new(CpuClock::default());
        let handler = clock.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || handler.check())));
        let context = Context::full(&runtime)?;
        let queue = Rc::new(RefCell::new(Queue::default()));
        let hooks = context.with(|ctx| {
            let hooks = natives::install(&ctx, &queue)?;
            Ok::<_, rquickjs::Error>(Persistent::save(&ctx, hooks))
        })?;
        Ok(Self {
            hooks,
            context,
            runtime,
            clock,
            queue,
        })
    }

    /// Runs the call to its end: its result as JSON.
    pub fn run(self, script: Script<'_>, host: &mut dyn Host) -> Result<String, Failure> {
        self.run_and_keep(script, host).0
    }

    /// Runs the call like [`Realm::run`]; freeing what is left of the realm, which takes a while, is up to the caller.
    pub fn run_and_keep(self, script: Script<'_>, host: &mut dyn Host) -> (Result<String, Failure>, Spent) {
        let outcome = self.outcome(script, host);
        (outcome, Spent(self))
    }

    fn outcome(&self, script: Script<'_>, host: &mut dyn Host) -> Result<String, Failure> {
        self.runtime.set_memory_limit(script.limits.memory_bytes);
        self.clock.start(script.limits.cpu);
        let Self {
            hooks,
            context,
            clock,
            queue,
            ..
        } = self;
        context.with(|ctx| {
            let hooks = hooks.clone().restore(&ctx).map_err(|_| broken())?;
            let call = Call {
                ctx: &ctx,
                hooks,
                clock,
                queue,
                host,
            };
            call.run(script)
        })
    }

    /// Whether the code is JavaScript. None of it runs.
    pub fn check(code: &str) -> Result<(), Failure> {
        let realm = Self::new()?;
        realm.context.with(|ctx| {
            // The whole text is parsed before the first statement runs, and that one throws.
            let head = format!("throw 0;{HEAD}");
            let source = format!("{head}{code}{TAIL}");
            match ctx.eval_with_options::<Value, _>(source, options()).catch(&ctx) {
                Err(CaughtError::Exception(error)) => {
                    Err(Failure::thrown(&ctx, error.as_object().as_value(), head.len()))
                }
                Ok(_) | Err(_) => Ok(()),
            }
        })
    }
}

fn options() -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(SCRIPT_NAME.into());
    options
}

fn broken() -> Failure {
    Failure::new(FailureKind::Threw, "the realm is broken")
}

fn gone(_: HostGone) -> Failure {
    Failure::new(FailureKind::HostGone, "whoever runs the code is gone")
}

/// A call under way.
struct Call<'c, 'js> {
    ctx: &'c Ctx<'js>,
    hooks: Object<'js>,
    clock: &'c CpuClock,
    queue: &'c RefCell<Queue>,
    host: &'c mut dyn Host,
}

impl<'js> Call<'_, 'js> {
    fn run(mut self, script: Script<'_>) -> Result<String, Failure> {
        let outcome = self.outcome(script);
        // Also what a script logged before it failed is kept.
        let sent = self.send_out();
        match (outcome, sent) {
            // Whatever it threw when its time was over, that is why.
            (_, _) if self.clock.check() => Err(Failure::new(
                FailureKind::Timeout,
                format!("it used up its CPU time of {} ms", script.limits.cpu.as_millis()),
            )),
            (Ok(_), Err(HostGone)) => Err(gone(HostGone)),
            (outcome, _) => outcome,
        }
    }

    fn outcome(&mut self, script: Script<'_>) -> Result<String, Failure> {
        let args = self.caught(self.ctx.json_parse(script.args))?;
        let source = format!("{HEAD}{}{TAIL}", script.code);
        let function: Function = self.caught(self.ctx.eval_with_options(source, options()))?;
        let promise: Value = self.caught(function.call((args,)))?;
        // Code that leaves the function it was put in may give anything.
        let value = match promise.into_promise() {
            Some(promise) => self.settled(&promise)?,
            None => {
                return Err(Failure::new(
                    FailureKind::Syntax,
                    "the code leaves its function; expected a function body",
                ));
            }
        };
        self.stringify(value, script.limits.output_bytes)
    }

    /// Works until the promise is settled.
    fn settled(&mut self, promise: &Promise<'js>) -> Result<Value<'js>, Failure> {
        loop {
            while self.ctx.execute_pending_job() {
                if self.clock.is_over.get() {
                    return Err(broken());
                }
            }
            self.send_out().map_err(gone)?;
            match promise.state() {
                PromiseState::Pending => self.wait()?,
                PromiseState::Resolved | PromiseState::Rejected => {
                    let result = promise.result().unwrap_or(Err(rquickjs::Error::Unknown));
                    return self.caught(result);
                }
            }
        }
    }

    /// Waits for a timer or an answer, and lets the code go on with it.
    fn wait(&mut self) -> Result<(), Failure> {
        let (timer, in_flight) = {
            let mut queue = self.queue.borrow_mut();
            (queue.timers.next(), queue.in_flight)
        };
        let wait = match (timer, in_flight) {
            (None, 0) => {
                let words = "it waits for a promise that nothing will settle";
                return Err(Failure::new(FailureKind::Threw, words));
            }
            (timer, _) => timer.map(|(wait, _)| wait),
        };
        let due = timer.filter(|(wait, _)| wait.is_zero()).map(|(_, id)| id);
        if let Some(id) = due {
            self.queue.borrow_mut().timers.remove(id);
            return self.hook("fire", (id,));
        }
        match self.host.answer(wait).map_err(gone)? {
            None => Ok(()),
            Some((id, answer)) => {
                let mut queue = self.queue.borrow_mut();
                queue.in_flight = queue.in_flight.saturating_sub(1);
                drop(queue);
                match answer {
                    Ok(text) => self.hook("settle", (id, true, text)),
                    Err(text) => self.hook("settle", (id, false, text)),
                }
            }
        }
    }

    fn hook<A: rquickjs::function::IntoArgs<'js>>(&self, name: &str, args: A) -> Result<(), Failure> {
        let hook: Function = self.caught(self.hooks.get(name))?;
        self.caught(hook.call::<_, ()>(args))
    }

    /// Hands host calls and the log over, in the order in which the code made them.
    fn send_out(&mut self) -> Result<(), HostGone> {
        let outgoing = std::mem::take(&mut self.queue.borrow_mut().outgoing);
        for one in outgoing {
            match one {
                Outgoing::Call(id, operation, body) => self.host.begin(id, operation, &body)?,
                Outgoing::Log(level, text) => self.host.log(level, &text)?,
            }
        }
        Ok(())
    }

    fn stringify(&self, value: Value<'js>, bytes_max: usize) -> Result<String, Failure> {
        let text = self.caught(self.ctx.json_stringify(value))?;
        let text = match text {
            Some(text) => self.caught(text.to_string())?,
            None => "null".into(),
        };
        if text.len() > bytes_max {
            let words = format!(
                "its result has {} bytes, at most {bytes_max} are permitted",
                text.len()
            );
            return Err(Failure::new(FailureKind::OutputTooLarge, words));
        }
        Ok(text)
    }

    fn caught<T>(&self, result: rquickjs::Result<T>) -> Result<T, Failure> {
        result.catch(self.ctx).map_err(|error| match error {
            CaughtError::Exception(error) => {
                Failure::thrown(self.ctx, error.as_object().as_value(), HEAD.len())
            }
            CaughtError::Value(value) => Failure::thrown(self.ctx, &value, HEAD.len()),
            CaughtError::Error(rquickjs::Error::Allocation) => {
                Failure::new(FailureKind::Memory, "out of memory")
            }
            CaughtError::Error(error) => Failure::new(FailureKind::Threw, error.to_string()),
        })
    }
}
