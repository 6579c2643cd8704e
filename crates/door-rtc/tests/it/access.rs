//! Who may open a channel, and when it ends.

use std::time::Duration;

use serde_json::json;
use toolgate_door_rtc::{RtcLimits, router};
use toolgate_testkit_http::world::{HIDDEN, project};

use crate::world::{RtcWorld, path, sent};
use toolgate_testkit_http::rtc_peer::Peer;

#[tokio::test]
async fn a_channel_is_for_members_and_backends_of_its_project() {
    let gateway = RtcWorld::new().await;
    let space = gateway.space(&["ann"]).await;
    let offer = json!({"sdp": Peer::new().await.offer()});
    let world = &gateway.world;
    assert_eq!(
        world.nobody().post(&path(space), offer.clone()).await.code(401),
        "UNAUTHENTICATED"
    );
    for stranger in [world.user("eve"), world.stranger()] {
        assert_eq!(
            stranger.post(&path(space), offer.clone()).await.code(404),
            "NOT_FOUND"
        );
    }
    world.user("ann").post(&path(space), offer).await.expect(200);
    gateway.stop().await;
}

#[tokio::test]
async fn a_bad_offer_is_refused_with_its_place_and_takes_no_share() {
    let limits = RtcLimits {
        peers_per_user: 1,
        ..RtcLimits::default()
    };
    let gateway = RtcWorld::with(limits).await;
    let space = gateway.space(&["ann"]).await;
    let ann = gateway.world.user("ann");
    for sdp in [
        "nonsense",
        "v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n",
    ] {
        let refused = ann.post(&path(space), json!({ "sdp": sdp })).await.expect(422);
        assert_eq!(refused["errors"][0]["pointer"], "/sdp", "{refused}");
    }
    let refused = ann
        .post(&path(space), json!({"sdp": "x", "after": -1}))
        .await
        .expect(422);
    assert_eq!(refused["errors"][0]["pointer"], "/after");
    let ahead = json!({"sdp": "x", "after": 999_000_000});
    assert_eq!(ann.post(&path(space), ahead).await.code(410), "AHEAD_OF_LOG");
    let _peer = gateway.connect(&ann, space, 0).await;
    let offer = json!({"sdp": Peer::new().await.offer()});
    assert_eq!(ann.post(&path(space), offer).await.code(429), "TOO_MANY_PEERS");
    gateway.stop().await;
}

#[tokio::test]
async fn a_cursor_that_has_missed_what_was_deleted_is_refused_with_where_to_go_on() {
    let gateway = RtcWorld::new().await;
    let space = gateway.space(&["ann"]).await;
    let ann = gateway.world.user("ann");
    let mut peer = gateway.connect(&ann, space, 0).await;
    let posted = gateway.say(space, "call:mirror").await;
    let first = peer.first("TOOL_EXECUTING").await["seq"].as_u64().unwrap();
    peer.first("TOOL_COMPLETED").await;
    gateway.delete_ended(posted.run_id.unwrap()).await;
    let offer = json!({"sdp": Peer::new().await.offer(), "after": first});
    let refused = ann.post(&path(space), offer).await.expect(410);
    assert_eq!(refused["code"], "PAST_RETENTION", "{refused}");
    let deleted = refused["snapshot"]["deletedUpTo"].as_u64().unwrap();
    assert!(deleted > first, "{refused}");
    // Where to go on is said, and what is kept is read without a cursor.
    let seq = refused["snapshot"]["seq"].as_u64().unwrap();
    let mut after = gateway.connect(&ann, space, seq).await;
    let mut kept = gateway.connect(&ann, space, 0).await;
    gateway.say(space, "call:mirror").await;
    let told = after.first("TOOL_COMPLETED").await;
    assert_eq!(kept.first("TOOL_COMPLETED").await, told);
    gateway.stop().await;
}

#[tokio::test]
async fn without_a_port_every_offer_is_refused() {
    let gateway = RtcWorld::new().await;
    let space = gateway.space(&[]).await;
    let mut world = gateway.world;
    world.router = toolgate_http::finish(router(world.shared.clone(), None), world.shared.clone());
    let offer = json!({"sdp": Peer::new().await.offer()});
    assert_eq!(
        world.backend().post(&path(space), offer).await.code(404),
        "RTC_OFF"
    );
}

#[tokio::test]
async fn a_member_learns_the_name_of_a_server_tool_and_nothing_else() {
    let gateway = RtcWorld::new().await;
    let space = gateway.space(&["ann"]).await;
    let mut peer = gateway.connect(&gateway.world.user("ann"), space, 0).await;
    gateway.say(space, "hide:mirror").await;
    let seen = peer.until(|message| message["type"] == "TOOL_COMPLETED").await;
    for message in &seen {
        assert!(!message.to_string().contains(HIDDEN), "{message}");
        assert_eq!(message["toolId"], "mirror");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn a_channel_ends_at_once_with_the_membership() {
    let gateway = RtcWorld::new().await;
    let space = gateway.space(&["ann"]).await;
    let mut peer = gateway.connect(&gateway.world.user("ann"), space, 0).await;
    let ann = gateway
        .world
        .shared
        .access
        .entity(project(1), "ann")
        .await
        .unwrap();
    gateway.world.engine.remove_member(space, ann).await.unwrap();
    let closing = peer.next().await;
    assert_eq!(closing["payload"]["code"], "ACCESS_ENDED", "{closing}");
    assert_eq!(peer.next_or_end().await, None);
    gateway.stop().await;
}

#[tokio::test]
async fn what_comes_with_an_expired_token_changes_nothing() {
    let gateway = RtcWorld::new().await;
    let space = gateway.space(&["ann"]).await;
    let ann = gateway.world.user_for("ann", Duration::from_secs(3600));
    let mut peer = gateway.connect(&ann, space, 0).await;
    gateway.say(space, "call:guarded").await;
    let proposal = peer.first("TOOL_PROPOSED").await;
    gateway.world.clock.jump(4_000_000);
    peer.send(&sent(
        "TOOL_ACCEPTED",
        "a",
        json!({"approvalId": proposal["payload"]["approvalId"]}),
    ))
    .await;
    let closing = peer.next().await;
    assert_eq!(closing["payload"]["code"], "ACCESS_ENDED", "{closing}");
    let mut backend = gateway.connect(&gateway.world.backend(), space, 0).await;
    let all = backend.until(|message| message["type"] == "TOOL_PROPOSED").await;
    assert!(all.iter().all(|message| message["type"] != "TOOL_ACCEPTED"));
    gateway.stop().await;
}
