//! What comes malformed, too large, too often, again or from elsewhere changes nothing.

use std::net::UdpSocket;

use serde_json::{Value, json};
use toolgate_access::Rate;
use toolgate_door_rtc::RtcLimits;
use toolgate_kernel::id::SpaceId;

use crate::world::{RtcWorld, path, sent, sent_for};
use toolgate_testkit_http::rtc_peer::Peer;

/// A space with an open proposal, and its approval.
async fn proposed(gateway: &RtcWorld, members: &[&str]) -> (SpaceId, Value) {
    let space = gateway.space(members).await;
    let mut peer = gateway.connect(&gateway.world.backend(), space, 0).await;
    gateway.say(space, "call:guarded").await;
    let proposal = peer.first("TOOL_PROPOSED").await;
    (space, proposal["payload"]["approvalId"].clone())
}

/// Whether somebody has decided on the proposal of the space. Its decision is made here if nobody has.
async fn is_untouched(gateway: &RtcWorld, space: SpaceId, approval: &Value) -> bool {
    let mut peer = gateway.connect(&gateway.world.backend(), space, 0).await;
    peer.send(&sent(
        "TOOL_REJECTED",
        "mine",
        json!({"approvalId": approval, "reason": "untouched"}),
    ))
    .await;
    peer.answer("mine").await["type"] == "CHANNEL_RECEIPT"
}

#[tokio::test]
async fn a_message_about_another_tool_than_its_call_changes_nothing() {
    let gateway = RtcWorld::new().await;
    let space = gateway.space(&["ann"]).await;
    let mut peer = gateway.connect(&gateway.world.user("ann"), space, 0).await;
    gateway.say(space, "call:guarded call:ask").await;
    let approval = peer.next().await["payload"]["approvalId"].clone();
    let call = peer.next().await["payload"]["toolCallId"].clone();
    let decision = json!({ "approvalId": approval });
    let held = json!({"toolCallId": call, "holder": "tab"});
    let messages = [
        ("guarded", "TOOL_ACCEPTED", decision.clone()),
        ("guarded", "TOOL_REJECTED", decision),
        ("ask", "TOOL_EXECUTING", held.clone()),
        (
            "ask",
            "TOOL_EXECUTING",
            json!({"toolCallId": call, "progress": 1}),
        ),
        ("ask", "TOOL_REJECTED", held.clone()),
        ("ask", "TOOL_COMPLETED", json!({"toolCallId": call, "result": {}})),
        (
            "ask",
            "TOOL_ERROR",
            json!({"toolCallId": call, "error": "broken"}),
        ),
    ];
    for (tool, kind, payload) in messages {
        for other in ["mirror", "unknown", "", "GUARDED", "ask "] {
            peer.send(&sent_for(other, kind, "x", payload.clone())).await;
            let problem = peer.next().await;
            assert_eq!(problem["type"], "CHANNEL_PROBLEM", "{kind} of {tool}: {problem}");
            assert_eq!(problem["payload"]["errors"][0]["pointer"], "/toolId", "{problem}");
        }
    }
    // Nobody holds the call, nobody has answered it, and nobody has decided.
    for (kind, payload) in [
        ("TOOL_EXECUTING", held),
        (
            "TOOL_COMPLETED",
            json!({"toolCallId": call, "result": {"right": true}}),
        ),
    ] {
        peer.send(&sent_for("ask", kind, kind, payload)).await;
        assert_eq!(peer.answer(kind).await["type"], "CHANNEL_RECEIPT");
    }
    assert!(is_untouched(&gateway, space, &approval).await);
    gateway.stop().await;
}

