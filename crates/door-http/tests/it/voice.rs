//! What is said aloud, and which tool is meant by what is said.

use serde_json::{Value, json};

use crate::world::World;

fn sheet() -> Value {
    json!({
        "id": "my_tool", "name": "Il mio foglio", "description": "Makes a sheet.", "category": "EDUCATIONAL",
        "executionType": "basic", "triggers": ["mio_tool", "crea", "foglio"], "permissions": ["WRITE_CONTENT"],
        "voicePrompt": {"template": "Creare un foglio su {topic}?", "requiresContext": ["topic"], "fallback": "Creare un nuovo foglio?"},
        "voiceFeedback": {"template": "Foglio su {topic} creato con {itemCount} elementi",
            "requiresContext": ["topic", "itemCount"], "fallback": "Foglio creato"},
    })
}

fn demo() -> Value {
    json!({
        "id": "demo", "name": "Demo", "description": "Shows a demo.", "executionType": "basic",
        "execution": {"mode": "pass-through"}, "triggers": ["demo", "mostra demo", "visualizza", "interattivo"],
    })
}

/// A world whose tutor has a tool that clients execute, and a hidden one.
async fn world() -> World {
    let world = World::new().await;
    let config = json!({ "access": "public", "tools": [sheet(), demo()] });
    world.backend().put("/v1/agents/tutor", config).await.expect(201);
    world
}

#[tokio::test]
async fn what_somebody_says_finds_the_tool_and_says_why() {
    let world = world().await;
    let said = json!({ "text": "Mostra la DÉMO!", "language": "it-IT" });
    let told = world.backend().post("/v1/tools/match", said).await.expect(200);
    let best = &told["matches"][0];
    assert_eq!(
        (
            &best["name"],
            &best["title"],
            &best["agent"],
            &best["trigger"],
            &best["order"]
        ),
        (
            &json!("demo"),
            &json!("Demo"),
            &json!("tutor"),
            &json!("mostra demo"),
            &json!("apart")
        )
    );
    assert_eq!(
        best["words"][1],
        json!({ "trigger": "demo", "said": "demo", "how": "exact" })
    );
    let said = json!({ "text": "vorrei un fogilo", "context": { "topic": "Gravità" } });
    let told = world.backend().post("/v1/tools/match", said).await.expect(200);
    let best = &told["matches"][0];
    assert_eq!(
        (&best["name"], &best["voice"]),
        (&json!("my_tool"), &json!("Creare un foglio su Gravità?"))
    );
    assert_eq!(
        best["words"][0],
        json!({ "trigger": "foglio", "said": "fogilo", "how": "typo", "distance": 1 })
    );
    let said = json!({ "text": "buongiorno" });
    assert_eq!(
        world.backend().post("/v1/tools/match", said).await.expect(200)["matches"],
        json!([])
    );
    let wrong = json!({ "text": "x".repeat(1001), "limit": 0, "language": "i" });
    let told = world.backend().post("/v1/tools/match", wrong).await.expect(422);
    assert_eq!(told["errors"].as_array().unwrap().len(), 3, "{told}");
}

#[tokio::test]
async fn the_sample_of_the_documentation_is_true() {
    let docs = include_str!("../../../../docs/voice.md");
    let (_, sample) = docs.split_once("POST /v1/tools/match\n").unwrap();
    let mut values = serde_json::Deserializer::from_str(sample).into_iter::<Value>();
    let (said, told) = (values.next().unwrap().unwrap(), values.next().unwrap().unwrap());
    let world = world().await;
    assert_eq!(
        world.backend().post("/v1/tools/match", said).await.expect(200),
        told
    );
}

#[tokio::test]
async fn a_tool_that_many_agents_have_is_one_match() {
    let world = World::new().await;
    let backend = world.backend();
    let tool = |triggers: &[String]| json!({ "description": "Shows a demo.", "executionType": "basic", "triggers": triggers });
    // So many words that ten copies of them leave room for no other tool.
    let mut many: Vec<String> = (0..63)
        .map(|number| format!("uno due tre quattro cinque sei sette n{number}"))
        .collect();
    many.push("mostra demo".into());
    let few = ["demo".to_owned()];
    for (name, triggers) in [("best", &many[..]), ("second", &few), ("unused", &few)] {
        let path = format!("/v1/shared-tools/{name}");
        backend.put(&path, tool(triggers)).await.expect(201);
    }
    let agents: Vec<String> = (0..10).map(|number| format!("agent{number}")).collect();
    for name in &agents {
        let config = json!({ "tools": ["best", "second"] });
        let path = format!("/v1/agents/{name}");
        backend.put(&path, config).await.expect(201);
    }
    // Another tool of the same name is no copy.
    let mut own = tool(&few);
    own["name"] = json!("second");
    let config = json!({ "tools": [own] });
    backend.put("/v1/agents/other", config).await.expect(201);

    let said = json!({ "text": "mostra demo" });
    let told = backend.post("/v1/tools/match", said).await.expect(200);
    let matches = told["matches"].as_array().unwrap().iter();
    let found: Vec<Value> = matches
        .map(|found| json!([found["name"], found["agent"], found["agents"]]))
        .collect();
    assert_eq!(
        found,
        [
            json!(["best", "agent0", agents]),
            json!(["second", "agent0", agents]),
            json!(["second", "other", null]),
            json!(["unused", null, null]),
        ]
    );
}

