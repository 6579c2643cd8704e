//! What an agent's configuration may say, and what is said of one that is wrong.

use serde_json::{Value, json};
use toolgate_kernel::agent::{
    Access, Agent, Catalog, Defaults, History, Limits, Missing, ModelName, ModelSpec, NamedTool, Provider,
    Secret, offered, parse, redact,
};
use toolgate_kernel::prompt::ToolChoice;
use toolgate_kernel::tool::{Binding, EXECUTION_TIMEOUT, Execution, Placement, Retry, ToolList};

use crate::schema::lines;

const SEED_003: &str = r#"{
  "version": "1.0",
  "agent": {
    "name": "goal-aware-assistant",
    "description": "An assistant that tracks goals and works toward them.",
    "system": "You are a helpful assistant that actively tracks goals.\nMark goals as completed when done."
  },
  "model": { "provider": "openai", "name": "gpt-4o", "temperature": 0.7, "maxOutputTokens": 1500 },
  "loop": { "maxSteps": 10, "toolChoice": "auto" },
  "tools": [
    { "name": "setGoals", "executionType": "prebuilt", "execution": { "action": "setGoals" } },
    { "name": "getGoals", "executionType": "prebuilt", "execution": { "action": "getGoals" } }
  ],
  "runtime": { "response": { "type": "ui-message-stream" } }
}"#;

pub fn model() -> ModelSpec {
    ModelSpec {
        name: ModelName {
            provider: Provider::Demo,
            name: "house".to_owned(),
        },
        base_url: None,
        api_key: None,
        temperature: None,
        top_p: None,
        max_output_tokens: None,
        reasoning_tokens: None,
    }
}

/// What the gateway says of an action.
pub fn action(name: &str) -> toolgate_kernel::agent::Action {
    toolgate_kernel::agent::Action {
        description: format!("Does {name}."),
        parameters: json!({"type": "object"}),
        timeout: std::time::Duration::from_secs(60),
        retry: toolgate_kernel::tool::Retry::Never,
    }
}

/// A catalog with one source, whose tools are these.
pub fn catalog(actions: &[&str]) -> Catalog {
    let list: ToolList = actions
        .iter()
        .map(|name| (name.to_string(), action(name).into()))
        .collect();
    let mut catalog = Catalog::default();
    for name in actions {
        // Odd ones are no names that a model could use.
        let Ok(tool) = name.parse() else { continue };
        catalog.offer(NamedTool {
            name: tool,
            source: "built-in",
            written: json!({ "name": name, "executionType": "prebuilt", "execution": { "action": name } }),
            shared: None,
        });
    }
    catalog.add("prebuilt", "built-in", Placement::Server, move |tool| {
        Binding::named(tool, "action", &list, "the gateway has no action named")
    });
    catalog
}

pub fn defaults(catalog: &Catalog) -> Defaults<'_> {
    Defaults {
        model: model(),
        catalog,
        missing: Missing::Refused,
    }
}

pub fn read_as(name: &str, config: &Value, actions: &[&str]) -> Result<Agent, Vec<String>> {
    let catalog = catalog(actions);
    parse(&name.parse().unwrap(), config, &defaults(&catalog)).map_err(|problems| lines(&problems))
}

/// Reads a configuration as one that was stored before.
pub fn read_stored(name: &str, config: &Value) -> Result<Agent, Vec<String>> {
    let catalog = catalog(&[]);
    let defaults = Defaults {
        missing: Missing::LeftOut,
        ..defaults(&catalog)
    };
    parse(&name.parse().unwrap(), config, &defaults).map_err(|problems| lines(&problems))
}

#[track_caller]
pub fn read(config: Value) -> Agent {
    read_as("helper", &config, &["setGoals"]).unwrap_or_else(|problems| panic!("{config}: {problems:#?}"))
}

/// What is said of a configuration that is wrong, each with its pointer.
#[track_caller]
pub fn check(config: Value, expected: &[&str]) {
    let refused = read_as("helper", &config, &["setGoals"]).expect_err("it has problems");
    assert_eq!(refused, expected, "{config}");
}

