//! Every tool is told to execute, once, whether its start is in the log or follows from it.

use serde_json::{Value, json};
use toolgate_door_rtc::RtcLimits;
use toolgate_kernel::id::SpaceId;
use toolgate_testkit_http::client::Client;
use toolgate_testkit_http::world::{agent, project};

use crate::world::{RtcWorld, sent_for};
use toolgate_testkit_http::rtc_peer::Peer;

/// Calls that run at the same time in the test's engine.
const PARALLEL_CALLS: usize = 8;

/// A gateway whose agent has a tool of each kind of start: with and without approval, recorded and not.
async fn gateway() -> RtcWorld {
    let limits = RtcLimits {
        peers_per_user: 100,
        ..RtcLimits::default()
    };
    let gateway = RtcWorld::with(limits).await;
    let tool = |name: &str, kind: &str, execution: Value, more: Value| {
        let mut tool = json!({
            "name": name, "description": "for tests", "executionType": kind, "execution": execution,
            "parameters": {"type": "object"},
        });
        let members = tool.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        tool
    };
    let mut config = agent();
    let tools = config["tools"].as_array_mut().unwrap();
    for (suffix, approval) in [("", "never"), ("_asked", "always")] {
        let echo = || json!({"action": "echo"});
        let named = |name: &str| format!("{name}{suffix}");
        let of = |retry: &str| json!({"approval": approval, "retry": retry});
        tools.push(tool(
            &named("fixed"),
            "basic",
            json!({"mode": "static", "output": 7}),
            json!({ "approval": approval }),
        ));
        tools.push(tool(&named("again"), "prebuilt", echo(), of("safe")));
        tools.push(tool(&named("once"), "prebuilt", echo(), of("never")));
    }
    let name = "default".parse().unwrap();
    let stored = gateway.world.engine.put_agent(project(1), &name, config.into());
    stored.await.unwrap();
    gateway
}

fn is_progress(message: &Value) -> bool {
    message["payload"]["event"] == "tool-progress"
}

/// What `who` is told of one call of each of these tools, which are accepted where they ask.
async fn story_of(gateway: &RtcWorld, who: &Client<'_>, tools: &[&str]) -> Vec<String> {
    let space = gateway.space(&["ann"]).await;
    let mut peer = gateway.connect(who, space, 0).await;
    let mut story = Vec::new();
    for tool in tools {
        gateway.say(space, &format!("call:{tool}")).await;
        loop {
            let message = peer.next().await;
            if is_progress(&message) || message["toolId"].is_null() {
                continue;
            }
            let kind = message["type"].as_str().unwrap().to_owned();
            if kind == "TOOL_PROPOSED" {
                let yes = json!({"approvalId": message["payload"]["approvalId"]});
                peer.send(&sent_for(tool, "TOOL_ACCEPTED", "a", yes)).await;
            }
            let ends = kind == "TOOL_COMPLETED";
            story.push(format!("{kind} {}", message["toolId"].as_str().unwrap()));
            if ends {
                break;
            }
        }
    }
    comes_back_from_every_place(gateway, who, space, story.len()).await;
    story
}

/// Whoever comes back is told what one who reads everything is told after that place.
async fn comes_back_from_every_place(gateway: &RtcWorld, who: &Client<'_>, space: SpaceId, count: usize) {
    let mut whole = gateway.connect(who, space, 0).await;
    let all = told(&mut whole, count).await;
    let places: Vec<u64> = all
        .iter()
        .map(|message| message["seq"].as_u64().unwrap())
        .collect();
    assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{places:?}");
    for (read, place) in places.iter().enumerate() {
        let mut peer = gateway.connect(who, space, *place).await;
        let rest = told(&mut peer, count - read - 1).await;
        assert_eq!(rest, all[read + 1..], "after {place}");
    }
}

/// The next messages about tools. Progress is told only while its step is under way.
async fn told(peer: &mut Peer, count: usize) -> Vec<Value> {
    let mut messages = Vec::new();
    while messages.len() < count {
        let message = peer.next().await;
        if !is_progress(&message) && message["toolId"].is_string() {
            messages.push(message);
        }
    }
    messages
}

