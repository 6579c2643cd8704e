//! Tools that a caller brings with its request.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_kernel::name::ToolName;
use toolgate_kernel::tool::{
    CLIENT_DEADLINE, ClientTool, ClientToolLimits, Conflict, Execution, KeyKind, Placement, Toolbox,
    client_tool_hash, client_tools, compile_client, merge, merge_with, settle_conflicts,
};

use crate::schema::lines;

fn read(tools: Value) -> Result<Vec<ClientTool>, Vec<String>> {
    client_tools(&tools, "/clientTools", &ClientToolLimits::default()).map_err(|problems| lines(&problems))
}

#[track_caller]
fn check(tools: Value, expected: &[&str]) {
    assert_eq!(
        read(tools).map(|tools| tools.len()),
        Err(expected.iter().map(|line| line.to_string()).collect())
    );
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "Does it." })
}

fn name(name: &str) -> ToolName {
    name.parse().unwrap()
}

#[test]
fn a_tool_is_read_whole() {
    let tools = read(json!([{ "name": "search_database", "description": "Search the client database",
        "parameters": { "type": "object", "properties": { "query": { "type": "string" } }, "required": ["query"] },
        "outputSchema": { "type": "array" }, "timeout": "90s" }]))
    .unwrap();
    let compiled = compile_client(&tools[0]).unwrap();
    assert_eq!(compiled.name, name("search_database"));
    assert_eq!(compiled.description, "Search the client database");
    assert_eq!(compiled.execution, Execution::Client);
    assert_eq!(compiled.placement(), Placement::Client);
    assert_eq!(compiled.timeout, Duration::from_secs(90));
    assert_eq!(
        lines(&compiled.input.check(&json!({}))),
        ["/query Missing required parameter: query"]
    );
    let output = compiled.output.as_ref().unwrap();
    assert_eq!(
        lines(&output.check(&json!(1))),
        [" Output has wrong type: expected array, got number"]
    );
}

