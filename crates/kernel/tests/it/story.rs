//! A run that a test plays by hand, with the log that it leaves.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::json;
use toolgate_kernel::agent::{self, Agent};
use toolgate_kernel::call::{Call, Handle, Outcome};
use toolgate_kernel::event::{CallRequest, Entry, Event, FinishReason, RunStart, Seq, Usage};
use toolgate_kernel::id::{CallId, MessageId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::run::{Arrival, Due, Rejected, Reply, ReplyPart, Run, RunState};
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{Decider, Placement};
use uuid::Uuid;

use crate::agent::{catalog, defaults};
use crate::view::member;

pub const START: Time = Time(1_800_000_000_000);

pub fn test_agent() -> Arc<Agent> {
    let config = json!({
        "instructions": "test",
        "loop": {"maxSteps": 4},
        "limits": {"calls": 12, "callsPerStep": 6},
        "tools": [
            {"name": "server", "description": "d", "executionType": "prebuilt", "execution": {"action": "any"}},
            {"name": "safe", "description": "d", "executionType": "prebuilt", "execution": {"action": "any"}, "retry": "safe"},
            {"name": "client", "description": "d", "executionType": "basic", "timeout": "30s"},
            {"name": "asked", "description": "d", "executionType": "basic", "approval": "always", "execution": {"mode": "pass-through"}},
            {"name": "asked_client", "description": "d", "executionType": "basic", "approval": "always"},
            {"name": "child", "description": "d", "executionType": "ai-agent", "execution": {"agent": "other"},
             "parameters": {"type": "object"}},
            {"name": "nap", "description": "d", "executionType": "waiting", "execution": {"duration": "10s"}},
            {"name": "bell", "description": "d", "executionType": "waiting", "execution": {"signal": true}, "timeout": "60s"},
            {"name": "asked_nap", "description": "d", "executionType": "waiting", "approval": "always"},
            {"name": "after", "description": "d", "executionType": "basic", "prerequisites": ["client"], "execution": {"mode": "pass-through"}},
            {"name": "granted", "description": "d", "executionType": "basic", "permissions": ["net"], "execution": {"mode": "pass-through"}},
            {"name": "strict", "description": "d", "executionType": "basic", "execution": {"mode": "pass-through"},
             "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
        ],
    });
    let catalog = catalog(&["any"]);
    Arc::new(agent::parse(&"tester".parse().unwrap(), &config, &defaults(&catalog)).unwrap())
}

/// A run and the log it leaves.
pub struct Story {
    pub run: Run,
    pub log: Vec<Entry>,
    pub now: Time,
    agent: Arc<Agent>,
}

impl Story {
    pub fn begin(agent: &Arc<Agent>) -> Self {
        Self::begin_with(agent, |run, start| run.start(start, message(0), START))
    }

    /// A run that is one call, which no model writes.
    pub fn begin_call(agent: &Arc<Agent>, request: CallRequest) -> Self {
        Self::begin_with(agent, |run, start| run.start_call(start, request, START))
    }

    fn begin_with(agent: &Arc<Agent>, start_run: impl FnOnce(&mut Run, RunStart) -> Vec<Event>) -> Self {
        let id = RunId::new(Uuid::from_u128(5));
        let run = Run::new(id, agent.clone(), Arc::new(agent.tools.clone()));
        let mut story = Self {
            run,
            log: Vec::new(),
            now: START,
            agent: agent.clone(),
        };
        let start = RunStart {
            unknown_requester: false,
            offered_to: None,
            result_schema: None,
            categories: None,
            behind: None,
            budget: None,
            history: Vec::new(),
            agent: "tester".parse().unwrap(),
            revision: 1,
            model: agent.model.name.clone(),
            entity: None,
            parent: None,
            depth: 0,
            client_tools: Vec::new(),
            tools: Json::null(),
            tool_versions: BTreeMap::new(),
        };
        let events = start_run(&mut story.run, start);
        story.store(events);
        story.take(Arrival::Begin).unwrap();
        story
    }

    fn store(&mut self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let first = self
            .log
            .last()
            .map_or(Seq::durable(1), |entry| Seq(entry.last().0 + Seq::STRIDE));
        let space = SpaceId::new(Uuid::from_u128(6));
        let entry = Entry {
            space,
            run: Some(self.run.id()),
            first,
            time: self.now,
            events,
        };
        self.run.stored(&entry);
        self.log.push(entry);
    }

    /// Events that somebody else stored in the run's log.
    pub fn hear(&mut self, events: Vec<Event>) {
        self.store(events);
        self.run = self.replayed();
    }

    pub fn take(&mut self, mut arrival: Arrival) -> Result<Vec<Event>, Rejected> {
        if let Arrival::Reply(reply) = &mut arrival {
            reply.step = self.run.step();
        }
        if let Arrival::Broke { step, failures, .. } = &mut arrival {
            *step = self.run.step();
            if let Some(Due::Ask { failures: seen, .. }) = self.run.due().first() {
                *failures = *seen;
            }
        }
        let before = format!("{:?}", self.run);
        match self.run.take(arrival, self.now) {
            Ok(events) => {
                assert!(events.iter().all(Event::is_durable));
                self.store(events.clone());
                Ok(events)
            }
            Err(rejected) => {
                assert_eq!(
                    before,
                    format!("{:?}", self.run),
                    "a rejected arrival changes nothing: {rejected:?}"
                );
                Err(rejected)
            }
        }
    }

    pub fn replayed(&self) -> Run {
        // Through JSON, as a store keeps it.
        let log: Vec<Entry> = self
            .log
            .iter()
            .map(|entry| {
                let events = entry.events.iter().map(|event| {
                    let text = serde_json::to_string(event).unwrap();
                    Event::read(&serde_json::value::RawValue::from_string(text).unwrap()).unwrap()
                });
                Entry {
                    events: events.collect(),
                    ..entry.clone()
                }
            })
            .collect();
        Run::replay(
            self.run.id(),
            self.agent.clone(),
            Arc::new(self.agent.tools.clone()),
            &log,
        )
    }

    /// Whoever folds the log knows what the run knows, as far as it may: from the first entry or from a later one.
    pub fn check_readers(&self) {
        for reader in [&Decider::Backend, &member()] {
            let seen = RunState::of(&self.log, reader);
            assert_eq!(
                seen.status(),
                self.run.status(),
                "the log tells every change of status"
            );
            assert_eq!(seen.usage(), self.run.usage());
            assert_eq!(seen.calls().len(), self.run.calls().len());
            for (seen, known) in seen.calls().iter().zip(self.run.calls()) {
                let hidden = *reader != Decider::Backend && known.tool.placement != Placement::Client;
                assert_eq!(seen.is_settled(), known.is_settled());
                assert_eq!(seen.input.is_none(), hidden);
                if !hidden {
                    assert_eq!((&seen.input, &seen.state), (&known.input, &known.state));
                }
            }
            let middle = RunState::of(&self.log[self.log.len() / 2..], reader);
            for call in middle.calls() {
                let whole = seen.call(call.tool.call).unwrap();
                assert_eq!((&call.input, &call.state), (&whole.input, &whole.state));
            }
        }
    }

    pub fn settled(&self) -> HashMap<CallId, usize> {
        let mut settled = HashMap::new();
        for event in self.log.iter().flat_map(|entry| &entry.events) {
            let call = match event {
                Event::ToolOutputAvailable(e) => e.tool_call_id,
                Event::ToolOutputError(e) => e.tool_call_id,
                Event::ToolOutputDenied(e) => e.tool_call_id,
                _ => continue,
            };
            *settled.entry(call).or_insert(0) += 1;
        }
        settled
    }

    /// Answers whatever is due, and lets time pass when nothing is.
    pub fn play_to_the_end(&mut self) {
        const MOVES_MAX: usize = 200;
        for _ in 0..MOVES_MAX {
            if self.run.status().is_final() {
                return;
            }
            let output = |call: &Call| Arrival::Output {
                call: call.tool.call,
                leg: call.leg,
                outcome: Outcome::Output(Json::null()),
                log: None,
            };
            let next = self.run.due().first().map(|due| match due {
                Due::Ask { .. } => Arrival::Reply(words("done")),
                Due::Call(call) => output(call),
            });
            let next = next.or_else(|| self.run.delegated().next().map(|(call, _)| output(call)));
            match next {
                Some(arrival) => drop(self.take(arrival).unwrap()),
                None => {
                    self.now = self.run.wake_at().expect("a run that waits has a deadline");
                    assert!(
                        !self.take(Arrival::Tick).unwrap().is_empty(),
                        "a deadline changes something"
                    );
                }
            }
        }
        panic!("stuck: {:#?}", self.run);
    }
}

pub fn message(number: u128) -> Message {
    Message::new(
        MessageId::new(Uuid::from_u128(number)),
        None,
        vec![Part::Text { text: "hello".into() }],
    )
}

pub fn words(text: &str) -> Reply {
    let parts = vec![ReplyPart::Text {
        id: "1.0".into(),
        text: text.into(),
    }];
    Reply {
        step: 0,
        person_grants: Vec::new(),
        earlier: Vec::new(),
        consents: Vec::new(),
        parts,
        reason: FinishReason::Stop,
        usage: Usage {
            input_tokens: 3,
            output_tokens: 2,
            ..Usage::default()
        },
    }
}

pub fn asks_for(calls: &[(&str, &str)]) -> Reply {
    let part = |(name, arguments): &(&str, &str)| ReplyPart::Call {
        name: (*name).into(),
        arguments: (*arguments).into(),
        signature: None,
    };
    Reply {
        step: 0,
        person_grants: Vec::new(),
        earlier: Vec::new(),
        consents: Vec::new(),
        parts: calls.iter().map(part).collect(),
        reason: FinishReason::ToolCalls,
        usage: Usage::default(),
    }
}

/// A child run, or one of three tasks.
pub fn handle(number: u8) -> Handle {
    match number {
        0 => Handle::Run(RunId::new(Uuid::from_u128(9))),
        task => Handle::Task {
            source: "search".into(),
            task: task.to_string().into(),
        },
    }
}
