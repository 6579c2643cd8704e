//! Whether definitions are sound, before anybody uses them.

use std::time::Duration;

use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_http::Shared;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::Body;
use toolgate_http::caller::Caller;
use toolgate_http::describe::{BackendOnly, BadBody, Refused};
use toolgate_http::problem::{FaultBody, Refusal};
use toolgate_http::schema::Any;
use toolgate_http::wire::{At, Wire, component, wire, words};
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::schema::Profile;
use toolgate_kernel::tool::{Checked, Placement, Tool};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::tools::PlacementWord;

/// A definition, or a list of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Definitions(Value);

impl Wire for Definitions {
    fn read(value: &RawValue, _: &At<'_>, _: &mut Vec<Problem>) -> Option<Self> {
        Some(Self(
            serde_json::from_str(value.get()).expect("the body was checked"),
        ))
    }
    fn schema() -> RefOr<Schema> {
        AnyOfBuilder::new()
            .item(component("Definition"))
            .item(ArrayBuilder::new().items(component("Definition")))
            .into()
    }
    fn components(components: &mut Vec<(String, RefOr<Schema>)>) {
        components.push(("Definition".into(), <Any as PartialSchema>::schema()));
    }
}

words! {
    /// By which rules.
    ProfileWord {
        /// Those for tools that come with a request.
        Client = "client",
        /// Those for an agent's tools.
        Trusted = "trusted",
    }
}

wire! {
    /// Definitions to check.
    ValidateTools {
        /// A definition, or a list of them.
        tools "tools": Definitions,
        /// By which rules: `client`, those for tools that come with a request, unless said otherwise; `trusted`,
        /// those for an agent's tools, for backends only.
        profile "profile": Option<ProfileWord>,
    }
}

/// What is to be said of definitions.
#[derive(Serialize, ToSchema)]
pub(crate) struct Validated {
    /// Nothing is wrong.
    valid: bool,
    /// Everything that is wrong, each with its place.
    #[schema(value_type = Vec<FaultBody>)]
    errors: Vec<Problem>,
    /// What is sound and yet worth knowing, each with its place.
    #[schema(value_type = Vec<FaultBody>)]
    warnings: Vec<Problem>,
    /// The tools as they are understood, in the order they were written; none unless all are sound.
    tools: Vec<SoundTool>,
}

/// A tool as it is understood.
#[derive(Serialize, ToSchema)]
pub(crate) struct SoundTool {
    /// What the model calls it.
    name: String,
    /// Description that the model is given.
    description: String,
    /// JSON Schema of the input.
    #[schema(value_type = Object)]
    parameters: Json,
    /// Placement: where the tool runs.
    #[schema(value_type = PlacementWord)]
    placement: Placement,
    /// How long a call may take, with its unit: `30s`, `500ms`.
    timeout: String,
    /// Its author's number for this state of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Set when it should not be used any more: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<String>,
    /// SHA-256 of the definition, in hex.
    hash: String,
}

impl From<&Tool> for SoundTool {
    fn from(tool: &Tool) -> Self {
        Self {
            name: tool.name.to_string(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
            placement: tool.placement(),
            timeout: with_unit(tool.timeout),
            version: tool.version.clone(),
            deprecated: tool.deprecated.clone(),
            hash: tool.hash.clone(),
        }
    }
}

/// A time as a definition may say it, in whole seconds where it has no rest.
fn with_unit(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis()),
    }
}

/// Checks definitions as they would be checked when used, and tells everything that is wrong.
///
/// Definitions that are wrong are no error here: the answer is 200 with `valid: false`.
#[utoipa::path(
    post, path = "/v1/tools/validate", operation_id = "validate_tools", tag = "tools",
    request_body = ValidateTools,
    responses((status = 200, description = "What is wrong.", body = Validated), BadBody, BackendOnly, Refused),
)]
pub(crate) async fn validate(
    State(door): State<Shared>,
    Caller(who): Caller,
    body: Body<ValidateTools>,
) -> Result<Answer<Validated>, Refusal> {
    let ValidateTools { tools, profile } = body.value;
    let profile = match profile {
        None | Some(ProfileWord::Client) => Profile::Client,
        Some(ProfileWord::Trusted) if who.user.is_some() => {
            return Err(Refusal::forbidden(
                "the profile trusted is for backends; a user's tools are checked as client",
            ));
        }
        Some(ProfileWord::Trusted) => Profile::Trusted,
    };
    let Checked {
        tools,
        errors,
        warnings,
    } = door
        .engine
        .check_tools(who.project, who.entity(), &tools.0, "/tools", profile)
        .await?;
    Ok(ok(Validated {
        valid: errors.is_empty(),
        errors,
        warnings,
        tools: tools.iter().map(|tool| SoundTool::from(&**tool)).collect(),
    }))
}
