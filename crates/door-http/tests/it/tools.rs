//! Definitions of tools: checked, limited, kept apart, counted.

use serde_json::{Value, json};
use toolgate_engine::quota::QuotaLimits;
use toolgate_kernel::tool::Conflict;
use toolgate_testkit::project_settings::project_settings_with;
use toolgate_testkit_http::client::{Sent, of};

use crate::world::{World, agent};

fn beep() -> Value {
    json!({ "name": "beep", "description": "Beeps.", "parameters": { "type": "object", "properties": {} } })
}

fn data<'e>(events: &'e [Sent], kind: &str) -> &'e Value {
    &events.iter().find(|event| event.kind == kind).expect(kind).data
}

async fn validate(world: &World, body: Value) -> Value {
    world
        .user("ada")
        .post("/v1/tools/validate", body)
        .await
        .expect(200)
}

#[tokio::test]
async fn definitions_are_checked_without_being_used() {
    let world = World::new().await;
    let told = validate(&world, json!({ "tools": [beep()] })).await;
    assert_eq!(
        (&told["valid"], &told["errors"], &told["warnings"]),
        (&json!(true), &json!([]), &json!([]))
    );
    let sound = &told["tools"][0];
    assert_eq!(
        (&sound["name"], &sound["placement"]),
        (&json!("beep"), &json!("client"))
    );
    for (written, read) in [
        (json!(30), "30s"),
        (json!("10m"), "600s"),
        (json!("1500ms"), "1500ms"),
        (json!(null), "600s"),
    ] {
        let mut tool = beep();
        tool["timeout"] = written;
        let told = validate(&world, json!({ "tools": tool })).await;
        assert_eq!(told["tools"][0]["timeout"], read);
    }
    let bad = json!({ "name": "no good", "description": "", "parameters": { "type": "string" } });
    let told = validate(&world, json!({ "tools": [beep(), bad] })).await;
    assert_eq!((&told["valid"], &told["tools"]), (&json!(false), &json!([])));
    let places: Vec<&str> = told["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(
        places,
        ["/tools/1/name", "/tools/1/description", "/tools/1/parameters"]
    );
    let told = validate(&world, json!({ "tools": bad })).await;
    assert_eq!(told["errors"][0]["pointer"], "/tools/name");
    world
        .user("ada")
        .post("/v1/tools/validate", json!({}))
        .await
        .expect(422);
}

#[tokio::test]
async fn only_a_backend_checks_by_the_rules_for_agents() {
    let world = World::new().await;
    let tool = json!({ "name": "mirror", "description": "Mirrors.", "version": "3", "deprecated": "Use a window.",
        "executionType": "basic", "execution": { "mode": "pass-through" } });
    let body = json!({ "tools": tool, "profile": "trusted" });
    assert_eq!(
        world
            .user("ada")
            .post("/v1/tools/validate", body.clone())
            .await
            .code(403),
        "FORBIDDEN"
    );
    let told = world.backend().post("/v1/tools/validate", body).await.expect(200);
    assert_eq!(
        (&told["valid"], &told["tools"][0]["placement"]),
        (&json!(true), &json!("server"))
    );
    assert_eq!(
        told["warnings"],
        json!([{ "pointer": "/tools", "message": "mirror is deprecated: Use a window." }])
    );
    world
        .backend()
        .post("/v1/tools/validate", json!({ "tools": [], "profile": "all" }))
        .await
        .expect(422);
}

#[tokio::test]
async fn the_limits_are_those_of_the_settings() {
    let world = World::with_engine(|settings| {
        settings.projects = project_settings_with(|project| {
            project.client_tools.tools = 1;
            project.client_tools.public_tools = 1;
            project.client_tools.schema.depth = 1;
        });
    })
    .await;
    let other = json!({ "name": "boop", "description": "Boops." });
    let deep = json!({ "name": "deep", "description": "Deep.", "parameters": { "type": "object",
        "properties": { "a": { "items": { "type": "string" } } } } });
    for (tools, words) in [
        (
            json!([beep(), other.clone()]),
            "the request has 2 tools, at most 1 are allowed with a public key; send fewer (in the SDKs: the option `only` of a \
             chat or of the MCP plugin), or raise the setting `client_tools.public_tools_max`",
        ),
        (json!([deep]), "the schema is nested deeper than 1 levels"),
    ] {
        let told = validate(&world, json!({ "tools": tools })).await;
        assert_eq!(told["errors"][0]["message"], words);
        for path in ["/v1/runs", "/v1/runs?until=end"] {
            let told = world
                .user("ada")
                .post(path, json!({ "text": "hi", "clientTools": tools }))
                .await
                .expect(422);
            assert_eq!(told["errors"][0]["message"], words);
        }
    }
    let body = json!({ "text": "hi", "clientTools": [beep(), other] });
    let told = world.backend().post("/v1/runs", body).await.expect(422);
    let words = told["errors"][0]["message"].to_string();
    assert!(
        words.contains("a secret key") && words.contains("`client_tools.tools_max`"),
        "{words}"
    );
}