#[tokio::test]
async fn every_tool_is_told_to_execute_once() {
    let gateway = gateway().await;
    let tools = ["mirror", "fixed", "again", "once"];
    let asked = ["guarded", "fixed_asked", "again_asked", "once_asked"];
    for who in [gateway.world.backend(), gateway.world.user("ann")] {
        let expected: Vec<String> = tools
            .iter()
            .flat_map(|tool| ["TOOL_EXECUTING", "TOOL_COMPLETED"].map(|kind| format!("{kind} {tool}")))
            .collect();
        assert_eq!(story_of(&gateway, &who, &tools).await, expected);
        let steps = [
            "TOOL_PROPOSED",
            "TOOL_ACCEPTED",
            "TOOL_EXECUTING",
            "TOOL_COMPLETED",
        ];
        let expected: Vec<String> = asked
            .iter()
            .flat_map(|tool| steps.map(|kind| format!("{kind} {tool}")))
            .collect();
        assert_eq!(story_of(&gateway, &who, &asked).await, expected);
    }
    gateway.stop().await;
}

#[tokio::test]
async fn a_call_that_has_to_wait_for_its_turn_is_told_once_too() {
    let gateway = gateway().await;
    let space = gateway.space(&[]).await;
    let mut peer = gateway.connect(&gateway.world.backend(), space, 0).await;
    // Their starts are recorded: those of the first with the calls, those of the last when others have ended.
    let calls = PARALLEL_CALLS + 2;
    gateway.say(space, &"call:slow ".repeat(calls)).await;
    gateway.world.tools.gate.add_permits(calls);
    let mut kinds = Vec::new();
    while kinds.iter().filter(|kind| *kind == "TOOL_COMPLETED").count() < calls {
        let message = peer.next().await;
        if !is_progress(&message) {
            kinds.push(message["type"].as_str().unwrap().to_owned());
        }
    }
    let starts = kinds.iter().filter(|kind| *kind == "TOOL_EXECUTING").count();
    assert_eq!(starts, calls, "{kinds:?}");
    gateway.stop().await;
}

#[tokio::test]
async fn a_refused_call_never_executes() {
    let gateway = gateway().await;
    let space = gateway.space(&[]).await;
    let mut peer = gateway.connect(&gateway.world.backend(), space, 0).await;
    gateway
        .say(space, r#"call:nobody_has_this call:guarded={"to":7}"#)
        .await;
    for _ in 0..2 {
        assert_eq!(peer.next().await["type"], "TOOL_ERROR");
    }
    gateway.say(space, "call:guarded").await;
    let proposal = peer.next().await;
    assert_eq!(proposal["type"], "TOOL_PROPOSED");
    let no = json!({"approvalId": proposal["payload"]["approvalId"]});
    peer.send(&sent_for("guarded", "TOOL_REJECTED", "n", no)).await;
    peer.answer("n").await;
    gateway.say(space, "call:mirror").await;
    let seen = peer.until(|message| message["type"] == "TOOL_COMPLETED").await;
    let executing = seen.iter().filter(|message| message["type"] == "TOOL_EXECUTING");
    let executing: Vec<&Value> = executing.map(|message| &message["toolId"]).collect();
    assert_eq!(executing, ["mirror"]);
    gateway.stop().await;
}

#[tokio::test]
async fn a_start_behind_the_last_event_of_a_write_is_told_to_one_who_comes_back() {
    let gateway = gateway().await;
    let space = gateway.space(&[]).await;
    let backend = gateway.world.backend();
    let mut peer = gateway.connect(&backend, space, 0).await;
    // Another call is under way, so the run's status stays as it is and the decision is stored alone.
    gateway.say(space, "call:slow call:again_asked").await;
    let proposal = peer.first("TOOL_PROPOSED").await;
    let yes = json!({"approvalId": proposal["payload"]["approvalId"]});
    peer.send(&sent_for("again_asked", "TOOL_ACCEPTED", "a", yes))
        .await;
    let accepted = peer.first("TOOL_ACCEPTED").await["seq"].as_u64().unwrap();
    peer.first("TOOL_COMPLETED").await;
    let mut back = gateway.connect(&backend, space, accepted).await;
    let start = back.next().await;
    assert_eq!(
        (&start["type"], &start["seq"], &start["payload"]["event"]),
        (
            &json!("TOOL_EXECUTING"),
            &json!(accepted + 1),
            &json!("tool-executing")
        )
    );
    gateway.stop().await;
}
