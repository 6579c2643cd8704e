//! Tools that a request brings and its caller executes.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolgate_access::Principal;
use toolgate_engine::{AgentError, Engine};
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::tool::ClientTool;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::schema::Any;
use crate::wire::{At, List, Text, Wire, component};

const CATEGORIES_MAX: usize = 100;
const CATEGORY_CHARS_MAX: usize = 128;

/// The categories of client tools that a caller wants.
pub type Categories = List<Text<1, CATEGORY_CHARS_MAX>, 0, CATEGORIES_MAX>;

/// Definitions that came with a request, not checked yet.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientTools(Json);

impl ClientTools {
    /// Checks them; `pointer` is where they stand in the body.
    pub async fn check(
        &self,
        engine: &Engine,
        who: &Principal,
        pointer: &str,
    ) -> Result<Vec<ClientTool>, AgentError> {
        engine
            .client_tools(who.project, who.entity(), &self.0, pointer)
            .await
    }
}

impl Wire for ClientTools {
    fn read(value: &RawValue, _: &At<'_>, _: &mut Vec<Problem>) -> Option<Self> {
        let tools = Json::try_from(value.to_owned());
        Some(Self(tools.expect("the body was checked")))
    }
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new().items(component("NewClientTool")).into()
    }
    fn components(components: &mut Vec<(String, RefOr<Schema>)>) {
        components.push(("NewClientTool".into(), <Any as PartialSchema>::schema()));
        components.push(("ClientTool".into(), <ClientToolBody as PartialSchema>::schema()));
    }
}

/// A tool that the caller of a run executes itself.
#[derive(ToSchema)]
#[schema(as = ClientTool, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what the kernel keeps")]
pub struct ClientToolBody {
    /// What the model calls it.
    name: String,
    /// Description that the model is given.
    description: String,
    /// JSON Schema of the input.
    #[schema(value_type = Object)]
    parameters: Value,
    /// JSON Schema of the output.
    #[schema(value_type = Option<Object>)]
    output_schema: Option<Value>,
    /// Deadline of an answer, in milliseconds.
    timeout_ms: Option<u64>,
    /// Its author's number for this state of it.
    version: Option<String>,
    /// Set when it should not be used any more.
    deprecated: Option<String>,
    /// What the caller calls it, when the run had to call it something else.
    given_name: Option<String>,
}

/// A definition that comes with a request; the kernel reads it, and takes a member that is `null` as left out.
pub(crate) fn described() -> Value {
    let schema = |words: &str| json!({ "type": ["object", "null"], "description": words });
    let plain = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,63}$" },
            "description": { "type": "string", "minLength": 1, "maxLength": 1024 },
            "parameters": schema("JSON Schema of the input: of type object, at most 5 levels, 20 properties each, no `$ref`."),
            "inputSchema": schema("The same as `parameters`."),
            "outputSchema": schema("JSON Schema of the output, within the same bounds."),
            "timeout": {
                "type": ["number", "string", "null"],
                "description": "How long an answer may take: seconds, or a text such as `30s` or `10m`.",
            },
            "version": { "type": ["string", "null"], "description": "The author's number for this state of the tool." },
            "deprecated": {
                "type": ["string", "boolean", "null"],
                "description": "Set when it should not be used any more: why, or true. The words travel with the result.",
            },
            "strict": { "description": "OpenAI's; changes nothing." },
        },
        "required": ["name", "description"],
        "additionalProperties": false,
    });
    json!({
        "description": "A tool that the caller executes itself; also in OpenAI's form.",
        "oneOf": [plain, {
            "type": "object",
            "properties": { "type": { "enum": ["function", null] }, "function": plain },
            "required": ["function"],
            "additionalProperties": false,
        }],
    })
}