/// What a run makes of a tool `ask` that the caller brings to an agent that has one.
async fn brought(conflict: Conflict, words: &str) -> (World, Vec<Sent>) {
    let world = World::with_engine(|settings| {
        settings.projects = project_settings_with(|project| project.conflict = conflict);
    })
    .await;
    let tool = json!({ "name": "ask", "description": "Mine.", "version": "7" });
    let body = json!({ "text": words, "clientTools": [tool, beep()] });
    let events = world.user("ada").say("/v1/runs", body).await.rest().await;
    (world, events)
}

#[tokio::test]
async fn a_callers_tool_never_takes_the_name_of_an_agents() {
    let world = World::new().await;
    let body = json!({ "text": "hi", "clientTools": [beep(), { "name": "ask", "description": "Mine." }] });
    let told = world.user("ada").post("/v1/runs", body).await.expect(422);
    assert_eq!(
        told["errors"],
        json!([{ "pointer": "/clientTools/1", "message": "the agent has a tool named \"ask\" already; choose another name" }])
    );

    let (_world, events) = brought(Conflict::KeepTrusted, "call:ask").await;
    let tools = data(&events, "run-start")["clientTools"].as_array().unwrap();
    assert_eq!(
        tools.iter().map(|tool| &tool["name"]).collect::<Vec<_>>(),
        ["beep"]
    );

    let (world, events) = brought(Conflict::Prefix, "call:client_ask").await;
    let start = data(&events, "run-start");
    assert_eq!(
        (
            &start["clientTools"][0]["name"],
            &start["clientTools"][0]["givenName"]
        ),
        (&json!("client_ask"), &json!("ask"))
    );
    assert_eq!(data(&events, "tool-input-available")["toolName"], "client_ask");
    // The run is read again from its log for this: the name it was given holds.
    let (run, call) = (
        of(&events, "run-start", "runId"),
        of(&events, "tool-input-available", "toolCallId"),
    );
    let result = json!({ "toolCallId": call, "result": "any" });
    world
        .user("ada")
        .post(&format!("/v1/runs/{run}/tool-results"), result)
        .await
        .expect(200);
}

