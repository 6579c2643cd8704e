//! Plans that users change.

use http::Method;
use serde_json::{Value, json};
use toolgate_engine::records::{Change, NewRecord, Owner, RecordSet, Records};
use toolgate_kernel::agent::entity_of;
use toolgate_kernel::time::Time;

use crate::world::{World, project};

#[tokio::test]
async fn a_user_changes_the_time_of_its_plan_while_it_is_a_member_and_never_the_message() {
    let world = World::new().await;
    let (backend, ada) = (world.backend(), world.user("ada"));
    let space = ada.post("/v1/spaces", json!({})).await.expect(201);
    let (space, me) = (space["id"].as_str().unwrap(), space["members"][0].clone());
    let set = RecordSet {
        project: project(1),
        owner: Owner::Entity(entity_of(project(1), &"default".parse().unwrap())),
        kind: "plan",
    };
    let plan = json!({
        "message": "water the plants", "schedule": {"everySeconds": 3600}, "status": "active",
        "agent": "default", "space": space, "askedBy": me,
    });
    let plan = NewRecord {
        id: "plan_1".into(),
        text: None,
        body: plan.into(),
        data: None,
        due: None,
    };
    let put = vec![Change::Put(plan)];
    world
        .store
        .change_records(set, vec![], put, Time(0))
        .await
        .unwrap();

    let path = "/v1/plans/plan_1?agent=default";
    let change = async |client: &toolgate_testkit_http::client::Client<'_>, body: Value| {
        client
            .with("content-type", "application/json")
            .send(Method::PATCH, path, body.to_string().into())
            .await
    };
    let words = json!({"message": "spam", "everySeconds": 7200});
    let refused = change(&ada, words.clone()).await;
    assert_eq!(refused.code(403), "FORBIDDEN");
    let changed = change(&ada, json!({"everySeconds": 7200})).await.expect(200);
    assert_eq!(changed["message"], "water the plants");
    change(&world.user("bob"), json!({"everySeconds": 60}))
        .await
        .expect(404);

    let member = format!("/v1/spaces/{space}/members/ada");
    backend.delete(&member).await.expect(204);
    for body in [
        json!({"everySeconds": 60}),
        json!({"status": "cancelled"}),
        words.clone(),
    ] {
        change(&ada, body).await.expect(404);
    }
    change(&backend, words).await.expect(200);
}
