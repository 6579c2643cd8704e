//! Which call a question belongs to, of a server of the older protocol on standard input and output.

use serde_json::{Value, json};
use toolgate_engine::store::EntityRecord;
use toolgate_engine::tools::{CallContext, CallFailure, Called};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::id::EntityId;
use toolgate_kernel::time::Time;
use uuid::Uuid;

use crate::world::{Fixture, World, settings, tool};

/// A world whose server has a call under way in the space 7 that never ends, and runs `input` of `ask` in `space`.
async fn asked_beside(space: u128, input: Value) -> Called {
    let fixture = Fixture::new("legacy", &[tool("ask"), tool("slow")]);
    let world = World::with(&fixture).await;
    let (slow, ask) = (
        world.pinned("mcp_fix_slow").await,
        world.pinned("mcp_fix_ask").await,
    );
    let (other, own) = (world.context_in(7, 1), world.context_in(space, 2));
    let beside = world.call_in(&slow, json!({}), &other);
    let asks = async {
        fixture.wrote("called-slow").await;
        world.call_in(&ask, input, &own).await
    };
    tokio::select! {
        never = beside => panic!("{never:?}"),
        asked = asks => asked.unwrap(),
    }
}

#[tokio::test]
async fn a_question_of_unknown_origin_is_cancelled_and_the_model_is_told() {
    for space in [7, 8] {
        let Called::Output(output) = asked_beside(space, json!({})).await else {
            panic!("nobody is asked");
        };
        let output = output.to_value();
        assert_eq!(output[0], "nobody: cancel");
        let told = output[1].as_str().unwrap();
        assert!(
            told.contains("several calls") && told.contains("\"calls\": 1"),
            "{told}"
        );
    }
}

#[tokio::test]
async fn a_question_that_names_its_call_is_asked_beside_other_calls() {
    let Called::Delegated(asks) = asked_beside(8, json!({"named": true})).await else {
        panic!("it asks");
    };
    assert_eq!(asks.questions[0].message, "Who are you?");
}

#[tokio::test]
async fn calls_of_one_space_ask_side_by_side_and_those_of_another_do_not() {
    let fixture = Fixture::new("legacy", &[tool("ask")]);
    let world = World::with(&fixture).await;
    let ask = world.pinned("mcp_fix_ask").await;
    for number in [1, 2] {
        let asked = world.call_in(&ask, json!({}), &world.context_in(7, number)).await;
        assert!(matches!(asked, Ok(Called::Delegated(_))), "{asked:?}");
    }
    let other = world.call_in(&ask, json!({}), &world.context_in(8, 3)).await;
    assert!(
        matches!(other, Ok(Called::Output(_))),
        "the question is not for this space: {other:?}"
    );
}

#[tokio::test]
async fn one_user_takes_a_share_of_the_calls_that_wait_for_people() {
    let fixture = Fixture::new("legacy", &[tool("ask")]);
    let world = World::new(settings());
    world.put("fix", &fixture.config()).await;
    world.ready("fix").await;
    let ask = world.pinned("mcp_fix_ask").await;
    let call = |user: u128, number: u32| {
        let context = of_user(&world, user, number);
        let (world, ask) = (&world, &ask);
        async move { world.call_in(ask, json!({}), &context).await }
    };
    for number in 0..64 {
        assert!(
            matches!(call(1, number).await, Ok(Called::Delegated(_))),
            "{number}"
        );
    }
    let refused: Result<Called, CallFailure> = call(1, 64).await;
    assert_eq!(refused.unwrap_err().code, ErrorCode::LimitExceeded);
    assert!(
        matches!(call(2, 65).await, Ok(Called::Delegated(_))),
        "others have room"
    );
}

fn of_user(world: &World, user: u128, number: u32) -> CallContext {
    let profile = EntityRecord {
        id: EntityId::new(Uuid::from_u128(user)),
        project: world.project,
        subject: user.to_string(),
        kind: "person".into(),
        name: None,
        metadata: None,
        grants: Vec::new(),
        created: Time(0),
    };
    CallContext {
        profile: Some(profile),
        ..world.context_in(7, number)
    }
}