#[tokio::test]
async fn a_user_finds_by_what_it_says_no_more_than_it_may_call() {
    let world = world().await;
    let ada = world.user("ada");
    let found = async |text: &str| {
        let said = json!({ "text": text, "agent": "tutor" });
        let told = ada.post("/v1/tools/match", said).await.expect(200);
        told["matches"].as_array().unwrap().len()
    };
    assert_eq!(
        (found("crea un foglio").await, found("mostra demo").await),
        (1, 0)
    );
    let kind = json!({ "kind": "prompt" });
    ada.post("/v1/tools/my_tool/voice", kind.clone())
        .await
        .expect(200);
    assert_eq!(
        ada.post("/v1/tools/demo/voice", kind).await.code(404),
        "NOT_FOUND"
    );
}

#[tokio::test]
async fn the_texts_of_a_tool_are_said_with_values_or_with_the_fallback() {
    let world = world().await;
    let say = async |body: Value| {
        world
            .backend()
            .post("/v1/tools/my_tool/voice", body)
            .await
            .expect(200)
    };
    let told = say(json!({ "kind": "prompt", "context": { "topic": "Luce" } })).await;
    assert_eq!(
        told,
        json!({ "text": "Creare un foglio su Luce?", "fallback": false, "missing": [] })
    );
    let told = say(json!({ "kind": "prompt" })).await;
    assert_eq!(
        told,
        json!({ "text": "Creare un nuovo foglio?", "fallback": true, "missing": ["topic"] })
    );
    let result = json!({ "success": true, "data": { "topic": "Luce", "itemCount": 3 } });
    let told = say(json!({ "kind": "feedback", "context": result })).await;
    assert_eq!(told["text"], "Foglio su Luce creato con 3 elementi");
    let told = world
        .backend()
        .post("/v1/tools/demo/voice", json!({ "kind": "prompt" }))
        .await
        .expect(200);
    assert_eq!(told, json!({ "text": null, "fallback": false, "missing": [] }));
    let wrong = world
        .backend()
        .post("/v1/tools/my_tool/voice", json!({ "kind": "song" }))
        .await;
    wrong.expect(422);
}

#[tokio::test]
async fn the_registry_finds_replaces_and_clears_shared_tools() {
    let world = World::new().await;
    let backend = world.backend();
    let put = async |tool: Value| {
        let path = format!("/v1/shared-tools/{}", tool["id"].as_str().unwrap());
        backend.with("if-none-match", "*").put(&path, tool).await
    };
    let made = put(sheet()).await.expect(201);
    assert_eq!(
        (
            &made["name"],
            &made["definition"]["name"],
            &made["definition"]["title"]
        ),
        (&json!("my_tool"), &json!("my_tool"), &json!("Il mio foglio"))
    );
    put(demo()).await.expect(201);
    assert_eq!(put(demo()).await.code(412), "CHANGED");
    let names = async |query: &str| {
        let told = backend.get(&format!("/v1/shared-tools{query}")).await.expect(200);
        let tools = told["sharedTools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("").await, ["demo", "my_tool"]);
    assert_eq!(names("?trigger=MOSTRA%20demo").await, ["demo"]);
    assert_eq!(names("?category=educational").await, ["my_tool"]);
    assert_eq!(names("?permission=WRITE_CONTENT").await, ["my_tool"]);
    assert_eq!(names("?permission=WRITE_CONTENT&trigger=demo").await, [""; 0]);
    // An agent has them by name, with their texts.
    let config = json!({ "tools": ["my_tool"], "grants": ["WRITE_CONTENT"] });
    backend.put("/v1/agents/clerk", config).await.expect(201);
    let told = backend.get("/v1/tools?agent=clerk").await.expect(200);
    assert_eq!(
        told["tools"][0]["voice"]["prompt"]["fallback"],
        "Creare un nuovo foglio?"
    );

    backend.delete("/v1/shared-tools").await.expect(400);
    assert_eq!(
        world
            .user("ada")
            .delete("/v1/shared-tools?confirm=all")
            .await
            .code(403),
        "FORBIDDEN"
    );
    assert_eq!(names("").await.len(), 2);
    let told = backend.delete("/v1/shared-tools?confirm=all").await.expect(200);
    assert_eq!(told["removed"], 2);
    assert_eq!(names("").await, [""; 0]);
    assert_eq!(
        backend.delete("/v1/shared-tools?confirm=all").await.expect(200)["removed"],
        0
    );
    put(demo()).await.expect(201);
    assert_eq!(names("").await, ["demo"]);
}

#[tokio::test]
async fn problems_of_a_registered_tool_stand_where_they_were_written() {
    let world = World::new().await;
    let wrong = json!({ "id": "other", "name": "", "description": "d", "voicePrompt": 7 });
    let told = world
        .backend()
        .put("/v1/shared-tools/my_tool", wrong)
        .await
        .expect(422);
    let errors = told["errors"].as_array().unwrap().iter();
    let pointers: Vec<&str> = errors.map(|error| error["pointer"].as_str().unwrap()).collect();
    for pointer in ["/id", "/name", "/voicePrompt"] {
        assert!(pointers.contains(&pointer), "{pointer} in {told}");
    }
}