/// A tool with these members besides what it cannot do without.
pub fn tool(members: Value) -> Value {
    let mut tool = json!({ "name": "a", "description": "Does it." });
    tool.as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    tool
}

#[test]
fn the_seeds_example_is_read_when_its_actions_are_there() {
    let config = serde_json::from_str(SEED_003).unwrap();
    let agent = read_as("goal-aware-assistant", &config, &["setGoals", "getGoals"]).unwrap();
    assert_eq!(
        agent.description.unwrap(),
        "An assistant that tracks goals and works toward them."
    );
    assert!(
        agent
            .instructions
            .ends_with("goals.\nMark goals as completed when done.")
    );
    assert_eq!(agent.model.name.provider, Provider::Openai);
    assert_eq!(agent.model.name.name, "gpt-4o");
    assert_eq!(
        (agent.model.temperature, agent.model.max_output_tokens),
        (Some(0.7), Some(1500))
    );
    assert_eq!(agent.limits.steps, 10);
    assert_eq!(agent.tool_choice, ToolChoice::Auto);
    let goals = &agent.tools["setGoals"];
    let Execution::Source(source) = &goals.execution else {
        panic!("{:?}", goals.execution)
    };
    assert_eq!((&*source.source, &*source.tool), ("built-in", "setGoals"));
    assert_eq!(source.config, None);
    assert_eq!(
        (goals.placement(), goals.retry),
        (Placement::Server, Retry::Never)
    );
    assert_eq!(goals.timeout, EXECUTION_TIMEOUT);

    let refused = read_as("goal-aware-assistant", &config, &["setGoals"]).unwrap_err();
    assert_eq!(
        refused,
        [
            "/tools/1/execution/action the gateway has no action named \"getGoals\"; did you mean \"setGoals\"? There are: setGoals"
        ]
    );
    let refused = read_as("helper", &config, &["setGoals", "getGoals"]).unwrap_err();
    assert_eq!(
        refused,
        ["/agent/name expected \"helper\", the name in the address, got \"goal-aware-assistant\""]
    );
}

#[test]
fn nothing_at_all_is_an_agent() {
    let agent = read(json!({}));
    assert_eq!(agent.name.as_str(), "helper");
    assert_eq!((agent.description, agent.instructions.as_str()), (None, ""));
    assert_eq!(agent.model, model());
    assert_eq!(agent.limits, Limits::default());
    assert_eq!(
        (agent.history, agent.tool_choice),
        (History::Server, ToolChoice::Auto)
    );
    assert!(agent.grants.is_empty() && agent.tools.is_empty());
}

#[test]
fn the_short_form_is_enough() {
    let agent = read(
        json!({ "description": "Helps.", "instructions": "Be brief.", "history": "client",
        "grants": ["goals", "net"], "loop": { "maxSteps": 3, "toolChoice": "none" },
        "limits": { "calls": 9, "callsPerStep": 2, "tokens": 1000, "depth": 0 } }),
    );
    assert_eq!(agent.description.as_deref(), Some("Helps."));
    assert_eq!(agent.instructions, "Be brief.");
    assert_eq!(agent.history, History::Client);
    assert_eq!(agent.grants, ["goals", "net"]);
    assert_eq!(agent.tool_choice, ToolChoice::None);
    let expected = Limits {
        steps: 3,
        calls: 9,
        calls_per_step: 2,
        tokens: 1000,
        depth: 0,
        ..Limits::default()
    };
    assert_eq!(agent.limits, expected);
}

#[test]
fn a_model_has_an_address_a_key_and_settings() {
    let agent = read(
        json!({ "model": { "provider": "anthropic", "name": "claude", "baseUrl": "http://127.0.0.1:9/v1",
        "apiKey": "sk-1", "temperature": 0, "topP": 1, "maxOutputTokens": 1, "reasoningTokens": 2048 } }),
    );
    let expected = ModelSpec {
        name: ModelName {
            provider: Provider::Anthropic,
            name: "claude".to_owned(),
        },
        base_url: Some("http://127.0.0.1:9/v1".to_owned()),
        api_key: Some(Secret::new("sk-1")),
        temperature: Some(0.0),
        top_p: Some(1.0),
        max_output_tokens: Some(1),
        reasoning_tokens: Some(2048),
    };
    assert_eq!(agent.model, expected);
    assert!(!format!("{:?}", agent.model).contains("sk-1"));
    assert_eq!(
        read(json!({ "model": { "provider": "demo" } })).model.name.name,
        "demo"
    );
}

