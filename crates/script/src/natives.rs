//! What the prelude is built on: functions that only the prelude sees.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Exception, Function, Object, Result, TypedArray, Value};

use crate::host::{LogLevel, Operation};
use crate::{
    HOST_BYTES_MAX, HOST_CALL_BYTES_MAX, HOST_CALLS_AT_ONCE, HOST_CALLS_MAX, LOG_BYTES_MAX,
    LOG_LINE_BYTES_MAX, LOG_LINE_COST, TIMERS_MAX, web, zone,
};

/// Most random bytes that are given at once, as on the web.
const RANDOM_BYTES_MAX: usize = 65_536;
/// Longest delay of a timer; a longer one would outlive every call.
const DELAY_MAX: Duration = Duration::from_secs(86_400);

/// The parts that are read when the code first uses one of their names.
const PARTS: [(&str, &str); 6] = [
    ("text", include_str!("prelude/text.js")),
    ("url", include_str!("prelude/url.js")),
    ("fetch", include_str!("prelude/fetch.js")),
    ("abort", include_str!("prelude/abort.js")),
    ("clone", include_str!("prelude/clone.js")),
    ("intl", include_str!("prelude/intl.js")),
];

/// What the code asked for and was not handed over yet.
#[derive(Default)]
pub(crate) struct Queue {
    /// In the order in which the code asked.
    pub outgoing: Vec<Outgoing>,
    /// Host calls without an answer.
    pub in_flight: usize,
    pub timers: Timers,
    calls: u32,
    call_bytes: usize,
    log_bytes: usize,
}

/// Something to hand over.
pub(crate) enum Outgoing {
    Call(u32, Operation, String),
    Log(LogLevel, String),
}

impl Queue {
    fn send(&mut self, operation: Operation, body: String) -> std::result::Result<u32, String> {
        if self.calls >= HOST_CALLS_MAX {
            return Err(format!(
                "one call may fetch and use storage {HOST_CALLS_MAX} times in all"
            ));
        }
        if body.len() > HOST_CALL_BYTES_MAX || self.call_bytes + body.len() > HOST_BYTES_MAX {
            return Err(format!(
                "one request may carry {HOST_CALL_BYTES_MAX} bytes and all of a call {HOST_BYTES_MAX}"
            ));
        }
        if self.in_flight >= HOST_CALLS_AT_ONCE {
            return Err(format!("{HOST_CALLS_AT_ONCE} requests are under way already"));
        }
        let id = self.calls;
        self.calls += 1;
        self.call_bytes += body.len();
        self.in_flight += 1;
        self.outgoing.push(Outgoing::Call(id, operation, body));
        Ok(id)
    }

    /// Keeps a line, cut to what is permitted; what comes after the last permitted byte is left out.
    fn log(&mut self, level: LogLevel, mut text: String) {
        let room = LOG_BYTES_MAX.saturating_sub(self.log_bytes + LOG_LINE_COST);
        if room == 0 {
            return;
        }
        text.truncate(text.floor_char_boundary(room.min(LOG_LINE_BYTES_MAX)));
        self.log_bytes += text.len() + LOG_LINE_COST;
        self.outgoing.push(Outgoing::Log(level, text));
    }
}

/// Timers that wait, by when they are due.
#[derive(Default)]
pub(crate) struct Timers {
    due: BTreeMap<(Instant, u32), ()>,
    when: BTreeMap<u32, Instant>,
    last: u32,
}

impl Timers {
    /// A new timer; none when there are too many.
    fn add(&mut self, delay: f64) -> Option<u32> {
        if self.when.len() >= TIMERS_MAX {
            return None;
        }
        self.last += 1;
        self.set(self.last, delay);
        Some(self.last)
    }

    fn set(&mut self, id: u32, delay: f64) {
        let millis = if delay.is_finite() { delay.max(0.0) } else { 0.0 };
        let delay = Duration::try_from_secs_f64(millis / 1_000.0).unwrap_or(DELAY_MAX);
        let due = Instant::now() + delay.min(DELAY_MAX);
        self.due.insert((due, id), ());
        self.when.insert(id, due);
    }

    pub fn remove(&mut self, id: u32) {
        if let Some(due) = self.when.remove(&id) {
            self.due.remove(&(due, id));
        }
    }

