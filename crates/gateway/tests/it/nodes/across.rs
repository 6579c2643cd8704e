//! One run, several nodes.

use serde_json::{Value, json};
use toolgate_kernel::time::Time;

use super::cluster::{Cluster, id, words};
use crate::harness::{Api, Event, LOOK, soon};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_node_serves_any_part_of_a_run() {
    serve_parts_on_all_nodes(&Cluster::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_node_serves_any_part_of_a_run_without_redis() {
    // The last of two values counts: no bus is set.
    let cluster = Cluster::start_with(&[("TOOLGATE_BUS", "")]).await;
    cluster.until_bus("joined").await;
    serve_parts_on_all_nodes(&cluster).await;
}

async fn serve_parts_on_all_nodes(cluster: &Cluster) {
    let [a, b, c] = cluster.apis();
    a_call_is_answered_elsewhere(&a, &b, &c).await;
    a_viewer_moves_to_another_node(cluster, &a, &b, &c).await;
    a_person_decides_elsewhere(&a, &b, &c).await;
    a_cancel_elsewhere_stops_the_driver(cluster, &a, &b, &c).await;
    a_child_run_is_answered_elsewhere(&a, &b, &c).await;
    a_plan_is_started_once(&a, &b).await;
}

async fn a_call_is_answered_elsewhere(a: &Api, b: &Api, c: &Api) {
    let run = id(&a.start("call:ask text:4 delay:5").await, "runId");
    let mut stream = b.follow(&run, 0).await;
    let offer = stream.offer().await;
    let receipt = c.result(&run, offer.call(), &json!({"answer": 42})).await;
    assert_eq!(receipt.status, 200, "{receipt:?}");
    let again = a.result(&run, offer.call(), &json!({"answer": 42})).await;
    assert_eq!(again, receipt, "the same receipt from another node");
    let other = b.result(&run, offer.call(), &json!({"answer": 43})).await;
    assert_eq!(
        (other.status, &other.body["winner"]["seq"]),
        (409, &receipt.body["seq"]),
        "{other:?}"
    );
    let rest = stream.rest().await;
    check_words(&rest, "w0 w1 w2 w3 ", "w0 w1 w2 w3 ");
    check_log(&[a, b, c], &run, "completed").await;
}

async fn a_viewer_moves_to_another_node(cluster: &Cluster, a: &Api, b: &Api, c: &Api) {
    let run = id(&a.start("text:6 hold:4").await, "runId");
    let mut on_b = b.follow(&run, 0).await;
    let mut seen = Vec::new();
    while words(&seen) != "w0 w1 w2 " {
        seen.push(soon("a word", on_b.next()).await.expect("the stream goes on"));
    }
    drop(on_b);
    let cursor = seen.last().expect("words").seq;
    let mut on_c = c.follow(&run, cursor).await;
    cluster.models.release(1);
    let rest = on_c.rest().await;
    assert!(rest.iter().all(|event| event.seq > cursor), "{rest:#?}");
    check_words(&rest, "w3 w4 w5 ", "w0 w1 w2 w3 w4 w5 ");
    check_log(&[a, b, c], &run, "completed").await;
}

/// Words come once and in order. Those that were overtaken by the message they belong to are in that.
fn check_words(events: &[Event], awaited: &str, whole: &str) {
    let came = words(events);
    assert!(
        awaited.ends_with(&came) || awaited.starts_with(&came),
        "{came:?}: {events:#?}"
    );
    let text = events.iter().find(|event| event.kind == "text-end");
    assert_eq!(text.expect("the message").text("text"), whole, "{events:#?}");
}

async fn a_person_decides_elsewhere(a: &Api, b: &Api, c: &Api) {
    let run = id(&a.start("call:risky input:{\"amount\":5} text:1").await, "runId");
    let asked = b.follow(&run, 0).await;
    let asked = { asked }
        .until("an approval", |event| event.kind == "tool-approval-request")
        .await;
    let inbox = c.get("/v1/approvals?status=open").await;
    assert!(
        inbox.body.to_string().contains(asked.text("approvalId")),
        "{inbox:?}"
    );
    let path = format!("/v1/approvals/{}", asked.text("approvalId"));
    let (yes, no) = (json!({"approved": true}), json!({"approved": false}));
    let (here, there) = tokio::join!(b.post(&path, &yes), c.post(&path, &no));
    let statuses = [here.status, there.status];
    assert!(
        statuses == [200, 409] || statuses == [409, 200],
        "one decides: {here:?} {there:?}"
    );
    let log = check_log(&[a, b, c], &run, "completed").await;
    let decided: Vec<&Value> = log
        .iter()
        .filter(|event| event.kind == "tool-approval-response")
        .map(|event| &event.data["approved"])
        .collect();
    assert_eq!(decided, [&json!(statuses[0] == 200)]);
}

async fn a_cancel_elsewhere_stops_the_driver(cluster: &Cluster, a: &Api, b: &Api, c: &Api) {
    let run = id(&a.start("text:4 hold:2").await, "runId");
    let mut stream = b.follow(&run, 0).await;
    stream.until("a word", |event| event.kind == "text-delta").await;
    let cancelled = c.post(&format!("/v1/runs/{run}/cancel"), &json!({})).await;
    assert_eq!(cancelled.text("status"), "cancelled", "{cancelled:?}");
    stream.rest().await;
    assert!(stream.ended_well);
    cluster.models.release(1);
    check_log(&[a, b, c], &run, "cancelled").await;
}

async fn a_child_run_is_answered_elsewhere(a: &Api, b: &Api, c: &Api) {
    let script = r#"call:helper input:{"prompt":"call:ask"} text:1"#;
    let started = a
        .post("/v1/runs", &json!({"agent": "chief", "message": script}))
        .await;
    let root = started.text("runId");
    let offer = soon("the child's question", async {
        loop {
            let children = b.get(&format!("/v1/runs?parent={root}")).await;
            if let Some(child) = children.body["runs"][0]["id"].as_str() {
                let mut stream = b.follow(child, 0).await;
                return (child.to_owned(), stream.offer().await);
            }
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    let (child, offer) = offer;
    let receipt = c
        .result(&child, offer.call(), &json!({"answer": "from a third node"}))
        .await;
    assert_eq!(receipt.status, 200, "{receipt:?}");
    check_log(&[a, b, c], &child, "completed").await;
    check_log(&[c, a, b], &root, "completed").await;
}

async fn a_plan_is_started_once(a: &Api, b: &Api) {
    let mut spaces = Vec::new();
    for _ in 0..5 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let due = Time(since.expect("after 1970").as_millis() as i64 + 2_000);
        let input = json!({"message": "text:2", "at": due.to_string()});
        let started = a.start(&format!("call:createPlan input:{input} text:1")).await;
        a.finished(&id(&started, "runId")).await;
        spaces.push(id(&started, "spaceId"));
    }
    for space in spaces {
        let runs = soon("the plan's run", async {
            loop {
                let runs = b.get(&format!("/v1/runs?space={space}")).await.body["runs"].clone();
                let ended = runs
                    .as_array()
                    .expect("runs")
                    .iter()
                    .all(|run| run["status"] == "completed");
                if runs.as_array().expect("runs").len() > 1 && ended {
                    return runs;
                }
                tokio::time::sleep(LOOK).await;
            }
        })
        .await;
        assert_eq!(runs.as_array().expect("runs").len(), 2, "{runs:#?}");
        let log = b.list(&format!("/v1/spaces/{space}/events")).await;
        let started = log.iter().filter(|event| event.kind == "run-start").count();
        assert_eq!(started, 2, "the plan started one run: {log:#?}");
    }
}

/// Waits for the run's end on the first of these nodes; all of them have the same log of it, which is whole.
async fn check_log(nodes: &[&Api], run: &str, status: &str) -> Vec<Event> {
    let log = nodes[0].finished(run).await;
    for node in &nodes[1..] {
        assert_eq!(node.list(&format!("/v1/runs/{run}/events")).await, log);
    }
    let count = |kind: &str| log.iter().filter(|event| event.kind == kind).count();
    assert_eq!((count("run-start"), count("run-finish")), (1, 1), "{log:#?}");
    assert_eq!(log.last().expect("not empty").data["status"], status, "{log:#?}");
    log
}
