//! Tools that an agent uses by their name alone.

use serde_json::{Value, json};
use toolgate_kernel::agent::{
    Agent, Catalog, Defaults, Missing, NamedTool, parse, read_shared, tools_by_name,
};
use toolgate_kernel::tool::{ApprovalRule, Definition, Execution, Listed, SHARED, Tool};

use crate::agent::{catalog, defaults};
use crate::schema::lines;

/// The built-in action `setGoals`, and these shared tools.
fn with_shared(tools: &[(&str, Value)]) -> Catalog {
    let mut catalog = catalog(&["setGoals"]);
    for (name, definition) in tools {
        let mut written = definition.clone();
        written["name"] = (*name).into();
        catalog.offer(NamedTool {
            name: name.parse().unwrap(),
            source: SHARED,
            shared: Some(Listed::new(written.clone()).hash().to_owned()),
            written,
        });
    }
    catalog
}

fn lookup() -> Value {
    json!({"description": "Looks up.", "execution": "pass-through", "approval": "always"})
}

fn read_with(catalog: &Catalog, tools: Value, missing: Missing) -> Result<Agent, Vec<String>> {
    let defaults = Defaults {
        missing,
        ..defaults(catalog)
    };
    let config = json!({"instructions": "x", "tools": tools});
    parse(&"helper".parse().unwrap(), &config, &defaults).map_err(|problems| lines(&problems))
}

#[test]
fn a_name_means_the_built_in_action_first_and_then_the_shared_tool() {
    let shared = json!({"description": "Mine.", "execution": "pass-through"});
    let catalog = with_shared(&[
        ("setGoals", shared.clone()),
        ("lookup", lookup()),
        ("SPAWN_agent", shared),
    ]);
    let tools = json!(["setGoals", "lookup", "spawn_agent"]);
    let agent = read_with(&catalog, tools, Missing::Refused).unwrap();
    let source = |name: &str| agent.tools[name].source();
    assert_eq!(source("setGoals"), Some("built-in"));
    assert_eq!(source("lookup"), Some("shared"));
    assert_eq!(agent.tools["spawn_agent"].execution, Execution::Spawn);
    assert_eq!(rule(&agent.tools["lookup"]), &ApprovalRule::Always);
}

/// The rule as it is written.
fn rule(tool: &Tool) -> &ApprovalRule {
    let definition: &Definition = tool;
    &definition.approval
}

#[test]
fn an_agent_may_say_more_of_a_tool_that_it_names() {
    let catalog = with_shared(&[("lookup", lookup())]);
    let tools = json!([{"name": "lookup", "approval": "never", "timeout": 5}]);
    let agent = read_with(&catalog, tools, Missing::Refused).unwrap();
    let tool = &agent.tools["lookup"];
    assert_eq!(rule(tool), &ApprovalRule::Never);
    assert_eq!(
        (tool.timeout.as_secs(), tool.description.as_str()),
        (5, "Looks up.")
    );
    assert!(tool.shared.is_some());
    // One that is written out is the agent's own.
    let own = json!([{"name": "lookup", "description": "Mine.", "execution": "pass-through"}]);
    let agent = read_with(&catalog, own, Missing::Refused).unwrap();
    assert_eq!(
        (agent.tools["lookup"].source(), &agent.tools["lookup"].shared),
        (None, &None)
    );
}

#[test]
fn an_unknown_name_is_refused_left_out_or_another_projects() {
    let catalog = with_shared(&[("lookup", lookup())]);
    let words = "/tools/0 there is no tool named \"lokup\"; did you mean \"lookup\"? There are: lookup, setGoals, spawn_agent";
    let refused = read_with(&catalog, json!(["lokup"]), Missing::Refused).unwrap_err();
    assert_eq!(refused, [words]);
    for tools in [json!(["lokup"]), json!([{"name": "lokup", "approval": "always"}])] {
        let agent = read_with(&catalog, tools, Missing::LeftOut).unwrap();
        assert!(agent.tools.is_empty());
        assert_eq!(lines(&agent.left_out), [words]);
    }
    // Without a project, one that is no typo may be a tool that the project has.
    let refused = read_with(&catalog, json!(["lokup"]), Missing::Unknown).unwrap_err();
    assert_eq!(refused, [words]);
    let agent = read_with(&catalog, json!(["pay_invoice"]), Missing::Unknown).unwrap();
    assert_eq!((agent.tools.len(), agent.left_out.len()), (0, 1));
}

