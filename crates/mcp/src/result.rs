//! What an MCP server answers, as the model reads it.

use rmcp::model::CallToolResult;
use serde_json::{Value, json};

/// The output of a call, or what the server says of its failure. Text as text, structured content as it is; of pictures and sounds only that there are some.
pub(crate) fn output(result: CallToolResult) -> Result<Value, String> {
    let failed = result.is_error.unwrap_or(false);
    let structured = result.structured_content.filter(|_| !failed);
    let blocks: Vec<Value> = result
        .content
        .iter()
        .map(|block| serde_json::to_value(block).unwrap_or_default())
        .map(plain)
        .collect();
    if failed {
        let words: Vec<String> = blocks
            .iter()
            .map(|block| block.as_str().map_or(block.to_string(), str::to_owned))
            .collect();
        return Err(match words.is_empty() {
            true => "the MCP server says that it failed".into(),
            false => words.join("\n"),
        });
    }
    Ok(match (structured, <[Value; 1]>::try_from(blocks)) {
        (Some(structured), _) => structured,
        (None, Ok([only])) => only,
        (None, Err(several)) => several.into(),
    })
}

fn plain(mut block: Value) -> Value {
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
        let output = output(serde_json::from_value(result).unwrap());
        assert_eq!(output, expected.map_err(str::to_owned));
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
