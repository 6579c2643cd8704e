//! The one redaction: not a byte of what a tool on the gateway's side read or wrote reaches a public principal.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::event::{
    Claim, Event, RemoteTask, ToolApprovalRequest, ToolApprovalResponse, ToolExecuting, ToolInputAvailable,
    ToolInputDelta, ToolInputStart, ToolOutputAvailable, ToolOutputDenied, ToolOutputError, ToolProgress,
    ToolRef, ToolReleased,
};
use toolgate_kernel::id::{ApprovalId, CallId, EntityId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{Decider, Placement};
use toolgate_kernel::view::view;
use uuid::Uuid;

/// Stands in everything that must not be seen.
const MARK: &str = "MARKED-BYTES";

fn tool(placement: Placement, shown: bool) -> ToolRef {
    let call = CallId {
        run: RunId::new(Uuid::from_u128(1)),
        number: 0,
    };
    ToolRef {
        call,
        name: "secretive".into(),
        placement,
        shown,
        offered_to: None,
        given_name: None,
    }
}

/// Every event of a tool, full of marked bytes.
fn events(tool: &ToolRef, mark: &str) -> Vec<Event> {
    let value = || Some(Json::from(json!({ "deep": [{ mark: mark }] })));
    let text = || Some(format!("says {mark}"));
    let approval = ApprovalId {
        run: tool.call.run,
        number: 0,
    };
    vec![
        ToolInputStart::of(tool).into(),
        ToolInputDelta::of(tool, mark.into()).into(),
        ToolInputAvailable::of(tool, value(), None, text(), None, None).into(),
        ToolApprovalRequest::of(tool, approval, value(), Time(0), None, None, None, None).into(),
        ToolApprovalResponse::of(
            tool,
            approval,
            true,
            text(),
            value(),
            None,
            false,
            None,
            None,
            text(),
            false,
        )
        .into(),
        ToolExecuting::of(
            tool,
            Some(Claim {
                holder: mark.into(),
                until: Time(0),
                by: None,
            }),
            None,
            None,
            None,
            None,
        )
        .into(),
        ToolReleased::of(tool).into(),
        ToolProgress::of(tool, value()).into(),
        ToolOutputAvailable::of(tool, value(), text(), text(), None).into(),
        ToolOutputError::of(tool, Some(ErrorCode::ExecutionFailed), text(), text()).into(),
        ToolOutputDenied::of(tool, text()).into(),
    ]
}

/// A member of the space without roles or groups.
pub fn member() -> Decider {
    Decider::Member {
        entity: EntityId::new(Uuid::nil()),
        roles: Vec::new(),
        token_roles: Arc::default(),
        groups: Arc::default(),
    }
}

fn seen(event: &Event, reader: &Decider) -> String {
    view(event, reader)
        .map(|event| serde_json::to_string(&*event).unwrap())
        .unwrap_or_default()
}

#[test]
fn a_public_principal_sees_the_name_and_nothing_else_of_a_tool_on_the_gateways_side() {
    for placement in [Placement::Server, Placement::Plugin, Placement::Mcp] {
        for event in events(&tool(placement, false), MARK) {
            let public = seen(&event, &member());
            assert!(!public.contains(MARK), "{public}");
            assert!(!public.contains("EXECUTION_FAILED"), "{public}");
            assert_eq!(
                seen(&event, &Decider::Backend),
                serde_json::to_string(&event).unwrap()
            );
        }
    }
}

#[test]
fn client_tools_and_tools_that_opted_in_are_seen_by_members() {
    for tool in [tool(Placement::Client, false), tool(Placement::Server, true)] {
        for event in events(&tool, MARK) {
            let full = serde_json::to_string(&event).unwrap();
            if full.contains(MARK) {
                assert!(seen(&event, &member()).contains(MARK), "{full}");
            }
        }
    }
}

#[test]
fn how_a_source_names_its_tasks_is_for_secret_principals_alone() {
    let task = RemoteTask {
        source: "search".into(),
        task: MARK.into(),
        check_at: None,
    };
    for tool in [tool(Placement::Mcp, false), tool(Placement::Mcp, true)] {
        let event: Event = ToolExecuting::of(&tool, None, None, None, Some(task.clone()), None).into();
        assert!(!seen(&event, &member()).contains("search"));
        assert!(!seen(&event, &member()).contains(MARK));
        assert!(seen(&event, &Decider::Backend).contains(MARK));
    }
}

proptest! {
    #[test]
    fn no_marked_byte_reaches_a_public_principal(mark in "[a-z0-9]{12}", placement in 0..3usize) {
        let placement = [Placement::Server, Placement::Plugin, Placement::Mcp][placement];
        for event in events(&tool(placement, false), &mark) {
            prop_assert!(!seen(&event, &member()).contains(&mark));
        }
    }
}

#[test]
fn who_may_decide_is_shown_the_input_less_what_the_tool_hides() {
    let tool = tool(Placement::Server, false);
    let approval = ApprovalId {
        run: tool.call.run,
        number: 0,
    };
    let asked = |terms: serde_json::Value| -> Event {
        let input = json!({ "to": "shown", "iban": MARK }).into();
        let terms = serde_json::from_value(terms).unwrap();
        ToolApprovalRequest::of(&tool, approval, Some(input), Time(0), terms, None, None, None).into()
    };
    let consent = seen(&asked(json!({ "hide": ["/iban"] })), &member());
    assert!(consent.contains("shown") && !consent.contains(MARK), "{consent}");
    for others_decide in [
        json!({ "approvers": "backend" }),
        json!({ "approvers": { "roles": ["chief"] } }),
        json!({ "notRequester": true }),
        // Asked before there were terms.
        json!(null),
    ] {
        let hidden = seen(&asked(others_decide), &member());
        assert!(!hidden.contains("shown") && !hidden.contains(MARK), "{hidden}");
    }
}
