//! The registry, matches, voice texts and consents through the SDK.

use serde_json::json;
use toolgate_client::{Decision, NewSpace, Utterance, VoiceKind, category, permission};

use super::World;
use crate::harness::put_agent;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_is_registered_found_said_and_removed() {
    let world = World::new().await;
    let registry = world.client.tool_registry();
    let sheet = json!({
        "id": "my_tool", "name": "My Tool", "description": "Makes a sheet.", "category": category::EDUCATIONAL,
        "permissions": [permission::WRITE_CONTENT], "triggers": ["crea", "foglio"],
        "voicePrompt": {"template": "Creare un foglio su {topic}?", "fallback": "Creare un nuovo foglio?"},
    });
    let made = registry.register(&sheet).await.unwrap();
    assert_eq!((made.name.as_str(), made.version), ("my_tool", 1));
    let taken = registry.register(&sheet).await.unwrap_err();
    assert_eq!(taken.status(), Some(412));
    assert_eq!(registry.get_by_trigger("FOGLIO").await.unwrap(), [made]);
    assert_eq!(registry.get_by_category(category::CREATION).await.unwrap(), []);
    assert_eq!(
        registry
            .get_by_permission(permission::WRITE_CONTENT)
            .await
            .unwrap()
            .len(),
        1
    );
    assert!(registry.has("my_tool").await.unwrap() && !registry.has("other").await.unwrap());

    let tools = world.client.tools();
    let said = Utterance {
        text: "vorrei dei fogli".into(),
        language: Some("it".into()),
        ..Utterance::default()
    };
    let found = tools.match_utterance(&said).await.unwrap();
    assert_eq!(
        (found[0].name.as_str(), found[0].words[0].how.as_str()),
        ("my_tool", "inflected")
    );
    let text = tools
        .voice("my_tool", VoiceKind::Prompt, &json!({"topic": "Luce"}))
        .await
        .unwrap();
    assert_eq!(text.text.as_deref(), Some("Creare un foglio su Luce?"));

    assert!(registry.unregister("my_tool").await.unwrap());
    assert!(!registry.unregister("my_tool").await.unwrap());
    registry.register(&sheet).await.unwrap();
    assert_eq!(registry.clear().await.unwrap(), 1);
    assert_eq!(registry.get_all().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_remembered_and_revoked() {
    let world = World::new().await;
    let api = world.gateway.api();
    let risky = crate::harness::tool(
        "risky",
        json!({"mode": "pass-through"}),
        json!({"approval": "first-in-space"}),
    );
    put_agent(
        &api,
        "clerk",
        &json!({"model": {"provider": "demo"}, "tools": [risky]}),
    )
    .await;
    let space = world
        .client
        .spaces()
        .create(&NewSpace::default())
        .await
        .unwrap()
        .id;
    let call = async || {
        let body = json!({"agent": "clerk", "spaceId": space});
        api.post("/v1/tools/risky/call", &body).await.body
    };
    let asked = async || {
        let id = call().await["pending"]["approvals"][0]["approvalId"].clone();
        id.as_str().expect("it asks").parse().unwrap()
    };
    let approvals = world.client.approvals();
    let once = approvals
        .decide(asked().await, &Decision::yes_once())
        .await
        .unwrap();
    assert!(!once.remembered);
    let always = approvals.decide(asked().await, &Decision::yes()).await.unwrap();
    assert!(always.remembered);
    assert_eq!(call().await["status"], "completed");
    let consents = world.client.consents();
    let known = consents.list(space).await.unwrap();
    assert_eq!(
        (known.len(), known[0].tool_name.as_str(), known[0].by),
        (1, "risky", None)
    );
    consents.revoke(space, &known[0].id).await.unwrap();
    assert_eq!(consents.list(space).await.unwrap(), []);
    asked().await;
}
