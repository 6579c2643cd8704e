//! Stand-ins for what the kernel will bring.
#![allow(missing_docs, dead_code)]

use serde_json::Value;
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::tool::ClientTool;

#[derive(Default)]
pub(crate) struct ClientToolLimits;

pub(crate) fn client_tools(
    tools: &Value,
    pointer: &str,
    _: &ClientToolLimits,
) -> Result<Vec<ClientTool>, Vec<Problem>> {
    serde_json::from_str(&tools.to_string()).map_err(|e| vec![Problem::new(pointer, e.to_string())])
}

pub(crate) fn redact(config: &Json) -> Json {
    config.clone()
}
