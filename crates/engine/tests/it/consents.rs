//! Yeses that are remembered: which later calls they stand for, and what ends them.

mod room;

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_bus::InProcessBus;
use toolgate_engine::ScheduledMessage;
use toolgate_engine::consents::{ConsentRecord, Giver};
use toolgate_engine::intake::{Decision, Posted, Submission, UnderWay};
use toolgate_engine::record_index::put;
use toolgate_engine::records::{Amendment, Change, Owner, RecordSet, Records};
use toolgate_engine::store::{MemberRecord, SpaceRecord, Store};
use toolgate_kernel::event::{Event, Status, ToolInputAvailable};
use toolgate_kernel::id::{ApprovalId, EntityId, NodeId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Decider;
use toolgate_store::MemoryStore;
use uuid::Uuid;

use crate::meanwhile::MeanwhileRecords;
use crate::world::{Setup, World, project};

const ADA: u128 = 0xada;
const BOB: u128 = 0xb0b;

fn person(number: u128) -> EntityId {
    EntityId::new(Uuid::from_u128(number))
}

fn member(number: u128) -> Decider {
    Decider::Member {
        entity: person(number),
        roles: Vec::new(),
        token_roles: Arc::default(),
        groups: Arc::default(),
    }
}

/// An agent whose tools ask for consent: one of the gateway's, one of a client's.
fn agent(approval: Value, description: &str) -> Value {
    json!({"model": {"provider": "demo"}, "tools": [
        {"name": "sheet", "description": description, "executionType": "basic", "execution": {"mode": "pass-through"},
         "approval": approval},
        {"name": "board", "description": description, "executionType": "basic", "approval": approval},
    ]})
}

fn setup(approval: Value) -> Setup {
    Setup {
        agent: agent(approval, "for tests"),
        ..Setup::default()
    }
}

/// A space with Ada and Bob in it.
async fn space(world: &World) -> SpaceId {
    let id = SpaceId::new(Uuid::now_v7());
    let space = SpaceRecord {
        id,
        project: project(),
        title: None,
        agent: None,
        metadata: None,
        by_backend: true,
        members: vec![person(ADA), person(BOB)],
        created: Time(0),
    };
    world.engine.create_space(space).await.unwrap();
    id
}

async fn say(world: &World, space: SpaceId, who: Option<u128>, words: &str) -> Posted {
    let mut post = world.post_to(Some(space), words);
    post.message.from = who.map(person);
    world.engine.post(post).await.unwrap()
}

/// The call of a run and whether somebody is asked about it.
async fn call_of(world: &World, run: RunId) -> (ToolInputAvailable, Option<ApprovalId>) {
    let events = world
        .until(run, |event| matches!(event, Event::StepFinish(_)))
        .await;
    let call = events.iter().find_map(|event| match event {
        Event::ToolInputAvailable(e) => Some(e.clone()),
        _ => None,
    });
    let asked = events.iter().find_map(|event| match event {
        Event::ToolApprovalRequest(e) => Some(e.approval_id),
        _ => None,
    });
    (call.expect("it calls"), asked)
}

/// Has Ada, or whoever, call the tool; gives the question if one is asked.
async fn asks(world: &World, space: SpaceId, who: Option<u128>) -> Option<ApprovalId> {
    let run = say(world, space, who, "call:sheet").await.run_id.unwrap();
    let (call, asked) = call_of(world, run).await;
    assert_eq!(
        call.consent.is_some(),
        asked.is_none(),
        "the log says by whose yes it runs"
    );
    if asked.is_none() {
        world.finish(run).await;
    }
    asked
}

async fn approve(world: &World, approval: ApprovalId, by: Decider) {
    let yes = world
        .engine
        .decide(approval, Decision::Approve(None), by)
        .await
        .unwrap();
    assert!(yes.remembered);
    world.finish(approval.run).await;
}

fn consents_of(space: SpaceId) -> RecordSet {
    RecordSet {
        project: project(),
        owner: Owner::Space(space),
        kind: "consent",
    }
}

async fn consents(world: &World, space: SpaceId) -> Vec<ConsentRecord> {
    world.engine.consents(project(), space).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_first_call_in_a_space_asks_and_later_ones_run_until_the_yes_is_revoked() {
    for always_evict in [false, true] {
        let world = World::with(Setup {
            always_evict,
            ..setup(json!("first-in-space"))
        })
        .await;
        let (one, other) = (space(&world).await, space(&world).await);
        let approval = asks(&world, one, Some(ADA)).await.expect("the first call asks");
        approve(&world, approval, member(BOB)).await;
        assert_eq!(asks(&world, one, Some(ADA)).await, None);
        assert_eq!(asks(&world, one, Some(BOB)).await, None);
        assert!(
            asks(&world, other, Some(ADA)).await.is_some(),
            "another space is another matter"
        );
        let known = consents(&world, one).await;
        assert_eq!(known.len(), 1);
        assert_eq!(
            (known[0].by, known[0].given_for),
            (Giver::Member(person(BOB)), Some(person(ADA)))
        );
        assert_eq!((known[0].tool.as_str(), known[0].approval), ("sheet", approval));
        let revoke = |may: bool| {
            world
                .engine
                .revoke_consent(project(), one, &known[0].id, move |_| may)
        };
        assert!(!revoke(false).await.unwrap(), "not everybody may");
        assert!(revoke(true).await.unwrap());
        assert!(!revoke(true).await.unwrap(), "once");
        assert_eq!(consents(&world, one).await, []);
        let again = asks(&world, one, Some(ADA)).await.expect("it asks again");
        approve(&world, again, member(ADA)).await;
        assert_eq!(asks(&world, one, Some(BOB)).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_yes_until_revoked_is_for_one_person_and_a_single_yes_for_one_call() {
    let world = World::with(setup(json!("until-revoked"))).await;
    let space = space(&world).await;
    let once = asks(&world, space, Some(ADA)).await.unwrap();
    let yes = Decision::Approve(None);
    let decided = world
        .engine
        .decide_with(once, yes, Some(false), member(ADA))
        .await
        .unwrap();
    assert!(!decided.remembered);
    world.finish(once.run).await;
    let approval = asks(&world, space, Some(ADA))
        .await
        .expect("that yes was for one call");
    approve(&world, approval, member(ADA)).await;
    assert_eq!(asks(&world, space, Some(ADA)).await, None);
    assert!(
        asks(&world, space, Some(BOB)).await.is_some(),
        "Bob was not asked yet"
    );
}

/// Has a plan of this person call the tool; gives the question if one is asked.
async fn plan_asks(world: &World, space: SpaceId, asked_by: u128, due: i64) -> Option<ApprovalId> {
    let scheduled = ScheduledMessage {
        project: project(),
        space,
        agent: "default".parse().unwrap(),
        cause: format!("plan of {asked_by}"),
        due: Time(due),
        text: "call:sheet".into(),
        plan_id: "plan_1".into(),
        asked_by: Some(person(asked_by)),
        under_way: UnderWay::Join,
    };
    let run = world.engine.post_scheduled(scheduled).await.unwrap();
    let asked = call_of(world, run).await.1;
    if asked.is_none() {
        world.finish(run).await;
    }
    asked
}

#[tokio::test(start_paused = true)]
async fn a_yes_to_the_plan_of_a_person_is_for_that_person_and_for_no_other() {
    let world = World::with(setup(json!("until-revoked"))).await;
    let space = space(&world).await;
    let approval = plan_asks(&world, space, ADA, 1).await.unwrap();
    approve(&world, approval, Decider::Backend).await;
    let known = consents(&world, space).await;
    assert_eq!((known.len(), known[0].given_for), (1, Some(person(ADA))));
    assert_eq!(plan_asks(&world, space, ADA, 2).await, None, "due again");
    assert_eq!(asks(&world, space, Some(ADA)).await, None);
    let others = plan_asks(&world, space, BOB, 3).await.expect("it is Bob's plan");
    approve(&world, others, member(BOB)).await;
    assert_eq!(plan_asks(&world, space, BOB, 4).await, None, "his own yes counts");
}

#[tokio::test(start_paused = true)]
async fn a_yes_to_a_plan_that_an_earlier_version_has_stored_and_revoked_stays_revoked() {
    let records = Arc::new(MemoryStore::new());
    let world = World::with(Setup {
        records: records.clone(),
        ..setup(json!("until-revoked"))
    })
    .await;
    let space = space(&world).await;
    let approval = plan_asks(&world, space, ADA, 1).await.unwrap();
    approve(&world, approval, Decider::Backend).await;
    let stored = consents(&world, space).await.remove(0);
    // For nobody who is known: the id that the earlier version gave to consents to plans.
    let for_nobody = asks(&world, space, None).await.unwrap();
    approve(&world, for_nobody, Decider::Backend).await;
    let known = consents(&world, space).await;
    let id = known.iter().find(|consent| consent.given_for.is_none());
    let id = id.unwrap().id.clone();
    for (revoked_at, expected) in [(Some(stored.given_at), 0), (None, 1)] {
        let earlier = ConsentRecord {
            given_for: None,
            revoked_at,
            ..stored.clone()
        };
        let body = serde_json::to_value(earlier).unwrap().into();
        let amendment = Amendment {
            changes: vec![Change::Clear, put(id.clone(), body)],
            ..Amendment::default()
        };
        records
            .amend_records(consents_of(space), amendment, Time(0))
            .await
            .unwrap();
        let same = world
            .engine
            .decide(approval, Decision::Approve(None), Decider::Backend);
        assert!(same.await.unwrap().remembered);
        world.rest().await;
        let known = consents(&world, space).await;
        assert_eq!(known.len(), expected, "{known:?}");
        assert!(known.iter().all(|consent| consent.given_for == Some(person(ADA))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_yes_that_is_stored_after_its_giver_was_removed_is_revoked() {
    let inner = Arc::new(MemoryStore::new());
    let between = Arc::new(MeanwhileRecords::new(inner));
    let world = World::with(Setup {
        records: between.clone(),
        ..setup(json!("first-in-space"))
    })
    .await;
    let space = space(&world).await;
    let approval = asks(&world, space, Some(ADA)).await.unwrap();
    let engine = world.engine.clone();
    between.before_next(async move { engine.remove_member(space, person(BOB)).await.unwrap() });
    approve(&world, approval, member(BOB)).await;
    world.engine.add_member(space, person(BOB)).await.unwrap();
    assert_eq!(consents(&world, space).await, []);
    assert!(asks(&world, space, Some(ADA)).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_changed_tool_and_another_agent_ask_again() {
    let world = World::with(setup(json!("first-in-space"))).await;
    let space = space(&world).await;
    let approval = asks(&world, space, Some(ADA)).await.unwrap();
    approve(&world, approval, member(ADA)).await;
    let changed = agent(json!("first-in-space"), "does more now");
    let name = "default".parse().unwrap();
    world
        .engine
        .put_agent(project(), &name, changed.into())
        .await
        .unwrap();
    let approval = asks(&world, space, Some(ADA)).await.expect("it is another tool");
    approve(&world, approval, member(ADA)).await;
    assert_eq!(asks(&world, space, Some(ADA)).await, None);
    assert_eq!(
        consents(&world, space).await.len(),
        1,
        "the new yes takes the place of the old"
    );
    let mut post = world.post_to(Some(space), "call:sheet");
    post.answer = toolgate_engine::intake::Answer::Agent("helper".parse().unwrap());
    let run = world.engine.post(post).await.unwrap().run_id.unwrap();
    assert!(call_of(&world, run).await.1.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_yes_of_a_removed_member_is_void_also_when_the_member_comes_back() {
    let world = World::with(setup(json!("first-in-space"))).await;
    let space = space(&world).await;
    let approval = asks(&world, space, Some(ADA)).await.unwrap();
    approve(&world, approval, member(BOB)).await;
    // As a node leaves it that stops between its two writes.
    world.store.remove_member(space, person(BOB)).await.unwrap();
    let approval = asks(&world, space, Some(ADA))
        .await
        .expect("who is gone consents to nothing");
    world
        .engine
        .decide(approval, Decision::Deny(None), member(ADA))
        .await
        .unwrap();
    world.finish(approval.run).await;
    world.engine.add_member(space, person(BOB)).await.unwrap();
    assert_eq!(asks(&world, space, Some(ADA)).await, None);
    world.engine.remove_member(space, person(BOB)).await.unwrap();
    world.engine.add_member(space, person(BOB)).await.unwrap();
    assert!(asks(&world, space, Some(ADA)).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_yes_counts_while_its_giver_has_the_role() {
    let approval = json!({"approvers": {"roles": ["chief"]}, "remember": "first-in-space"});
    let world = World::with(setup(approval)).await;
    let space = space(&world).await;
    let role = |role: &str| MemberRecord {
        role: Some(role.to_owned()),
        grants: Vec::new(),
    };
    let put = |given| world.engine.put_member(space, person(BOB), given);
    put(role("chief")).await.unwrap();
    let approval = asks(&world, space, Some(ADA)).await.unwrap();
    let chief = Decider::Member {
        entity: person(BOB),
        roles: vec!["chief".into()],
        token_roles: Arc::default(),
        groups: Arc::default(),
    };
    approve(&world, approval, chief).await;
    assert_eq!(asks(&world, space, Some(ADA)).await, None);
    put(role("guest")).await.unwrap();
    assert!(asks(&world, space, Some(ADA)).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_yes_by_a_role_of_the_token_alone_is_for_one_call() {
    let approval = json!({"approvers": {"roles": ["chief"]}, "remember": "first-in-space"});
    let world = World::with(setup(approval)).await;
    let space = space(&world).await;
    let chief = || Decider::Member {
        entity: person(BOB),
        roles: Vec::new(),
        token_roles: ["chief".to_owned()].into(),
        groups: Arc::default(),
    };
    let decide = async |approval, wish| {
        let yes = Decision::Approve(None);
        world.engine.decide_with(approval, yes, wish, chief()).await
    };
    let asked = asks(&world, space, Some(ADA)).await.unwrap();
    assert!(decide(asked, Some(true)).await.is_err(), "it would not count");
    assert!(!decide(asked, None).await.unwrap().remembered);
    world.finish(asked.run).await;
    assert_eq!(consents(&world, space).await, []);
    assert!(asks(&world, space, Some(ADA)).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_the_decision_and_its_record_loses_no_consent_and_revives_none() {
    let records = Arc::new(MemoryStore::new());
    let world = World::with(Setup {
        records: records.clone(),
        ..setup(json!("first-in-space"))
    })
    .await;
    let space = space(&world).await;
    let wipe = || async {
        let amendment = Amendment {
            changes: vec![Change::Clear],
            ..Amendment::default()
        };
        records
            .amend_records(consents_of(space), amendment, Time(0))
            .await
            .unwrap();
    };
    // The decision is in the log, the record is not: the run comes back from the log with the client's result.
    let ask = async || {
        let run = say(&world, space, Some(ADA), "call:board").await.run_id.unwrap();
        let (call, asked) = call_of(&world, run).await;
        (call.tool_call_id, asked)
    };
    let (call, asked) = ask().await;
    world
        .engine
        .decide(asked.unwrap(), Decision::Approve(None), member(ADA))
        .await
        .unwrap();
    world.rest().await;
    wipe().await;
    let result = || Submission::Output(Json::from(json!(1)));
    world.engine.submit(call, result(), None).await.unwrap();
    world.finish(call.run).await;
    assert_eq!(consents(&world, space).await.len(), 1);
    let (call, asked) = ask().await;
    assert_eq!(asked, None);
    // What is revoked stays revoked, whoever reads the run again.
    world.engine.submit(call, result(), None).await.unwrap();
    world.finish(call.run).await;
    wipe().await;
    let (call, asked) = ask().await;
    world
        .engine
        .decide(asked.unwrap(), Decision::Approve(None), member(ADA))
        .await
        .unwrap();
    let known = consents(&world, space).await;
    world.clock.jump(1_000);
    assert!(
        world
            .engine
            .revoke_consent(project(), space, &known[0].id, |_| true)
            .await
            .unwrap()
    );
    world.rest().await;
    world.engine.submit(call, result(), None).await.unwrap();
    world.finish(call.run).await;
    assert_eq!(consents(&world, space).await, []);
    assert!(ask().await.1.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_yes_given_on_one_node_counts_on_the_other_at_once() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (records, bus) = (Arc::new(MemoryStore::new()), Arc::new(InProcessBus::default()));
    let node = |number| Setup {
        store: store.clone(),
        records: records.clone(),
        bus: bus.clone(),
        node: NodeId::new(Uuid::from_u128(number)),
        ..setup(json!("first-in-space"))
    };
    let (a, b) = (World::with(node(1)).await, World::with(node(2)).await);
    let space = space(&a).await;
    let approval = asks(&a, space, Some(ADA)).await.unwrap();
    b.engine
        .decide(approval, Decision::Approve(None), member(BOB))
        .await
        .unwrap();
    a.finish(approval.run).await;
    assert_eq!(asks(&a, space, Some(ADA)).await, None);
    let known = consents(&a, space).await;
    assert!(
        a.engine
            .revoke_consent(project(), space, &known[0].id, |_| true)
            .await
            .unwrap()
    );
    assert!(asks(&b, space, Some(ADA)).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_consent_of_a_child_run_counts_in_the_space_of_the_run_at_the_top() {
    let mut config = agent(json!("first-in-space"), "for tests");
    config["tools"].as_array_mut().unwrap().push(json!({
        "name": "helper", "description": "asks a helper", "executionType": "ai-agent", "execution": {"agent": "helper"},
        "parameters": {"type": "object", "properties": {"prompt": {"type": "string"}}},
    }));
    let world = World::with(Setup {
        agent: config,
        ..Setup::default()
    })
    .await;
    let space = space(&world).await;
    let words = r#"call:helper={"prompt":"call:sheet"}"#;
    let run = say(&world, space, Some(ADA), words).await.run_id.unwrap();
    let events = world.until_status(run, Status::WaitingApproval).await;
    let asked = events.iter().find_map(|event| match event {
        Event::ChildCall(e) => match &*e.event {
            Event::ToolApprovalRequest(e) => Some(e.approval_id),
            _ => None,
        },
        _ => None,
    });
    let asked = asked.expect("the child's question is told above");
    world
        .engine
        .decide(asked, Decision::Approve(None), member(ADA))
        .await
        .unwrap();
    world.finish(run).await;
    let known = consents(&world, space).await;
    assert_eq!((known.len(), known[0].agent.as_str()), (1, "helper"));
    let run = say(&world, space, Some(ADA), words).await.run_id.unwrap();
    assert_eq!(world.finish(run).await.status, Status::Completed);
}

#[test]
fn a_stored_consent_that_names_nobody_is_not_of_a_secret_key() {
    let stored = json!({"agent": "a", "tool": "t", "hash": "h", "givenAt": Time(0),
        "approval": "appr_00000000000000000000000001_0"});
    for (by, expected) in [
        (None, Some(Giver::Nobody)),
        (Some("backend".to_owned()), Some(Giver::Backend)),
        (Some(person(ADA).to_string()), Some(Giver::Member(person(ADA)))),
        (Some("secret".to_owned()), None),
    ] {
        let mut stored = stored.clone();
        if let Some(by) = &by {
            stored["by"] = by.as_str().into();
        }
        let read = serde_json::from_value::<ConsentRecord>(stored).ok();
        assert_eq!(read.map(|read| read.by), expected, "{by:?}");
    }
}