#[test]
fn what_is_not_said_has_a_default() {
    let compiled = compile_client(&read(json!([tool("a")])).unwrap()[0]).unwrap();
    assert_eq!(compiled.timeout, CLIENT_DEADLINE);
    assert_eq!(compiled.parameters.as_str(), r#"{"type":"object"}"#);
    assert!(compiled.output.is_none());
}

#[test]
fn the_openai_form_is_understood() {
    let plain = json!({ "name": "a", "description": "A.", "parameters": { "type": "object" } });
    let mut strict = plain.clone();
    strict["strict"] = json!(true);
    let wrapped = json!({ "type": "function", "function": strict });
    assert_eq!(read(json!([wrapped])), read(json!([plain])));
    check(
        json!([{ "type": "retrieval", "function": { "name": "1a", "description": "A.", "parameters": { "type": "array" } } }]),
        &[
            "/clientTools/0/type expected \"function\", got \"retrieval\"",
            "/clientTools/0/function/name \"1a\" is not a name; use 1 to 64 of A-Z a-z 0-9 _ -, starting with a letter or _, as in \"search_orders\"",
            "/clientTools/0/function/parameters the input of a tool is an object: its schema must say \"type\": \"object\"",
        ],
    );
}

#[test]
fn a_null_tool_is_not_dropped_without_a_problem() {
    check(
        json!([null, { "type": "function", "function": null }]),
        &[
            "/clientTools/0 a tool must be an object with a name, a description and parameters, got null",
            "/clientTools/1/function a tool must be an object with a name, a description and parameters, got null",
        ],
    );
}

#[test]
fn every_problem_is_told_at_once() {
    check(
        json!([
            { "name": "a", "description": "", "parameters": { "type": "object", "properties": { "x": { "$ref": "#" } } } },
            { "name": 5, "inputSchema": { "type": "string" }, "timeout": "soon" },
            "tool",
            { "name": "b", "description": "B.", "paramters": {}, "execute": "rm" },
            { "name": "c", "description": "C.", "parameters": { "type": "object" }, "inputSchema": { "type": "object" } },
        ]),
        &[
            "/clientTools/0/description expected a text of 1 to 1024 characters, got a blank one",
            "/clientTools/0/parameters/properties/x/$ref $ref is not allowed here; write out what it stands for",
            "/clientTools/1/name expected a name, got 5",
            "/clientTools/1 a tool needs a description, for the model to know when to use it",
            "/clientTools/1/inputSchema the input of a tool is an object: its schema must say \"type\": \"object\"",
            "/clientTools/1/timeout expected a number of seconds or a text such as \"30s\", \"10m\" or \"500ms\", up to 30 days, got \"soon\"",
            "/clientTools/2 a tool must be an object with a name, a description and parameters, got a text",
            "/clientTools/3/paramters unknown member \"paramters\"; did you mean \"parameters\"?",
            "/clientTools/3/execute unknown member \"execute\"; known here: name, description, parameters, inputSchema, outputSchema, timeout, version, deprecated, strict",
            "/clientTools/4/inputSchema \"inputSchema\" is another word for \"parameters\"; give one of them",
        ],
    );
}

#[test]
fn a_request_brings_few_small_tools() {
    let tools = |count: usize| {
        (0..count)
            .map(|index| tool(&format!("t{index}")))
            .collect::<Value>()
    };
    assert_eq!(read(tools(64)).unwrap().len(), 64);
    check(
        tools(65),
        &[
            "/clientTools the request has 65 tools, at most 64 are allowed with a secret key; send fewer (in the SDKs: the option \
           `only` of a chat or of the MCP plugin), or raise the setting `client_tools.tools_max`",
        ],
    );
    let public = ClientToolLimits::default().for_key(KeyKind::Public);
    assert_eq!(client_tools(&tools(32), "", &public).unwrap().len(), 32);
    let told = lines(&client_tools(&tools(33), "/clientTools", &public).unwrap_err());
    assert!(
        told[0].contains("at most 32 are allowed with a public key")
            && told[0].contains("`client_tools.public_tools_max`"),
        "{told:?}"
    );
    check(
        json!([{ "name": "a", "description": "x".repeat(1025) }]),
        &["/clientTools/0/description expected a text of 1 to 1024 characters, got 1025"],
    );
    check(
        json!([{ "name": "a", "description": "A.", "parameters": { "title": "x".repeat(10_000_000) } }]),
        &[
            "/clientTools the tools have more than 65536 bytes or nest deeper than 127 levels; send fewer or shorter ones, or raise the \
           setting `client_tools.bytes_max`",
        ],
    );
    check(
        json!({}),
        &["/clientTools expected an array of tools, got an object"],
    );
}

#[test]
fn names_are_unique_and_plain() {
    check(
        json!([tool("a"), tool("b"), tool("a")]),
        &["/clientTools/2 two tools are named \"a\""],
    );
    check(
        json!([tool("getMail"), tool("GetMail")]),
        &["/clientTools/1 \"GetMail\" differs from \"getMail\" only in case"],
    );
    assert_eq!(
        read(json!([tool("__proto__")])).unwrap()[0].name,
        name("__proto__")
    );
    // Cyrillic, zero-width, full-width, control, too long.
    for odd in [
        "sеarch",
        "search\u{200b}",
        "ｓearch",
        "search\n",
        &"a".repeat(65),
        "",
        "-a",
    ] {
        assert!(
            read(json!([tool(odd)])).unwrap_err()[0].contains("is not a name"),
            "{odd:?}"
        );
    }
}

#[test]
fn a_callers_tool_never_takes_the_name_of_an_agents() {
    let brought = |names: &[&str]| read(names.iter().map(|name| tool(name)).collect()).unwrap();
    let agent = merge(&Toolbox::new(), &brought(&["search"])).unwrap();
    let merged = merge(&agent, &brought(&["Search", "find"])).unwrap();
    assert_eq!(
        merged.keys().map(ToolName::as_str).collect::<Vec<_>>(),
        ["Search", "find", "search"]
    );
    let refused = merge(&agent, &brought(&["find", "search"])).unwrap_err();
    assert_eq!(
        lines(&refused),
        ["/clientTools/1 the agent has a tool named \"search\" already; choose another name"],
    );
}

#[test]
fn compiled_tools_can_be_kept_by_the_hash_of_their_definition() {
    let one =
        read(json!([{ "name": "a", "description": "A.", "parameters": { "type": "object", "title": "t" } }]))
            .unwrap();
    let reordered =
        read(json!([{ "parameters": { "title": "t", "type": "object" }, "description": "A.", "name": "a" }]))
            .unwrap();
    let other =
        read(json!([{ "name": "a", "description": "B.", "parameters": { "type": "object", "title": "t" } }]))
            .unwrap();
    let kept = Arc::new(compile_client(&one[0]).unwrap());
    assert_eq!(kept.hash, client_tool_hash(&one[0]));
    assert_eq!(kept.hash.len(), 64);
    assert_eq!(kept.hash, client_tool_hash(&reordered[0]));
    assert_ne!(kept.hash, client_tool_hash(&other[0]));
    let merged = merge_with(&Toolbox::new(), &one, |_| Ok(kept.clone())).unwrap();
    assert!(Arc::ptr_eq(&merged[&name("a")], &kept));
}

#[test]
fn a_definition_that_came_around_the_door_is_still_checked() {
    let mut tools = read(json!([tool("a")])).unwrap();
    tools[0].parameters = json!({ "$ref": "https://example.com" }).into();
    assert_eq!(
        lines(&merge(&Toolbox::new(), &tools).unwrap_err()),
        [
            "/clientTools/0/parameters/$ref \"https://example.com\" leads nowhere in this schema; use one such as \"#/$defs/address\""
        ],
    );
}

/// What a run calls the tools that a caller brings under these names to an agent that has `search` and `client_find`.
fn settled(names: &[&str], conflict: Conflict) -> Result<Vec<(String, Option<String>)>, Vec<String>> {
    let brought = |names: &[&str]| read(names.iter().map(|name| tool(name)).collect()).unwrap();
    let agent = merge(&Toolbox::new(), &brought(&["search", "find", "client_find"])).unwrap();
    let tools = settle_conflicts(&agent, brought(names), conflict).map_err(|problems| lines(&problems))?;
    merge(&agent, &tools).map_err(|problems| lines(&problems))?;
    let text = |name: ToolName| name.to_string();
    Ok(tools
        .into_iter()
        .map(|tool| (text(tool.name), tool.given_name.map(text)))
        .collect())
}

#[test]
fn a_conflict_of_names_is_settled_as_the_project_wants() {
    let own = |name: &str| (name.to_owned(), None);
    let names = ["search", "buy"];
    assert_eq!(
        settled(&names, Conflict::Error),
        Err(vec![
            "/clientTools/0 the agent has a tool named \"search\" already; choose another name".to_owned()
        ])
    );
    assert_eq!(settled(&names, Conflict::KeepTrusted), Ok(vec![own("buy")]));
    assert_eq!(
        settled(&names, Conflict::Prefix),
        Ok(vec![
            ("client_search".to_owned(), Some("search".to_owned())),
            own("buy")
        ])
    );
}

#[test]
fn a_name_that_differs_only_in_case_is_the_same_name() {
    assert_eq!(
        settled(&["Search"], Conflict::Error),
        Err(vec![
            "/clientTools/0 \"Search\" differs only in case from the agent's \"search\"; choose another name"
                .to_owned()
        ])
    );
    assert_eq!(settled(&["SEARCH"], Conflict::KeepTrusted), Ok(Vec::new()));
    assert_eq!(
        settled(&["Search"], Conflict::Prefix),
        Ok(vec![("client_Search".to_owned(), Some("Search".to_owned()))])
    );
    settled(&["Find"], Conflict::Prefix).unwrap_err();
}

#[test]
fn a_prefixed_name_takes_nobodys_place_either() {
    let told = "the agent has a tool named";
    for names in [&["find"][..], &["search", "client_search"]] {
        let refused = settled(names, Conflict::Prefix).unwrap_err();
        assert!(refused[0].contains(told), "{refused:?}");
    }
}

#[test]
fn a_prefixed_name_that_would_be_too_long_is_cut_and_stays_its_own() {
    let long = |end: &str| format!("{}{end}", "a".repeat(63));
    let names = [long("x"), long("y")];
    let tools: Value = names.iter().map(|name| tool(name)).collect();
    let tools = read(tools).unwrap();
    let agent = merge(&Toolbox::new(), &tools).unwrap();
    let settled = settle_conflicts(&agent, tools, Conflict::Prefix).unwrap();
    assert_eq!(merge(&agent, &settled).unwrap().len(), 4);
    for tool in &settled {
        assert_eq!(tool.name.as_str().len(), 64);
        assert!(tool.name.as_str().starts_with("client_aaa"), "{}", tool.name);
    }
}

#[test]
fn a_version_and_a_word_of_warning_come_along() {
    let tools = read(
        json!([{ "name": "a", "description": "A.", "version": "2.1", "deprecated": "Use b." },
        { "name": "c", "description": "C.", "deprecated": true }]),
    )
    .unwrap();
    let compiled = compile_client(&tools[0]).unwrap();
    assert_eq!(compiled.version.as_deref(), Some("2.1"));
    assert_eq!(compiled.deprecated.as_deref(), Some("Use b."));
    assert_eq!(tools[1].deprecated.as_deref(), Some("This tool is deprecated."));
}

#[test]
fn patterns_are_counted_over_all_tools_of_a_request() {
    let with = |index: usize| {
        json!({ "name": format!("t{index}"), "description": "Does it.", "parameters": {
        "type": "object", "properties": { "a": { "type": "string", "pattern": "^a+$" } } } })
    };
    let two = |index: usize| {
        let mut two = with(index);
        two["parameters"]["properties"]["pattern"] = json!({ "type": "string", "pattern": "b" });
        two
    };
    let tools = |count: usize| Value::Array((0..count).map(two).collect());
    assert!(read(tools(5)).is_ok());
    check(
        tools(6),
        &[
            "/clientTools the tools have 12 patterns together, at most 10 are allowed in one request; raise the setting \
           `client_tools.schema.patterns_max`",
        ],
    );
}

#[test]
fn parameters_are_an_objects_schema() {
    let words = "/clientTools/0/parameters the input of a tool is an object: its schema must say \"type\": \"object\"";
    for schema in [json!(true), json!({ "type": "string" }), json!({})] {
        let told =
            read(json!([{ "name": "t", "description": "Does it.", "parameters": schema }])).unwrap_err();
        assert_eq!(told[0], words, "{schema}");
    }
}

/// The SDKs are held to the same samples: what they refuse before sending is told in the same words.
#[test]
fn faults_of_definitions_are_told_in_the_words_that_the_sdks_know() {
    for line in include_str!("../samples/client-definitions.jsonl").lines() {
        let sample: Value = serde_json::from_str(line).unwrap();
        let read = client_tools(&sample["tools"], "", &ClientToolLimits::default());
        let faults = serde_json::to_value(read.err().unwrap_or_default()).unwrap();
        assert_eq!(faults, sample["faults"], "{}", sample["title"]);
    }
}
