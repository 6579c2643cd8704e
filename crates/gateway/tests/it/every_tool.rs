//! Every tool of the gateway in a real run, with the process killed in the middle: what it does is done once, or the
//! model is told that nobody knows; the run goes on to its end; and a user sees names, live and replayed.

mod giving_up;
mod rows;
mod superseding;

use std::collections::BTreeSet;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use toolgate_kernel::time::Time;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Event, Gateway, LOOK, MARK, Outside, put_agent, soon};
use rows::{Row, agent, families, keeping, outside, waiting};

/// Everything there is, and what the tests do with it.
struct World {
    gateway: Gateway,
    models: ModelServer,
    server: Outside,
}

/// A row whose run is under way.
struct UnderWay {
    row: Row,
    agent: String,
    run: String,
    space: String,
}

impl World {
    async fn start() -> Self {
        let (models, server) = (ModelServer::start().await, Outside::start().await);
        let settings = server.settings();
        let settings: Vec<(&str, &str)> = settings
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let gateway = Gateway::start(&settings).await;
        let world = Self {
            gateway,
            models,
            server,
        };
        let guide = world.api().request(Method::PUT, "/v1/knowledge/documents/guide");
        let kept = guide
            .header("content-type", "text/plain")
            .body(format!("{MARK} words"))
            .send()
            .await;
        assert!(kept.expect("an answer").status().is_success());
        world.put("held", "hold:0 say:MARKED-answer").await;
        let signals = format!(r#"call:signal_parent input:{{"message":"{MARK}"}} call:gate say:{MARK}"#);
        world.put("signaller", &signals).await;
        world
    }

    fn api(&self) -> Api {
        self.gateway.api()
    }

    fn user(&self) -> Api {
        self.api().as_user("ada")
    }

    /// Kills the gateway and starts it again, in a world that answers.
    async fn crash(&mut self) {
        self.gateway.kill();
        self.server.open();
        self.gateway.spawn();
        self.gateway.ready().await;
    }

    async fn put(&self, name: &str, script: &str) {
        put_agent(&self.api(), name, &agent(&self.models, &self.server, script)).await;
    }

    /// Lets an agent follow a script, asked by the user; gives the run and its space.
    async fn ask(&self, agent: &str, script: &str, space: Option<&str>) -> (String, String) {
        self.put(agent, script).await;
        let asked = match space {
            None => {
                self.user()
                    .post("/v1/runs", &json!({"agent": agent, "message": "go"}))
                    .await
            }
            Some(space) => {
                let body = json!({"agent": agent, "content": "go"});
                self.user()
                    .post(&format!("/v1/spaces/{space}/messages"), &body)
                    .await
            }
        };
        assert!(asked.is_success(), "{asked:?}");
        (asked.text("runId"), asked.text("spaceId"))
    }

    /// Does what comes before a row, and starts the run that will be cut.
    async fn begin(&self, number: usize, row: Row) -> UnderWay {
        let agent = format!("row-{number}");
        let mut input = row.input.to_string();
        let mut space = None;
        if let Some((tool, before)) = &row.before {
            let (run, place) = self
                .ask(&agent, &format!("call:{tool} input:{before} text:1"), None)
                .await;
            let events = self.api().finished(&run).await;
            if let Some(id) = settled(&events, tool).data["output"]["id"].as_str() {
                input = input.replace("$id", id);
            }
            space = Some(place);
        }
        let script = format!("call:{} input:{input} call:gate text:1", row.tool);
        let (run, space) = self.ask(&agent, &script, space.as_deref()).await;
        UnderWay {
            row,
            agent,
            run,
            space,
        }
    }

    /// Sees a run to its end after the gateway came back, and looks at all that came of it.
    async fn check(&self, under_way: &UnderWay) {
        let UnderWay {
            row,
            agent,
            run,
            space,
        } = under_way;
        if row.tool == "signal" {
            let events = self.api().list(&format!("/v1/runs/{run}/events")).await;
            let waits = |event: &&Event| event.kind == "tool-executing" && event.text("toolName") == "signal";
            let call = events.iter().find(waits).expect("it waits").call().to_owned();
            let told = self
                .api()
                .post(&format!("/v1/calls/{call}/signal"), &json!({"value": MARK}))
                .await;
            assert_eq!(told.status, 200, "{told:?}");
        }
        let events = self.api().finished(run).await;
        let end = events.last().expect("an end");
        assert_eq!(end.data["status"], "completed", "{}: {events:#?}", row.tool);
        expect(row.tool, settled(&events, row.tool), &row.expected);
        settled(&events, "gate");
        self.check_view(under_way, &events).await;
        if let Some((tool, input, pointer, value)) = &row.after {
            let script = format!("call:{tool} input:{input} text:1");
            let (run, _) = self.ask(agent, &script, Some(space)).await;
            let events = self.api().finished(&run).await;
            expect(
                row.tool,
                settled(&events, tool),
                &Ok((pointer, Some(value.clone()))),
            );
        }
    }

    /// The user is shown the same calls, and nothing of what they were given or gave.
    async fn check_view(&self, under_way: &UnderWay, all: &[Event]) {
        let UnderWay { row, run, space, .. } = under_way;
        let user = self.user();
        let mut replayed = user.follow(run, 0).await;
        let calls = |events: &[Event]| -> Vec<(String, String)> {
            let settled = events
                .iter()
                .filter(|event| event.kind.starts_with("tool-output"));
            settled
                .map(|event| (event.call().into(), event.text("toolName").into()))
                .collect()
        };
        assert_eq!(calls(&replayed.rest().await), calls(all), "{}", row.tool);
        let mut seen = vec![String::from_utf8(replayed.raw).expect("a stream is UTF-8")];
        for path in [
            format!("/v1/runs/{run}"),
            format!("/v1/runs/{run}/events"),
            format!("/v1/spaces/{space}/events"),
        ] {
            seen.push(user.get(&path).await.body.to_string());
        }
        for text in seen {
            assert!(!text.contains(MARK), "{}: a user was shown {text}", row.tool);
        }
        for child in all.iter().filter_map(|event| event.data["child"].as_str()) {
            assert_eq!(user.get(&format!("/v1/runs/{child}")).await.status, 404);
        }
    }
}

/// The one event that settled the one call of a tool.
fn settled<'e>(events: &'e [Event], tool: &str) -> &'e Event {
    let of_tool = |event: &&Event| event.kind.starts_with("tool-output") && event.text("toolName") == tool;
    let mut settled = events.iter().filter(of_tool);
    let first = settled
        .next()
        .unwrap_or_else(|| panic!("{tool} has not settled: {events:#?}"));
    assert_eq!(settled.next(), None, "{tool} settled twice");
    first
}

