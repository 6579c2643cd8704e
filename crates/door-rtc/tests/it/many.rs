//! Many channels at once on one port.

use serde_json::json;
use toolgate_door_rtc::RtcLimits;

use crate::world::{RtcWorld, path};
use toolgate_testkit_http::rtc_peer::Peer;

const CHANNELS: usize = 200;
/// Most memory of one open channel, its client in the same process included: four times what is measured, since other tests
/// of this process take memory too.
const CHANNEL_KB_MAX: u64 = 512;

/// Resident memory of this process, in kB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_channels_are_open_at_once_and_all_see_every_message() {
    let limits = RtcLimits {
        handshake_timeout: std::time::Duration::from_secs(60),
        ..RtcLimits::default()
    };
    let gateway = RtcWorld::with(limits).await;
    let space = gateway.space(&[]).await;
    let backend = gateway.world.backend();
    // What the first connection loads stays out of the measurement.
    gateway.connect(&backend, space, 0).await;
    let before = resident();
    let began = std::time::Instant::now();
    let (opened, mut open) = tokio::sync::mpsc::channel(CHANNELS);
    let mut readers = Vec::new();
    for _ in 0..CHANNELS {
        let mut peer = Peer::new().await;
        let told = backend
            .post(&path(space), json!({"sdp": peer.offer()}))
            .await
            .expect(200);
        peer.accept(told["sdp"].as_str().unwrap());
        let opened = opened.clone();
        // Each reads on without a pause, as a browser would: a peer that falls silent is taken for dead.
        readers.push(tokio::spawn(async move {
            let ready = peer.next().await;
            assert_eq!(ready["type"], "CHANNEL_READY");
            opened.send(()).await.unwrap();
            peer.first("TOOL_COMPLETED").await["seq"].clone()
        }));
    }
    for _ in 0..CHANNELS {
        open.recv().await.unwrap();
    }
    let each = (resident().saturating_sub(before)) / CHANNELS as u64;
    println!(
        "{CHANNELS} channels open after {:?}; {each} kB resident per channel, its client in the same process included",
        began.elapsed()
    );
    assert!(each <= CHANNEL_KB_MAX, "{each} kB per channel");
    let said = std::time::Instant::now();
    gateway.say(space, "call:mirror").await;
    let mut places = Vec::new();
    for reader in readers {
        places.push(reader.await.unwrap());
    }
    println!("an event reached all of them after {:?}", said.elapsed());
    assert!(places.windows(2).all(|pair| pair[0] == pair[1]));
    gateway.stop().await;
}
