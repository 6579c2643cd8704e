//! A client under load, which remembers what it was told.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::ledger::{Fact, Ledger, RunFacts};
use super::{Api, Event, LOOK, Random, soon};

/// What a client asks the agent `worker` for; each is a script of the model.
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
/// What the agent `chief` asks the agent `clerk` for, and what a plan of `worker` comes to.
const ORDERS: &[&str] = &[
    "text:3 delay:2",
    "call:ask text:2",
    "call:risky input:{\"amount\":5} text:1",
    "call:clock call:ask text:2 cut:3",
];
/// Of so many things that a client does one after the other, one is a run with child runs and one makes a plan.
const KINDS: u64 = 5;
/// Plans that a client has before it waits for one of them.
const PLANS: usize = 2;
/// Longest time to the moment at which a plan is due.
const AHEAD_SECONDS: u64 = 2;

/// A client that starts runs one after the other and does what they ask of it.
pub struct Client {
    api: Api,
    random: Random,
    name: u64,
    asked: u64,
    /// Plans whose runs were not seen yet: their spaces and ids.
    planned: VecDeque<(String, String)>,
    ledger: Ledger,
}

impl Client {
    pub fn new(api: Api, random: Random, name: u64) -> Self {
        Self {
            api,
            random,
            name,
            asked: 0,
            planned: VecDeque::new(),
            ledger: Ledger::default(),
        }
    }

    /// Works until it is told to stop, and gives what it was told.
    pub async fn work(mut self, stop: Arc<AtomicBool>) -> Ledger {
        // Clients begin with different kinds, so that the shortest load has all of them.
        for turn in self.name.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            match turn % KINDS {
                0 => self.delegate().await,
                1 => self.plan().await,
                _ => self.ask().await,
            }
            if self.planned.len() >= PLANS {
                self.see_plan().await;
            }
        }
        while !self.planned.is_empty() {
            self.see_plan().await;
        }
        self.ledger
    }

    /// Starts a run, and sometimes another one in its space.
    async fn ask(&mut self) {
        let script = SCRIPTS[self.random.below(SCRIPTS.len() as u64) as usize];
        let body = json!({"agent": "worker", "message": format!("{script} {}", self.mark())});
        let space = self.say("/v1/runs", &body).await;
        if self.random.one_in(3) {
            let body = json!({"agent": "worker", "content": format!("call:echo text:1 {}", self.mark())});
            self.say(&format!("/v1/spaces/{space}/messages"), &body).await;
        }
    }

    /// Starts a run that asks another agent, sometimes for two things at once.
    async fn delegate(&mut self) {
        let calls: Vec<String> = (0..=self.random.below(2))
            .map(|_| format!("call:helper input:{{\"prompt\":{}}}", self.order()))
            .collect();
        let script = format!("{} text:1 {}", calls.join(" "), self.mark());
        self.say("/v1/runs", &json!({"agent": "chief", "message": script}))
            .await;
    }

    /// Starts a run that makes a plan.
    async fn plan(&mut self) {
        let (order, ahead) = (self.order(), 1 + self.random.below(AHEAD_SECONDS));
        let input = format!("{{\"message\":{order},\"inSeconds\":{ahead}}}");
        let script = format!("call:createPlan input:{input} text:1 {}", self.mark());
        self.say("/v1/runs", &json!({"agent": "worker", "message": script}))
            .await;
    }

    /// A script as JSON without spaces: part of the input of a call, which is one word of a script.
    fn order(&mut self) -> String {
        let order = ORDERS[self.random.below(ORDERS.len() as u64) as usize];
        Value::from(format!("{order} {}", self.mark()))
            .to_string()
            .replace(' ', "\\u0020")
    }

    /// Waits until the oldest plan is due, and sees its run to the end.
    async fn see_plan(&mut self) {
        let (space, plan) = self.planned.pop_front().expect("a plan");
        let path = format!("/v1/spaces/{space}/events");
        let is_due = |event: &Event| event.data["message"]["origin"]["planId"] == plan.as_str();
        let started = async {
            let mut cursor = 0;
            loop {
                let Ok(mut stream) = self.api.try_stream(&path, cursor).await else {
                    tokio::time::sleep(LOOK).await;
                    continue;
                };
                while let Some(event) = stream.next().await {
                    cursor = event.seq;
                    if is_due(&event) {
                        return event.text("runId").to_owned();
                    }
                }
            }
        };
        let run = soon(&format!("the run of {plan}"), started).await;
        self.follow(&run, &space).await;
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

    /// Reads the run's stream to its end and answers what it asks, and reads those of the runs that it has started.
    async fn follow(&mut self, run: &str, space: &str) {
        let facts = self.read(run, Some(space)).await;
        let mut children = Vec::new();
        for event in facts.seen.iter().filter(|event| event.kind == "tool-executing") {
            if let Some(child) = event.data["child"].as_str()
                && !children.iter().any(|known| known == child)
            {
                children.push(child.to_owned());
            }
        }
        self.ledger.runs.push(facts);
        for child in children {
            let facts = self.read(&child, None).await;
            self.ledger.runs.push(facts);
        }
    }

    /// Reads a run's stream to its end, over every cut. In a space that the client knows it answers what is asked there.
    async fn read(&mut self, run: &str, space: Option<&str>) -> RunFacts {
        let path = format!("/v1/runs/{run}/events");
        let mut facts = RunFacts {
            run: run.into(),
            space: space.unwrap_or_default().into(),
            seen: Vec::new(),
        };
        let mut cursor = 0;
        let whole = async {
            loop {
                let Ok(mut stream) = self.api.try_stream(&path, cursor).await else {
                    tokio::time::sleep(LOOK).await;
                    continue;
                };
                while let Some(event) = stream.next().await {
                    assert!(event.seq > cursor, "{} after {cursor}: {event:?}", event.seq);
                    cursor = event.seq;
                    match space {
                        Some(space) => self.react(run, space, &event).await,
                        None => facts.space = event.text("spaceId").into(),
                    }
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
        facts
    }

    async fn react(&mut self, run: &str, space: &str, event: &Event) {
        // What a child run asks is asked here, and answered there.
        let asks = event.data["childRunId"].as_str().unwrap_or(run);
        match event.kind.as_str() {
            "tool-input-available" if event.is_offer() => {
                let minded = self
                    .ledger
                    .last_said()
                    .is_some_and(|said| said.contains("change-of-mind"));
                if minded {
                    self.change_mind(run, space).await
                } else {
                    self.answer(asks, event.call()).await
                }
            }
            "tool-input-available" if event.text("toolName") == "helper" => {
                self.ledger.facts.push(Fact::Asked {
                    call: event.call().into(),
                    said: event.data["input"]["prompt"].as_str().expect("a prompt").into(),
                });
            }
            "tool-output-available" if event.text("toolName") == "createPlan" => self.note_plan(space, event),
            "tool-approval-request" => self.decide(event.text("approvalId")).await,
            _ => {}
        }
    }

    fn note_plan(&mut self, space: &str, event: &Event) {
        let plan = &event.data["output"];
        let text = |member: &str| plan[member].as_str().expect("a text").to_owned();
        self.planned.push_back((space.into(), text("id")));
        self.ledger.facts.push(Fact::Plan {
            space: space.into(),
            plan: text("id"),
            due: text("nextAt"),
            said: text("message"),
        });
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
