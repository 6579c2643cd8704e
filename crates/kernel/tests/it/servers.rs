//! Whole MCP servers of an agent.

use serde_json::{Value, json};
use toolgate_kernel::agent::{Agent, Catalog, Defaults, Missing, NamedTool, parse, redact};

use crate::agent::{catalog, defaults};
use crate::schema::lines;

/// The server `time` of the project, and the server `own` of the agent `helper`.
fn servers() -> Catalog {
    let mut catalog = catalog(&["setGoals"]);
    for (set, name) in [("time", "mcp_time_now"), ("helper/own", "mcp_own_look")] {
        let written = json!({"name": name, "description": "Does.", "executionType": "basic", "execution": "pass-through"});
        let tool = NamedTool {
            name: name.parse().unwrap(),
            source: "mcp",
            written,
            shared: None,
        };
        catalog.offer_in(set, tool);
    }
    catalog
}

fn read(agent: &str, config: Value, missing: Missing) -> Result<Agent, Vec<String>> {
    let catalog = servers();
    let defaults = Defaults {
        missing,
        ..defaults(&catalog)
    };
    parse(&agent.parse().unwrap(), &config, &defaults).map_err(|problems| lines(&problems))
}

fn names(agent: &Agent) -> Vec<String> {
    agent.tools.keys().map(ToString::to_string).collect()
}

#[test]
fn an_agent_has_the_tools_of_the_servers_that_it_names_and_brings() {
    let config =
        json!({"tools": ["setGoals"], "mcp": ["time"], "mcpServers": {"own": {"url": "https://a.test"}}});
    let agent = read("helper", config.clone(), Missing::Refused).unwrap();
    assert_eq!(names(&agent), ["mcp_own_look", "mcp_time_now", "setGoals"]);
    let other = read("other", config, Missing::Refused).unwrap();
    assert_eq!(
        names(&other),
        ["mcp_time_now", "setGoals"],
        "a server that an agent brings is its own"
    );
    assert_eq!(
        other.left_out[0].pointer, "/mcpServers/own",
        "and may be down when the agent is stored"
    );
}

#[test]
fn a_server_that_is_not_there_is_told_and_left_out_of_a_stored_agent() {
    let config = json!({"mcp": ["tme", "helper/own"]});
    assert_eq!(
        read("other", config.clone(), Missing::Refused).unwrap_err(),
        [
            "/mcp/0 no MCP server named \"tme\" has listed tools; did you mean \"time\"?",
            "/mcp/1 no MCP server named \"helper/own\" has listed tools; there are: time",
        ]
    );
    let stored = read("other", config, Missing::LeftOut).unwrap();
    assert_eq!((stored.tools.len(), stored.left_out.len()), (0, 2));
}

#[test]
fn the_headers_and_variables_of_servers_are_not_shown() {
    let config = json!({"mcpServers": {"a": {"url": "https://a.test", "headers": {"Authorization": "Bearer x"}},
        "b": {"command": "b", "env": {"KEY": "y"}}}});
    let shown = redact(&config.into()).to_value();
    assert_eq!(
        shown["mcpServers"]["a"]["headers"],
        json!({"Authorization": "***"})
    );
    assert_eq!(shown["mcpServers"]["b"]["env"], json!({"KEY": "***"}));
}
