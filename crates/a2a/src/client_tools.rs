//! The extension by which a client brings its own tools: `docs/a2a-client-tools.md` is its text. Tools come in the
//! metadata of a message, calls and results are tagged parts, so that everything survives every SDK.

use serde_json::{Value, json};

use crate::part::Part;

/// URI of the extension; its text stands behind it.
pub const URI: &str = "https://toolgate.dev/a2a/client-tools/v1";
/// URI of AG2's extension, which does the same by media types.
pub const AG2_URI: &str = "urn:ag2:client-tools:v1";
/// Media type of AG2's part that declares tools.
pub const AG2_SCHEMAS: &str = "application/vnd.ag2.tool-schemas+json";
/// Media type of AG2's part that asks for a call.
pub const AG2_CALL: &str = "application/vnd.ag2.tool-call+json";
/// Media type of AG2's part that carries results.
pub const AG2_RESULT: &str = "application/vnd.ag2.tool-result+json";
/// Media type of AG2's part with the whole conversation, which a server with a memory does not need.
pub const AG2_HISTORY: &str = "application/vnd.ag2.history+json";

/// A call that the client is asked to execute.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolCall {
    /// Id of the call, which its result must name.
    pub call_id: String,
    /// Name of the tool.
    pub name: String,
    /// The arguments.
    pub arguments: Value,
    /// When the call ends without a result, as RFC 3339.
    pub expires_at: Option<String>,
}

/// What a part that carries a result says of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolResult {
    /// The call.
    pub call_id: String,
    /// The tool failed; the part says how.
    pub is_error: bool,
}

impl ToolCall {
    /// The part that asks for the call. Its `argumentsJson` is exact where the data went through protobuf.
    pub fn to_part(&self) -> Part {
        let mut call = json!({
            "callId": self.call_id,
            "name": self.name,
            "argumentsJson": self.arguments.to_string(),
        });
        if let Some(expires_at) = &self.expires_at {
            call["expiresAt"] = json!(expires_at);
        }
        Part::data(self.arguments.clone()).tagged(URI, json!({"toolCall": call}))
    }

    /// The call that a part asks for; none for other parts.
    pub fn of_part(part: &Part) -> Option<Self> {
        let call = part.tag(URI)?.get("toolCall")?;
        let text = |name: &str| call.get(name).and_then(Value::as_str).map(str::to_owned);
        let exact = text("argumentsJson").and_then(|text| serde_json::from_str(&text).ok());
        let arguments = exact.or_else(|| match &part.content {
            crate::part::Content::Data(data) => Some(crate::number::repaired(data.clone())),
            _ => None,
        })?;
        Some(Self {
            call_id: text("callId")?,
            name: text("name")?,
            arguments,
            expires_at: text("expiresAt"),
        })
    }
}

impl ToolResult {
    /// The part marked as this result, or as a piece of it.
    pub fn mark(&self, part: Part) -> Part {
        let result = json!({"callId": self.call_id, "isError": self.is_error});
        part.tagged(URI, json!({"toolResult": result}))
    }

    /// Which result a part carries; none for other parts.
    pub fn of_part(part: &Part) -> Option<Self> {
        let result = part.tag(URI)?.get("toolResult")?;
        Some(Self {
            call_id: result.get("callId").and_then(Value::as_str)?.to_owned(),
            is_error: result.get("isError") == Some(&Value::Bool(true)),
        })
    }
}