fn expect(row: &str, event: &Event, expected: &Result<(&str, Option<Value>), &str>) {
    match expected {
        Err(code) => assert_eq!(event.data["code"], *code, "{row}: {event:?}"),
        Ok((pointer, value)) => {
            let found = event.data["output"].pointer(pointer);
            assert!(
                found.is_some() && (value.is_none() || found == value.as_ref()),
                "{row}: {event:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tool_survives_a_kill_in_the_middle() {
    let mut world = World::start().await;
    let moment = Time(now().0 + 1_500);
    let (inside, outside, families) = (keeping(), outside(&world.server), families());
    // The outside is asked by its tools, by the gate of every run, and by that of the signaller.
    let held = outside.len() + 1;
    let rows: Vec<Row> = [inside, outside, families, waiting(moment)]
        .into_iter()
        .flatten()
        .collect();
    let held = held + rows.len();
    let begun = rows
        .into_iter()
        .enumerate()
        .map(|(number, row)| world.begin(number, row));
    let begun = join_all(begun).await;
    let mut live = Vec::new();
    for under_way in &begun {
        let mut stream = world.user().follow(&under_way.run, 0).await;
        live.push(tokio::spawn(async move {
            stream.rest().await;
            stream.raw
        }));
    }
    world.server.held(held).await;
    soon("the models of the families", world.models.held(3)).await;

    world.crash().await;
    world.models.release(100);
    for raw in join_all(live).await {
        let raw = String::from_utf8(raw.expect("a stream")).expect("a stream is UTF-8");
        assert!(
            raw.contains("toolName") && !raw.contains(MARK),
            "a user was shown {raw}"
        );
    }
    join_all(begun.iter().map(|under_way| world.check(under_way))).await;

    let server = &world.server;
    for (path, times) in [
        ("/items/MARKED", 2),
        ("/orders", 1),
        ("/page", 2),
        ("/search", 2),
        ("/large", 2),
        ("/v1/images/generations", 3),
    ] {
        assert_eq!(server.asked(path).len(), times, "{path}");
    }
    let keys: BTreeSet<String> = server
        .asked("/items/MARKED")
        .iter()
        .map(|asked| asked.header("idempotency-key").into())
        .collect();
    assert_eq!(keys.len(), 1, "{keys:?}");
    let notifying = begun
        .iter()
        .find(|under_way| under_way.row.tool == "sendNotification")
        .expect("a row");
    check_notified(&world, notifying).await;
}

/// The members of the space were told once; the webhook perhaps twice, but always of the same.
async fn check_notified(world: &World, UnderWay { run, space, .. }: &UnderWay) {
    let call = settled(
        &world.api().list(&format!("/v1/runs/{run}/events")).await,
        "sendNotification",
    )
    .call()
    .to_owned();
    let events = world.user().list(&format!("/v1/spaces/{space}/events")).await;
    let told = events.iter().filter(|event| event.kind == "notification");
    assert_eq!(told.count(), 1);
    soon("the webhook", async {
        while world.server.asked("/hook").is_empty() {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    for asked in world.server.asked("/hook") {
        assert_eq!(asked.header("webhook-id"), call);
    }
}

/// The runs are cut wherever they are once so many of them have come to their gate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_is_kept_once_wherever_the_kill_falls() {
    for gates in [0, 1, 4, 9] {
        let mut world = World::start().await;
        let begun = keeping()
            .into_iter()
            .enumerate()
            .map(|(number, row)| world.begin(number, row));
        let begun = join_all(begun).await;
        world.server.held(gates).await;
        world.crash().await;
        join_all(begun.iter().map(|under_way| world.check(under_way))).await;
        let notifying = begun
            .iter()
            .find(|under_way| under_way.row.tool == "sendNotification")
            .expect("a row");
        check_notified(&world, notifying).await;
    }
}

fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Time(since.expect("after 1970").as_millis() as i64)
}
