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

use super::headers::{HeaderParam, params_of};
use super::upstreams::Review;

/// Most tools of one server that are remembered.
const TOOLS_MAX: usize = 4_096;

/// What is remembered of the tools of a server.
#[derive(Default)]
pub(super) struct Tools(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    tools: HashMap<String, Arc<Tool>>,
    listed: Option<Instant>,
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
        let is_fresh = remembered
            .listed
            .is_some_and(|listed| listed.elapsed() < known_for);
        is_fresh.then(|| remembered.tools.get(name).cloned()).flatten()
    }

    /// The list has changed.
    pub(super) fn forget(&self) {
        *self.lock() = Remembered::default();
    }

    /// Takes over what a new list says.
    pub(super) fn replace(&self, fresh: Self) {
        *self.lock() = std::mem::take(&mut *fresh.lock());
    }

    /// Remembers the tools of a result of `tools/list` and leaves out those that may not be used. The others stay as they
    /// were written.
    pub(super) fn pass(&self, review: &dyn Review, outcome: Outcome) -> Outcome {
        let Outcome::Result(result) = outcome else {
            return outcome;
        };
        let list = Members::of(&result).and_then(|members| Some((members.read("tools")?, members)));
        let Some((tools, mut members)) = list else {
            return Outcome::Result(result);
        };
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
        if !review.admits(name, &definition) {
            return false;
        }
        let mut remembered = self.lock();
        remembered.listed.get_or_insert_with(Instant::now);
        let is_known = remembered
            .tools
            .get(name)
            .is_some_and(|known| known.definition == definition);
        if !is_known && remembered.tools.len() < TOOLS_MAX {
            let name = name.to_owned();
            let header_params = definition.get("inputSchema").map(params_of).unwrap_or_default();
            let tool = Tool {
                definition,
                header_params,
                validator: OnceLock::new(),
            };
            remembered.tools.insert(name, Arc::new(tool));
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
