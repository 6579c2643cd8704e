//! What a reader knows of a run by its events.

use serde_json::json;
use toolgate_kernel::call::{CallState, ErrorCode, Outcome};
use toolgate_kernel::event::{
    Claim, EndReason, Entry, Event, FinishReason, Pause, RunFinish, RunStatus, Said, Seq, Status, StepFinish,
    StepRetry, StepStart, TextEnd, ToolApprovalRequest, ToolApprovalResponse, ToolExecuting,
    ToolInputAvailable, ToolOutputError, ToolRef, ToolReleased, Usage,
};
use toolgate_kernel::id::{ApprovalId, CallId, MessageId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::run::RunState;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{Decider, Placement};
use uuid::Uuid;

use crate::view::member;

fn run() -> RunId {
    RunId::new(Uuid::from_u128(7))
}

fn entry(events: Vec<Event>) -> Vec<Entry> {
    vec![Entry {
        space: SpaceId::new(Uuid::from_u128(8)),
        run: Some(run()),
        first: Seq::durable(1),
        time: Time(5),
        events,
    }]
}

fn tool(number: u32, name: &str, placement: Placement) -> ToolRef {
    ToolRef {
        call: CallId { run: run(), number },
        name: name.into(),
        placement,
        shown: false,
        offered_to: None,
        given_name: None,
    }
}

fn input() -> Option<Json> {
    Some(json!({"n": 1}).into())
}

fn approval(number: u32) -> ApprovalId {
    ApprovalId { run: run(), number }
}

fn said(number: u128) -> Event {
    let message = Message::new(
        MessageId::new(Uuid::from_u128(number)),
        None,
        vec![Part::Text { text: "hello".into() }],
    );
    Said { message }.into()
}

fn text(id: &str, text: &str) -> Event {
    let (id, text) = (id.into(), text.into());
    TextEnd { id, text }.into()
}

fn step_finish(step: u32, reason: FinishReason) -> Event {
    let usage = Usage {
        input_tokens: 3,
        output_tokens: 2,
        ..Usage::default()
    };
    StepFinish { step, reason, usage }.into()
}

#[test]
fn what_a_run_waits_for_is_told_by_its_calls() {
    let (ask, nap, guarded) = (
        tool(0, "ask", Placement::Client),
        tool(1, "nap", Placement::Server),
        tool(2, "guarded", Placement::Server),
    );
    let claim = Claim {
        holder: "tab".into(),
        until: Time(9),
        by: None,
    };
    let pause = Pause {
        until: Time(99),
        signal: true,
    };
    let log = entry(vec![
        StepStart { step: 1 }.into(),
        ToolInputAvailable::of(&ask, input(), Some(Time(50)), None, None, None).into(),
        ToolInputAvailable::of(&nap, input(), None, None, None, None).into(),
        ToolInputAvailable::of(&guarded, input(), None, None, None, None).into(),
        ToolApprovalRequest::of(&guarded, approval(2), input(), Time(70), None, None, None, None).into(),
        step_finish(1, FinishReason::ToolCalls),
        ToolExecuting::of(&nap, None, None, Some(pause), None, None).into(),
        ToolExecuting::of(&ask, Some(claim.clone()), None, None, None, None).into(),
        RunStatus {
            status: Status::WaitingApproval,
        }
        .into(),
    ]);
    let open = CallState::Open {
        deadline: Time(50),
        claim: Some(claim),
    };
    let asked = CallState::AwaitsApproval {
        approval: approval(2),
        expires_at: Time(70),
    };
    let state = RunState::of(&log, &Decider::Backend);
    let pending: Vec<_> = state
        .pending()
        .map(|call| (&call.state, call.input.is_some()))
        .collect();
    assert_eq!(
        pending,
        [(&open, true), (&CallState::Paused(pause), true), (&asked, true)]
    );

    let state = RunState::of(&log, &member());
    let pending: Vec<_> = state
        .pending()
        .map(|call| (&call.state, call.input.is_some()))
        .collect();
    let executing = CallState::Executing;
    assert_eq!(pending, [(&open, true), (&executing, false), (&asked, false)]);
    assert_eq!(
        state.status(),
        Status::WaitingApproval,
        "the log says it, not the calls"
    );
}

#[test]
fn a_call_that_was_allowed_is_offered_with_the_input_that_was_allowed() {
    let tool = tool(0, "guarded_ask", Placement::Client);
    let edited: Json = json!({"n": 2}).into();
    let mut events = vec![
        ToolInputAvailable::of(&tool, input(), None, None, None, None).into(),
        ToolApprovalRequest::of(&tool, approval(0), input(), Time(70), None, None, None, None).into(),
        ToolApprovalResponse::of(
            &tool,
            approval(0),
            true,
            None,
            Some(edited.clone()),
            None,
            false,
            Some(Time(80)),
            None,
            None,
            false,
        )
        .into(),
        ToolReleased::of(&tool).into(),
    ];
    let state = RunState::of(&entry(events.clone()), &member());
    let call = state.call(tool.call).unwrap();
    assert_eq!(call.input, Some(edited));
    let open = CallState::Open {
        deadline: Time(80),
        claim: None,
    };
    assert_eq!(call.state, open);
    let decision = state.decision(approval(0)).unwrap();
    assert_eq!((decision.seq, decision.answered), (Seq::durable(3), true));

    let timeout = Outcome::error(ErrorCode::Timeout, "late");
    events.push(ToolOutputError::of(&tool, Some(ErrorCode::Timeout), Some("late".into()), None).into());
    let state = RunState::of(&entry(events), &member());
    assert_eq!(state.pending().count(), 0);
    let CallState::Settled(settled) = &state.call(tool.call).unwrap().state else {
        panic!("settled");
    };
    assert_eq!((&settled.outcome, settled.seq), (&timeout, Seq::durable(5)));
}

#[test]
fn the_answer_is_the_text_of_the_last_step_and_the_last_text_outlives_it() {
    let mut events = vec![
        said(1),
        StepStart { step: 1 }.into(),
        text("1.0", "let me"),
        text("1.1", " see"),
        step_finish(1, FinishReason::ToolCalls),
    ];
    let state = RunState::of(&entry(events.clone()), &Decider::Backend);
    assert_eq!(
        (state.answer().as_str(), state.text()),
        ("let me see", Some(" see"))
    );
    assert_eq!(state.finish_reason(), Some(FinishReason::ToolCalls));
    assert!(state.end().is_none());

    let usage = Usage {
        input_tokens: 6,
        output_tokens: 4,
        ..Usage::default()
    };
    let end = RunFinish {
        status: Status::Failed,
        reason: EndReason::Limit,
        usage,
        error: Some("too much".into()),
    };
    events.extend([
        StepStart { step: 2 }.into(),
        step_finish(2, FinishReason::Stop),
        end.into(),
    ]);
    let state = RunState::of(&entry(events.clone()), &member());
    assert_eq!((state.answer().as_str(), state.text()), ("", Some(" see")));
    assert_eq!((state.status(), state.usage()), (Status::Failed, usage));
    let end = state.end().unwrap();
    assert_eq!(
        (end.reason, &end.error),
        (EndReason::Limit, &None),
        "words are for backends"
    );
    let state = RunState::of(&entry(events), &Decider::Backend);
    assert_eq!(state.end().unwrap().error.as_deref(), Some("too much"));
}

#[test]
fn a_message_knows_its_place_and_whether_a_reply_ended_after_it() {
    let retry = StepRetry {
        step: 2,
        attempt: 0,
        error: None,
        not_before: Time(0),
    };
    let mut events = vec![
        said(1),
        StepStart { step: 1 }.into(),
        step_finish(1, FinishReason::Stop),
        said(2),
        StepStart { step: 2 }.into(),
    ];
    let state = RunState::of(&entry(events.clone()), &member());
    let [first, second] = state.messages() else {
        panic!("two messages");
    };
    assert_eq!((first.seq, second.seq), (Seq::durable(1), Seq::durable(4)));
    assert!(state.has_replied_since(first) && !state.has_replied_since(second));

    events.push(retry.into());
    let state = RunState::of(&entry(events), &member());
    assert!(
        state.has_replied_since(&state.messages()[1]),
        "what was streamed is void"
    );
}