#[test]
fn a_model_may_be_a_name_alone() {
    let named = |name: &str| read(json!({ "model": name })).model.name;
    let (vendor, name) = (Provider::Anthropic, "claude-small".to_owned());
    assert_eq!(
        named("claude-small"),
        ModelName {
            provider: vendor,
            name
        }
    );
    assert_eq!(named("else").provider, Provider::Demo);
    // Where a vendor is set it is that one's model, whatever it is called.
    let mut set = model();
    set.name.provider = Provider::Openai;
    set.base_url = Some("http://127.0.0.1:9/v1".to_owned());
    let other = set.named("claude-small");
    assert_eq!(
        (other.name.provider, &other.base_url),
        (Provider::Openai, &set.base_url)
    );
}

#[test]
fn every_problem_is_told_at_once() {
    check(
        json!({ "version": "2.0", "agent": { "name": "other", "system": "a", "prompt": "b" }, "instructions": "c",
            "tolls": [], "history": "both", "grants": ["", 1, "net"], "webhooks": {}, "runtime": 5,
            "model": { "provider": "opnai", "temperature": 3, "topP": "1", "maxOutputTokens": 0, "baseUrl": "example.com",
                "apiKey": "***" },
            "loop": { "maxSteps": 1001, "toolChoice": "maybe" },
            "limits": { "calls": -1, "callsPerStep": 257, "tokens": 1.5, "depth": 17 },
            "context": { "maxTokens": 5, "keep": 0, "compact": "both", "timeZone": "on Mars" } }),
        &[
            "/tolls unknown member \"tolls\"; did you mean \"tools\"?",
            "/webhooks unknown member \"webhooks\"; known here: version, access, agent, description, instructions, model, loop, \
             limits, tools, mcp, mcpServers, grants, history, context, metadata, runtime",
            "/version expected \"1.0\" or \"1\", got \"2.0\"",
            "/agent/prompt unknown member \"prompt\"; known here: name, description, system",
            "/agent/name expected \"helper\", the name in the address, got \"other\"",
            "/instructions it stands at /agent/system already; give it once",
            "/history expected \"server\" or \"client\", got \"both\"",
            "/loop/maxSteps expected a whole number from 1 to 1000, got 1001",
            "/loop/toolChoice expected \"auto\", \"required\", \"none\" or {\"tool\": name}, got \"maybe\"",
            "/model/provider expected \"openai\", \"anthropic\", \"google\" or \"demo\", got \"opnai\"",
            "/model/baseUrl expected an address such as \"https://api.example.com/v1\", got \"example.com\"",
            "/model/apiKey this is the mask of a key; give the key itself, or leave it out",
            "/model/temperature expected a number from 0 to 2, got 3",
            "/model/topP expected a number from 0 to 1, got \"1\"",
            "/model/maxOutputTokens expected a whole number from 1 to 1000000, got 0",
            "/limits/calls expected a whole number from 1 to 10000, got -1",
            "/limits/callsPerStep expected a whole number from 1 to 256, got 257",
            "/limits/tokens expected a whole number from 1 to 100000000, got 1.5",
            "/limits/depth expected a whole number from 0 to 16, got 17",
            "/grants/0 expected a text of 1 to 256 characters, got a blank one",
            "/grants/1 expected a text, got a number",
            "/context/maxTokens expected a whole number from 256 to 100000000, got 5",
            "/context/keep expected a whole number from 1 to 10000, got 0",
            "/context/compact expected \"drop\" or \"summary\", got \"both\"",
            "/context/timeZone expected the name of a time zone such as \"Europe/Rome\", got \"on Mars\"",
        ],
    );
    check(
        json!({ "model": {}, "tools": {}, "agent": "x" }),
        &[
            "/agent expected an object, got a text",
            "/tools expected an array, got an object",
            "/model a model needs a provider: one of openai, anthropic, google, demo",
        ],
    );
    check(
        json!({ "model": { "provider": "google" } }),
        &["/model a model needs the name that its vendor gave it"],
    );
    check(json!([]), &[" expected an object, got an array"]);
}

