//! A client under load, which remembers what it was told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::ledger::{Fact, Ledger, RunFacts};
use super::{Api, Event, LOOK, Random, soon};

/// What a client asks for; each is a script of the model.
const SCRIPTS: &[&str] = &[
    "text:4 delay:2",
    "call:clock tools:3 text:2",
    "call:ask text:2 delay:1",
    "call:risky input:{\"amount\":5} text:2",
    "call:clock call:ask call:risky text:2",
    "call:ask call:ask call:echo tools:2 text:1",
    "call:ask text:2 change-of-mind",
    "text:3 cut:2",
    "call:ask text:2 fail:500",
];

/// A client that starts runs one after the other and does what they ask of it.
pub struct Client {
    api: Api,
    random: Random,
    name: u64,
    asked: u64,
    ledger: Ledger,
}

impl Client {
    pub fn new(api: Api, random: Random, name: u64) -> Self {
        Self {
            api,
            random,
            name,
            asked: 0,
            ledger: Ledger::default(),
        }
    }

    /// Works until it is told to stop, and gives what it was told.
    pub async fn work(mut self, stop: Arc<AtomicBool>) -> Ledger {
        while !stop.load(Ordering::Relaxed) {
            let script = SCRIPTS[self.random.below(SCRIPTS.len() as u64) as usize];
            let body = json!({"agent": "worker", "message": format!("{script} {}", self.mark())});
            let space = self.say("/v1/runs", &body).await;
            if self.random.one_in(3) {
                let body = json!({"agent": "worker", "content": format!("call:echo text:1 {}", self.mark())});
                self.say(&format!("/v1/spaces/{space}/messages"), &body).await;
            }
        }
        self.ledger
    }

    /// A word that no other message or result has.
    fn mark(&mut self) -> String {
        self.asked += 1;
        format!("#{}.{}.", self.name, self.asked)
    }

    /// Posts a message, sees the run that answers it to its end, and gives its space.
    async fn say(&mut self, path: &str, body: &Value) -> String {
        let (run, space) = self.post(path, body).await;
        self.follow(&run, &space).await;
        space
    }

    async fn post(&mut self, path: &str, body: &Value) -> (String, String) {
        let key = format!("key-{}-{}", self.name, self.asked);
        let answer = self.api.insist(path, body, Some(&key)).await;
        assert!(answer.is_success(), "{answer:?}");
        if self.random.one_in(4) {
            let again = self.api.insist(path, body, Some(&key)).await;
            for id in ["messageId", "runId", "spaceId"] {
                assert_eq!(again.body[id], answer.body[id], "the same request was done twice");
            }
        }
        let (run, space) = (answer.text("runId"), answer.text("spaceId"));
        let said = body["message"]
            .as_str()
            .or(body["content"].as_str())
            .expect("words");
        let message = answer.text("messageId");
        self.ledger.facts.push(Fact::Message {
            space: space.clone(),
            message,
            said: said.into(),
        });
        (run, space)
    }

    /// Reads the run's stream to its end, over every cut, and answers what it asks.
    async fn follow(&mut self, run: &str, space: &str) {
        let mut facts = RunFacts {
            run: run.into(),
            space: space.into(),
            seen: Vec::new(),
        };
        let mut cursor = 0;
        let whole = async {
            loop {
                let Ok(mut stream) = self.api.try_follow(run, cursor).await else {
                    tokio::time::sleep(LOOK).await;
                    continue;
                };
                while let Some(event) = stream.next().await {
                    assert!(event.seq > cursor, "{} after {cursor}: {event:?}", event.seq);
                    cursor = event.seq;
                    self.react(run, space, &event).await;
                    let over = event.kind == "run-finish";
                    if event.is_durable() {
                        facts.seen.push(event);
                    }
                    if over {
                        return;
                    }
                }
            }
        };
        soon(&format!("the end of {run}"), whole).await;
        self.ledger.runs.push(facts);
    }

    async fn react(&mut self, run: &str, space: &str, event: &Event) {
        match event.kind.as_str() {
            "tool-input-available" if event.is_offer() => {
                let minded = self
                    .ledger
                    .last_said()
                    .is_some_and(|said| said.contains("change-of-mind"));
                if minded {
                    self.change_mind(run, space).await
                } else {
                    self.answer(run, event.call()).await
                }
            }
            "tool-approval-request" => self.decide(event.text("approvalId")).await,
            _ => {}
        }
    }

    /// Says something new instead of answering a call.
    async fn change_mind(&mut self, run: &str, space: &str) {
        let body = json!({"agent": "worker", "content": format!("text:2 {}", self.mark())});
        let (woken, _) = self.post(&format!("/v1/spaces/{space}/messages"), &body).await;
        assert_eq!(woken, run, "a message goes to the run under way");
    }

    async fn answer(&mut self, run: &str, call: &str) {
        let path = format!("/v1/runs/{run}/tool-results");
        let value = json!({"answer": self.mark()});
        let receipt = self
            .api
            .insist(&path, &json!({"toolCallId": call, "result": value}), None)
            .await;
        assert_eq!(receipt.status, 200, "{receipt:?}");
        let seq = receipt.body["seq"].as_u64().expect("a place");
        if self.random.one_in(3) {
            let again = self
                .api
                .insist(&path, &json!({"toolCallId": call, "result": value}), None)
                .await;
            assert_eq!(again, receipt, "the same result has the same receipt");
            let other = self
                .api
                .insist(&path, &json!({"toolCallId": call, "result": "other"}), None)
                .await;
            assert_eq!(
                (other.status, &other.body["winner"]["seq"]),
                (409, &receipt.body["seq"]),
                "{other:?}"
            );
        }
        self.ledger.facts.push(Fact::Result {
            run: run.into(),
            call: call.into(),
            value,
            seq,
        });
    }

    async fn decide(&mut self, approval: &str) {
        let approved = self.random.one_in(2);
        let path = format!("/v1/approvals/{approval}");
        let decided = self.api.insist(&path, &json!({"approved": approved}), None).await;
        assert_eq!(decided.status, 200, "{decided:?}");
        let run = decided.text("runId");
        let seq = decided.body["seq"].as_u64().expect("a place");
        self.ledger.facts.push(Fact::Decision {
            run,
            approval: approval.into(),
            approved,
            seq,
        });
    }
}
