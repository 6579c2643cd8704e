//! The run machine: one outcome per call whatever the order of arrivals, never a stuck run, and a log that
//! rebuilds the state.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use toolgate_kernel::agent::{self, Agent};
use toolgate_kernel::call::{Call, CallState, ErrorCode, Handle, Outcome};
use toolgate_kernel::event::{
    CallRequest, ChildStatus, Claim, Entry, Event, FinishReason, RunStart, Seq, Status, Usage,
};
use toolgate_kernel::id::{ApprovalId, CallId, EntityId, MessageId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::run::{Arrival, Due, Rejected, Reply, ReplyPart, Run, RunState, Verdict};
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

    fn settled(&self) -> HashMap<CallId, usize> {
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
    fn play_to_the_end(&mut self) {
        const MOVES_MAX: usize = 200;
        for _ in 0..MOVES_MAX {
            if self.run.status().is_final() {
                return;
            }
            let output = |call: &Call| Arrival::Output {
                call: call.tool.call,
                outcome: Outcome::Output(Json::null()),
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

fn message(number: u128) -> Message {
    Message::new(
        MessageId::new(Uuid::from_u128(number)),
        None,
        vec![Part::Text { text: "hello".into() }],
    )
}

fn words(text: &str) -> Reply {
    let parts = vec![ReplyPart::Text {
        id: "1.0".into(),
        text: text.into(),
    }];
    Reply {
        step: 0,
        person_grants: Vec::new(),
        earlier: Vec::new(),
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
        parts: calls.iter().map(part).collect(),
        reason: FinishReason::ToolCalls,
        usage: Usage::default(),
    }
}

fn codes(events: &[Event]) -> Vec<ErrorCode> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::ToolOutputError(e) => e.code,
            _ => None,
        })
        .collect()
}

#[test]
fn the_pipeline_refuses_in_its_order() {
    let mut story = Story::begin(&test_agent());
    let reply = asks_for(&[
        ("nothing", "{}"),
        ("strict", "{}"),
        ("strict", "{broken"),
        ("after", "{}"),
        ("granted", "{}"),
        ("strict", r#"{"n":1}"#),
        ("strict", r#"{"n":1}"#),
    ]);
    let events = story.take(Arrival::Reply(reply)).unwrap();
    use ErrorCode::*;
    let expected = [
        NotFound,
        ValidationFailed,
        ValidationFailed,
        PrerequisitesNotMet,
        PermissionDenied,
        LimitExceeded,
    ];
    assert_eq!(codes(&events), expected);
    assert!(matches!(story.run.due()[..], [Due::Call(_)]));
}

#[test]
fn a_reply_that_only_fails_is_told_to_the_model_at_once() {
    let mut story = Story::begin(&test_agent());
    let events = story
        .take(Arrival::Reply(asks_for(&[("nothing", "{}")])))
        .unwrap();
    assert!(
        matches!(events.last(), Some(Event::StepStart(e)) if e.step == 2),
        "{events:?}"
    );
}

#[test]
fn steps_end_at_the_limit_and_a_new_message_gives_new_ones() {
    let mut story = Story::begin(&test_agent());
    for _ in 0..3 {
        story
            .take(Arrival::Reply(asks_for(&[("nothing", "{}")])))
            .unwrap();
    }
    story.take(Arrival::Message(message(1))).unwrap();
    story
        .take(Arrival::Reply(asks_for(&[("nothing", "{}")])))
        .unwrap();
    assert_eq!(story.run.status(), Status::Running);
    for _ in 0..4 {
        story
            .take(Arrival::Reply(asks_for(&[("nothing", "{}")])))
            .unwrap();
    }
    assert_eq!(story.run.status(), Status::Completed);
}

#[test]
fn a_run_works_for_nobody_once_a_message_has_no_sender() {
    let mut story = Story::begin(&test_agent());
    let ada = EntityId::new(Uuid::from_u128(7));
    let signed = Message {
        from: Some(ada),
        sender: None,
        ..message(1)
    };
    let next = |story: &mut Story| {
        let reply = Arrival::Reply(asks_for(&[("nothing", "{}")]));
        story.take(reply).unwrap();
    };
    story.take(Arrival::Message(signed)).unwrap();
    assert_eq!(
        story.run.speaker(),
        None,
        "the model writes for whoever spoke before"
    );
    next(&mut story);
    assert_eq!(story.run.speaker(), Some(ada));
    // A plan's message that joins the run must not be carried out with the grants of whoever spoke before, and hers not
    // with those of whoever speaks after her.
    story.take(Arrival::Message(message(2))).unwrap();
    assert_eq!(story.run.speaker(), Some(ada));
    next(&mut story);
    assert_eq!(story.run.speaker(), None);
}

#[test]
fn a_step_that_breaks_is_tried_again_and_then_given_up() {
    let mut story = Story::begin(&test_agent());
    let broke = || Arrival::Broke {
        step: 0,
        failures: 0,
        error: "cut".into(),
        retryable: true,
        retry_after: None,
    };
    for _ in 0..2 {
        story.take(broke()).unwrap();
        assert_eq!(story.run.status(), Status::Running);
    }
    story.take(broke()).unwrap();
    assert_eq!(story.run.status(), Status::Failed);
}

#[test]
fn a_reply_that_was_taken_is_not_taken_for_the_next_step() {
    let mut story = Story::begin(&test_agent());
    let first = Reply {
        step: 1,
        ..asks_for(&[("nothing", "{}")])
    };
    story.run.take(Arrival::Reply(first.clone()), START).unwrap();
    assert_eq!(story.run.step(), 2);
    assert_eq!(
        story.run.take(Arrival::Reply(first), START),
        Err(Rejected::OutOfTurn)
    );
}

#[test]
fn of_a_tool_on_the_gateways_side_a_client_learns_nothing() {
    let mut story = Story::begin(&test_agent());
    story
        .take(Arrival::Reply(asks_for(&[("server", "{}"), ("client", "{}")])))
        .unwrap();
    let call = story.run.calls()[0].tool.call;
    let outcome = Outcome::error(ErrorCode::ExecutionFailed, "inner words");
    story
        .take(Arrival::Output {
            call,
            outcome: outcome.clone(),
        })
        .unwrap();
    let claim = Claim {
        holder: "h".into(),
        until: START,
        by: None,
    };
    let arrivals = [
        Arrival::Claim { call, claim },
        Arrival::Release {
            call,
            holder: "h".into(),
            by: None,
        },
        Arrival::Result { call, outcome },
    ];
    for arrival in arrivals {
        assert_eq!(story.take(arrival), Err(Rejected::NotAClientCall));
    }
    let approval = ApprovalId {
        run: call.run,
        number: call.number,
    };
    let decide = Arrival::Decide {
        approval,
        verdict: Verdict::Deny(None),
        by: Box::new(Decider::Backend),
    };
    assert_eq!(story.take(decide), Err(Rejected::Unknown));
}

#[test]
fn crashes_do_not_use_up_the_attempts_of_a_step() {
    let mut story = Story::begin(&test_agent());
    for _ in 0..20 {
        story.take(Arrival::Recovered).unwrap();
    }
    assert_eq!(story.run.status(), Status::Running);
}

#[derive(Debug, Clone)]
enum Move {
    Reply(Vec<(u8, bool)>),
    Words,
    Broke(bool),
    Started(u8),
    Delegated(u8, u8),
    Output(u8, bool),
    Result(u8, u8),
    Claim(u8, u8),
    Release(u8, u8),
    Decide(u8, u8),
    Wait(u16),
    Tick,
    Cancel,
    Recovered,
    Message(u8),
    Signal(u8),
}

#[test]
fn a_pause_lasts_until_its_moment_or_its_signal() {
    let mut story = Story::begin(&test_agent());
    story
        .take(Arrival::Reply(asks_for(&[("nap", "{}"), ("bell", "{}")])))
        .unwrap();
    assert_eq!(story.run.status(), Status::WaitingTime);
    assert!(story.run.due().is_empty(), "it costs nothing while it waits");
    assert_eq!(story.run.wake_at(), Some(START.after(Duration::from_secs(10))));
    let bell = CallId {
        run: story.run.id(),
        number: 1,
    };
    let ring = |value: &str| Arrival::Signal {
        call: bell,
        value: Json::from(json!(value)),
    };
    story.take(ring("now")).unwrap();
    assert_eq!(story.take(ring("now")), Err(Rejected::Repeated));
    assert_eq!(story.take(ring("again")), Err(Rejected::Different));
    let nap = CallId {
        run: story.run.id(),
        number: 0,
    };
    let rung = Arrival::Signal {
        call: nap,
        value: Json::null(),
    };
    assert_eq!(
        story.take(rung),
        Err(Rejected::Unknown),
        "it waits for its moment alone"
    );
    story.now = START.after(Duration::from_secs(10));
    story.take(Arrival::Tick).unwrap();
    assert_eq!(story.run.status(), Status::Running, "the next step");
}

/// A child run, or one of three tasks.
fn handle(number: u8) -> Handle {
    match number {
        0 => Handle::Run(RunId::new(Uuid::from_u128(9))),
        task => Handle::Task {
            source: "search".into(),
            task: task.to_string().into(),
        },
    }
}

#[test]
fn a_delegated_call_is_not_due_and_ends_by_its_output_or_its_timeout() {
    for to in [0, 1] {
        let mut story = Story::begin(&test_agent());
        story
            .take(Arrival::Reply(asks_for(&[("child", "{}"), ("child", "{}")])))
            .unwrap();
        let calls = [0, 1].map(|number| CallId {
            run: story.run.id(),
            number,
        });
        for call in calls {
            let delegated = Arrival::Delegated {
                call,
                handle: handle(to),
                check_at: None,
                child: None,
            };
            let told = story.take(delegated.clone()).unwrap();
            let Event::ToolExecuting(told) = &told[0] else {
                panic!("{told:?}")
            };
            assert_eq!((told.child.is_some(), told.task.is_some()), (to == 0, to == 1));
            assert_eq!(story.run.status(), Status::Running, "users see that it goes on");
        }
        assert!(story.run.due().is_empty(), "it costs nothing while it waits");
        assert_eq!(story.run.delegated().count(), 2);
        story.take(Arrival::Recovered).unwrap();
        assert_eq!(story.run.delegated().count(), 2, "a crash does not interrupt it");
        let timeout = story.run.calls()[0].definition.as_ref().unwrap().timeout;
        assert_eq!(story.run.wake_at(), Some(START.after(timeout)));
        let output = Arrival::Output {
            call: calls[0],
            outcome: Outcome::Output(Json::null()),
        };
        story.take(output).unwrap();
        story.now = START.after(timeout);
        story.take(Arrival::Tick).unwrap();
        let CallState::Settled(settled) = &story.run.calls()[1].state else {
            panic!("{:?}", story.run)
        };
        assert!(matches!(
            settled.outcome,
            Outcome::Error {
                code: ErrorCode::Timeout,
                ..
            }
        ));
        assert!(matches!(story.run.due()[..], [Due::Ask { .. }]));
    }
}

#[test]
fn a_task_may_be_asked_after_many_times_within_the_timeout_of_its_call() {
    let mut story = Story::begin(&test_agent());
    story.take(Arrival::Reply(asks_for(&[("server", "{}")]))).unwrap();
    let call = CallId {
        run: story.run.id(),
        number: 0,
    };
    let timeout = story.run.calls()[0].definition.as_ref().unwrap().timeout;
    let ask = |to, check_at| Arrival::Delegated {
        call,
        handle: handle(to),
        check_at: Some(check_at),
        child: None,
    };
    let poll = Duration::from_secs(1);
    story.take(ask(1, START.after(poll))).unwrap();
    assert_eq!(story.run.wake_at(), Some(START.after(poll)));
    story.now = START.after(poll);
    assert_eq!(
        story.take(Arrival::Tick),
        Ok(Vec::new()),
        "whoever drives it asks"
    );
    story.take(ask(1, START.after(timeout * 2))).unwrap();
    assert_eq!(
        story.run.wake_at(),
        Some(START.after(timeout)),
        "asking after it does not put the end off"
    );
    assert_eq!(story.take(ask(2, START.after(poll))), Err(Rejected::OutOfTurn));
    story.now = START.after(timeout);
    story.take(Arrival::Tick).unwrap();
    assert!(matches!(story.run.calls()[0].state, CallState::Settled(_)));
}

#[test]
fn the_time_in_which_a_child_run_waits_for_people_is_not_its_calls_time() {
    let mut story = Story::begin(&test_agent());
    story.take(Arrival::Reply(asks_for(&[("child", "{}")]))).unwrap();
    let call = story.run.calls()[0].tool.call;
    let timeout = story.run.calls()[0].definition.as_ref().unwrap().timeout;
    let stands = |child| Arrival::Delegated {
        call,
        handle: handle(0),
        check_at: None,
        child,
    };
    let at = |status, seq| {
        Some(ChildStatus {
            status,
            seq: Seq(seq),
        })
    };
    story.take(stands(None)).unwrap();
    let worked = timeout / 4;
    story.now = START.after(worked);
    story.take(stands(at(Status::WaitingTool, 1))).unwrap();
    assert_eq!(story.run.status(), Status::WaitingTool);
    assert_eq!(story.run.wake_at(), None, "people have deadlines of their own");
    story.now = START.after(timeout * 3);
    assert_eq!(story.take(Arrival::Tick), Ok(Vec::new()));
    let told = story.take(stands(at(Status::WaitingApproval, 2))).unwrap();
    assert!(
        matches!(&told[..], [Event::ToolExecuting(_), Event::RunStatus(e)] if e.status == Status::WaitingApproval),
        "{told:?}"
    );
    let told = story.take(stands(at(Status::WaitingApproval, 3))).unwrap();
    assert_eq!(told.len(), 2, "the next question is told as well: {told:?}");
    story.now = START.after(timeout * 5);
    story.take(stands(at(Status::Running, 4))).unwrap();
    assert_eq!(story.run.status(), Status::Running);
    assert_eq!(story.run.wake_at(), Some(story.now.after(timeout - worked)));
}

const NAMES: [&str; 12] = [
    "nap",
    "bell",
    "asked_nap",
    "server",
    "safe",
    "client",
    "asked",
    "asked_client",
    "child",
    "after",
    "strict",
    "nothing",
];

impl Move {
    fn arrival(&self, story: &Story) -> Option<Arrival> {
        let id = |number: &u8| CallId {
            run: story.run.id(),
            number: u32::from(*number),
        };
        Some(match self {
            Self::Reply(calls) => {
                let calls: Vec<(&str, &str)> = calls
                    .iter()
                    .map(|(name, good)| {
                        (
                            NAMES[*name as usize % NAMES.len()],
                            if *good { r#"{"n":1}"# } else { "{x" },
                        )
                    })
                    .collect();
                Arrival::Reply(asks_for(&calls))
            }
            Self::Words => Arrival::Reply(words("hi")),
            Self::Broke(retryable) => Arrival::Broke {
                step: 0,
                failures: 0,
                error: "cut".into(),
                retryable: *retryable,
                retry_after: None,
            },
            Self::Started(call) => Arrival::Started { call: id(call) },
            Self::Delegated(call, to) => Arrival::Delegated {
                call: id(call),
                handle: handle(*to),
                check_at: (to % 3 > 0).then(|| story.now.after(Duration::from_secs(u64::from(*to)))),
                // A child run that asks, that moves on, or that begins.
                child: match to % 4 {
                    0 => None,
                    kind => Some(ChildStatus {
                        status: [Status::Running, Status::WaitingTool, Status::WaitingApproval]
                            [usize::from(kind) - 1],
                        seq: Seq(u64::from(*to)),
                    }),
                },
            },
            Self::Output(call, true) => Arrival::Output {
                call: id(call),
                outcome: Outcome::Output(Json::from(json!({"ok": 1}))),
            },
            Self::Output(call, false) => Arrival::Output {
                call: id(call),
                outcome: Outcome::error(ErrorCode::ExecutionFailed, "no"),
            },
            Self::Result(call, value) => Arrival::Result {
                call: id(call),
                outcome: Outcome::Output(Json::from(json!(value % 2))),
            },
            Self::Claim(call, holder) => {
                let until = story.now.after(Duration::from_secs(10));
                Arrival::Claim {
                    call: id(call),
                    claim: Claim {
                        holder: format!("h{}", holder % 2),
                        until,
                        by: None,
                    },
                }
            }
            Self::Release(call, holder) => Arrival::Release {
                call: id(call),
                holder: format!("h{}", holder % 2),
                by: None,
            },
            Self::Decide(call, how) => {
                let approval = ApprovalId {
                    run: story.run.id(),
                    number: u32::from(*call),
                };
                let verdict = match how % 4 {
                    0 => Verdict::Approve(None),
                    1 => Verdict::Approve(Some(Json::from(json!({"n": 2})))),
                    2 => Verdict::Approve(Some(Json::from(json!("not an object")))),
                    _ => Verdict::Deny(Some("no".into())),
                };
                Arrival::Decide {
                    approval,
                    verdict,
                    by: Box::new(Decider::Backend),
                }
            }
            Self::Signal(call) => Arrival::Signal {
                call: id(call),
                value: Json::from(json!("ring")),
            },
            Self::Wait(_) => return None,
            Self::Tick => Arrival::Tick,
            Self::Cancel => Arrival::Cancel,
            Self::Recovered => Arrival::Recovered,
            Self::Message(number) => Arrival::Message(message(u128::from(*number))),
        })
    }
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let call = 0u8..10;
    let one = prop_oneof![
        6 => prop::collection::vec((any::<u8>(), prop::bool::weighted(0.9)), 1..6).prop_map(Move::Reply),
        1 => Just(Move::Words),
        1 => any::<bool>().prop_map(Move::Broke),
        3 => call.clone().prop_map(Move::Started),
        3 => (call.clone(), 0u8..4).prop_map(|(c, to)| Move::Delegated(c, to)),
        4 => (call.clone(), any::<bool>()).prop_map(|(c, ok)| Move::Output(c, ok)),
        4 => (call.clone(), any::<u8>()).prop_map(|(c, v)| Move::Result(c, v)),
        2 => (call.clone(), any::<u8>()).prop_map(|(c, h)| Move::Claim(c, h)),
        1 => (call.clone(), any::<u8>()).prop_map(|(c, h)| Move::Release(c, h)),
        2 => call.clone().prop_map(Move::Signal),
        3 => (call, any::<u8>()).prop_map(|(c, h)| Move::Decide(c, h)),
        2 => any::<u16>().prop_map(Move::Wait),
        2 => Just(Move::Tick),
        1 => prop::bool::weighted(0.2).prop_map(|yes| if yes { Move::Cancel } else { Move::Tick }),
        1 => Just(Move::Recovered),
        2 => any::<u8>().prop_map(Move::Message),
    ];
    prop::collection::vec(one, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_arrivals_gives_one_outcome_per_call_and_never_a_stuck_run(moves in moves()) {
        let agent = test_agent_once();
        let mut story = Story::begin(&agent);
        for one in &moves {
            if let Move::Wait(seconds) = one {
                story.now = story.now.after(Duration::from_secs(u64::from(*seconds)));
            }
            if let Some(arrival) = one.arrival(&story) {
                // Rejected or not: `take` has checked that a rejection leaves no trace.
                let _ = story.take(arrival);
            }
            prop_assert_eq!(format!("{:?}", story.replayed()), format!("{:?}", story.run));
            story.check_readers();
        }
        story.play_to_the_end();
        prop_assert_eq!(format!("{:?}", story.replayed()), format!("{:?}", story.run));
        let settled = story.settled();
        for call in story.run.calls() {
            prop_assert!(matches!(call.state, CallState::Settled(_)));
            prop_assert_eq!(settled.get(&call.tool.call), Some(&1), "{:?} settles once", call.tool.call);
        }
        let ends = story.log.iter().flat_map(|e| &e.events).filter(|e| matches!(e, Event::RunFinish(_))).count();
        prop_assert_eq!(ends, 1);
    }
}

fn test_agent_once() -> Arc<Agent> {
    static AGENT: std::sync::OnceLock<Arc<Agent>> = std::sync::OnceLock::new();
    AGENT.get_or_init(test_agent).clone()
}

/// The names are those of the configuration.
#[test]
fn every_name_but_the_last_is_a_tool() {
    let agent = test_agent();
    let known: Vec<bool> = NAMES.iter().map(|name| agent.tools.contains_key(*name)).collect();
    assert_eq!(known.iter().filter(|known| !**known).count(), 1);
}
