//! A tool that is written with an `id`: that is what models call it, and its `name` is what people do.

use std::borrow::Cow;

use serde_json::Value;

use crate::problem::Problems;

/// The definition with `name` and `title`, as every other is written.
pub fn with_name(item: &Value) -> Cow<'_, Value> {
    let Value::Object(members) = item else {
        return Cow::Borrowed(item);
    };
    if members.get("id").is_none_or(Value::is_null) {
        return Cow::Borrowed(item);
    }
    let mut members = members.clone();
    let id = members.remove("id").unwrap_or_default();
    if let Some(title) = members.remove("name") {
        members.entry("title").or_insert(title);
    }
    members.insert("name".into(), id);
    Cow::Owned(Value::Object(members))
}

/// Reads the definition at `pointer` in the form of [`with_name`], and notes its problems where its author wrote them.
pub(super) fn read_with_name<T>(
    item: &Value,
    pointer: &str,
    problems: &Problems,
    read: impl FnOnce(&Value, &Problems) -> T,
) -> T {
    let named = with_name(item);
    if matches!(named, Cow::Borrowed(_)) {
        return read(item, problems);
    }
    let (name, title) = (format!("{pointer}/name"), format!("{pointer}/title"));
    let has_title = item.get("title").is_some();
    let place = |at: String| match at {
        at if at == name => format!("{pointer}/id"),
        at if at == title && !has_title => name.clone(),
        at => at,
    };
    problems.placed(place, |problems| read(&named, problems))
}
