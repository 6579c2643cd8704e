//! What a peer sees and does.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_door_rtc::RtcLimits;
use toolgate_kernel::id::SpaceId;

use crate::world::{RtcWorld, WAIT_MAX, path, sent};
use toolgate_testkit_http::rtc_peer::Peer;

/// The types and tools of messages, in order.
fn brief(messages: &[Value]) -> Vec<String> {
    let told = |message: &Value| {
        format!(
            "{} {}",
            message["type"].as_str().unwrap(),
            message["toolId"].as_str().unwrap_or("-")
        )
    };
    messages.iter().map(told).collect()
}

fn payload<'m>(message: &'m Value, member: &str) -> &'m str {
    message["payload"][member]
        .as_str()
        .unwrap_or_else(|| panic!("no {member} in {message}"))
}

#[tokio::test]
async fn a_proposal_is_accepted_executed_and_completed() {
    let gateway = RtcWorld::new().await;
    let space = gateway.space(&["ann"]).await;
    let ann = gateway.world.user("ann");
    let mut peer = gateway.connect(&ann, space, 0).await;
    gateway.say(space, r#"call:guarded={"to":"bob"}"#).await;
    let proposal = peer.first("TOOL_PROPOSED").await;
    assert_eq!(proposal["toolId"], "guarded");
    assert_eq!(
        proposal["payload"]["input"],
        json!({"to": "bob"}),
        "an approver sees the input"
    );
    let approval = payload(&proposal, "approvalId");
    let edited = json!({"approvalId": approval, "input": {"to": "eve"}});
    peer.send(&sent("TOOL_ACCEPTED", "e", edited)).await;
    let refused = peer.answer("e").await;
    assert_eq!(
        refused["payload"]["errors"][0]["pointer"], "/payload/input",
        "the tool is not editable"
    );
    assert!(payload(&proposal, "toolCallId").starts_with("call_"));
    assert!(payload(&proposal, "runId").starts_with("run_"));
    peer.send(&sent("TOOL_ACCEPTED", "a", json!({ "approvalId": approval })))
        .await;
    let mut seen = peer.until(|message| message["id"] == "a").await;
    let receipt = seen.last().unwrap();
    assert_eq!(receipt["payload"]["approved"], true, "{receipt}");
    if !seen.iter().any(|message| message["type"] == "TOOL_COMPLETED") {
        seen.extend(peer.until(|message| message["type"] == "TOOL_COMPLETED").await);
    }
    seen.retain(|message| message["type"] != "CHANNEL_RECEIPT");
    assert_eq!(
        brief(&seen),
        [
            "TOOL_ACCEPTED guarded",
            "TOOL_EXECUTING guarded",
            "TOOL_COMPLETED guarded"
        ]
    );
    assert!(
        seen.windows(2)
            .all(|pair| pair[0]["seq"].as_u64() < pair[1]["seq"].as_u64())
    );
    assert_eq!(
        seen[2]["payload"]["output"],
        Value::Null,
        "the output of a server tool is for backends"
    );
    gateway.stop().await;
}

#[tokio::test]
async fn a_backend_sees_everything_and_a_rejection_reaches_the_model() {
    let gateway = RtcWorld::new().await;
    let space = gateway.space(&[]).await;
    let mut peer = gateway.connect(&gateway.world.backend(), space, 0).await;
    gateway.say(space, "call:guarded").await;
    let proposal = peer.first("TOOL_PROPOSED").await;
    let rejection = json!({"approvalId": payload(&proposal, "approvalId"), "reason": "not today"});
    peer.send(&sent("TOOL_REJECTED", "r", rejection)).await;
    let rejected = peer.first("TOOL_REJECTED").await;
    assert_eq!(payload(&rejected, "reason"), "not today");
    gateway.say(space, r#"call:mirror={"a":1}"#).await;
    let completed = peer.first("TOOL_COMPLETED").await;
    assert_eq!(completed["payload"]["output"], json!({"a": 1}));
    gateway.say(space, "call:fail").await;
    peer.first("TOOL_EXECUTING").await;
    let error = peer.first("TOOL_ERROR").await;
    assert_eq!(payload(&error, "code"), "EXECUTION_FAILED");
    gateway.stop().await;
}

#[tokio::test]
async fn a_client_tool_is_claimed_told_of_and_answered_on_the_channel() {
    let gateway = RtcWorld::new().await;
    let space = gateway.space(&["ann", "bob"]).await;
    let (ann, bob) = (gateway.world.user("ann"), gateway.world.user("bob"));
    let mut peer = gateway.connect(&ann, space, 0).await;
    let mut other = gateway.connect(&bob, space, 0).await;
    gateway.say(space, r#"call:ask={"q":7}"#).await;
    let offer = peer.first("TOOL_PROPOSED").await;
    assert_eq!(offer["payload"]["input"], json!({"q": 7}));
    let call = payload(&offer, "toolCallId").to_owned();
    let claim = |holder: &str| json!({"toolCallId": call, "holder": holder, "leaseSeconds": 60});
    peer.send(&sent("TOOL_EXECUTING", "c", claim("ann's tab"))).await;
    let claimed = peer.answer("c").await;
    assert_eq!(claimed["payload"]["input"], json!({"q": 7}), "{claimed}");
    other.send(&sent("TOOL_EXECUTING", "c", claim("bob's tab"))).await;
    let held = other.answer("c").await;
    assert_eq!(
        (&held["type"], &held["payload"]["code"]),
        (&json!("CHANNEL_PROBLEM"), &json!("HELD"))
    );
    peer.send(&sent(
        "TOOL_EXECUTING",
        "p",
        json!({"toolCallId": call, "progress": {"done": 0.5}}),
    ))
    .await;
    let progress = other
        .until(|message| message["payload"]["progress"].is_object())
        .await;
    assert_eq!(
        progress.last().unwrap()["payload"]["progress"],
        json!({"done": 0.5})
    );
    let result = json!({"toolCallId": call, "result": {"big": 9007199254740993_u64}});
    peer.send(&sent("TOOL_COMPLETED", "r", result.clone())).await;
    let receipt = peer.answer("r").await;
    peer.send(&sent("TOOL_COMPLETED", "again", result)).await;
    let again = peer.answer("again").await;
    assert_eq!(
        receipt["payload"], again["payload"],
        "a replayed result gets the same receipt"
    );
    peer.send(&sent(
        "TOOL_COMPLETED",
        "other",
        json!({"toolCallId": call, "result": {}}),
    ))
    .await;
    let conflict = peer.answer("other").await;
    assert_eq!(conflict["payload"]["winner"]["seq"], receipt["payload"]["seq"]);
    let completed = other.first("TOOL_COMPLETED").await;
    assert_eq!(
        completed["payload"]["output"],
        json!({"big": 9007199254740993_u64})
    );
    gateway.stop().await;
}

#[tokio::test]
async fn a_receipt_that_would_be_too_large_comes_without_the_input() {
    let gateway = RtcWorld::new().await;
    let ann = gateway.world.user("ann");
    // More than one message, more than the connection has room for, and more than this peer reads.
    for (bytes, reads) in [(100_000, 262_144), (200_000, 262_144), (5_000, 2_000)] {
        let space = gateway.space(&["ann"]).await;
        let mut peer = gateway.connect_reading(&ann, space, reads).await;
        gateway
            .say(space, &format!("call:ask={}", json!({"q": "x".repeat(bytes)})))
            .await;
        let offer = peer
            .until(|message| {
                message["type"] == "TOOL_PROPOSED" && message["payload"]["omitted"][0] == "input"
            })
            .await;
        let call = payload(offer.last().unwrap(), "toolCallId").to_owned();
        let claim = json!({"toolCallId": call, "holder": "ann's tab"});
        peer.send(&sent("TOOL_EXECUTING", "c", claim)).await;
        let claimed = peer.answer("c").await;
        assert_eq!(claimed["type"], "CHANNEL_RECEIPT", "{claimed}");
        assert_eq!(claimed["payload"]["omitted"], json!(["input"]), "{claimed}");
        assert_eq!(payload(&claimed, "toolCallId"), call);
        let result = json!({"toolCallId": call, "result": {"bytes": bytes}});
        peer.send(&sent("TOOL_COMPLETED", "r", result)).await;
        let receipt = peer.answer("r").await;
        assert_eq!(receipt["type"], "CHANNEL_RECEIPT", "{receipt}");
        peer.first("TOOL_COMPLETED").await;
    }
    gateway.stop().await;
}

#[tokio::test]
async fn a_yes_on_the_channel_may_be_for_one_call() {
    let gateway = RtcWorld::new().await;
    let space = gateway.space(&["ann"]).await;
    let mut peer = gateway.connect(&gateway.world.user("ann"), space, 0).await;
    gateway.say(space, "call:guarded").await;
    let approval = payload(&peer.first("TOOL_PROPOSED").await, "approvalId").to_owned();
    let yes = |remember: bool| json!({"approvalId": approval, "remember": remember});
    peer.send(&sent("TOOL_ACCEPTED", "always", yes(true))).await;
    let refused = peer.answer("always").await;
    assert_eq!(
        refused["payload"]["errors"][0]["pointer"], "/payload/remember",
        "this tool asks for every call"
    );
    peer.send(&sent("TOOL_ACCEPTED", "once", yes(false))).await;
    let decided = peer.answer("once").await;
    assert_eq!(decided["payload"]["remembered"], false, "{decided}");
    gateway.stop().await;
}

/// Runs with every kind of message: what a reader of the whole channel sees.
async fn some_history(gateway: &RtcWorld, space: SpaceId) -> Vec<Value> {
    let mut peer = gateway.connect(&gateway.world.backend(), space, 0).await;
    gateway.say(space, "call:mirror call:open_mirror call:fail").await;
    peer.until(|message| message["type"] == "TOOL_ERROR").await;
    gateway.say(space, "call:guarded").await;
    let proposal = peer.first("TOOL_PROPOSED").await;
    peer.send(&sent(
        "TOOL_ACCEPTED",
        "a",
        json!({"approvalId": payload(&proposal, "approvalId")}),
    ))
    .await;
    peer.first("TOOL_COMPLETED").await;
    let mut all = gateway.connect(&gateway.world.backend(), space, 0).await;
    all.until(|message| message["type"] == "TOOL_COMPLETED" && message["toolId"] == "guarded")
        .await
}

#[tokio::test]
async fn a_peer_comes_back_from_every_place_without_gap_or_repeat() {
    let gateway = RtcWorld::new().await;
    let space = gateway.space(&[]).await;
    let all = some_history(&gateway, space).await;
    assert!(all.len() >= 7, "{:?}", brief(&all));
    for (read, message) in all.iter().enumerate() {
        let after = message["seq"].as_u64().unwrap();
        let mut peer = gateway.connect(&gateway.world.backend(), space, after).await;
        for expected in &all[read + 1..] {
            assert_eq!(&peer.next().await, expected);
        }
    }
    gateway.stop().await;
}

#[tokio::test]
async fn a_peer_goes_on_at_another_node_without_gap_or_repeat() {
    let one = RtcWorld::new().await;
    let other = one.another_node().await;
    let space = one.space(&["ann"]).await;
    let mut watching = one.connect(&one.world.backend(), space, 0).await;
    let mut all = Vec::new();
    let mut seen = Vec::new();
    // Ann's channel is on the one node, then on the other, and so on; what happens there is told by either node.
    for turn in 0..4 {
        let (here, there) = if turn % 2 == 0 {
            (&one, &other)
        } else {
            (&other, &one)
        };
        let after = all
            .last()
            .map_or(0, |message: &Value| message["seq"].as_u64().unwrap());
        let mut ann = here.connect(&here.world.user("ann"), space, after).await;
        there.say(space, "call:guarded").await;
        let proposal = ann.first("TOOL_PROPOSED").await;
        let yes = json!({"approvalId": payload(&proposal, "approvalId")});
        all.push(proposal);
        // She leaves in the middle, and decides at the other node.
        ann.vanish();
        let after = all.last().unwrap()["seq"].as_u64().unwrap();
        let mut ann = there.connect(&there.world.user("ann"), space, after).await;
        ann.send(&sent("TOOL_ACCEPTED", "a", yes)).await;
        let told = ann.until(|message| message["type"] == "TOOL_COMPLETED").await;
        let notices = |message: &Value| message["type"] != "CHANNEL_RECEIPT";
        all.extend(told.into_iter().filter(notices));
        ann.vanish();
        seen.extend(
            watching
                .until(|message| message["type"] == "TOOL_COMPLETED")
                .await,
        );
    }
    let places = |messages: &[Value]| -> Vec<(u64, String)> {
        let place = |message: &Value| {
            (
                message["seq"].as_u64().unwrap(),
                brief(std::slice::from_ref(message)).remove(0),
            )
        };
        messages.iter().map(place).collect()
    };
    assert_eq!(places(&all), places(&seen), "as one who was there all the time");
    assert_eq!(all.len(), 16);
    one.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_gateway_that_goes_down_tells_its_peers_where_they_are() {
    let gateway = RtcWorld::new().await;
    let space = gateway.space(&[]).await;
    let mut peer = gateway.connect(&gateway.world.backend(), space, 0).await;
    gateway.say(space, "call:mirror").await;
    let last = peer.first("TOOL_COMPLETED").await["seq"].as_u64().unwrap();
    let stopping = tokio::spawn(gateway.stop());
    let closing = peer.first("CHANNEL_CLOSING").await;
    assert_eq!(payload(&closing, "code"), "GOING_DOWN");
    assert!(closing["seq"].as_u64().unwrap() >= last);
    assert_eq!(peer.next_or_end().await, None);
    stopping.await.unwrap();
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_cut_and_comes_back_with_its_cursor() {
    const RESULTS: usize = 12;
    let limits = RtcLimits {
        buffered_bytes_max: 64 * 1024,
        stall: Duration::from_millis(500),
        peers_per_user: 1,
        ..RtcLimits::default()
    };
    let gateway = RtcWorld::with(limits).await;
    let space = gateway.space(&["ann"]).await;
    let ann = gateway.world.user("ann");
    let backend = gateway.world.backend();
    let mut slow = gateway.connect(&ann, space, 0).await;
    let mut quick = gateway.connect(&backend, space, 0).await;
    let input = json!({"text": "x".repeat(50_000)});
    for _ in 0..RESULTS {
        gateway.say(space, &format!("call:open_mirror={input}")).await;
        quick.first("TOOL_COMPLETED").await;
    }
    // The peer does nothing at all meanwhile: it is cut, and its share is free again.
    let began = Instant::now();
    let offer = json!({"sdp": Peer::new().await.offer()});
    while ann.post(&path(space), offer.clone()).await.status != 200 {
        assert!(began.elapsed() < WAIT_MAX, "the slow peer is still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut read = Vec::new();
    while let Some(message) = slow.next_or_end().await {
        read.push(message);
    }
    let tools = |message: &&Value| message["type"] != "CHANNEL_CLOSING";
    let completed = |message: &&Value| message["type"] == "TOOL_COMPLETED";
    let seen = read.iter().filter(completed).count();
    assert!(seen < RESULTS, "{seen} of {RESULTS} fit into the buffers");
    let cursor = read
        .iter()
        .filter(tools)
        .filter_map(|message| message["seq"].as_u64())
        .max();
    let mut again = gateway.connect(&backend, space, cursor.unwrap_or(0)).await;
    for _ in seen..RESULTS {
        again.first("TOOL_COMPLETED").await;
    }
    gateway.stop().await;
}