#[tokio::test]
async fn versions_are_listed_and_kept_in_the_run() {
    let world = World::new().await;
    let mut config = agent();
    config["tools"][1]["version"] = json!("1.2");
    config["tools"][1]["deprecated"] = json!("Use a window.");
    world
        .backend()
        .put("/v1/agents/default", config)
        .await
        .expect(200);
    let told = world.backend().get("/v1/tools").await.expect(200);
    let mirror = told["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "mirror")
        .unwrap();
    assert_eq!(
        (&mirror["version"], &mirror["deprecated"]),
        (&json!("1.2"), &json!("Use a window."))
    );
    let body =
        json!({ "text": "hi", "clientTools": [{ "name": "beep", "description": "Beeps.", "version": "9" }] });
    let events = world.backend().say("/v1/runs", body).await.rest().await;
    let start = data(&events, "run-start");
    assert_eq!(start["toolVersions"], json!({ "beep": "9", "mirror": "1.2" }));
}

/// The names of the tools that a query finds.
async fn found(world: &World, query: &str) -> Vec<String> {
    let told = world
        .backend()
        .get(&format!("/v1/tools?{query}"))
        .await
        .expect(200);
    let tools = told["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// A world with an agent whose tools are for something.
async fn teaching() -> World {
    let world = World::new().await;
    let config = json!({ "access": "public", "tools": [
        { "name": "quiz", "description": "Asks.", "category": "assessment", "triggers": ["verifica la città"], "permissions": ["VOICE"] },
        { "name": "map", "description": "Draws.", "category": "creation", "triggers": ["mappa"], "permissions": ["VOICE", "WRITE"],
          "executionType": "basic", "execution": { "mode": "pass-through" } },
    ] });
    world
        .backend()
        .put("/v1/agents/teacher", config)
        .await
        .expect(201);
    world
}

#[tokio::test]
async fn tools_are_found_by_trigger_category_and_permission() {
    let world = teaching().await;
    assert_eq!(found(&world, "trigger=LA%20Citta").await, ["quiz"]);
    assert_eq!(found(&world, "category=Creation").await, ["map"]);
    assert_eq!(found(&world, "permission=VOICE").await, ["map", "quiz"]);
    assert_eq!(
        found(&world, "permission=VOICE&category=assessment&trigger=verifica").await,
        ["quiz"]
    );
    assert_eq!(found(&world, "permission=VOICE&trigger=nothing").await, [""; 0]);
    assert_eq!(found(&world, "permission=VOICE&agent=default").await, [""; 0]);
    let told = world.backend().get("/v1/tools?trigger=mappa").await.expect(200);
    let map = &told["tools"][0];
    assert_eq!(
        (&map["category"], &map["triggers"], &map["permissions"]),
        (&json!("creation"), &json!(["mappa"]), &json!(["VOICE", "WRITE"]))
    );
}

#[tokio::test]
async fn a_user_finds_what_it_may_call_and_learns_no_permissions() {
    let world = teaching().await;
    let user = world.user("ada");
    let told = user.get("/v1/tools?agent=teacher").await.expect(200);
    let quiz = json!([{ "name": "quiz", "agent": "teacher", "description": "Asks.", "placement": "client",
        "parameters": told["tools"][0]["parameters"], "category": "assessment", "triggers": ["verifica la città"] }]);
    assert_eq!(told["tools"], quiz);
    assert_eq!(
        user.get("/v1/tools?trigger=mappa").await.expect(200)["tools"],
        json!([])
    );
    for query in ["permission=VOICE", "format=openai"] {
        assert_eq!(
            user.get(&format!("/v1/tools?{query}")).await.code(403),
            "FORBIDDEN"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_finds_exactly_what_it_may_call() {
    // Calls that nobody executes stay open.
    let world = World::with_engine(|settings| settings.quotas = QuotaLimits::UNLIMITED).await;
    let (backend, ada) = (world.backend(), world.user("ada"));
    let mut config = agent();
    for (name, access) in [("inner", "backend"), ("team", "spaces"), ("open", "public")] {
        config["access"] = json!(access);
        backend
            .put(&format!("/v1/agents/{name}"), config.clone())
            .await
            .expect(201);
    }
    let own = ada.post("/v1/spaces", json!({})).await.expect(201);
    let given = json!({"agent": "team", "members": ["ada"]});
    let given = backend.post("/v1/spaces", given).await.expect(201);
    let names: Vec<String> = agent()["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    for space in [&own["id"], &given["id"]] {
        let space = space.as_str().unwrap();
        let told = ada.get(&format!("/v1/tools?space={space}")).await.expect(200);
        let listed = told["tools"].as_array().unwrap();
        for owner in ["default", "inner", "team", "open"] {
            for name in &names {
                let body = json!({"spaceId": space, "agent": owner});
                let called = ada.post(&format!("/v1/tools/{name}/call?wait=1ms"), body).await;
                let is_listed = listed
                    .iter()
                    .any(|tool| tool["name"] == **name && tool["agent"] == owner);
                assert_eq!(is_listed, called.status != 404, "{name} of {owner} in {space}");
            }
        }
    }
    let anywhere = ada.get("/v1/tools").await.expect(200);
    let in_own = format!("/v1/tools?space={}", own["id"].as_str().unwrap());
    assert_eq!(anywhere, ada.get(&in_own).await.expect(200));
    assert_eq!(world.user("eve").get(&in_own).await.code(404), "NOT_FOUND");
}

#[tokio::test]
async fn definitions_are_given_as_the_models_are_told_of_them() {
    let world = teaching().await;
    let backend = world.backend();
    for vendor in ["openai", "anthropic", "google"] {
        let told = backend
            .get(&format!(
                "/v1/tools?agent=teacher&permission=WRITE&format={vendor}"
            ))
            .await
            .expect(200);
        assert_eq!(told, json!({ "tools": [{ "vendor": vendor, "names": ["map"] }] }));
    }
    assert_eq!(backend.get("/v1/tools?format=demo").await.code(400), "MALFORMED");
    // Another agent has another tool of that name: no model could be given both.
    let other = json!({ "tools": [{ "name": "quiz", "description": "Asks otherwise." }] });
    backend.put("/v1/agents/other", other).await.expect(201);
    let told = backend.get("/v1/tools?format=openai").await.expect(400);
    assert_eq!(
        told["detail"],
        "query agent: is needed, since agents have different tools named quiz"
    );
}

#[tokio::test]
async fn a_deprecated_tools_warning_travels_with_its_result() {
    let world = World::new().await;
    let mut config = agent();
    config["tools"][1]["deprecated"] = json!("Use a window.");
    world
        .backend()
        .put("/v1/agents/default", config)
        .await
        .expect(200);
    let events = world.backend().run("call:mirror={\"a\":1}").await;
    let output = data(&events, "tool-output-available");
    assert_eq!(
        (&output["output"], &output["warning"]),
        (&json!({ "a": 1 }), &json!("Use a window."))
    );
    // The model repeats what it was given.
    assert_eq!(
        of(&events, "text-end", "text"),
        r#"got {"output":{"a":1},"warning":"Use a window."}"#
    );
    let events = world.user("ada").run("call:mirror={\"a\":1}").await;
    assert_eq!(data(&events, "tool-output-available").get("warning"), None);
    let called = async |tool: &str| {
        let body = json!({ "arguments": { "a": 1 } });
        world
            .backend()
            .post(&format!("/v1/tools/{tool}/call"), body)
            .await
            .expect(200)
    };
    assert_eq!(called("mirror").await["warning"], "Use a window.");
    assert_eq!(called("open_mirror").await.get("warning"), None);
}

#[tokio::test(start_paused = true)]
async fn the_use_of_a_tool_is_counted() {
    let world = World::new().await;
    let backend = world.backend();
    let usage = async |query: &str| {
        backend
            .get(&format!("/v1/tools/ask/usage{query}"))
            .await
            .expect(200)
    };
    let told = usage("").await;
    assert_eq!(
        (&told["name"], &told["calls"], told.get("latencyMs")),
        (&json!("ask"), &json!(0), None)
    );
    for (result, after) in [
        (json!({ "result": {} }), 3),
        (json!({ "result": {} }), 3),
        (json!({ "error": "out of tea" }), 1_000),
    ] {
        let events = backend.run("call:ask").await;
        let (run, call) = (
            of(&events, "run-start", "runId"),
            of(&events, "tool-input-available", "toolCallId"),
        );
        world.clock.jump(after);
        let mut body = result;
        body["toolCallId"] = json!(call);
        backend
            .post(&format!("/v1/runs/{run}/tool-results"), body)
            .await
            .expect(200);
    }
    // What the model made up, and what never ran.
    backend.run("call:nothing call:guarded={\"to\":5}").await;
    let told = usage("").await;
    assert_eq!(
        (&told["calls"], &told["failed"], &told["failures"]),
        (&json!(3), &json!(1), &json!({ "EXECUTION_FAILED": 1 }))
    );
    assert_eq!(told["latencyMs"], json!({ "p50": 3, "p90": 1_023, "p99": 1_023 }));
    assert_eq!(usage("?since=1970-01-01T00:00:00Z").await["calls"], 3);
    assert_eq!(
        usage("?since=2300-01-01T12:00:00Z").await["since"],
        "2300-01-01T00:00:00.000Z"
    );
    assert_eq!(usage("?since=2300-01-01T12:00:00Z").await["calls"], 0);
    let guarded = backend.get("/v1/tools/guarded/usage").await.expect(200);
    assert_eq!(guarded["failures"], json!({ "VALIDATION_FAILED": 1 }));
    assert_eq!(guarded.get("latencyMs"), None);
    assert_eq!(
        backend.get("/v1/tools/nothing/usage").await.expect(200)["calls"],
        0
    );
}

#[tokio::test]
async fn figures_are_for_the_backend_of_the_project() {
    let world = World::new().await;
    world.backend().run("call:mirror").await;
    assert_eq!(
        world.backend().get("/v1/tools/mirror/usage").await.expect(200)["calls"],
        1
    );
    assert_eq!(
        world.stranger().get("/v1/tools/mirror/usage").await.expect(200)["calls"],
        0
    );
    assert_eq!(
        world.user("ada").get("/v1/tools/mirror/usage").await.code(403),
        "FORBIDDEN"
    );
    world.backend().get("/v1/tools/no%20name/usage").await.expect(404);
    world
        .backend()
        .get("/v1/tools/mirror/usage?since=lately")
        .await
        .expect(400);
}
