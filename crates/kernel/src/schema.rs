//! JSON Schema: definitions and values are checked here and nowhere else.

use std::fmt;

use serde_json::Value;

use crate::json::Json;
use crate::problem::Problem;

/// A compiled schema.
pub struct Validator(jsonschema::Validator);

impl fmt::Debug for Validator {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Validator")
    }
}

/// How far the author of a schema is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Config files, plugins, MCP: JSON Schema 2020-12, local `$ref`, never a remote fetch.
    Trusted,
    /// Anything in a request: a bounded subset.
    Client,
}

impl Validator {
    /// Compiles a schema that passed its profile's checks; `pointer` is where it stands in what the author wrote.
    pub fn compile(_schema: &Json, _profile: Profile, _pointer: &str) -> Result<Self, Vec<Problem>> {
        todo!()
    }
    /// Everything that is wrong with `value`, in the words of seed 001; empty when it fits.
    pub fn check(&self, _value: &Value) -> Vec<Problem> {
        todo!()
    }
}
