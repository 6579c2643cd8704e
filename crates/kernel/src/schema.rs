//! JSON Schema: definitions and values are checked here and nowhere else.
//!
//! `profile` holds what a schema may be, `names` where its references lead, `expansion` what they come to, `words`
//! the sentences.

mod expansion;
mod names;
mod profile;
mod tidy;
mod words;

use std::fmt;

use jsonschema::{Draft, PatternOptions, ValidationError};
use serde_json::{Value, json};

use crate::json::{Json, deeper_than};
use crate::problem::{Problem, Problems};
use expansion::Shape;
use profile::Examined;
use words::Subject;

pub use profile::{Limits, Profile};
pub use tidy::{subschemas, tidy};

/// Most problems that [`Validator::check`] lists.
pub const CHECK_PROBLEMS_MAX: usize = 20;
/// Most validation errors that are converted to problems; several may become the same one.
const CHECK_ERRORS_MAX: usize = 100;
/// Most subschemas evaluated, in the worst case, to list every problem of a value.
/// Beyond it only the first problem is reported.
pub const CHECK_WORK_MAX: usize = 100_000;
/// Deepest evaluation of a recursive schema: levels of the value times levels of the schema.
pub const CHECK_DEPTH_MAX: usize = 1_024;

/// A compiled schema.
pub struct Validator {
    compiled: jsonschema::Validator,
    shape: Shape,
    subject: Subject,
}

impl fmt::Debug for Validator {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Validator")
    }
}

impl Validator {
    /// Checks a schema against its profile and compiles it; `pointer` is its position in the author's document.
    pub fn compile(schema: &Json, profile: Profile, pointer: &str) -> Result<Self, Vec<Problem>> {
        Self::compile_within(schema, &profile.limits(), pointer)
    }

    /// Compiles a schema within custom limits. Whatever they are, nothing is ever fetched and a
    /// pattern takes linear time.
    pub fn compile_within(schema: &Json, limits: &Limits, pointer: &str) -> Result<Self, Vec<Problem>> {
        let problems = Problems::default();
        let validator = compile(schema, limits, pointer, &problems);
        problems.or(validator)
    }

    /// The same validator, whose problems speak of an output instead of an input.
    pub fn of_output(self) -> Self {
        Self {
            subject: Subject::Output,
            ..self
        }
    }

    /// Whether `value` matches the schema.
    pub fn fits(&self, value: &Value) -> bool {
        !self.too_deep(value) && self.compiled.is_valid(value)
    }

    /// Whether `value` matches, or is nested too deeply to be checked.
    pub fn may_fit(&self, value: &Value) -> bool {
        self.too_deep(value) || self.compiled.is_valid(value)
    }

    /// All problems of `value`, up to [`CHECK_PROBLEMS_MAX`]; empty if it matches.
    pub fn check(&self, value: &Value) -> Vec<Problem> {
        if self.too_deep(value) {
            let (whole, levels) = (self.subject.whole(), self.levels_max());
            let words = format!("{whole} is nested too deeply; at most {levels} levels are allowed");
            return vec![Problem::new("", words)];
        }
        if self.compiled.is_valid(value) {
            return Vec::new();
        }
        let mut problems = match self.effort(value) {
            Effort::All => self.told(self.compiled.iter_errors(value).take(CHECK_ERRORS_MAX), value),
            Effort::First => self.told(self.compiled.validate(value).err().into_iter(), value),
            Effort::None => Vec::new(),
        };
        // A mismatch never passes, even if it is too costly to explain.
        if problems.is_empty() {
            let words = format!("{} does not fit the schema", self.subject.whole());
            problems.push(Problem::new("", words));
        }
        problems
    }

    /// Parses `text` and checks it: the value if it matches.
    pub fn check_text(&self, text: &str) -> Result<Value, Vec<Problem>> {
        let value = serde_json::from_str(text)
            .map_err(|error| vec![Problem::new("", format!("Invalid tool arguments JSON: {error}"))])?;
        let problems = self.check(&value);
        problems.is_empty().then_some(value).ok_or(problems)
    }

