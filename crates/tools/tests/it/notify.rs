//! Notifications.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolgate_egress::Egress;
use toolgate_engine::outbox::Outbox;
use toolgate_engine::records::{Change, Listing, NewRecord, Owner, RecordSet};
use toolgate_engine::store::LogRange;
use toolgate_kernel::agent::Secret;
use toolgate_kernel::event::Event;
use toolgate_kernel::time::Time;
use toolgate_tools::notify::{Channels, Deliveries, Mail, Webhook};

use crate::wire;
use crate::world::{World, on_every_store, project};

/// Far longer than any pause between attempts.
pub const DAY: i64 = 24 * 3600 * 1000;
const SECRET: &str = "what only both sides know";

/// A new process that delivers by these channels.
pub fn deliveries(world: &World, webhook: Option<Webhook>, mail: Option<Mail>) -> Deliveries {
    let outbox = Arc::new(Outbox::new(world.records.clone(), world.clock.clone()));
    Deliveries::new(outbox, Channels { webhook, mail }, &Egress::new())
}

fn record_set() -> RecordSet {
    RecordSet {
        project: project(),
        owner: Owner::Project,
        kind: "delivery",
    }
}

/// What is kept of deliveries.
pub async fn kept(world: &World) -> Vec<Value> {
    let listing = Listing {
        limit: 10,
        ..Listing::default()
    };
    let records = world.records.list_records(record_set(), listing).await.unwrap();
    let told = records.iter().map(|record| {
        let mut body = record.body.to_value();
        body["waits"] = record.due.is_some().into();
        body
    });
    told.collect()
}

/// A new process that works off what an older one queued, and the head and body of each request it makes, which are
/// answered with these statuses.
async fn worked_off(world: &World, statuses: &[u16]) -> Vec<(String, String)> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let webhook = Webhook {
        url: url.parse().unwrap(),
        secret: Some(Secret::new(SECRET)),
    };
    let deliveries = deliveries(world, Some(webhook), None);
    let answering = async {
        let mut requests = Vec::new();
        for status in statuses {
            let (mut connection, _) = listener.accept().await.unwrap();
            requests.push(wire::request(&mut connection).await);
            wire::reply(&mut connection, *status, "{}").await;
        }
        requests
    };
    tokio::join!(answering, deliveries.work_off()).0
}

fn header<'h>(head: &'h str, name: &str) -> &'h str {
    let found = head
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name}: ")));
    found.unwrap_or_else(|| panic!("no {name} in {head}"))
}

on_every_store! {
    async fn the_space_is_told_once(world) {
        let space = world.space().await;
        let told = world.call_in(space, "ada", "sendNotification", json!({"title": "Tea", "body": "is ready"})).await.unwrap();
        assert_eq!(told, json!({"success": true, "sent": ["space"], "queued": []}));
        let log = world.store.space_log(space, LogRange::default()).await.unwrap();
        let news: Vec<_> = log.entries.iter().flat_map(|entry| &entry.events).filter_map(|event| match event {
            Event::Notification(news) => Some((news.title.as_str(), news.body.as_deref())),
            _ => None,
        }).collect();
        assert_eq!(news, [("Tea", Some("is ready"))]);
    }

    async fn a_webhook_is_tried_until_it_takes_it_and_can_tell_who_sends(world) {
        let input = json!({"title": "Tea", "channels": ["webhook", "space"]});
        let told = world.call("ada", "sendNotification", input).await.unwrap();
        assert_eq!(told["queued"], json!(["webhook"]));
        let first = worked_off(world, &[500]).await;
        assert_eq!((&kept(world).await[0]["attempts"], &kept(world).await[0]["error"]), (&json!(1), &json!("it answered with 500")));
        // Too early for another attempt.
        assert_eq!(worked_off(world, &[]).await, []);
        world.clock.jump(DAY);
        let second = worked_off(world, &[204]).await;
        assert_eq!(kept(world).await, [] as [Value; 0]);
        let (head, body) = &second[0];
        assert_eq!((body, header(head, "webhook-id")), (&first[0].1, header(&first[0].0, "webhook-id")));
        let sent: Value = serde_json::from_str(body).unwrap();
        assert_eq!((&sent["type"], &sent["data"]["title"], &sent["data"]["agent"]), (&json!("notification"), &json!("Tea"), &json!("ada")));
        let signed = format!("{}.{}.{body}", header(head, "webhook-id"), header(head, "webhook-timestamp"));
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, SECRET.as_bytes());
        let tag = BASE64.decode(header(head, "webhook-signature").strip_prefix("v1,").unwrap()).unwrap();
        aws_lc_rs::hmac::verify(&key, signed.as_bytes(), &tag).unwrap();
    }

    async fn what_is_never_taken_is_dead_lettered(world) {
        world.call("ada", "sendNotification", json!({"title": "Tea", "channels": ["webhook"]})).await.unwrap();
        for _ in 0..12 {
            assert_eq!(worked_off(world, &[503]).await.len(), 1);
            world.clock.jump(DAY);
        }
        assert_eq!(worked_off(world, &[]).await, []);
        let dead = &kept(world).await[0];
        assert_eq!((&dead["attempts"], &dead["waits"]), (&json!(12), &json!(false)));
        assert_eq!(dead["payload"]["data"]["title"], "Tea");
    }

    async fn one_that_cannot_be_read_is_dead_lettered_and_holds_up_no_other(world) {
        let broken = Change::Put(NewRecord {
            id: "broken".into(),
            body: json!({"payload": {}}).into(),
            text: None,
            data: None,
            due: Some(Time(0)),
        });
        world.records.change_records(record_set(), vec![], vec![broken], Time(0)).await.unwrap();
        world.call("ada", "sendNotification", json!({"title": "Tea", "channels": ["webhook"]})).await.unwrap();
        assert_eq!(worked_off(world, &[204]).await.len(), 1);
        assert_eq!(kept(world).await, [json!({"payload": {}, "waits": false})]);
    }

    async fn two_nodes_send_it_once(world) {
        world.call("ada", "sendNotification", json!({"title": "Tea", "channels": ["webhook"]})).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let webhook = Some(Webhook { url: url.parse().unwrap(), secret: None });
        let node = || Arc::new(deliveries(world, webhook.clone(), None));
        let (one, two) = (node(), node());
        let first = tokio::spawn({ let one = one.clone(); async move { one.work_off().await } });
        let (mut connection, _) = listener.accept().await.unwrap();
        wire::request(&mut connection).await;
        // While the first waits for its answer, the second finds nothing to do.
        two.work_off().await;
        wire::reply(&mut connection, 200, "{}").await;
        first.await.unwrap();
        assert_eq!(kept(world).await, [] as [Value; 0]);
    }
}