    /// How long until the next one is due, and which.
    pub fn next(&mut self) -> Option<(Duration, u32)> {
        let ((due, id), ()) = self.due.first_key_value()?;
        Some((due.saturating_duration_since(Instant::now()), *id))
    }
}

/// Puts every name that the code finds into the realm, and gives the functions by which answers and timers come in. What
/// stands behind the names is made when one is first used.
pub(crate) fn install<'js>(ctx: &Ctx<'js>, queue: &Rc<RefCell<Queue>>) -> Result<Object<'js>> {
    let queue = queue.clone();
    let core = Function::new(ctx.clone(), move |ctx: Ctx<'js>| core(&ctx, &queue))?;
    let names: Function = ctx.eval_with_options(include_str!("prelude/names.js"), part_options("names"))?;
    names.call((core,))
}

/// The core of the prelude, with the functions that it is built on.
fn core<'js>(ctx: &Ctx<'js>, queue: &Rc<RefCell<Queue>>) -> Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    calls(ctx, &native, queue)?;
    timers(ctx, &native, queue)?;
    native.set("random", Function::new(ctx.clone(), random)?)?;
    let uuid = || uuid::Uuid::new_v4().to_string();
    native.set("uuid", Function::new(ctx.clone(), uuid)?)?;
    native.set("load", Function::new(ctx.clone(), load)?)?;
    native.set("zoned", Function::new(ctx.clone(), zone::zoned)?)?;
    web::install(ctx, &native)?;
    let core: Function = ctx.eval_with_options(include_str!("prelude/core.js"), part_options("core"))?;
    core.call((native,))
}

fn calls<'js>(ctx: &Ctx<'js>, native: &Object<'js>, queue: &Rc<RefCell<Queue>>) -> Result<()> {
    let to = queue.clone();
    let send = move |ctx: Ctx<'js>, operation: String, body: String| {
        let operation = match operation.as_str() {
            "fetch" => Operation::Fetch,
            _ => Operation::Storage,
        };
        let sent = to.borrow_mut().send(operation, body);
        sent.map_err(|words| Exception::throw_range(&ctx, &words))
    };
    native.set("send", Function::new(ctx.clone(), send)?)?;
    let to = queue.clone();
    let log = move |level: String, text: String| {
        let level = match level.as_str() {
            "debug" => LogLevel::Debug,
            "warn" => LogLevel::Warn,
            "error" => LogLevel::Error,
            _ => LogLevel::Info,
        };
        to.borrow_mut().log(level, text);
    };
    native.set("log", Function::new(ctx.clone(), log)?)
}

fn timers<'js>(ctx: &Ctx<'js>, native: &Object<'js>, queue: &Rc<RefCell<Queue>>) -> Result<()> {
    let to = queue.clone();
    let add = move |ctx: Ctx<'js>, delay: f64| {
        let added = to.borrow_mut().timers.add(delay);
        added.ok_or_else(|| Exception::throw_range(&ctx, &format!("{TIMERS_MAX} timers wait already")))
    };
    native.set("timer", Function::new(ctx.clone(), add)?)?;
    let to = queue.clone();
    let again = move |id: u32, delay: f64| to.borrow_mut().timers.set(id, delay);
    native.set("again", Function::new(ctx.clone(), again)?)?;
    let to = queue.clone();
    let clear = move |id: u32| to.borrow_mut().timers.remove(id);
    native.set("clear", Function::new(ctx.clone(), clear)?)
}

fn random<'js>(ctx: Ctx<'js>, bytes: usize) -> Result<TypedArray<'js, u8>> {
    let mut random = vec![0; bytes.min(RANDOM_BYTES_MAX)];
    getrandom::fill(&mut random).map_err(|_| Exception::throw_internal(&ctx, "there is no randomness"))?;
    TypedArray::new_copy(ctx, random)
}

/// Reads a part of the prelude.
fn load<'js>(ctx: Ctx<'js>, name: String) -> Result<Value<'js>> {
    let part = PARTS.iter().find(|(part, _)| *part == name);
    let (name, source) = part.ok_or_else(|| Exception::throw_reference(&ctx, "there is no such part"))?;
    ctx.eval_with_options(*source, part_options(name))
}

fn part_options(name: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.filename = Some(format!("toolgate:{name}"));
    options
}
