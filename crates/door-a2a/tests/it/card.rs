//! Agent cards: who sees which, and how they are cached.

use http::Method;
use serde_json::{Value, json};
use toolgate_a2a::card::AgentCard;
use toolgate_a2a::client_tools::{AG2_URI, URI};
use toolgate_door_a2a::A2aSettings;
use toolgate_testkit_http::world::{agent, project};

use crate::talk::{ask, result, world, world_with};

const ROOT: &str = "/.well-known/agent-card.json";

#[tokio::test(start_paused = true)]
async fn a_card_of_1_0_says_where_and_how_the_agent_is_reached() {
    let world = world().await;
    let told = ask(&world.nobody(), Method::GET, ROOT, None).await;
    assert_eq!(told.status, 200);
    let card = AgentCard::from_json(told.body.clone()).unwrap();
    let reached: Vec<_> = card
        .interfaces
        .iter()
        .map(|at| (at.url.as_str(), at.binding.as_str(), at.version.as_str()))
        .collect();
    assert_eq!(
        reached,
        [
            ("https://agents.example/a2a", "JSONRPC", "1.0"),
            ("https://agents.example/a2a/default", "HTTP+JSON", "1.0")
        ]
    );
    let uris: Vec<_> = card
        .capabilities
        .extensions
        .iter()
        .map(|extension| (extension.uri.as_str(), extension.required))
        .collect();
    assert_eq!(uris, [(URI, false), (AG2_URI, false)]);
    for extension in &card.capabilities.extensions {
        let limits = json!({
            "maxTools": 32, "maxBytes": 65_536, "maxResultBytes": 262_144, "callTimeoutSeconds": 600,
        });
        assert_eq!(extension.params.clone().map(Value::Object), Some(limits));
    }
    assert_eq!(
        told.body["securityRequirements"][0],
        json!({"schemes": {"secretKey": {"list": []}}})
    );
    for member in ["url", "preferredTransport", "protocolVersion", "security"] {
        assert!(told.body[member].is_null(), "{member} is of 0.3");
    }
    for path in [
        "/a2a/.well-known/agent-card.json",
        "/a2a/default/.well-known/agent-card.json",
        "/.well-known/agent.json",
    ] {
        assert_eq!(
            ask(&world.nobody(), Method::GET, path, None).await.body,
            told.body,
            "{path}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_card_is_cached() {
    let world = world().await;
    let told = ask(&world.nobody(), Method::GET, ROOT, None).await;
    assert_eq!(told.header("cache-control"), "public, max-age=60");
    assert!(
        told.header("last-modified").ends_with("GMT"),
        "{}",
        told.header("last-modified")
    );
    let client = world.nobody().with("if-none-match", told.header("etag"));
    let again = ask(&client, Method::GET, ROOT, None).await;
    assert_eq!((again.status.as_u16(), again.body), (304, json!("")));
    let own = ask(&world.backend(), Method::GET, ROOT, None).await;
    assert_eq!(own.header("cache-control"), "private, max-age=60");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_one_may_not_start_looks_like_one_that_does_not_exist() {
    let world = world().await;
    for (name, access) in [
        ("inner", json!("backend")),
        ("team", json!({"groups": ["staff"]})),
        ("open", json!("public")),
    ] {
        let mut config = agent();
        config["access"] = access;
        world
            .engine
            .put_agent(project(1), &name.parse().unwrap(), config.into())
            .await
            .unwrap();
    }
    let (nobody, user, backend) = (world.nobody(), world.user("ann"), world.backend());
    let card = |name: &str| format!("/a2a/{name}/.well-known/agent-card.json");
    for (client, seen) in [
        (&nobody, vec!["open"]),
        (&user, vec!["open"]),
        (&backend, vec!["inner", "team", "open"]),
    ] {
        for name in ["inner", "team", "open", "absent"] {
            let status = ask(client, Method::GET, &card(name), None).await.status.as_u16();
            assert_eq!(status, if seen.contains(&name) { 200 } else { 404 }, "{name}");
        }
    }
    let send = |method: &str| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": crate::talk::message("hi")}});
    let hidden = ask(&user, Method::POST, "/a2a/inner", Some(send("SendMessage")))
        .await
        .body;
    let absent = ask(&user, Method::POST, "/a2a/absent", Some(send("SendMessage")))
        .await
        .body;
    assert_eq!(hidden, absent);
    assert_eq!(hidden["error"]["code"], -32001, "{hidden:#}");
}

#[tokio::test(start_paused = true)]
async fn the_extended_card_tells_the_tools_that_the_caller_may_know() {
    let world = world().await;
    let names = |card: &Value| -> Vec<String> {
        let skills = card["skills"].as_array().unwrap().iter();
        skills
            .map(|skill| skill["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let users = names(&result(&world.user("ann"), "GetExtendedAgentCard", json!({})).await);
    assert!(
        users.contains(&"open_mirror".to_owned()) && !users.contains(&"mirror".to_owned()),
        "{users:?}"
    );
    let all = names(&result(&world.backend(), "GetExtendedAgentCard", json!({})).await);
    assert!(all.contains(&"mirror".to_owned()), "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn a_card_names_0_3_only_where_it_is_switched_on() {
    let world = world_with(A2aSettings {
        advertise_03: true,
        ..A2aSettings::default()
    })
    .await;
    let card = ask(&world.nobody(), Method::GET, ROOT, None).await.body;
    assert_eq!(
        (&card["url"], &card["preferredTransport"]),
        (&json!("https://agents.example/a2a"), &json!("JSONRPC"))
    );
    assert_eq!(card["supportedInterfaces"][2]["protocolVersion"], "0.3");
    assert_eq!(card["securitySchemes"]["secretKey"]["type"], "http");
}
