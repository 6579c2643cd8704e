//! The tools of a server, as far as the proxy must know them: which are held back, what arguments they take, which of
//! those stand in headers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_kernel::json::Json;
use toolgate_kernel::schema::{Profile, Validator};
use toolgate_mcp::link::message::{Members, Outcome};

use super::era::INTERNAL;
use super::headers::{HeaderParam, params_of};
use super::upstreams::Review;

/// Most tools of one server that are remembered.
const TOOLS_MAX: usize = 4_096;
/// Most bytes of the definitions of one server that are remembered, as they were written.
const TOOLS_BYTES_MAX: usize = 4 << 20;
/// How long a tool that is not listed any more keeps its place where tools need it.
const STALE: Duration = Duration::from_secs(10 * 60);
/// Most bytes of one page of tools. What is a byte on the wire may be twenty in memory.
pub(super) const PAGE_BYTES_MAX: usize = 2 << 20;

/// What is remembered of the tools of a server.
#[derive(Default)]
pub(super) struct Tools(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    tools: HashMap<String, Seen>,
    bytes: usize,
    /// Counts how often everything was forgotten.
    forgotten: u64,
}

struct Seen {
    at: Instant,
    bytes: usize,
    tool: Arc<Tool>,
}

/// When a connection has listed all tools, and what had been forgotten by then. A tool that is not known afterwards is not
/// there: asking again would give the same list.
#[derive(Default)]
pub(super) struct Listed(Mutex<Option<(Instant, u64)>>);

impl Listed {
    /// Whether the connection has listed what there is, less than `pause` ago.
    pub(super) fn is_recent(&self, tools: &Tools, pause: Duration) -> bool {
        let listed = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listed.is_some_and(|(at, forgotten)| at.elapsed() < pause && forgotten == tools.lock().forgotten)
    }

    /// The connection has listed everything. `forgotten` is what [`Tools::forgotten`] said when it began.
    pub(super) fn note(&self, forgotten: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), forgotten));
    }
}

/// A tool.
pub(super) struct Tool {
    definition: Value,
    pub(super) header_params: Vec<HeaderParam>,
    /// Compiled when it is first called. None for a schema that is too costly, or that means nothing to us: the server
    /// checks its arguments too.
    validator: OnceLock<Option<Validator>>,
}

impl Tools {
    /// The tool, if it was seen less than `known_for` ago.
    pub(super) fn get(&self, name: &str, known_for: Duration) -> Option<Arc<Tool>> {
        let remembered = self.lock();
        let seen = remembered.tools.get(name)?;
        (seen.at.elapsed() < known_for).then(|| seen.tool.clone())
    }

    /// The list has changed.
    pub(super) fn forget(&self) {
        let mut remembered = self.lock();
        *remembered = Remembered {
            forgotten: remembered.forgotten + 1,
            ..Remembered::default()
        };
    }

    /// How often everything was forgotten.
    pub(super) fn forgotten(&self) -> u64 {
        self.lock().forgotten
    }

    /// Remembers the tools of a result of `tools/list` and leaves out those that may not be used. The others stay as they
    /// were written.
    pub(super) fn pass(&self, review: &dyn Review, outcome: Outcome) -> Outcome {
        let Outcome::Result(result) = outcome else {
            return outcome;
        };
        if result.get().len() > PAGE_BYTES_MAX {
            let words = format!("the MCP server lists more than {PAGE_BYTES_MAX} bytes of tools in one page");
            return Outcome::error(INTERNAL, words);
        }
        let list = Members::of(&result).and_then(|members| Some((members.read("tools")?, members)));
        let Some((tools, mut members)) = list else {
            return Outcome::Result(result);
        };
        self.lock().make_room();
        let tools: Vec<Box<RawValue>> = tools;
        let count = tools.len();
        let admitted: Vec<_> = tools
            .into_iter()
            .filter(|tool| self.learn(review, tool))
            .collect();
        if admitted.len() == count {
            return Outcome::Result(result);
        }
        members.set("tools", admitted);
        if members.get("cacheScope").is_some() {
            members.set("cacheScope", "private");
        }
        Outcome::Result(members.raw())
    }

    fn learn(&self, review: &dyn Review, tool: &RawValue) -> bool {
        let definition: Value = serde_json::from_str(tool.get()).unwrap_or_default();
        let Some(name) = definition.get("name").and_then(Value::as_str) else {
            return false;
        };
        let name = name.to_owned();
        let is_admitted = review.admits(&name, &definition);
        let mut remembered = self.lock();
        match is_admitted {
            true => remembered.see(name, definition, tool.get().len()),
            // It may have been another one before.
            false => remembered.lose(&name),
        }
        is_admitted
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Remembered {
    fn see(&mut self, name: String, definition: Value, bytes: usize) {
        if let Some(seen) = self.tools.get_mut(&name)
            && seen.tool.definition == definition
        {
            seen.at = Instant::now();
            return;
        }
        self.lose(&name);
        if self.tools.len() >= TOOLS_MAX || self.bytes + bytes > TOOLS_BYTES_MAX {
            return;
        }
        let header_params = definition.get("inputSchema").map(params_of).unwrap_or_default();
        self.bytes += bytes;
        let tool = Arc::new(Tool {
            definition,
            header_params,
            validator: OnceLock::new(),
        });
        let at = Instant::now();
        self.tools.insert(name, Seen { at, bytes, tool });
    }

    /// Forgets tools that were not listed for long, if there are many.
    fn make_room(&mut self) {
        if self.tools.len() >= TOOLS_MAX / 2 || self.bytes >= TOOLS_BYTES_MAX / 2 {
            self.tools.retain(|_, seen| seen.at.elapsed() < STALE);
            self.bytes = self.tools.values().map(|seen| seen.bytes).sum();
        }
    }

    fn lose(&mut self, name: &str) {
        if let Some(seen) = self.tools.remove(name) {
            self.bytes -= seen.bytes;
        }
    }
}

impl Tool {
    /// What is wrong with these arguments, in words for the model.
    pub(super) fn misfit(&self, arguments: &Value) -> Option<String> {
        let validator = self.validator.get_or_init(|| {
            let schema = Json::from(self.definition.get("inputSchema")?);
            Validator::compile(&schema, Profile::Trusted, "").ok()
        });
        let problems = validator.as_ref()?.verify(arguments).err()?.problems();
        let words: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
        Some(words.join("; "))
    }
}
