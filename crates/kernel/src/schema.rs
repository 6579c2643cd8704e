//! JSON Schema: definitions and values are checked here and nowhere else.
//!
//! `profile` holds what a schema may be, `names` where its references lead, `expansion` what they come to, `work` what
//! checking a value takes, `words` the sentences, `spelling` typos in keywords.

mod expansion;
mod names;
mod profile;
mod spelling;
mod words;
mod work;

use std::fmt;

use jsonschema::{Draft, PatternOptions, ValidationError};
use serde_json::{Value, json};

use crate::json::{Json, deeper_than};
use crate::problem::{Problem, Problems};
use expansion::Shape;
use profile::Examined;
use words::Subject;
use work::{Plan, Purpose};

pub use profile::{Limits, Profile};
pub use spelling::misspelt_keywords;
pub use toolgate_protocol::tidy::{subschemas, tidy};

/// Most problems that [`Validator::check`] lists.
pub const CHECK_PROBLEMS_MAX: usize = 20;
/// Most validation errors that are converted to problems; several may become the same one.
const CHECK_ERRORS_MAX: usize = 100;
/// Most steps that checking one value may take: subschemas times values, and patterns times text. A value that could
/// take more is refused unchecked. A step takes about ten nanoseconds, so this is a tenth of a second.
pub const CHECK_STEPS_MAX: u64 = 10_000_000;
/// Most steps of a value whose problems are all listed, and of one whose first is told. Telling takes longer than
/// checking.
const LIST_STEPS_MAX: u64 = 100_000;
const TELL_STEPS_MAX: u64 = 1_000_000;
/// Smallest size that is told of a compiled pattern.
const PROGRAM_BYTES_MIN: usize = 512;
/// Deepest evaluation of a recursive schema: levels of the value times levels of the schema.
pub const CHECK_DEPTH_MAX: usize = 1_024;

/// A compiled schema.
pub struct Validator {
    compiled: jsonschema::Validator,
    shape: Shape,
    plan: Plan,
    subject: Subject,
}

/// Why a value is refused.
#[derive(Debug, Clone, PartialEq)]
pub enum Misfit {
    /// Checking it could take more than [`CHECK_STEPS_MAX`] steps.
    TooCostly(Problem),
    /// It does not match the schema.
    Invalid(Vec<Problem>),
}

impl Misfit {
    /// What is wrong with the value; never empty.
    pub fn problems(self) -> Vec<Problem> {
        match self {
            Self::TooCostly(problem) => vec![problem],
            Self::Invalid(problems) => problems,
        }
    }
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
        self.steps(value).is_ok() && self.compiled.is_valid(value)
    }

    /// Whether `value` matches, or is nested too deeply or too costly to be checked.
    pub fn may_fit(&self, value: &Value) -> bool {
        self.steps(value).is_err() || self.compiled.is_valid(value)
    }

    /// Steps that checking a value of so many bytes of JSON takes at most, whatever it is: far above what most take.
    pub fn steps_of_bytes(&self, bytes: usize) -> u64 {
        self.plan.steps_of_bytes(bytes)
    }

    /// All problems of `value`, up to [`CHECK_PROBLEMS_MAX`]; empty if it matches.
    pub fn check(&self, value: &Value) -> Vec<Problem> {
        self.verify(value).err().map_or(Vec::new(), Misfit::problems)
    }

    /// Checks `value`, unless that could take too long.
    pub fn verify(&self, value: &Value) -> Result<(), Misfit> {
        self.steps(value)?;
        if self.compiled.is_valid(value) {
            return Ok(());
        }
        let mut problems = match self.plan.steps(value, Purpose::Explain, TELL_STEPS_MAX) {
            Some(..=LIST_STEPS_MAX) => {
                self.told(self.compiled.iter_errors(value).take(CHECK_ERRORS_MAX), value)
            }
            Some(_) => self.told(self.compiled.validate(value).err().into_iter(), value),
            None => Vec::new(),
        };
        // A mismatch never passes, even if it is too costly to explain.
        if problems.is_empty() {
            let words = format!("{} does not fit the schema", self.subject.whole());
            problems.push(Problem::new("", words));
        }
        Err(Misfit::Invalid(problems))
    }

    /// Steps that checking `value` takes at most; none when they are more than [`CHECK_STEPS_MAX`].
    pub fn steps_of(&self, value: &Value) -> Option<u64> {
        self.plan.steps(value, Purpose::Check, CHECK_STEPS_MAX)
    }

    fn steps(&self, value: &Value) -> Result<u64, Misfit> {
        let whole = self.subject.whole();
        if self.too_deep(value) {
            let levels = self.levels_max();
            let words = format!("{whole} is nested too deeply; at most {levels} levels are allowed");
            return Err(Misfit::Invalid(vec![Problem::new("", words)]));
        }
        self.steps_of(value).ok_or_else(|| {
            let words = format!(
                "{whole} could take more than {CHECK_STEPS_MAX} steps to check against its schema; use a smaller value, or \
                 fewer alternatives and shorter patterns"
            );
            Misfit::TooCostly(Problem::new("", words))
        })
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
            let program_bytes = |pattern: &str| program_bytes(pattern, limits.pattern_program_bytes);
            let (names, shape) = (&examined.names, examined.shape);
            let plan = Plan::new(&schema, names, limits.expansion > 0, shape, &program_bytes);
            return Some(Validator {
                compiled,
                shape,
                plan,
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

/// Size of a compiled pattern, up to twice what it is: the least power of two within which it compiles.
fn program_bytes(pattern: &str, max: usize) -> u64 {
    let schema = json!({ "pattern": pattern });
    let sizes = std::iter::successors(Some(PROGRAM_BYTES_MIN), |bytes| bytes.checked_mul(2));
    let fits = |bytes: &usize| *bytes >= max || pattern_options(*bytes).build(&schema).is_ok();
    sizes.into_iter().find(fits).unwrap_or(max) as u64
}

fn options(limits: &Limits) -> jsonschema::ValidationOptions<'static> {
    pattern_options(limits.pattern_program_bytes)
}

fn pattern_options(program_bytes_max: usize) -> jsonschema::ValidationOptions<'static> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex().size_limit(program_bytes_max))
        .should_validate_formats(true)
        .offline()
}

/// Lists all problems of a schema that did not compile; compilation itself stops at the first.
fn explain(schema: &Value, examined: &Examined<'_>, limits: &Limits, pointer: &str, problems: &Problems) {
    for error in jsonschema::draft202012::meta::validator().iter_errors(schema) {
        let place = format!("{pointer}{}", error.instance_path());
        // An unknown type in a list was told at its own place.
        let is_told = problems.has(&place) || (place.ends_with("/type") && problems.has_inside(&place));
        if !is_told {
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
