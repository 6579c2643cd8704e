//! Whatever somebody sends, the answer is a value or its problems.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_kernel::agent::parse;
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::schema::{Profile, Validator};
use toolgate_kernel::tool::{ClientToolLimits, client_tools};

use crate::agent::{catalog, defaults};

/// Words that mean something somewhere, so that odd values get past the first check.
const WORDS: [&str; 56] = [
    "agent",
    "name",
    "description",
    "system",
    "instructions",
    "model",
    "provider",
    "openai",
    "demo",
    "apiKey",
    "loop",
    "maxSteps",
    "toolChoice",
    "tool",
    "tools",
    "parameters",
    "inputSchema",
    "outputSchema",
    "executionType",
    "basic",
    "execution",
    "mode",
    "static",
    "output",
    "action",
    "approval",
    "when",
    "timeout",
    "10s",
    "function",
    "type",
    "object",
    "string",
    "array",
    "integer",
    "properties",
    "required",
    "items",
    "enum",
    "pattern",
    "(a+)+$",
    "(?=",
    "patternProperties",
    "$ref",
    "#",
    "#/$defs/a",
    "$defs",
    "a",
    "$anchor",
    "allOf",
    "anyOf",
    "not",
    "unevaluatedProperties",
    "__proto__",
    "~/",
    "",
];

fn odd_text() -> impl Strategy<Value = String> {
    prop_oneof![4 => proptest::sample::select(&WORDS[..]).prop_map(str::to_owned), 1 => "\\PC{0,8}"]
}

fn odd_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        odd_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            3 => proptest::collection::vec((odd_text(), inner), 0..6).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// A problem stands somewhere in what was written, or in place of a member that is missing there.
fn stands_in(problem: &Problem, written: &Value) -> bool {
    let around = problem.pointer.rsplit_once('/').map_or("", |(around, _)| around);
    written.pointer(&problem.pointer).is_some() || written.pointer(around).is_some()
}

fn check(problems: &[Problem], written: &Value) {
    assert!(!problems.is_empty(), "refused without a reason: {written}");
    for problem in problems {
        assert!(stands_in(problem, written), "{problem:?} in {written}");
        assert!(problem.message.len() < 1_000, "{problem:?}");
    }
}

fn configure(config: &Value) -> Result<(), Vec<Problem>> {
    let catalog = catalog(&WORDS);
    parse(&"helper".parse().unwrap(), config, &defaults(&catalog)).map(drop)
}

proptest! {
    #[test]
    fn any_configuration_is_read_or_refused(config in odd_value(), tool in odd_value()) {
        for config in [config, json!({ "tools": [tool] })] {
            if let Err(problems) = configure(&config) {
                check(&problems, &config);
            }
        }
    }

    #[test]
    fn any_client_tools_are_read_or_refused(tools in odd_value(), schema in odd_value()) {
        let tool = json!([{ "name": "a", "description": "A.", "parameters": schema }]);
        for tools in [tools, tool] {
            if let Err(problems) = client_tools(&tools, "", &ClientToolLimits::default()) {
                check(&problems, &tools);
            }
        }
    }

    #[test]
    fn any_schema_checks_any_value_or_is_refused(schema in odd_value(), value in odd_value()) {
        for profile in [Profile::Client, Profile::Trusted] {
            match Validator::compile(&Json::from(&schema), profile, "") {
                Ok(validator) => prop_assert_eq!(validator.check(&value).is_empty(), validator.fits(&value)),
                Err(problems) => check(&problems, &schema),
            }
        }
    }
}

#[test]
fn what_is_nested_without_end_is_refused() {
    let member = |name: &str, inner| Value::from_iter([(name.to_owned(), inner)]);
    let wraps: [&dyn Fn(Value) -> Value; 3] = [
        &|inner| Value::Array(vec![inner]),
        &|inner| member("tools", inner),
        &|inner| member("items", inner),
    ];
    for wrap in wraps {
        let deep = (0..1_000).fold(json!(1), |inner, _| wrap(inner));
        let config = member("runtime", deep);
        let refused = configure(&config).unwrap_err();
        assert_eq!(
            refused[0].message,
            "the configuration nests deeper than 127 levels"
        );
        let tools = Value::Array(vec![config]);
        let refused = client_tools(&tools, "/clientTools", &ClientToolLimits::default()).unwrap_err();
        assert!(
            refused[0].message.contains("nest deeper than 127 levels"),
            "{refused:?}"
        );
    }
}