#[test]
fn a_tool_choice_names_a_tool_of_the_agent() {
    let config = |choice: Value| json!({ "loop": { "toolChoice": choice }, "tools": [tool(json!({}))] });
    let this = ToolChoice::Tool("a".parse().unwrap());
    for (choice, expected) in [
        (json!("auto"), ToolChoice::Auto),
        (json!("required"), ToolChoice::Required),
        (json!("none"), ToolChoice::None),
        (json!(null), ToolChoice::Auto),
        (json!({ "type": "tool", "toolName": "a" }), this.clone()),
        (json!({ "type": "tool", "name": "a" }), this.clone()),
        (json!({ "tool": "a" }), this),
    ] {
        assert_eq!(read(config(choice)).tool_choice, expected);
    }
    let no_tool = "/loop/toolChoice the agent has no tool named \"b\"";
    check(config(json!({ "tool": "b" })), &[no_tool]);
    let form = "expected \"auto\", \"required\", \"none\" or {\"tool\": name}";
    check(
        config(json!({ "type": "tool" })),
        &[&format!("/loop/toolChoice {form}, got an object")],
    );
    check(
        config(json!(true)),
        &[&format!("/loop/toolChoice {form}, got true")],
    );
}

#[test]
fn a_model_is_offered_the_tools_as_their_author_wrote_them() {
    let schema =
        r#"{"type":"object","properties":{"reasoning":{"type":"string"},"answer":{"type":"string"}}}"#;
    let schema: Value = serde_json::from_str(schema).unwrap();
    let agent = read(
        json!({ "tools": [tool(json!({ "name": "b", "parameters": schema })), tool(json!({ "name": "a" }))] }),
    );
    let offered = offered(&agent.tools);
    assert_eq!(
        offered.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert_eq!(offered[1].description, "Does it.");
    // A model fills members in the order it reads them, so the order is part of what the author wrote.
    assert_eq!(offered[1].parameters.as_str(), schema.to_string());
    assert!(schema.to_string().find("reasoning") < schema.to_string().find("answer"));
}

#[test]
fn a_shown_configuration_keeps_no_key() {
    let config = json!({ "model": { "provider": "openai", "name": "m", "apiKey": "sk-secret" },
        "tools": [{ "name": "a", "parameters": { "properties": { "apiKey": { "type": "string" } } } }],
        "runtime": { "deep": [{ "apiKey": "sk-other" }] } });
    let mut expected = config.clone();
    expected["model"]["apiKey"] = json!("***");
    expected["runtime"]["deep"][0]["apiKey"] = json!("***");
    assert_eq!(redact(&config.into()).as_str(), expected.to_string());
}

#[test]
fn an_agent_that_says_nothing_is_for_spaces_and_the_default_one_for_everybody() {
    let access = |name: &str, config: Value| read_as(name, &config, &[]).unwrap().access;
    assert_eq!(access("helper", json!({})), Access::Spaces);
    assert_eq!(access("default", json!({})), Access::Public);
    assert_eq!(access("default", json!({ "access": "spaces" })), Access::Spaces);
    let groups = json!({ "access": { "groups": ["staff"] } });
    assert_eq!(access("helper", groups), Access::Groups(vec!["staff".into()]));
    let words = "/access expected \"public\", \"spaces\", \"backend\" or {\"groups\": [names]}, got \"all\"";
    check(json!({ "access": "all" }), &[words]);
    let words = "/access expected \"groups\" with the name of at least one group";
    check(json!({ "access": { "groups": [] } }), &[words]);
}