#[tokio::test]
async fn the_tool_of_a_call_that_nobody_has_a_part_in_is_not_told_to_whoever_guesses_its_id() {
    let gateway = RtcWorld::new().await;
    let space = gateway.space(&["ann"]).await;
    let mut peer = gateway.connect(&gateway.world.user("ann"), space, 0).await;
    gateway.say(space, "call:mirror").await;
    let call = peer.first("TOOL_EXECUTING").await["payload"]["toolCallId"].clone();
    let result = json!({"toolCallId": call, "result": 1});
    for other in ["unknown", "*"] {
        peer.send(&sent_for(other, "TOOL_COMPLETED", other, result.clone()))
            .await;
        let problem = peer.answer(other).await;
        assert_eq!(problem["payload"]["code"], "NOT_A_CLIENT_CALL", "{problem}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn malformed_messages_are_answered_with_a_problem_and_change_nothing() {
    let gateway = RtcWorld::new().await;
    let (space, approval) = proposed(&gateway, &["ann"]).await;
    let mut peer = gateway.connect(&gateway.world.user("ann"), space, 0).await;
    peer.first("TOOL_PROPOSED").await;
    let wrong = [
        "nonsense".to_owned(),
        "{}".into(),
        "[".repeat(10_000),
        sent("TOOL_PAUSED", "x", json!({"approvalId": approval})),
        sent("TOOL_PROPOSED", "x", json!({"approvalId": approval})),
        sent("TOOL_ACCEPTED", "x", json!({"approvalId": "appr_1"})),
        sent(
            "TOOL_ACCEPTED",
            "x",
            json!({"approvalId": approval, "inputs": {}}),
        ),
        sent(
            "TOOL_ACCEPTED",
            "x",
            json!({"approvalId": approval, "input": {"to": 7}}),
        ),
        sent("TOOL_ACCEPTED", "x", json!([])),
        json!({"type": "TOOL_ACCEPTED", "payload": {"approvalId": approval}}).to_string(),
    ];
    for message in &wrong {
        peer.send(message).await;
        let problem = peer.next().await;
        assert_eq!(problem["type"], "CHANNEL_PROBLEM", "{message}: {problem}");
        assert!(
            problem["payload"]["status"]
                .as_u64()
                .is_some_and(|status| (400..500).contains(&status))
        );
    }
    peer.write(
        true,
        sent("TOOL_ACCEPTED", "b", json!({"approvalId": approval})).as_bytes(),
    )
    .await;
    assert_eq!(peer.next().await["payload"]["code"], "MALFORMED");
    peer.write(false, &[0xff, 0xfe]).await;
    assert_eq!(peer.next().await["payload"]["code"], "MALFORMED");
    assert!(is_untouched(&gateway, space, &approval).await);
    gateway.stop().await;
}

#[tokio::test]
async fn a_message_that_is_too_large_is_answered_and_changes_nothing() {
    let gateway = RtcWorld::new().await;
    let (space, approval) = proposed(&gateway, &["ann"]).await;
    let mut peer = gateway.connect(&gateway.world.user("ann"), space, 0).await;
    peer.first("TOOL_PROPOSED").await;
    let large = json!({"approvalId": approval, "input": {"to": "x".repeat(70_000)}});
    peer.send(&sent("TOOL_ACCEPTED", "x", large)).await;
    let problem = peer.answer("x").await;
    assert_eq!(problem["payload"]["code"], "MESSAGE_TOO_LARGE", "{problem}");
    assert!(is_untouched(&gateway, space, &approval).await);
    gateway.stop().await;
}

#[tokio::test]
async fn what_belongs_to_another_space_does_not_exist_on_the_channel() {
    let gateway = RtcWorld::new().await;
    // Ann is a member of both spaces, and eve of her own alone.
    let (there, approval) = proposed(&gateway, &["ann"]).await;
    let here = gateway.space(&["ann", "eve"]).await;
    for who in ["ann", "eve"] {
        let mut peer = gateway.connect(&gateway.world.user(who), here, 0).await;
        peer.send(&sent("TOOL_ACCEPTED", "x", json!({"approvalId": approval})))
            .await;
        assert_eq!(peer.answer("x").await["payload"]["code"], "NOT_FOUND");
        let call = approval.as_str().unwrap().replace("appr_", "call_");
        peer.send(&sent(
            "TOOL_COMPLETED",
            "y",
            json!({"toolCallId": call, "result": 1}),
        ))
        .await;
        assert_eq!(peer.answer("y").await["payload"]["code"], "NOT_FOUND");
    }
    assert!(is_untouched(&gateway, there, &approval).await);
    gateway.stop().await;
}

#[tokio::test]
async fn a_decision_that_is_replayed_gets_the_same_receipt_and_another_one_the_winner() {
    let gateway = RtcWorld::new().await;
    let (space, approval) = proposed(&gateway, &["ann"]).await;
    let mut peer = gateway.connect(&gateway.world.user("ann"), space, 0).await;
    let yes = json!({"approvalId": approval});
    peer.send(&sent("TOOL_ACCEPTED", "1", yes.clone())).await;
    let first = peer.answer("1").await;
    peer.send(&sent("TOOL_ACCEPTED", "2", yes.clone())).await;
    assert_eq!(peer.answer("2").await["payload"], first["payload"]);
    peer.send(&sent("TOOL_REJECTED", "3", yes)).await;
    assert_eq!(peer.answer("3").await["payload"]["winner"]["approved"], true);
    gateway.stop().await;
}

#[tokio::test]
async fn a_flood_is_refused_and_then_closed() {
    let limits = RtcLimits {
        messages_per_second: 1,
        messages_burst: 2,
        ..RtcLimits::default()
    };
    let gateway = RtcWorld::with(limits).await;
    let space = gateway.space(&["ann"]).await;
    let mut peer = gateway.connect(&gateway.world.user("ann"), space, 0).await;
    // On a busy machine a second may pass between two of them, and lets another one through.
    for _ in 0..20 {
        peer.send("{}").await;
    }
    let mut codes = Vec::new();
    for _ in 0..20 {
        codes.push(peer.next().await["payload"]["code"].clone());
    }
    assert_eq!(codes[..2], ["VALIDATION_FAILED", "VALIDATION_FAILED"]);
    assert!(codes.iter().any(|code| code == "RATE_LIMITED"), "{codes:?}");
    let mut closed = None;
    while let Some(told) = {
        if closed.is_none() {
            peer.send("{}").await;
        }
        peer.next_or_end().await
    } {
        if told["type"] == "CHANNEL_CLOSING" {
            closed = Some(told["payload"]["code"].clone());
        }
    }
    assert_eq!(closed, Some(json!("TOO_FAST")));
    gateway.stop().await;
}

#[tokio::test]
async fn messages_over_many_channels_have_the_rate_of_their_user_together() {
    let gateway = RtcWorld::made(RtcLimits::default(), |settings| {
        settings.rate.public = Rate {
            per_second: 1,
            burst: 12,
        };
    })
    .await;
    let space = gateway.space(&["ann"]).await;
    let ann = gateway.world.user("ann");
    let mut peers = Vec::new();
    for _ in 0..2 {
        peers.push(gateway.connect(&ann, space, 0).await);
    }
    let mut refused = 0;
    for peer in &mut peers {
        // As many as each channel allows by itself at once.
        for _ in 0..40 {
            peer.send("{}").await;
        }
        for _ in 0..40 {
            let code = peer.next().await["payload"]["code"].clone();
            refused += usize::from(code == "RATE_LIMITED");
        }
    }
    // On a busy machine some more pass than fit into a burst, one per second.
    assert!(refused > 0);
    gateway.stop().await;
}

#[tokio::test]
async fn a_flood_that_the_session_cannot_keep_up_with_is_closed_with_words() {
    let limits = RtcLimits {
        messages_per_second: 1_000_000,
        messages_burst: 1_000_000,
        ..RtcLimits::default()
    };
    let gateway = RtcWorld::with(limits).await;
    let space = gateway.space(&["ann"]).await;
    let mut peer = gateway.connect(&gateway.world.user("ann"), space, 0).await;
    let closing = peer.flood("{}").await;
    assert_eq!(closing["payload"]["code"], "TOO_FAST", "{closing}");
    gateway.stop().await;
}

#[tokio::test]
async fn another_channel_is_closed_and_other_datagrams_are_dropped() {
    let limits = RtcLimits {
        handshake_timeout: std::time::Duration::from_secs(3),
        ..RtcLimits::default()
    };
    let gateway = RtcWorld::with(limits).await;
    let space = gateway.space(&["ann"]).await;
    let ann = gateway.world.user("ann");
    let mut peer = Peer::new().await;
    let answer = ann
        .post(&path(space), json!({"sdp": peer.offer_channel("video")}))
        .await
        .expect(200);
    let sdp = answer["sdp"].as_str().unwrap();
    let port = sdp
        .lines()
        .find_map(|line| line.strip_prefix("a=candidate:"))
        .unwrap();
    let port: u16 = port.split_whitespace().nth(5).unwrap().parse().unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let fragment = sdp
        .lines()
        .find_map(|line| line.strip_prefix("a=ice-ufrag:"))
        .unwrap();
    let name = format!("{fragment}:guess");
    let mut request = vec![
        0,
        1,
        0,
        (4 + name.len().next_multiple_of(4)) as u8,
        0x21,
        0x12,
        0xa4,
        0x42,
    ];
    request.extend([9; 12]);
    request.extend([0, 6, 0, name.len() as u8]);
    request.extend(name.as_bytes());
    request.resize(20 + 4 + name.len().next_multiple_of(4), 0);
    for datagram in [&[][..], &[0; 1200], &[22; 1200], &[255; 30], &request] {
        stranger.send_to(datagram, ("127.0.0.1", port)).unwrap();
    }
    peer.accept(sdp);
    assert_eq!(peer.next_or_end().await, None, "the channel is not `tools`");
    stranger.set_nonblocking(true).unwrap();
    let nothing = stranger.recv(&mut [0; 64]).unwrap_err();
    assert_eq!(
        nothing.kind(),
        std::io::ErrorKind::WouldBlock,
        "strangers get no answer"
    );
    let mut good = gateway.connect(&ann, space, 0).await;
    gateway.say(space, "call:mirror").await;
    good.first("TOOL_COMPLETED").await;
    gateway.stop().await;
}

#[tokio::test]
async fn an_address_that_an_offer_merely_names_is_never_contacted() {
    let gateway = RtcWorld::new().await;
    let space = gateway.space(&["ann"]).await;
    let ann = gateway.world.user("ann");
    let bystander = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = bystander.local_addr().unwrap().port();
    let candidate = format!("a=candidate:1 1 udp 2130706431 127.0.0.1 {port} typ host\r\n");
    let mut peer = Peer::new().await;
    let offer = peer.offer().replacen("a=mid:", &format!("{candidate}a=mid:"), 1);
    assert!(offer.contains(&candidate), "{offer}");
    let answer = ann.post(&path(space), json!({ "sdp": offer })).await.expect(200);
    peer.accept(answer["sdp"].as_str().unwrap());
    peer.first("CHANNEL_READY").await;
    gateway.say(space, "call:mirror").await;
    peer.first("TOOL_COMPLETED").await;
    // One whose offer is all that ever comes of it.
    ann.post(&path(space), json!({ "sdp": offer })).await.expect(200);
    gateway.stop().await;
    bystander.set_nonblocking(true).unwrap();
    let nothing = bystander.recv(&mut [0; 64]).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn a_peer_that_vanishes_gives_its_share_back() {
    let limits = RtcLimits {
        peers_per_user: 1,
        ..RtcLimits::default()
    };
    let gateway = RtcWorld::with(limits).await;
    let space = gateway.space(&["ann"]).await;
    let ann = gateway.world.user("ann");
    gateway.connect(&ann, space, 0).await.vanish();
    let began = std::time::Instant::now();
    loop {
        let offer = json!({"sdp": Peer::new().await.offer()});
        let told = ann.post(&path(space), offer).await;
        if told.status == 200 {
            break;
        }
        assert!(
            began.elapsed() < crate::world::WAIT_MAX,
            "the dead peer is still counted"
        );
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    gateway.stop().await;
}
