//! Validation messages. Their wording is part of the contract: clients and models rely on it.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use super::CHECK_PROBLEMS_MAX;
use crate::problem::{Problem, cut, member, preview, shown};

/// Most choices or reasons that a message lists.
const LISTED_MAX: usize = 10;

/// What a validated value is, for use in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The arguments of a call.
    Input,
    /// The result of a call.
    Output,
}

impl Subject {
    /// The whole value.
    pub(super) fn whole(self) -> &'static str {
        match self {
            Self::Input => "Input",
            Self::Output => "Output",
        }
    }
    /// A value inside.
    fn part(self) -> &'static str {
        match self {
            Self::Input => "parameter",
            Self::Output => "output field",
        }
    }
    /// Beginning of a message about the value at `path`.
    fn named(self, path: &str) -> String {
        match (self, path) {
            (_, "") => self.whole().to_owned(),
            (Self::Input, _) => format!("Parameter {path}"),
            (Self::Output, _) => format!("Output field {path}"),
        }
    }
}

/// The problems that one error stands for; `root` is the value that was checked.
pub(super) fn problems(error: &ValidationError<'_>, root: &Value, subject: Subject) -> Vec<Problem> {
    let pointer = error.instance_path().as_str();
    let path = path(root, pointer);
    let about = |names: &[&str], says: &str| {
        let problem = |name: &&str| {
            let words = format!("{says} {}: {}", subject.part(), joined(&path, name));
            Problem::new(member(pointer, name), words)
        };
        names.iter().take(CHECK_PROBLEMS_MAX).map(problem).collect()
    };
    match error.kind() {
        Kind::Required { property } => about(&[property.as_str().unwrap_or_default()], "Missing required"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => about(
            &unexpected.iter().map(String::as_str).collect::<Vec<_>>(),
            "Unknown",
        ),
        _ => vec![Problem::new(pointer, sentence(error, &subject.named(&path)))],
    }
}

/// Message about a keyword of a schema.
pub(super) fn about_schema(error: &ValidationError<'_>) -> String {
    let place = error.instance_path().as_str();
    match place.rsplit('/').next() {
        Some("") | None => sentence(error, "the schema"),
        Some(keyword) => sentence(error, &format!("{keyword:?}")),
    }
}

fn sentence(error: &ValidationError<'_>, who: &str) -> String {
    let value = error.instance().as_ref();
    let seen = || shown(value);
    match error.kind() {
        Kind::Type { kind } => wrong_type(kind, value, who),
        Kind::Required { property } => format!("{who} must have {property}"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!(
                "{who} must not have {}",
                listed(unexpected.iter().map(|name| preview(name)))
            )
        }
        Kind::Enum { options } => {
            let options = options.as_array().map_or(&[][..], Vec::as_slice);
            format!(
                "{who} must be one of: {}; got: {}",
                listed(options.iter().map(shown)),
                seen()
            )
        }
        Kind::Constant { expected_value } => {
            format!("{who} must be {}, got: {}", shown(expected_value), seen())
        }
        Kind::Minimum { limit } => format!("{who} must be at least {limit}, got: {}", seen()),
        Kind::Maximum { limit } => format!("{who} must be at most {limit}, got: {}", seen()),
        Kind::ExclusiveMinimum { limit } => format!("{who} must be greater than {limit}, got: {}", seen()),
        Kind::ExclusiveMaximum { limit } => format!("{who} must be less than {limit}, got: {}", seen()),
        Kind::MultipleOf { multiple_of } => {
            format!("{who} must be a multiple of {multiple_of}, got: {}", seen())
        }
        Kind::MinLength { limit } => size(who, "at least", *limit, "character", value),
        Kind::MaxLength { limit } => size(who, "at most", *limit, "character", value),
        Kind::MinItems { limit } => size(who, "at least", *limit, "item", value),
        Kind::MaxItems { limit } => size(who, "at most", *limit, "item", value),
        Kind::AdditionalItems { limit } => size(who, "at most", *limit as u64, "item", value),
        Kind::MinProperties { limit } => size(who, "at least", *limit, "member", value),
        Kind::MaxProperties { limit } => size(who, "at most", *limit, "member", value),
        Kind::Pattern { pattern } => format!(
            "{who} must match the pattern {}, got: {}",
            preview(pattern),
            seen()
        ),
        Kind::Format { format } => format!("{who} must be a valid {format}, got: {}", seen()),
        Kind::UniqueItems => format!("{who} must not hold the same item twice"),
        Kind::Contains => format!("{who} holds too few or too many items of the form it must contain"),
        Kind::UnevaluatedItems { .. } => format!("{who} has more items than are allowed"),
        Kind::PropertyNames { error } => {
            format!(
                "{who} has a member whose name is not allowed: {}",
                shown(error.instance())
            )
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => none_fits(context, who),
        Kind::OneOfMultipleValid { .. } => format!("{who} fits several of the forms that exclude each other"),
        Kind::Not { .. } => format!("{who} has a form that is not allowed"),
        Kind::FalseSchema => format!("{who} is not allowed"),
        Kind::ContentEncoding { content_encoding } => format!("{who} must be encoded as {content_encoding}"),
        Kind::ContentMediaType { content_media_type } => format!("{who} must be {content_media_type}"),
        Kind::FromUtf8 { .. } => format!("{who} must hold text once it is decoded"),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            format!("{who} cannot be matched against its pattern")
        }
        Kind::Referencing(_) => format!("{who} cannot be checked: its schema leads nowhere"),
        Kind::Custom { message, .. } => format!("{who} {message}"),
    }
}

fn wrong_type(kind: &TypeKind, value: &Value, who: &str) -> String {
    if matches!(kind, TypeKind::Single(JsonType::Integer)) && value.is_number() {
        return format!("{who} must be an integer, got: {value}");
    }
    let expected = match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(several) => several
            .iter()
            .map(|one| one.to_string())
            .collect::<Vec<_>>()
            .join(" or "),
    };
    format!(
        "{who} has wrong type: expected {expected}, got {}",
        type_name(value)
    )
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn size(who: &str, bound: &str, limit: u64, unit: &str, value: &Value) -> String {
    let seen = match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    let plural = if limit == 1 { "" } else { "s" };
    format!("{who} must have {bound} {limit} {unit}{plural}, got: {seen}")
}

/// Every alternative that was tried, with its first problem.
fn none_fits(forms: &[Vec<ValidationError<'static>>], who: &str) -> String {
    let reasons = forms
        .iter()
        .filter_map(|errors| errors.first())
        .map(|error| match error.kind() {
            Kind::Type {
                kind: TypeKind::Single(one),
            } => format!("not {one}"),
            Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => "fits none of its forms".to_owned(),
            _ => sentence(error, "it"),
        });
    format!("{who} fits none of the allowed forms: {}", listed(reasons))
}

fn listed(parts: impl Iterator<Item = String>) -> String {
    let mut parts = parts.fuse();
    let mut listed: Vec<String> = parts.by_ref().take(LISTED_MAX).collect();
    if parts.next().is_some() {
        listed.push("…".to_owned());
    }
    listed.join(", ")
}

/// `pointer` as people write it: `address.city`, `tags[0]`.
fn path(root: &Value, pointer: &str) -> String {
    let mut path = String::new();
    let mut here = Some(root);
    for segment in pointer.split('/').skip(1) {
        let name = segment.replace("~1", "/").replace("~0", "~");
        here = match here {
            Some(Value::Array(items)) => {
                path.push_str(&format!("[{name}]"));
                name.parse().ok().and_then(|index: usize| items.get(index))
            }
            Some(Value::Object(members)) => {
                path = joined(&path, &name);
                members.get(&name)
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => None,
        };
    }
    path
}

fn joined(path: &str, name: &str) -> String {
    let dot = if path.is_empty() { "" } else { "." };
    format!("{path}{dot}{}", cut(name))
}