#[test]
fn a_shared_tool_that_no_longer_fits_is_left_out_of_a_stored_agent() {
    let needs = json!({"description": "Pays.", "execution": "pass-through", "prerequisites": ["verify"]});
    let broken = json!({"description": "Asks.", "executionType": "basic", "execution": {"mode": "static"}});
    let catalog = with_shared(&[("pay", needs.clone()), ("ask", broken), ("lookup", lookup())]);
    let agent = read_with(&catalog, json!(["pay", "ask", "lookup"]), Missing::LeftOut).unwrap();
    let names: Vec<&str> = agent.tools.keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["lookup"]);
    assert_eq!(agent.left_out.len(), 2);
    let refused = read_with(&catalog, json!(["pay"]), Missing::Refused).unwrap_err();
    assert_eq!(
        refused,
        ["/tools/0 expected the name of a tool of this agent, got \"verify\""]
    );
    // Two that came to wait for each other are there, and their calls are refused.
    let other = json!({"description": "Checks.", "execution": "pass-through", "prerequisites": ["pay"]});
    let catalog = with_shared(&[("pay", needs), ("verify", other)]);
    let agent = read_with(&catalog, json!(["pay", "verify"]), Missing::LeftOut).unwrap();
    assert_eq!(agent.tools.len(), 2);
}

fn shared(name: &str, definition: Value, catalog: &Catalog) -> Result<Tool, Vec<String>> {
    read_shared(&name.parse().unwrap(), &definition, &defaults(catalog)).map_err(|problems| lines(&problems))
}

#[test]
fn a_shared_tool_is_checked_like_an_agents_tool_and_takes_no_name() {
    let catalog = with_shared(&[("lookup", lookup()), ("verify", lookup())]);
    let definition =
        json!({"description": "Pays.", "execution": "pass-through", "prerequisites": ["verify"]});
    assert_eq!(shared("pay", definition, &catalog).unwrap().name.as_str(), "pay");
    assert!(shared("lookup", lookup(), &catalog).is_ok(), "it is its own");
    let wrong = json!({"name": "other", "description": 1, "paramters": {}, "prerequisites": ["nothing"]});
    assert_eq!(
        shared("pay", wrong, &catalog).unwrap_err(),
        [
            "/name expected \"pay\", the name in the address, got \"other\"",
            "/paramters unknown member \"paramters\"; did you mean \"parameters\"?",
            "/description expected a text, got a number",
            "/prerequisites/0 expected the name of a tool of this agent, got \"nothing\"",
        ]
    );
    for (name, words) in [
        (
            "setGoals",
            "/name \"setGoals\" is a tool of the source \"built-in\"; choose another name",
        ),
        (
            "SETGOALS",
            "/name \"setGoals\" is a tool of the source \"built-in\"; choose another name",
        ),
        (
            "spawn_agent",
            "/name \"spawn_agent\" is a tool of the source \"built-in\"; choose another name",
        ),
        (
            "Lookup",
            "/name \"Lookup\" differs only in case from the shared tool \"lookup\"",
        ),
    ] {
        assert_eq!(shared(name, lookup(), &catalog).unwrap_err(), [words]);
    }
}

#[test]
fn tools_are_found_by_name_without_an_agent() {
    let needs = json!({"description": "Pays.", "execution": "pass-through", "prerequisites": ["lookup"]});
    let catalog = with_shared(&[("pay", needs), ("lookup", lookup())]);
    let names = ["pay", "nothing", "setGoals"].map(str::to_owned);
    let found = tools_by_name(&names, &defaults(&catalog));
    let found: Vec<&str> = found.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(found, ["pay", "setGoals"]);
}
