//! Decisions.

use serde_json::{Value, json};
use toolgate_testkit_http::client::{Client, numbered, of};

use crate::world::{FAR, PUBLIC, World, agent, token};

/// A run that waits for a decision: its id and the question's.
async fn asked(client: &Client<'_>, words: &str) -> (String, String) {
    let events = client.run(words).await;
    assert_eq!(events.last().unwrap().data["status"], "waiting_approval");
    (
        of(&events, "run-start", "runId"),
        of(&events, "tool-approval-request", "approvalId"),
    )
}

async fn answer(client: &Client<'_>, run: &str) -> String {
    let events = client
        .follow(&format!("/v1/runs/{run}/events"))
        .await
        .rest()
        .await;
    of(&events, "text-end", "text")
}

#[tokio::test]
async fn a_yes_lets_the_call_run_and_holds() {
    let world = World::new().await;
    let ada = world.user("ada");
    let (run, approval) = asked(&ada, "call:guarded={\"to\":\"a\"}").await;
    let path = format!("/v1/approvals/{approval}");
    let waiting = world.backend().get(&format!("/v1/runs/{run}")).await.expect(200);
    assert_eq!(waiting["pending"]["approvals"][0]["approvalId"], *approval);
    assert_eq!(waiting["pending"]["approvals"][0]["input"], json!({ "to": "a" }));
    assert_eq!(waiting["status"], "waiting_approval");

    assert_eq!(
        world
            .user("eve")
            .post(&path, json!({ "approved": true }))
            .await
            .code(404),
        "NOT_FOUND"
    );
    let decided = ada.post(&path, json!({ "approved": true })).await.expect(200);
    assert_eq!(
        (&decided["approved"], &decided["runId"]),
        (&json!(true), &json!(run))
    );
    assert_eq!(
        ada.post(&path, json!({ "decision": "approve" }))
            .await
            .expect(200),
        decided
    );
    let told = ada.post(&path, json!({ "approved": false })).await.expect(409);
    assert_eq!(told["winner"], decided);
    assert_eq!(answer(&world.backend(), &run).await, r#"got {"to":"a"}"#);
}

#[tokio::test]
async fn a_no_reaches_the_model_with_its_reason() {
    let world = World::new().await;
    let ada = world.user("ada");
    let (run, approval) = asked(&ada, "call:guarded").await;
    let body = json!({ "decision": "deny", "reason": "not today" });
    assert_eq!(
        ada.post(&format!("/v1/approvals/{approval}"), body)
            .await
            .expect(200)["approved"],
        false
    );
    assert!(answer(&world.backend(), &run).await.contains("not today"));
}

#[tokio::test]
async fn an_input_is_changed_where_the_tool_lets_them_and_is_checked_again() {
    let world = World::new().await;
    let (ada, backend) = (world.user("ada"), world.backend());
    let (run, approval) = asked(&ada, "call:guarded={\"to\":\"a\"}").await;
    let path = format!("/v1/approvals/{approval}");
    let changed = |input: Value| json!({ "approved": true, "input": input });
    // Members are asked for a yes or a no to what a server tool does, not for something else to do.
    let told = ada.post(&path, changed(json!({ "to": "b" }))).await.expect(422);
    assert_eq!(told["errors"][0]["pointer"], "/input", "{told}");
    let told = backend.post(&path, changed(json!({ "to": 5 }))).await.expect(422);
    assert!(
        told["errors"][0]["pointer"].as_str().unwrap().ends_with("/to"),
        "{told}"
    );
    backend
        .post(&path, changed(json!({ "to": "b" })))
        .await
        .expect(200);
    assert_eq!(answer(&backend, &run).await, r#"got {"to":"b"}"#);

    // A client tool's input is shown to the members, so they may change it.
    let (_, approval) = asked(&ada, "call:guarded_ask={\"to\":\"a\"}").await;
    ada.post(
        &format!("/v1/approvals/{approval}"),
        changed(json!({ "to": "b" })),
    )
    .await
    .expect(200);

    // Where the author says so, whoever decides may; where it says no, nobody.
    for (editable, expected) in [(true, 200), (false, 422)] {
        set_approval(&world, json!({ "editable": editable })).await;
        for decider in [&ada, &backend] {
            let (_, approval) = asked(&ada, "call:guarded={\"to\":\"a\"}").await;
            let path = format!("/v1/approvals/{approval}");
            decider
                .post(&path, changed(json!({ "to": "b" })))
                .await
                .expect(expected);
            decider.post(&path, json!({ "approved": false })).await;
        }
    }
}

/// Gives the tool `guarded` of the default agent these terms.
pub async fn set_approval(world: &World, approval: Value) {
    let mut config = agent();
    for tool in config["tools"].as_array_mut().unwrap() {
        if tool["name"] == "guarded" {
            tool["approval"] = approval.clone();
        }
    }
    world
        .backend()
        .put("/v1/agents/default", config)
        .await
        .expect(200);
}

/// A space of the default agent with these members.
pub async fn space_of(world: &World, members: Value) -> String {
    let body = json!({ "agent": "default", "members": members });
    let made = world.backend().post("/v1/spaces", body).await.expect(201);
    made["id"].as_str().unwrap().to_owned()
}

/// A question that a message of `who` in a space leads to.
async fn asked_in(who: &Client<'_>, space: &str) -> String {
    let body = json!({ "content": "call:guarded={\"to\":\"a\",\"iban\":\"Zq7-hidden\"}" });
    let stream = who.say(&format!("/v1/spaces/{space}/messages"), body).await;
    let events = stream.rest().await;
    of(&events, "tool-approval-request", "approvalId")
}

async fn open(who: &Client<'_>) -> Vec<Value> {
    let told = who.get("/v1/approvals?status=open").await.expect(200);
    told["approvals"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_second_person_has_to_decide_where_the_tool_says_so() {
    let world = World::new().await;
    set_approval(&world, json!({ "notRequester": true, "hide": ["/iban"] })).await;
    let (ada, bob) = (world.user("ada"), world.user("bob"));
    let space = space_of(&world, json!(["ada", "bob"])).await;
    let approval = asked_in(&ada, &space).await;
    let path = format!("/v1/approvals/{approval}");
    let yes = json!({ "approved": true });
    assert_eq!(ada.post(&path, yes.clone()).await.code(403), "NOT_AN_APPROVER");
    assert_eq!(
        ada.post(&path, json!({ "approved": false })).await.code(403),
        "NOT_AN_APPROVER"
    );
    assert_eq!(open(&ada).await, [] as [Value; 0]);
    let waits = open(&bob).await;
    assert_eq!(waits.len(), 1, "{waits:?}");
    assert_eq!(waits[0]["approvalId"], *approval);
    assert_eq!(
        waits[0]["input"],
        json!({ "to": "a" }),
        "the input, less what is hidden"
    );
    assert_eq!(waits[0]["editable"], false);
    // A secret key sees all of it.
    assert_eq!(open(&world.backend()).await[0]["input"]["iban"], "Zq7-hidden");
    bob.post(&path, yes.clone()).await.expect(200);
    // Who may not decide does not learn what was decided either.
    assert_eq!(ada.post(&path, yes).await.code(403), "NOT_AN_APPROVER");
    assert_eq!(open(&bob).await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_role_or_a_group_decides_and_others_do_not_even_see_the_input() {
    let world = World::new().await;
    let token_of = |claims: Value| {
        let token = token(claims);
        world
            .nobody()
            .with("x-public-key", PUBLIC)
            .with("authorization", &format!("Bearer {token}"))
    };
    let plain = |subject: &str| token_of(json!({ "sub": subject, "exp": FAR }));
    let backend = world.backend();
    for (approvers, chief) in [
        (json!({ "roles": ["chief"] }), plain("bob")),
        (
            json!({ "roles": ["chief"] }),
            token_of(json!({ "sub": "cy", "exp": FAR, "roles": ["chief"] })),
        ),
        (
            json!({ "groups": ["staff"] }),
            token_of(json!({ "sub": "cy", "exp": FAR, "groups": ["staff"] })),
        ),
    ] {
        set_approval(&world, json!({ "approvers": approvers })).await;
        let space = space_of(&world, json!(["ada", "bob", "cy"])).await;
        backend
            .put(
                &format!("/v1/spaces/{space}/members/bob"),
                json!({ "role": "chief" }),
            )
            .await
            .expect(204);
        let ada = plain("ada");
        let approval = asked_in(&ada, &space).await;
        let path = format!("/v1/approvals/{approval}");
        let yes = json!({ "approved": true });
        assert_eq!(ada.post(&path, yes.clone()).await.code(403), "NOT_AN_APPROVER");
        assert_eq!(open(&ada).await, [] as [Value; 0]);
        let events = ada.get(&format!("/v1/spaces/{space}/events")).await.expect(200);
        for event in events["events"].as_array().unwrap() {
            let is_of_call = event["type"].as_str().unwrap().starts_with("tool-");
            assert!(
                !is_of_call || !event.to_string().contains("Zq7-hidden"),
                "{event}"
            );
        }
        assert_eq!(open(&chief).await[0]["input"]["iban"], "Zq7-hidden");
        // Who may decide sees it in the events and in the run as well.
        let run = open(&chief).await[0]["runId"].as_str().unwrap().to_owned();
        let seen = chief.get(&format!("/v1/runs/{run}")).await.expect(200);
        assert_eq!(seen["pending"]["approvals"][0]["input"]["iban"], "Zq7-hidden");
        let seen = ada.get(&format!("/v1/runs/{run}")).await.expect(200);
        assert_eq!(seen["pending"]["approvals"][0].get("input"), None);
        let events = chief.get(&format!("/v1/runs/{run}/events")).await.expect(200);
        let events = events["events"].as_array().unwrap().iter();
        let asked: Vec<&Value> = events
            .filter(|event| event["type"] == "tool-approval-request")
            .collect();
        assert_eq!(asked[0]["input"]["iban"], "Zq7-hidden");
        // The same role in another space is none here.
        assert_eq!(
            world.user("eve").post(&path, yes.clone()).await.code(404),
            "NOT_FOUND"
        );
        chief.post(&path, yes).await.expect(200);
    }
}

#[tokio::test]
async fn what_waits_is_listed_page_by_page_for_those_who_may_decide() {
    let world = World::new().await;
    let (ada, backend) = (world.user("ada"), world.backend());
    let mut asked = Vec::new();
    for _ in 0..3 {
        let space = space_of(&world, json!(["ada"])).await;
        asked.push((asked_in(&ada, &space).await, space));
    }
    // Consent: every member is shown what it decides on.
    assert_eq!(open(&ada).await.len(), 3);
    assert_eq!(open(&ada).await[0]["input"]["iban"], "Zq7-hidden");
    assert_eq!(open(&world.user("eve")).await, [] as [Value; 0]);
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = backend
            .get(&format!("/v1/approvals?limit=1{cursor}"))
            .await
            .expect(200);
        let approvals = page["approvals"].as_array().unwrap().iter();
        found.extend(approvals.map(|open| open["approvalId"].as_str().unwrap().to_owned()));
        let Some(next) = page["nextCursor"].as_str() else {
            break;
        };
        cursor = format!("&before={next}");
    }
    let newest_first: Vec<String> = asked.iter().rev().map(|(approval, _)| approval.clone()).collect();
    assert_eq!(found, newest_first);
    let (approval, space) = &asked[1];
    let one = backend
        .get(&format!("/v1/approvals?space={space}&agent=default"))
        .await
        .expect(200);
    assert_eq!(one["approvals"][0]["approvalId"], **approval);
    assert_eq!(one["approvals"].as_array().unwrap().len(), 1);
    let none = backend.get("/v1/approvals?agent=other").await.expect(200);
    assert_eq!(none["approvals"], json!([]));
    // Neither what was decided waits, nor what was superseded.
    ada.post(&format!("/v1/approvals/{approval}"), json!({ "approved": false }))
        .await
        .expect(200);
    let (_, other) = &asked[0];
    ada.say(
        &format!("/v1/spaces/{other}/messages"),
        json!({ "content": "never mind" }),
    )
    .await
    .rest()
    .await;
    let left = open(&ada).await;
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0]["approvalId"], *asked[2].0);
    backend.get("/v1/approvals?status=decided").await.expect(400);
}

#[tokio::test]
async fn a_decision_must_be_one() {
    let world = World::new().await;
    let (_, approval) = asked(&world.user("ada"), "call:guarded").await;
    let path = format!("/v1/approvals/{approval}");
    for body in [
        json!({}),
        json!({ "approved": true, "decision": "deny" }),
        json!({ "decision": "maybe" }),
    ] {
        world.user("ada").post(&path, body).await.expect(422);
    }
    world
        .user("ada")
        .post("/v1/approvals/nonsense", json!({ "approved": true }))
        .await
        .expect(404);
    let unknown = numbered(&approval, 5);
    world
        .user("ada")
        .post(&format!("/v1/approvals/{unknown}"), json!({ "approved": true }))
        .await
        .expect(404);
}

#[tokio::test]
async fn a_role_that_is_taken_away_ends_the_streams_that_went_by_it() {
    let world = World::new().await;
    set_approval(&world, json!({ "approvers": { "roles": ["chief"] } })).await;
    let (ada, bob, backend) = (world.user("ada"), world.user("bob"), world.backend());
    let space = space_of(&world, json!(["ada", "bob"])).await;
    let member = format!("/v1/spaces/{space}/members/bob");
    let role = |role: &str| json!({ "role": role });
    backend.put(&member, role("chief")).await.expect(204);
    let mut chief = bob.follow(&format!("/v1/spaces/{space}/events")).await;
    asked_in(&ada, &space).await;
    let seen = chief.until("tool-approval-request").await;
    assert_eq!(seen.last().unwrap().data["input"]["iban"], "Zq7-hidden");
    // The same role again is no reason to come back; another one is.
    backend.put(&member, role("chief")).await.expect(204);
    backend.put(&member, role("clerk")).await.expect(204);
    let mut last = String::new();
    while let Some(block) = chief.block().await {
        last = block;
    }
    assert!(
        last.contains("role in the space has changed"),
        "it may come back: {last}"
    );
    let mut clerk = bob.follow(&format!("/v1/spaces/{space}/events?after=0")).await;
    let seen = clerk.until("tool-approval-request").await;
    assert_eq!(seen.last().unwrap().data.get("input"), None);
    asked_in(&ada, &space).await;
    let seen = clerk.until("tool-approval-request").await;
    assert_eq!(seen.last().unwrap().data.get("input"), None);
}

#[tokio::test]
async fn where_it_is_not_known_who_asked_a_second_person_cannot_be_told_apart() {
    let world = World::new().await;
    set_approval(&world, json!({ "notRequester": true })).await;
    let (ada, backend) = (world.user("ada"), world.backend());
    let space = space_of(&world, json!(["ada", "bob"])).await;
    // The backend does not say for whom it asks.
    let approval = asked_in(&backend, &space).await;
    let path = format!("/v1/approvals/{approval}");
    let yes = json!({ "approved": true });
    assert_eq!(ada.post(&path, yes.clone()).await.code(403), "NOT_AN_APPROVER");
    assert_eq!(open(&ada).await, [] as [Value; 0]);
    backend.post(&path, yes).await.expect(200);
}
