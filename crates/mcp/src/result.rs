//! What an MCP server answers, as the model reads it.

use rmcp::model::CallToolResult;
use serde_json::{Value, json};

/// What a tool gave, as its server wrote it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolResult {
    /// Content blocks: `{"type": "text", …}`, images, sounds, resources.
    pub content: Vec<Value>,
    /// Content that the tool's output schema describes.
    pub structured: Option<Value>,
    /// The tool failed; the content says why.
    pub is_error: bool,
}

impl From<CallToolResult> for ToolResult {
    fn from(result: CallToolResult) -> Self {
        let written = |block| serde_json::to_value(block).unwrap_or_default();
        Self {
            content: result.content.iter().map(written).collect(),
            structured: result.structured_content,
            is_error: result.is_error.unwrap_or(false),
        }
    }
}

impl ToolResult {
    /// The output for a model, or what the server says of its failure. Text as text, structured content as it is; of
    /// pictures and sounds only that there are some.
    pub fn plain(self) -> Result<Value, String> {
        plain(self)
    }

    /// What the server says of a failure.
    pub fn failure(&self) -> String {
        let words: Vec<String> = self
            .content
            .iter()
            .cloned()
            .map(without_data)
            .map(words)
            .collect();
        match words.is_empty() {
            true => "the MCP server says that it failed".into(),
            false => words.join("\n"),
        }
    }
}

fn plain(result: ToolResult) -> Result<Value, String> {
    if result.is_error {
        return Err(result.failure());
    }
    let blocks: Vec<Value> = result.content.into_iter().map(without_data).collect();
    Ok(match (result.structured, <[Value; 1]>::try_from(blocks)) {
        (Some(structured), _) => structured,
        (None, Ok([only])) => only,
        (None, Err(several)) => several.into(),
    })
}

fn words(block: Value) -> String {
    match block {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn without_data(mut block: Value) -> Value {
    match block["type"].as_str() {
        Some("text") => block["text"].take(),
        Some("image" | "audio") => json!({"type": block["type"], "mimeType": block["mimeType"]}),
        _ => block,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(result: Value, expected: Result<Value, &str>) {
        let result: CallToolResult = serde_json::from_value(result).unwrap();
        assert_eq!(plain(result.into()), expected.map_err(str::to_owned));
    }

    #[test]
    fn one_text_is_that_text() {
        check(
            json!({"content": [{"type": "text", "text": "noon"}]}),
            Ok(json!("noon")),
        );
    }

    #[test]
    fn structured_content_comes_before_its_text() {
        check(
            json!({"content": [{"type": "text", "text": "{\"at\":12}"}], "structuredContent": {"at": 12}}),
            Ok(json!({"at": 12})),
        );
    }

    #[test]
    fn of_a_picture_only_its_kind_is_told() {
        check(
            json!({"content": [{"type": "text", "text": "look"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]}),
            Ok(json!(["look", {"type": "image", "mimeType": "image/png"}])),
        );
    }

    #[test]
    fn a_failure_is_an_error_in_the_servers_words() {
        check(
            json!({"content": [{"type": "text", "text": "no such zone"}], "isError": true}),
            Err("no such zone"),
        );
    }
}
