//! Resolved definitions: what is pinned, stored, and compiled again.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_kernel::agent::{Agent, Missing, parse};
use toolgate_kernel::json::Json;
use toolgate_kernel::prompt::ToolChoice;
use toolgate_kernel::tool::{Definition, Execution};

use crate::agent::{catalog, defaults, read, read_as, tool};
use crate::schema::lines;

/// One tool of each kind, with everything that can be said of one.
fn every_kind() -> Agent {
    let own = |name: &str, members: Value| {
        let mut tool = tool(members);
        tool["name"] = name.into();
        tool
    };
    let said = json!({
        "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}, "outputSchema": {"type": "string"},
        "category": "utility", "triggers": ["find"], "version": "2", "permissions": ["net"], "prerequisites": ["fixed"],
        "approval": {"when": {"required": ["q"]}}, "timeout": 1.5, "retry": "safe", "visibility": "public", "deprecated": "Use b.",
    });
    let model = json!({"provider": "openai", "name": "gpt-x", "apiKey": "sk-very-secret"});
    read(json!({ "tools": [
        own("client", said),
        own("fixed", json!({"execution": {"static": [1]}})),
        own("mirror", json!({"execution": "pass-through", "approval": "always"})),
        own("agent", json!({"executionType": "ai-agent", "execution": {"agent": "writer"}})),
        own("spawn", json!({"executionType": "spawn-agent"})),
        own("prompt", json!({"executionType": "prompt", "execution":
            {"prompt": "Say {{x}}", "model": model, "result_schema": {"type": "number"}}})),
        own("nap", json!({"executionType": "waiting", "execution": {"duration": "10m"}})),
        own("moment", json!({"executionType": "waiting", "execution": {"until": "2027-01-31T09:00:00Z"}})),
        own("spoken", json!({"title": "Spoken", "approval": {"remember": "first-in-space"}, "approvalTimeout": "5m",
            "voice": {"prompt": "About {topic}?", "feedback": {"template": "{n} made", "requiresContext": ["n"], "fallback": "Made"}, "enabled": false}})),
        own("bell", json!({"executionType": "waiting", "execution": {"signal": true}})),
        json!({"name": "goals", "executionType": "prebuilt", "execution": {"action": "setGoals"}}),
    ] }))
}

#[test]
fn a_stored_definition_compiles_to_the_same_tool() {
    for tool in every_kind().tools.values() {
        let stored = tool.stored();
        assert!(!stored.as_str().contains("sk-very-secret"), "{stored:?}");
        let again = Definition::read(&stored).unwrap().compile().unwrap();
        assert_eq!(again.hash, tool.hash, "{stored:?}");
        assert_eq!(again.stored(), stored);
        assert_eq!(again.placement(), tool.placement());
        assert_eq!(again.timeout, tool.timeout);
        let inputs = [json!({}), json!({"q": "x"}), json!({"q": 1})];
        for input in inputs {
            assert_eq!(again.input.fits(&input), tool.input.fits(&input), "{stored:?}");
            assert_eq!(again.approval.needed(&input), tool.approval.needed(&input));
        }
        assert_eq!(again.output.is_some(), tool.output.is_some());
    }
}

#[test]
fn every_stored_form_of_a_definition_still_loads() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/definitions.jsonl");
    let text = std::fs::read_to_string(&samples).unwrap();
    for line in text.lines() {
        let sample: Value = serde_json::from_str(line).unwrap();
        let definition =
            Definition::read(&Json::from(&sample["definition"])).unwrap_or_else(|e| panic!("{line}: {e}"));
        // The hash stands in the logs of runs: it must never change for the same definition.
        assert_eq!(definition.compile().unwrap().hash, sample["hash"], "{line}");
    }
    let tools = every_kind().tools;
    let samples = tools
        .values()
        .map(|tool| json!({"hash": tool.hash, "definition": tool.stored()}).to_string());
    let new: Vec<String> = samples
        .filter(|sample| !text.lines().any(|line| line == sample))
        .collect();
    assert!(new.is_empty(), "add these samples:\n{}", new.join("\n"));
}

#[test]
fn what_the_source_says_is_part_of_the_definition() {
    let agent = every_kind();
    let goals = &agent.tools["goals"];
    assert_eq!(goals.description, "Does setGoals.");
    let Execution::Source(source) = &goals.execution else {
        panic!("{:?}", goals.execution)
    };
    assert!(source.listed.is_some());
    let own = read(
        json!({"tools": [{"name": "goals", "description": "Mine.", "executionType": "prebuilt",
        "execution": {"action": "setGoals"}, "timeout": 5}]}),
    );
    assert_eq!(own.tools["goals"].description, "Mine.");
    assert_eq!(own.tools["goals"].timeout.as_secs(), 5);
    assert_ne!(own.tools["goals"].hash, goals.hash);
}

#[test]
fn a_stored_agent_goes_without_what_no_source_has() {
    let config = json!({"loop": {"toolChoice": {"tool": "old"}}, "tools": [
        {"name": "old", "executionType": "prebuilt", "execution": {"action": "getGoals"}},
        {"name": "foreign", "executionType": "mcp", "execution": {"tool": "x"}},
        {"name": "kept", "executionType": "prebuilt", "execution": {"action": "setGoals"}, "prerequisites": ["old"]},
    ]});
    let refused = read_as("helper", &config, &["setGoals"]).unwrap_err();
    let catalog = catalog(&["setGoals"]);
    let lenient = toolgate_kernel::agent::Defaults {
        missing: Missing::LeftOut,
        ..defaults(&catalog)
    };
    let agent = parse(&"helper".parse().unwrap(), &config, &lenient).unwrap();
    let names: Vec<&str> = agent.tools.keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["kept"]);
    assert_eq!(agent.tool_choice, ToolChoice::Auto);
    assert_eq!(lines(&agent.left_out), refused);
    // What is wrong with a tool otherwise is still wrong.
    let wrong = json!({"tools": [{"name": "kept", "executionType": "ai-agent"}]});
    assert!(parse(&"helper".parse().unwrap(), &wrong, &lenient).is_err());
}