    fn told<'i>(&self, errors: impl Iterator<Item = ValidationError<'i>>, value: &Value) -> Vec<Problem> {
        let mut told = Vec::new();
        for problem in errors.flat_map(|error| words::problems(&error, value, self.subject)) {
            if told.len() < CHECK_PROBLEMS_MAX && !told.contains(&problem) {
                told.push(problem);
            }
        }
        told
    }

    /// Only the evaluation of a recursive schema is as deep as the value; any other ends with the schema.
    fn too_deep(&self, value: &Value) -> bool {
        self.shape.is_recursive() && deeper_than(value, self.levels_max())
    }

    fn levels_max(&self) -> usize {
        CHECK_DEPTH_MAX / self.shape.depth.max(1)
    }

    fn effort(&self, value: &Value) -> Effort {
        let (nodes, depth) = measure(value);
        let once = nodes.saturating_mul(self.shape.subschemas);
        let again = self.shape.returns.max(1).saturating_pow(depth);
        match (once > CHECK_WORK_MAX, once.saturating_mul(again) > CHECK_WORK_MAX) {
            (false, false) => Effort::All,
            (true, _) if again == 1 => Effort::First,
            (true, _) | (false, true) => Effort::None,
        }
    }
}

/// How many problems of a mismatch are looked for.
enum Effort {
    All,
    First,
    None,
}

/// Number of values in `value`, and of its levels.
fn measure(value: &Value) -> (usize, u32) {
    let join = |(nodes, depth): (usize, u32), inner: &Value| {
        let (inner_nodes, inner_depth) = measure(inner);
        (nodes + inner_nodes, depth.max(inner_depth + 1))
    };
    match value {
        Value::Array(items) => items.iter().fold((1, 0), join),
        Value::Object(members) => members.values().fold((1, 0), join),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (1, 0),
    }
}

fn compile(schema: &Json, limits: &Limits, pointer: &str, problems: &Problems) -> Option<Validator> {
    let bytes = schema.as_str().len();
    if bytes > limits.bytes {
        let max = limits.bytes;
        problems.add(
            pointer,
            format!("the schema has {bytes} bytes; at most {max} are allowed"),
        );
        return None;
    }
    let mut schema: Value = match schema.read() {
        Ok(schema) => schema,
        Err(error) => {
            problems.add(pointer, format!("the schema cannot be read: {error}"));
            return None;
        }
    };
    if let Value::Object(members) = &mut schema {
        // Every schema is read as 2020-12, and references stay inside it whatever its `$id` is.
        members.shift_remove("$schema");
        let named = |id: &Value| id.as_str().is_some_and(names::is_name);
        if !members.get("$id").is_some_and(named) {
            members.shift_remove("$id");
        }
    }
    let examined = profile::examine(&schema, limits, pointer, problems)?;
    let built = problems.is_empty().then(|| options(limits).build(&schema));
    let failure = match built {
        Some(Ok(compiled)) => {
            return Some(Validator {
                compiled,
                shape: examined.shape,
                subject: Subject::Input,
            });
        }
        Some(Err(error)) => Some(error),
        None => None,
    };
    explain(&schema, &examined, limits, pointer, problems);
    if let Some(error) = failure.filter(|_| problems.is_empty()) {
        problems.add(format!("{pointer}{}", error.schema_path()), error.to_string());
    }
    None
}

fn options(limits: &Limits) -> jsonschema::ValidationOptions<'static> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex().size_limit(limits.pattern_program_bytes))
        .should_validate_formats(true)
        .offline()
}

/// Lists all problems of a schema that did not compile; compilation itself stops at the first.
fn explain(schema: &Value, examined: &Examined<'_>, limits: &Limits, pointer: &str, problems: &Problems) {
    for error in jsonschema::draft202012::meta::validator().iter_errors(schema) {
        let place = format!("{pointer}{}", error.instance_path());
        if !problems.has(&place) {
            problems.add(place, words::about_schema(&error));
        }
    }
    for (place, pattern) in &examined.patterns {
        if options(limits).build(&json!({ "pattern": pattern })).is_err() {
            problems.add(
                place,
                "this pattern is not a regular expression that can be matched in linear time; it must be short \
                 when its repeats are written out, without look-around and without back-references",
            );
        }
    }
}
