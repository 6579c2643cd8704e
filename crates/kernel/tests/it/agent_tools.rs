//! What an agent's configuration may say of its tools.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_kernel::agent::{TOOLS_MAX, parse};
use toolgate_kernel::json::Json;
use toolgate_kernel::tool::{
    Binding, CLIENT_DEADLINE, EXECUTION_TIMEOUT, Execution, Placement, Retry, Tool, Visibility,
};

use crate::agent::{catalog, check, defaults, read, read_as, read_stored, tool};
use crate::schema::lines;

/// The one tool of an agent.
#[track_caller]
fn read_tool(members: Value) -> Arc<Tool> {
    read(json!({ "tools": [tool(members)] }))
        .tools
        .pop_first()
        .unwrap()
        .1
}

/// What is said of the one tool of an agent.
#[track_caller]
fn check_tool(members: Value, expected: &[&str]) {
    check(json!({ "tools": [tool(members)] }), expected);
}

#[test]
fn basic_tools_run_on_the_client_or_give_what_they_were_given() {
    let object = json!({ "type": "object" });
    for execution in [
        json!(null),
        json!({ "mode": "no-execution" }),
        json!("no-execution"),
    ] {
        let tool = read_tool(json!({ "executionType": "basic", "execution": execution }));
        assert_eq!(tool.execution, Execution::Client);
        assert_eq!(
            (tool.placement(), tool.retry, tool.timeout),
            (Placement::Client, Retry::Never, CLIENT_DEADLINE)
        );
    }
    for execution in [
        json!({ "mode": "static", "output": [1] }),
        json!({ "static": [1] }),
    ] {
        let tool = read_tool(json!({ "executionType": "basic", "execution": execution }));
        assert_eq!(tool.execution, Execution::Static(json!([1]).into()));
        assert_eq!(
            (tool.placement(), tool.retry, tool.timeout),
            (Placement::Server, Retry::Safe, EXECUTION_TIMEOUT)
        );
    }
    assert_eq!(
        read_tool(json!({ "execution": { "static": null } })).execution,
        Execution::Static(Json::null())
    );
    for execution in [json!("pass-through"), json!({ "mode": "pass-through" })] {
        let tool = read_tool(json!({ "execution": execution }));
        assert_eq!(
            (&tool.execution, tool.retry),
            (&Execution::PassThrough, Retry::Safe)
        );
        assert_eq!(tool.parameters.to_value(), object);
    }
    check_tool(
        json!({ "execution": { "mode": "static" } }),
        &["/tools/0/execution the mode \"static\" needs an \"output\""],
    );
    check_tool(
        json!({ "execution": { "mode": "pass-through", "output": 1 } }),
        &["/tools/0/execution only the mode \"static\" has an \"output\""],
    );
    check_tool(
        json!({ "execution": { "url": "https://example.com" } }),
        &[
            "/tools/0/execution/url unknown member \"url\"; known here: mode, output, static",
            "/tools/0/execution expected null, {\"mode\": \"no-execution\"}, {\"mode\": \"pass-through\"} or {\"static\": output}",
        ],
    );
}

