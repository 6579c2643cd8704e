//! Questions to ask.

use std::sync::Arc;

use serde_json::Value;
use toolgate_engine::model::Ask;
use toolgate_kernel::agent::{ModelName, ModelSpec, Provider, Secret};
use toolgate_kernel::id::{CallId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::Part;
use toolgate_kernel::prompt::{CallResult, OfferedTool, Said, ToolChoice, Turn};
use uuid::Uuid;

/// Asks `name` of `provider`, at `base_url`, with these turns.
pub fn ask(provider: Provider, name: &str, base_url: &str, turns: Vec<Turn>) -> Ask {
    Ask {
        model: ModelSpec {
            name: ModelName {
                provider,
                name: name.into(),
            },
            base_url: Some(base_url.into()),
            api_key: Some(Secret::new("sk-secret")),
            temperature: None,
            top_p: None,
            max_output_tokens: None,
            reasoning_tokens: None,
        },
        instructions: "".into(),
        today: "".into(),
        turns: turns.into_iter().map(Arc::new).collect(),
        tools: [].into(),
        tool_choice: ToolChoice::Auto,
    }
}

pub fn user(text: &str) -> Turn {
    Turn::User(vec![Part::Text { text: text.into() }])
}

pub fn tool(name: &str, parameters: impl Into<Json>) -> OfferedTool {
    OfferedTool {
        name: name.parse().unwrap(),
        description: format!("Does {name}."),
        parameters: parameters.into(),
    }
}

pub fn call_id(number: u32) -> CallId {
    CallId {
        run: RunId::new(Uuid::from_u128(7)),
        number,
    }
}

pub fn call(number: u32, name: &str, input: Value, signature: Option<&str>) -> Said {
    Said::Call {
        id: call_id(number),
        name: name.into(),
        input: Json::from(input),
        signature: signature.map(Into::into),
    }
}

pub fn reasoning(text: &str, signature: Option<&str>) -> Said {
    Said::Reasoning {
        text: text.into(),
        signature: signature.map(Into::into),
    }
}

pub fn result(number: u32, name: &str, output: Value) -> CallResult {
    CallResult {
        id: call_id(number),
        name: name.into(),
        output: Json::from(output),
        is_error: false,
    }
}

pub fn error(number: u32, name: &str, message: &str) -> CallResult {
    CallResult {
        is_error: true,
        ..result(number, name, message.into())
    }
}
