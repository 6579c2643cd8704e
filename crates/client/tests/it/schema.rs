//! The derive of `toolgate_client::JsonSchema`, as in a program that does not depend on `schemars`.

use serde::{Deserialize, Serialize};
use serde_json::json;
use toolgate_client::{JsonSchema, Tool, ToolError};

/// Hides the dependency that these tests have by way of the SDK: whoever needs the name does not compile.
mod schemars {}

/// An order.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is of interest")]
struct Order {
    /// Who pays.
    paid_by: Person,
    #[serde(default = "one")]
    amount: u32,
    lines: Vec<Line<String>>,
    delivery: Option<Delivery>,
    #[schemars(range(min = 1, max = 5))]
    stars: u8,
}

fn one() -> u32 {
    1
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Person {
    name: String,
}

impl Default for Person {
    fn default() -> Self {
        Self { name: "Ada".into() }
    }
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Line<T> {
    article: T,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[allow(dead_code)]
enum Delivery {
    Post { street: String },
    Pickup,
}

#[test]
fn a_schema_is_derived_without_a_dependency_on_schemars() {
    let tool = Tool::typed("order", "Orders.", |_: Order| async { Ok::<_, ToolError>(()) });
    let schema = &tool.definition().parameters;
    let properties = &schema["properties"];
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(properties["paidBy"]["description"], "Who pays.");
    assert_eq!(properties["paidBy"]["properties"]["name"]["default"], "Ada");
    assert_eq!(properties["amount"]["default"], 1);
    assert_eq!(properties["stars"]["maximum"], 5);
    assert_eq!(
        properties["lines"]["items"]["properties"]["article"]["type"],
        "string"
    );
    let delivery = properties["delivery"].to_string();
    assert!(
        delivery.contains("\"post\"") && delivery.contains("\"street\""),
        "{delivery}"
    );
    assert_eq!(schema["required"], json!(["paidBy", "lines", "stars"]));
}

#[test]
fn a_type_keeps_its_name() {
    assert_eq!(<Order as JsonSchema>::schema_name(), "Order");
}
