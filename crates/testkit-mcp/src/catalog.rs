//! What the fixture lists. Names and texts are the conformance suite's.

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use serde_json::{Value, json};

use crate::made;

/// All tools. The suite calls the first one with no arguments.
pub(crate) fn tools() -> Vec<Tool> {
    let nothing = || json!({"type": "object", "properties": {}});
    let one =
        |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let plain = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_tool_with_logging",
        "test_tool_with_progress",
        "test_error_handling",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_reconnection",
        "test_missing_capability",
        "test_logging_tool",
        "test_streaming_elicitation",
        "test_trigger_tool_change",
        "test_trigger_prompt_change",
        "test_trigger_resource_update",
        "test_input_required_result_elicitation",
        "test_input_required_result_sampling",
        "test_input_required_result_list_roots",
        "test_input_required_result_request_state",
        "test_input_required_result_multiple_inputs",
        "test_input_required_result_multi_round",
        "test_input_required_result_tampered_state",
        "test_input_required_result_capabilities",
        "failing_job",
        "protocol_error_job",
        "multi_input",
        "test_tool_with_task",
        "wait_until_cancelled",
        "log_when_watched",
        "watch",
        "cancelled_calls",
    ];
    let mut tools: Vec<Tool> = plain.iter().map(|name| tool(name, nothing())).collect();
    tools.extend([
        tool("test_sampling", one("prompt")),
        tool("test_elicitation", one("message")),
        tool("greet", one("name")),
        tool("confirm_delete", one("filename")),
        tool(
            "slow_compute",
            json!({"type": "object", "properties": {"seconds": {"type": "integer", "minimum": 0}, "label": {"type": "string"}}}),
        ),
        tool(
            "test_header_param",
            json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}),
        ),
        tool("json_schema_2020_12_tool", schema_of_2020_12()),
        made(json!({
            "name": "structured",
            "title": "Structured content",
            "description": "Gives the sum of two numbers as structured content",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
            "outputSchema": {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]},
            "annotations": {"readOnlyHint": true},
            "_meta": {"example.org/kept": {"b": 1, "a": 2}},
        })),
    ]);
    tools
}

/// All resources that are listed.
pub(crate) fn resources() -> Vec<Resource> {
    made(json!([
        {"uri": "test://static-text", "name": "static-text", "description": "A text", "mimeType": "text/plain"},
        {"uri": "test://static-binary", "name": "static-binary", "description": "An image", "mimeType": "image/png"},
        {"uri": "test://watched-resource", "name": "watched-resource", "description": "A text to subscribe to", "mimeType": "text/plain"},
    ]))
}

/// All resource templates.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    made(json!([{
        "uriTemplate": "test://template/{id}/data", "name": "template", "description": "Data by id",
        "mimeType": "application/json",
    }]))
}

/// All prompts.
pub(crate) fn prompts() -> Vec<Prompt> {
    let argument = |name: &str| json!({"name": name, "description": "A text", "required": true});
    made(json!([
        {"name": "test_simple_prompt", "description": "A prompt without arguments"},
        {"name": "test_prompt_with_arguments", "description": "A prompt with two arguments",
         "arguments": [argument("arg1"), argument("arg2")]},
        {"name": "test_prompt_with_embedded_resource", "description": "A prompt with a resource in it",
         "arguments": [argument("resourceUri")]},
        {"name": "test_prompt_with_image", "description": "A prompt with an image"},
        {"name": "test_input_required_result_prompt", "description": "A prompt that asks for its context"},
    ]))
}

fn tool(name: &str, schema: Value) -> Tool {
    made(json!({"name": name, "description": format!("Fixture tool {name}"), "inputSchema": schema}))
}

/// Keywords that a proxy must not lose.
fn schema_of_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef", "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}