#[test]
fn an_agents_answer_can_have_a_form() {
    for member in ["result_schema", "resultSchema"] {
        let execution = json!({ "agent": "writer", member: { "type": "object" } });
        let tool = read_tool(json!({ "executionType": "ai-agent", "execution": execution }));
        let Execution::Agent { result, .. } = &tool.execution else {
            panic!("{tool:?}")
        };
        assert_eq!(result.as_ref().unwrap().schema.as_str(), r#"{"type":"object"}"#);
    }
    check_tool(
        json!({ "executionType": "ai-agent", "execution": { "agent": "writer", "result_schema": 1 } }),
        &["/tools/0/execution/result_schema a schema is an object, true or false"],
    );
}

#[test]
fn spawn_agent_is_an_action_like_the_others() {
    let tool = read_tool(json!({ "executionType": "prebuilt", "execution": { "action": "spawn_agent" } }));
    assert_eq!(tool.execution, Execution::Spawn);
    assert!(!tool.description.is_empty() && tool.parameters.as_str().contains("prompt"));
}

#[test]
fn a_tool_can_be_another_agent() {
    let tool = read_tool(json!({ "executionType": "ai-agent", "execution": { "agent": "writer" } }));
    let agent = "writer".parse().unwrap();
    let result = None;
    assert_eq!(tool.execution, Execution::Agent { agent, result });
    assert_eq!((tool.placement(), tool.retry), (Placement::Server, Retry::Safe));
    assert_eq!(
        lines(&tool.input.check(&json!({}))),
        ["/prompt Missing required parameter: prompt"]
    );
    check_tool(
        json!({ "executionType": "ai-agent" }),
        &["/tools/0 expected \"execution\": {\"agent\": name}"],
    );
    check_tool(
        json!({ "executionType": "ai-agent", "execution": {} }),
        &["/tools/0/execution expected {\"agent\": name}"],
    );
    check_tool(
        json!({ "executionType": "ai-agent", "execution": { "agent": "no name" } }),
        &[
            "/tools/0/execution/agent \"no name\" is not a name; use 1 to 64 of A-Z a-z 0-9 _ -, starting with a \
           letter or _, as in \"search_orders\"",
        ],
    );
}

#[test]
fn an_agent_with_an_address_is_a_source_s_to_run() {
    let card = json!({ "name": "weather", "description": "Knows the weather.", "retry": "never" });
    let mut catalog = catalog(&[]);
    catalog.add("ai-agent", "remote-agent", Placement::Server, move |tool| {
        let config = tool.get("execution")?.into();
        Some(Binding::configured("remote", config, card.clone()))
    });
    let config = json!({ "tools": [
        { "executionType": "ai-agent", "execution": { "url": "https://agents.test/weather" } },
        { "name": "mine", "description": "Mine.", "executionType": "ai-agent", "execution": { "agent": "writer" } },
    ] });
    let agent = parse(&"a".parse().unwrap(), &config, &defaults(&catalog)).unwrap();
    let tools: Vec<&str> = agent.tools.keys().map(|name| name.as_str()).collect();
    assert_eq!(tools, ["mine", "weather"]);
    let weather = &agent.tools["weather"];
    assert!(matches!(&weather.execution, Execution::Source(source) if source.source == "remote-agent"));
    assert_eq!(weather.description, "Knows the weather.");
    let mine = &agent.tools["mine"];
    assert!(mine.execution.is_run(), "without an address it is a child run");
}

#[test]
fn an_execution_type_that_is_not_there_is_told_with_those_that_are() {
    for kind in ["compute", "mcp"] {
        let words = format!(
            "the execution type {kind:?} is not available; these are: basic, ai-agent, spawn-agent, prompt, waiting, \
             prebuilt"
        );
        check_tool(
            json!({ "executionType": kind }),
            &[&format!("/tools/0/executionType {words}")],
        );
    }
}

#[test]
fn a_tool_says_how_it_is_used() {
    let used = read_tool(
        json!({ "inputSchema": { "type": "object", "required": ["q"] }, "outputSchema": { "type": "string" },
        "category": "utility", "triggers": ["look up", "find"], "version": "1.2.0", "permissions": ["net"],
        "voice": { "prompt": "Shall I?" }, "approval": { "when": { "required": ["danger"] } }, "timeout": 1.5,
        "retry": "safe", "visibility": "public", "deprecated": true }),
    );
    assert_eq!(used.category.as_deref(), Some("utility"));
    assert_eq!(used.triggers, ["look up", "find"]);
    assert_eq!(used.version.as_deref(), Some("1.2.0"));
    assert_eq!(used.permissions, ["net"]);
    assert_eq!(
        (used.timeout, used.retry),
        (Duration::from_millis(1500), Retry::Safe)
    );
    assert_eq!(used.visibility, Visibility::Public);
    assert_eq!(used.deprecated.as_deref(), Some("This tool is deprecated."));
    assert!(!used.input.fits(&json!({})) && used.input.fits(&json!({ "q": 1 })));
    assert!(!used.output.as_ref().unwrap().fits(&json!(1)));
    assert!(used.approval.needed(&json!({ "danger": 1 })) && !used.approval.needed(&json!({})));

    let plain = read_tool(json!({ "deprecated": false }));
    assert!(!plain.approval.needed(&json!({})));
    assert_eq!(
        (plain.visibility, &plain.deprecated),
        (Visibility::Private, &None)
    );
    assert!(
        read_tool(json!({ "approval": "always" }))
            .approval
            .needed(&json!({}))
    );
    assert_eq!(
        read_tool(json!({ "deprecated": "Use b." })).deprecated.as_deref(),
        Some("Use b.")
    );
}

#[test]
fn an_approval_that_cannot_be_decided_is_asked_for() {
    let rule = json!({ "properties": { "x": { "$ref": "#" } }, "required": ["danger"] });
    let long_way = (0..20).fold(rule, |inner, _| json!({ "allOf": [inner] }));
    let tool = read_tool(json!({ "approval": { "when": long_way } }));
    let nested = |depth| (0..depth).fold(json!({}), |inner, _| json!({ "x": inner }));
    assert!(!tool.approval.needed(&nested(10)));
    assert!(tool.approval.needed(&nested(100)));
}

#[test]
fn every_problem_of_a_tool_is_told_at_once() {
    check_tool(
        json!({ "name": "two words", "description": null, "paramters": {}, "outputSchema": { "type": "text" },
            "category": "", "permissions": "net", "prerequisites": ["b", 1], "triggers": [""], "voice": "loud",
            "approval": { "if": true }, "timeout": 0, "retry": "always", "visibility": "all", "deprecated": 1, "version": 2 }),
        &[
            "/tools/0/paramters unknown member \"paramters\"; did you mean \"parameters\"?",
            "/tools/0/name \"two words\" is not a name; use 1 to 64 of A-Z a-z 0-9 _ -, starting with a letter or _, \
             as in \"search_orders\"",
            "/tools/0 a tool needs a description, for the model to know when to use it",
            "/tools/0/outputSchema/type \"text\" is not a type; use one of string, number, integer, boolean, array, \
             object, null",
            "/tools/0/approval/if unknown member \"if\"; known here: when, approvers, notRequester, hide, editable, remember",
            "/tools/0/category expected a text of 1 to 256 characters, got a blank one",
            "/tools/0/version expected a text, got a number",
            "/tools/0/triggers/0 expected a text of 1 to 256 characters, got a blank one",
            "/tools/0/permissions expected an array, got a text",
            "/tools/0/prerequisites/0 expected the name of a tool of this agent, got \"b\"",
            "/tools/0/prerequisites/1 expected the name of a tool of this agent, got 1",
            "/tools/0/timeout expected a number of seconds or a text such as \"30s\", \"10m\" or \"500ms\", up to 30 \
             days, got 0",
            "/tools/0/retry expected \"never\" or \"safe\", got \"always\"",
            "/tools/0/visibility expected \"private\" or \"public\", got \"all\"",
            "/tools/0/deprecated expected a text, got a number",
            "/tools/0/voice expected an object, got \"loud\"",
        ],
    );
    check_tool(
        json!({ "approval": "sometimes", "parameters": { "type": "array" } }),
        &[
            "/tools/0/parameters the input of a tool is an object: its schema must say \"type\": \"object\"",
            "/tools/0/approval expected \"never\", \"always\", \"first-in-space\", \"until-revoked\" or {\"when\": schema}, got \"sometimes\"",
        ],
    );
}

#[test]
fn a_timeout_is_seconds_or_a_text_with_a_unit() {
    for (timeout, millis) in [
        (json!(30), 30_000),
        (json!("500ms"), 500),
        (json!("30s"), 30_000),
        (json!("1.5 m"), 90_000),
        (json!("2h"), 7_200_000),
        (json!("30d"), 2_592_000_000),
    ] {
        assert_eq!(
            read_tool(json!({ "timeout": timeout })).timeout,
            Duration::from_millis(millis)
        );
    }
    for timeout in [
        json!(-1),
        json!("31d"),
        json!("s"),
        json!("1e9s"),
        json!("5"),
        json!(1e300),
        json!([]),
        json!("0.1ms"),
    ] {
        let refused = read_as(
            "helper",
            &json!({ "tools": [tool(json!({ "timeout": timeout }))] }),
            &[],
        );
        assert!(
            refused.unwrap_err()[0].starts_with("/tools/0/timeout expected"),
            "{timeout}"
        );
    }
}

#[test]
fn names_are_unique_and_prerequisites_lead_somewhere() {
    let named = |name: &str, before: &[&str]| tool(json!({ "name": name, "prerequisites": before }));
    let agent = read(json!({ "tools": [named("a", &["b"]), named("b", &["c"]), named("c", &[])] }));
    let needed = &agent.tools["a"].prerequisites[0];
    assert_eq!(
        (needed.tool.as_str(), needed.scope),
        ("b", toolgate_kernel::tool::Scope::Run)
    );
    check(
        json!({ "tools": [named("a", &[]), named("b", &[]), named("a", &[])] }),
        &["/tools/2/name two tools are named \"a\""],
    );
    let cases = json!({ "tools": [named("getMail", &[]), named("getmail", &[])] });
    check(
        cases.clone(),
        &["/tools/1/name \"getmail\" differs from \"getMail\" only in case"],
    );
    let stored = read_stored("helper", &cases).expect("what was stored before is read");
    assert_eq!(stored.tools.len(), 2);
    check(
        json!({ "tools": [named("a", &["b"]), named("b", &["a"]), named("c", &["c"]), named("d", &[])] }),
        &[
            "/tools/0/prerequisites \"a\" could never run: its prerequisites wait for themselves",
            "/tools/1/prerequisites \"b\" could never run: its prerequisites wait for themselves",
            "/tools/2/prerequisites \"c\" could never run: its prerequisites wait for themselves",
        ],
    );
}

#[test]
fn there_are_only_so_many_tools_and_problems() {
    let many = |count: usize, members: Value| {
        let tools: Vec<_> = (0..count)
            .map(|index| {
                let mut tool = tool(members.clone());
                tool["name"] = format!("t{index}").into();
                tool
            })
            .collect();
        json!({ "tools": tools })
    };
    assert_eq!(read(many(TOOLS_MAX, json!({}))).tools.len(), TOOLS_MAX);
    check(
        many(TOOLS_MAX + 1, json!({})),
        &["/tools 129 items; at most 128 are allowed"],
    );
    let refused = read_as("helper", &many(TOOLS_MAX, json!({ "retry": 1 })), &[]).unwrap_err();
    assert_eq!(refused.len(), 101);
    assert_eq!(refused[100], " there are more problems than are listed here");
}

#[test]
fn the_hash_of_a_tool_is_that_of_its_definition() {
    let hash = |text: &str| {
        let tool: Value = serde_json::from_str(text).unwrap();
        read(json!({ "tools": [tool] }))
            .tools
            .pop_first()
            .unwrap()
            .1
            .hash
            .clone()
    };
    let one = hash(r#"{"name": "a", "description": "A.", "parameters": {"type": "object", "title": "t"}}"#);
    assert_eq!(
        one,
        hash(r#"{"parameters": {"title": "t", "type": "object"}, "description": "A.", "name": "a"}"#)
    );
    assert_ne!(
        one,
        hash(r#"{"name": "a", "description": "A.", "parameters": {"type": "object", "title": "u"}}"#)
    );
    // Pinned by stored runs: it must never change for the same definition.
    assert_eq!(
        hash(r#"{"name": "a", "description": "A."}"#),
        "051853578f6076c2aa1baf459a9089adbed4d05f6c54eb001120dfa20484eafb",
    );
}

#[test]
fn a_prebuilt_tool_is_named_or_written_out_and_means_the_same() {
    let execution = |tool: Value| {
        let config = json!({"instructions": "x", "tools": [tool]});
        let agent = read_as("helper", &config, &["setGoals"]).unwrap();
        (
            agent.tools["setGoals"].execution.clone(),
            agent.tools["setGoals"].parameters.clone(),
        )
    };
    let whole = execution(
        json!({"name": "setGoals", "executionType": "prebuilt", "execution": {"action": "setGoals"}}),
    );
    assert_eq!(execution(json!("setGoals")), whole);
    assert_eq!(
        execution(json!({"name": "setGoals", "approval": "always"})),
        whole
    );

    let refused = |tool: Value| {
        read_as(
            "helper",
            &json!({"instructions": "x", "tools": [tool]}),
            &["setGoals"],
        )
        .unwrap_err()
    };
    assert_eq!(
        refused(json!("setGoal")),
        [
            "/tools/0 there is no tool named \"setGoal\"; did you mean \"setGoals\"? There are: setGoals, spawn_agent"
        ]
    );
    // What it means must be said where it could be either.
    let either = refused(json!({"name": "setGoals", "description": "Sets goals."}));
    assert!(
        either[0].starts_with("/tools/0/executionType \"setGoals\" is an action of the gateway"),
        "{either:?}"
    );
    execution(
        json!({"name": "setGoals", "description": "Mine.", "executionType": "prebuilt", "execution": {"action": "setGoals"}}),
    );
}

#[test]
fn a_prerequisite_is_a_name_or_says_where_it_counts() {
    use toolgate_kernel::tool::{Definition, Scope};
    let read = |prerequisites: Value| {
        let config = json!({"instructions": "x", "tools": [
            {"name": "verify", "description": "d"},
            {"name": "transfer", "description": "d", "prerequisites": prerequisites},
        ]});
        read_as("helper", &config, &[]).map(|agent| agent.tools["transfer"].clone())
    };
    let within = |seconds| Scope::Space {
        within: Some(std::time::Duration::from_secs(seconds)),
    };
    for (written, scope) in [
        (json!("verify"), Scope::Run),
        (json!({"tool": "verify"}), Scope::Run),
        (json!({"tool": "verify", "scope": "run"}), Scope::Run),
        (
            json!({"tool": "verify", "scope": "space"}),
            Scope::Space { within: None },
        ),
        (json!({"tool": "verify", "within": "10m"}), within(600)),
        (
            json!({"tool": "verify", "scope": "space", "within": 5}),
            within(5),
        ),
    ] {
        let tool = read(json!([written])).unwrap();
        assert_eq!(tool.prerequisites[0].scope, scope, "{written}");
        let stored = Definition::read(&tool.stored()).unwrap();
        assert_eq!(stored.prerequisites, tool.prerequisites);
    }
    // As definitions were stored before there were scopes.
    let stored = read(json!(["verify"])).unwrap().stored().to_value();
    assert_eq!(stored["prerequisites"], json!(["verify"]));
    for wrong in [
        json!("other"),
        json!({"tool": "other"}),
        json!({"scope": "space"}),
        json!({"tool": "verify", "scope": "world"}),
        json!({"tool": "verify", "within": "soon"}),
        json!({"tool": "verify", "scope": "run", "within": "10m"}),
    ] {
        let problems = read(json!([wrong])).unwrap_err();
        assert!(
            problems[0].starts_with("/tools/1/prerequisites/0"),
            "{wrong}: {problems:?}"
        );
    }
}
