//! A data channel whose node is killed: its peer goes on at another node from its cursor, and nothing is lost or repeated.

use serde_json::{Value, json};
use toolgate_testkit_http::rtc_peer::Peer;

use super::cluster::{Cluster, id};
use crate::harness::Api;

/// When the node is killed.
#[derive(Clone, Copy, Debug)]
enum Killed {
    /// The person has read the proposal and not decided.
    Undecided,
    /// The person has decided, and nobody knows whether the node has stored it.
    Deciding,
}

/// Ann's channel at a node, open from after `cursor`.
async fn connect(node: &Api, space: &str, cursor: u64) -> Peer {
    let mut peer = Peer::new().await;
    let offer = json!({"type": "offer", "sdp": peer.offer(), "after": cursor});
    let path = format!("/v1/spaces/{space}/rtc");
    let answer = node.as_user("ann").post(&path, &offer).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    peer.accept(&answer.text("sdp"));
    let ready = peer.next().await;
    assert_eq!(ready["type"], "CHANNEL_READY", "{ready}");
    peer
}

fn yes_to(proposal: &Value) -> String {
    let payload = json!({"approvalId": proposal["payload"]["approvalId"]});
    let message = json!({
        "type": "TOOL_ACCEPTED", "toolId": proposal["toolId"], "payload": payload, "timestamp": 1, "id": "yes",
    });
    message.to_string()
}

/// Messages about tools up to the end of the call, without their answers.
async fn told_until_completed(peer: &mut Peer) -> Vec<Value> {
    let mut told = peer.until(|message| message["type"] == "TOOL_COMPLETED").await;
    told.retain(|message| message["toolId"].is_string());
    told
}

/// One proposal at `cluster`'s first node, which is killed; the person goes on at the second.
async fn killed_in_the_middle(cluster: &mut Cluster, killed: Killed) {
    let [a, b, _] = cluster.apis();
    let made = b.post("/v1/spaces", &json!({"members": ["ann"]})).await;
    let space = id(&made.body, "id");
    let mut peer = connect(&a, &space, 0).await;
    let message = json!({"agent": "worker", "message": "call:risky text:1"});
    let posted = a.post(&format!("/v1/spaces/{space}/messages"), &message).await;
    assert!(posted.is_success(), "{posted:?}");
    let proposal = peer.first("TOOL_PROPOSED").await;
    if let Killed::Deciding = killed {
        peer.send(&yes_to(&proposal)).await;
    }
    cluster.nodes[0].kill();
    peer.vanish();

    let cursor = proposal["seq"].as_u64().expect("a place");
    let mut peer = connect(&b, &space, cursor).await;
    peer.send(&yes_to(&proposal)).await;
    let mut all = vec![proposal];
    all.extend(told_until_completed(&mut peer).await);
    let kinds: Vec<&str> = all
        .iter()
        .filter_map(|message| message["type"].as_str())
        .collect();
    let expected = [
        "TOOL_PROPOSED",
        "TOOL_ACCEPTED",
        "TOOL_EXECUTING",
        "TOOL_COMPLETED",
    ];
    assert_eq!(kinds, expected, "{killed:?}");
    let mut whole = connect(&b, &space, 0).await;
    assert_eq!(
        told_until_completed(&mut whole).await,
        all,
        "as one who reads everything"
    );
    cluster.nodes[0].spawn();
    cluster.nodes[0].ready().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_whose_node_is_killed_goes_on_at_another_from_its_cursor() {
    let mut cluster = Cluster::start().await;
    for killed in [Killed::Undecided, Killed::Deciding, Killed::Deciding] {
        killed_in_the_middle(&mut cluster, killed).await;
    }
}
