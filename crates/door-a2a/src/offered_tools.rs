//! Tools that a client brings: in the metadata of our extension, in a part of AG2's, or in `params`.

use serde_json::{Map, Value, json};
use toolgate_a2a::client_tools::{AG2_RESULT, AG2_SCHEMAS, AG2_URI, URI};
use toolgate_a2a::error::Error;
use toolgate_a2a::message::Message;
use toolgate_a2a::number::repaired;
use toolgate_a2a::part::Content;
use toolgate_a2a::{Invalid, Metadata};
use toolgate_access::Principal;
use toolgate_http::Shared;
use toolgate_kernel::json::Json;
use toolgate_kernel::tool::ClientTool;

use crate::message::Form;
use crate::problem::refused;

/// Members of a tool that are read; MCP's further ones say nothing to a model.
const MEMBERS: [&str; 8] = [
    "name",
    "description",
    "parameters",
    "inputSchema",
    "outputSchema",
    "timeout",
    "version",
    "deprecated",
];

/// Tools as they came, not checked yet.
pub(crate) struct OfferedTools {
    tools: Value,
    /// Where they stand in the request.
    pub at: String,
    pub form: Form,
}

impl OfferedTools {
    /// The tools that a request brings, and how its client wants to be asked; none when it brings none.
    pub fn find(
        message: &Message,
        metadata: Option<&Metadata>,
        in_params: Option<Value>,
    ) -> Result<Option<Self>, Error> {
        if let Some(tools) = in_params {
            return Ok(Some(Self {
                tools,
                at: "tools".into(),
                form: Form::Params,
            }));
        }
        let ours = [
            (message.tag(URI), format!("message.metadata[{URI}]")),
            (
                metadata.and_then(|metadata| metadata.get(URI)),
                format!("metadata[{URI}]"),
            ),
        ];
        for (extension, at) in ours {
            let Some(extension) = extension else {
                continue;
            };
            let Value::Object(members) = extension else {
                return Err(Invalid::one(at, "must be an object").into());
            };
            if let Some(tools) = members.get("tools").filter(|tools| !tools.is_null()) {
                return Ok(Some(Self {
                    tools: tools.clone(),
                    at: format!("{at}.tools"),
                    form: Form::Tagged,
                }));
            }
        }
        let parts = message.parts.iter().enumerate();
        let mut schemas = parts.filter(|(_, part)| part.media_type.as_deref() == Some(AG2_SCHEMAS));
        Ok(schemas.find_map(|(index, part)| match &part.content {
            Content::Data(data) => Some(Self {
                tools: data.get("tools").cloned().unwrap_or_else(|| json!([])),
                at: format!("message.parts[{index}].data.tools"),
                form: Form::Ag2,
            }),
            Content::Text(_) | Content::Raw(_) | Content::Url(_) => None,
        }))
    }

    /// Checks the tools by the rules for requests; every problem is told with its field.
    pub async fn check(&self, door: &Shared, who: &Principal) -> Result<Vec<ClientTool>, Error> {
        let Value::Array(tools) = repaired(self.tools.clone()) else {
            return Err(Invalid::one(self.at.clone(), "must be a list of tools").into());
        };
        let tools: Vec<Value> = tools.into_iter().map(plain).collect();
        if tools.is_empty() {
            return Ok(Vec::new());
        }
        let tools = Json::from(Value::Array(tools));
        let checked = door.engine.client_tools(who.project, who.entity(), &tools, "");
        checked.await.map_err(|error| refused(error, &self.at))
    }
}

/// Whether a message is AG2's, also one that brings no tools.
pub(crate) fn is_ag2(message: &Message) -> bool {
    let types = [AG2_SCHEMAS, AG2_RESULT];
    let is_theirs = |media_type: &Option<String>| {
        media_type
            .as_deref()
            .is_some_and(|media_type| types.contains(&media_type))
    };
    message.extensions.iter().any(|uri| uri == AG2_URI)
        || message.parts.iter().any(|part| is_theirs(&part.media_type))
}

/// A tool without what is for people or for other programs. OpenAI's form is left as it is.
fn plain(tool: Value) -> Value {
    let Value::Object(mut members) = tool else {
        return tool;
    };
    if members.contains_key("function") {
        return Value::Object(members);
    }
    let name = members.get("name").cloned();
    let description = members.entry("description").or_insert(Value::Null);
    if description.is_null() || *description == "" {
        *description = name
            .filter(Value::is_string)
            .unwrap_or_else(|| json!("A tool of the client."));
    }
    let kept: Map<_, _> = members
        .into_iter()
        .filter(|(name, value)| MEMBERS.contains(&name.as_str()) && !value.is_null())
        .collect();
    Value::Object(kept)
}
