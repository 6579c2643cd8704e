//! Spaces, entities, agents, projects, keys, idempotency records.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate_engine::store::{
    AgentRecord, EntityRecord, Holdings, IdempotencyRecord, IdentityProvider, KeyKind, KeyRecord,
    MemberRecord, ProjectRecord, RunRecord, SpaceRecord, Store, StoreError,
};
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{EntityId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

use super::samples::{
    EVERYTHING, answer, create, entity, entity_record, key, key_record, project, project_record, run,
    run_record, say, space, space_record,
};
use super::{Stored, checks, refused};

checks![
    a_space_reads_back_and_is_made_once,
    a_space_is_amended_only_as_it_was_read,
    members_stand_in_the_order_they_joined,
    a_member_keeps_what_it_was_given_until_it_leaves,
    spaces_are_listed_newest_first_in_pages,
    a_user_has_the_spaces_that_it_made_with_what_is_in_them,
    a_list_of_spaces_keeps_to_its_project_and_member,
    an_entity_is_made_once_per_subject,
    an_entity_keeps_to_its_project,
    an_agent_gets_a_revision_per_change,
    a_removed_agent_keeps_its_revisions_and_counts_on,
    agents_are_listed_by_name_in_their_project,
    a_project_is_made_and_changed,
    a_removed_project_leaves_nothing_behind_and_others_alone,
    a_key_opens_its_project_until_it_is_removed,
    an_answer_is_remembered_with_its_append,
    an_append_with_a_known_answer_is_refused_and_nothing_is_written,
    an_answer_is_forgotten_after_a_day,
    a_store_says_that_it_is_ready,
];

async fn a_space_reads_back_and_is_made_once(store: Arc<dyn Store>) {
    let record = SpaceRecord {
        title: Some("Küche".into()),
        agent: Some(name("cook")),
        metadata: Some(json!({"a": [1, {"b": null}]}).into()),
        by_backend: false,
        members: vec![entity(3), entity(1), entity(3), entity(2)],
        created: Time(77),
        ..space_record(space(1))
    };
    store.create_space(record.clone()).await.stored();
    let members = vec![entity(3), entity(1), entity(2)];
    let stored = Some(SpaceRecord { members, ..record });
    assert_eq!(store.space(space(1)).await.stored(), stored);
    refused!(
        store.create_space(space_record(space(1))).await,
        StoreError::Exists
    );
    assert_eq!(store.space(space(1)).await.stored(), stored);
    assert_eq!(store.space(space(2)).await.stored(), None);
}

async fn a_space_is_amended_only_as_it_was_read(store: Arc<dyn Store>) {
    let read = space_record(space(1));
    store.create_space(read.clone()).await.stored();
    let amend = async |before: &SpaceRecord, title: &str, metadata: Option<Json>| {
        let amended = store.amend_space(before.clone(), Some(title.into()), metadata, None);
        amended.await
    };
    amend(&read, "new", Some(json!({"a": 1}).into())).await.stored();
    refused!(amend(&read, "lost", None).await, StoreError::Conflict);
    let now = store.space(space(1)).await.stored().expect("the space");
    assert_eq!(now.title.as_deref(), Some("new"));
    assert_eq!(now.metadata, Some(json!({"a": 1}).into()));
    amend(&now, "new", None).await.stored();
    refused!(amend(&now, "lost", None).await, StoreError::Conflict);
    refused!(
        amend(&space_record(space(2)), "nowhere", None).await,
        StoreError::Conflict
    );
}

async fn members_stand_in_the_order_they_joined(store: Arc<dyn Store>) {
    let members = async || store.space(space(1)).await.stored().expect("the space").members;
    store
        .create_space(SpaceRecord {
            members: vec![entity(5)],
            ..space_record(space(1))
        })
        .await
        .stored();
    for n in [9, 2, 9, 5] {
        store.add_member(space(1), entity(n)).await.stored();
    }
    assert_eq!(members().await, [5, 9, 2].map(entity));
    store.remove_member(space(1), entity(9)).await.stored();
    store.remove_member(space(1), entity(9)).await.stored();
    assert_eq!(members().await, [5, 2].map(entity));
    store.add_member(space(1), entity(9)).await.stored();
    assert_eq!(members().await, [5, 2, 9].map(entity));
    store.add_member(space(2), entity(1)).await.stored();
    store.remove_member(space(2), entity(1)).await.stored();
    assert_eq!(
        store.space(space(2)).await.stored(),
        None,
        "a member makes no space"
    );
    store.create_space(space_record(space(2))).await.stored();
    assert_eq!(
        store.space(space(2)).await.stored().expect("the space").members,
        []
    );
}

async fn a_member_keeps_what_it_was_given_until_it_leaves(store: Arc<dyn Store>) {
    let member = async |n| store.member(space(1), entity(n)).await.stored();
    let given = |role: &str| MemberRecord {
        role: Some(role.into()),
        grants: vec!["pay".into(), "größe".into()],
    };
    store
        .put_member(space(1), entity(1), given("chief"))
        .await
        .stored();
    assert_eq!(member(1).await, None, "a member makes no space");
    store.create_space(space_record(space(1))).await.stored();
    store.add_member(space(1), entity(1)).await.stored();
    assert_eq!(member(1).await, Some(MemberRecord::default()));
    store
        .put_member(space(1), entity(1), given("chief"))
        .await
        .stored();
    store
        .put_member(space(1), entity(2), given("clerk"))
        .await
        .stored();
    store.add_member(space(1), entity(1)).await.stored();
    assert_eq!(member(1).await, Some(given("chief")));
    assert_eq!(member(2).await, Some(given("clerk")));
    let members = store.space(space(1)).await.stored().expect("the space").members;
    assert_eq!(members, [1, 2].map(entity));
    store
        .put_member(space(1), entity(2), MemberRecord::default())
        .await
        .stored();
    assert_eq!(member(2).await, Some(MemberRecord::default()));
    store.remove_member(space(1), entity(1)).await.stored();
    assert_eq!(member(1).await, None);
    store.add_member(space(1), entity(1)).await.stored();
    assert_eq!(
        member(1).await,
        Some(MemberRecord::default()),
        "it comes back as a new one"
    );
}

async fn a_user_has_the_spaces_that_it_made_with_what_is_in_them(store: Arc<dyn Store>) {
    let has = async || store.holdings(project(1), entity(1)).await.stored();
    assert_eq!(has().await, Holdings::default());
    for (number, by_backend, members) in [
        (1, false, vec![entity(1), entity(2)]),
        (2, false, vec![entity(1)]),
        (3, false, vec![entity(2), entity(1)]),
        (4, true, vec![entity(1)]),
    ] {
        let record = SpaceRecord {
            by_backend,
            members,
            ..space_record(space(number))
        };
        store.create_space(record).await.stored();
        store.append(say(space(number), "hello")).await.stored();
    }
    let two = has().await;
    assert_eq!((two.spaces, two.open_runs), (2, 0));
    assert!(two.bytes > 0);
    store.append(say(space(1), &"x".repeat(1000))).await.stored();
    store.append(say(space(3), &"x".repeat(1000))).await.stored();
    let more = has().await;
    assert!(
        (1000..1200).contains(&(more.bytes - two.bytes)),
        "{two:?} {more:?}"
    );
    store.append(create(run_record(run(1), space(2)))).await.stored();
    assert_eq!(has().await.open_runs, 1);
    let other = store.holdings(project(2), entity(1)).await.stored();
    assert_eq!(other, Holdings::default());
}

async fn spaces_are_listed_newest_first_in_pages(store: Arc<dyn Store>) {
    for n in [2, 5, 1, 4, 3] {
        let members = if n > 2 {
            vec![entity(1), entity(2)]
        } else {
            vec![entity(2)]
        };
        store
            .create_space(SpaceRecord {
                members,
                ..space_record(space(n))
            })
            .await
            .stored();
    }
    let page = async |member, before| list(&store, 1, member, before, 2).await;
    assert_eq!(page(None, None).await, [space(5), space(4)]);
    assert_eq!(page(None, Some(space(4))).await, [space(3), space(2)]);
    assert_eq!(page(None, Some(space(2))).await, [space(1)]);
    assert_eq!(page(Some(entity(1)), None).await, [space(5), space(4)]);
    assert_eq!(page(Some(entity(1)), Some(space(4))).await, [space(3)]);
    let whole = store.spaces(project(1), None, None, 1).await.stored();
    assert_eq!(whole[0].members, [entity(1), entity(2)]);
    assert_eq!(list(&store, 1, None, None, usize::MAX).await.len(), 5);
}

async fn a_list_of_spaces_keeps_to_its_project_and_member(store: Arc<dyn Store>) {
    for n in 1..=4 {
        let record = SpaceRecord {
            project: project(n % 2),
            members: vec![entity(n % 3)],
            ..space_record(space(n))
        };
        store.create_space(record).await.stored();
    }
    assert_eq!(list(&store, 1, None, None, 9).await, [space(3), space(1)]);
    assert_eq!(list(&store, 1, Some(entity(1)), None, 9).await, [space(1)]);
    assert_eq!(list(&store, 0, Some(entity(1)), None, 9).await, [space(4)]);
    assert_eq!(list(&store, 1, Some(entity(2)), None, 9).await, []);
    assert_eq!(list(&store, 7, None, None, 9).await, []);
}

async fn list(
    store: &Arc<dyn Store>,
    of: u64,
    member: Option<EntityId>,
    before: Option<SpaceId>,
    limit: usize,
) -> Vec<SpaceId> {
    let spaces = store.spaces(project(of), member, before, limit).await.stored();
    spaces.into_iter().map(|space| space.id).collect()
}

async fn an_entity_is_made_once_per_subject(store: Arc<dyn Store>) {
    let first = entity_record(entity(1), "ada");
    assert_eq!(store.put_entity(first.clone()).await.stored(), first);
    let again = EntityRecord {
        kind: "robot".into(),
        name: Some("Ada".into()),
        metadata: Some(json!({"x": 1}).into()),
        created: Time(99),
        ..entity_record(entity(2), "ada")
    };
    let changed = EntityRecord {
        id: entity(1),
        created: Time(1),
        ..again.clone()
    };
    assert_eq!(store.put_entity(again).await.stored(), changed);
    assert_eq!(store.entity(entity(1)).await.stored(), Some(changed.clone()));
    assert_eq!(store.entity(entity(2)).await.stored(), None);
    let seen = store
        .ensure_entity(entity_record(entity(3), "ada"))
        .await
        .stored();
    assert_eq!(seen, changed, "the one that is there stays as it is");
    assert_eq!(store.entity_of(project(1), "ada").await.stored(), Some(changed));
    let new = entity_record(entity(4), "bob");
    assert_eq!(store.ensure_entity(new.clone()).await.stored(), new);
    refused!(
        store.put_entity(entity_record(entity(1), "eve")).await,
        StoreError::Exists
    );
}

async fn an_entity_keeps_to_its_project(store: Arc<dyn Store>) {
    let theirs = EntityRecord {
        project: project(2),
        ..entity_record(entity(2), "ada")
    };
    store.put_entity(entity_record(entity(1), "ada")).await.stored();
    store.put_entity(theirs.clone()).await.stored();
    assert_eq!(store.entity_of(project(2), "ada").await.stored(), Some(theirs));
    assert_eq!(store.entity_of(project(3), "ada").await.stored(), None);
    assert_eq!(store.entity_of(project(1), "Ada").await.stored(), None);
}

fn name(text: &str) -> AgentName {
    text.parse().expect("a name")
}

fn config(n: u32) -> Json {
    json!({"instructions": "cook", "n": n}).into()
}

async fn an_agent_gets_a_revision_per_change(store: Arc<dyn Store>) {
    let put = async |config, now| {
        store
            .put_agent(project(1), &name("cook"), config, Time(now))
            .await
            .stored()
    };
    assert_eq!(put(config(1), 1).await, 1);
    let reordered = Json::parse(r#" {"n": 1, "instructions": "cook"} "#.into()).expect("JSON");
    assert_eq!(
        put(reordered, 2).await,
        1,
        "the same configuration in other words"
    );
    assert_eq!(put(config(2), 3).await, 2);
    assert_eq!(put(config(1), 4).await, 3, "going back is a change");
    let get = async |revision| store.agent(project(1), &name("cook"), revision).await.stored();
    let third = AgentRecord {
        project: project(1),
        name: name("cook"),
        revision: 3,
        config: config(1),
        created: Time(4),
    };
    assert_eq!(get(None).await, Some(third.clone()));
    assert_eq!(get(Some(3)).await, Some(third));
    assert_eq!(get(Some(2)).await.expect("a revision").config, config(2));
    assert_eq!(get(Some(4)).await, None);
    assert_eq!(store.agent(project(2), &name("cook"), None).await.stored(), None);
}

async fn a_removed_agent_keeps_its_revisions_and_counts_on(store: Arc<dyn Store>) {
    let cook = name("cook");
    let remove = async |of| store.remove_agent(project(of), &cook).await.stored();
    assert!(!remove(1).await);
    store
        .put_agent(project(1), &cook, config(1), Time(1))
        .await
        .stored();
    assert!(!remove(2).await);
    assert!(remove(1).await);
    assert!(!remove(1).await);
    assert_eq!(store.agent(project(1), &cook, None).await.stored(), None);
    assert_eq!(store.agents(project(1)).await.stored(), []);
    let kept = store.agent(project(1), &cook, Some(1)).await.stored();
    assert_eq!(kept.expect("runs under way need it").config, config(1));
    let back = store
        .put_agent(project(1), &cook, config(1), Time(2))
        .await
        .stored();
    assert_eq!(
        back, 2,
        "the same configuration brings it back under a new number"
    );
    assert_eq!(
        store
            .agent(project(1), &cook, None)
            .await
            .stored()
            .expect("it is back")
            .revision,
        2
    );
    assert!(remove(1).await);
}

async fn agents_are_listed_by_name_in_their_project(store: Arc<dyn Store>) {
    for (of, agent, n) in [
        (1, "b", 1),
        (1, "a", 1),
        (1, "B", 1),
        (1, "b", 2),
        (2, "a", 9),
        (1, "gone", 1),
    ] {
        store
            .put_agent(project(of), &name(agent), config(n), Time(1))
            .await
            .stored();
    }
    store.remove_agent(project(1), &name("gone")).await.stored();
    let listed = store.agents(project(1)).await.stored();
    let summary: Vec<_> = listed
        .iter()
        .map(|agent| (agent.name.as_str(), agent.revision))
        .collect();
    assert_eq!(summary, [("B", 1), ("a", 1), ("b", 2)]);
    assert_eq!(listed[2].config, config(2));
    assert_eq!(store.agents(project(3)).await.stored(), []);
}

async fn a_project_is_made_and_changed(store: Arc<dyn Store>) {
    let made = project_record(project(1), "main");
    store.put_project(made.clone()).await.stored();
    assert_eq!(store.project(project(1)).await.stored(), Some(made));
    let changed = ProjectRecord {
        jwt_secret: Some("hush".into()),
        identity_provider: Some(IdentityProvider {
            jwks_url: "https://example.com/jwks".into(),
            issuer: Some("https://example.com".into()),
            audience: Some("toolgate".into()),
        }),
        ..project_record(project(1), "main")
    };
    store
        .put_project(ProjectRecord {
            name: "other".into(),
            created: Time(9),
            ..changed.clone()
        })
        .await
        .stored();
    assert_eq!(store.project_named("main").await.stored(), Some(changed));
    assert_eq!(store.project_named("other").await.stored(), None);
    assert_eq!(store.project(project(2)).await.stored(), None);
    refused!(
        store.put_project(project_record(project(2), "main")).await,
        StoreError::Exists
    );
    store
        .put_project(project_record(project(2), "second"))
        .await
        .stored();
    let secret = ProjectRecord {
        jwt_secret: Some("s".into()),
        ..project_record(project(2), "main")
    };
    store.put_project(secret).await.stored();
    let second = store.project(project(2)).await.stored().expect("the project");
    assert_eq!(
        (second.name.as_str(), second.jwt_secret.as_deref()),
        ("second", Some("s"))
    );
}

async fn a_removed_project_leaves_nothing_behind_and_others_alone(store: Arc<dyn Store>) {
    let cook = name("cook");
    for n in [1, 2] {
        let settings = Some(json!({"secrets": {"TOKEN": n}}).into());
        let record = ProjectRecord {
            settings,
            ..project_record(project(n), if n == 1 { "one" } else { "two" })
        };
        store.put_project(record).await.stored();
        let of = project(n);
        store
            .put_key(KeyRecord {
                project: of,
                ..key_record(key(n), n as u8)
            })
            .await
            .stored();
        store
            .put_entity(EntityRecord {
                project: of,
                ..entity_record(entity(n), "ada")
            })
            .await
            .stored();
        store
            .put_agent(of, &cook, json!({"n": n}).into(), Time(1))
            .await
            .stored();
        store
            .create_space(SpaceRecord {
                project: of,
                ..space_record(space(n))
            })
            .await
            .stored();
        store
            .append(create(RunRecord {
                project: of,
                ..run_record(run(n), space(n))
            }))
            .await
            .stored();
    }
    let names = |listed: Vec<ProjectRecord>| listed.into_iter().map(|one| one.name).collect::<Vec<_>>();
    assert_eq!(names(store.projects().await.stored()), ["one", "two"]);
    assert!(store.remove_project(project(1)).await.stored());
    assert!(!store.remove_project(project(1)).await.stored());

    assert_eq!(names(store.projects().await.stored()), ["two"]);
    assert_eq!(store.key([1; 32]).await.stored(), None);
    assert_eq!(store.entity(entity(1)).await.stored(), None);
    assert_eq!(store.agent(project(1), &cook, Some(1)).await.stored(), None);
    assert_eq!(store.space(space(1)).await.stored(), None);
    assert_eq!(store.run(run(1)).await.stored(), None);
    assert_eq!(store.run_start(run(1)).await.stored(), None);
    assert_eq!(store.space_tail(space(1)).await.stored(), Seq(0));

    let two = store
        .project_named("two")
        .await
        .stored()
        .expect("the other project");
    assert_eq!(two.settings, Some(json!({"secrets": {"TOKEN": 2}}).into()));
    assert!(store.key([2; 32]).await.stored().is_some());
    assert!(store.entity(entity(2)).await.stored().is_some());
    assert!(store.agent(project(2), &cook, None).await.stored().is_some());
    assert!(store.run(run(2)).await.stored().is_some());
    assert!(store.run_start(run(2)).await.stored().is_some());
}

async fn a_key_opens_its_project_until_it_is_removed(store: Arc<dyn Store>) {
    let public = KeyRecord {
        kind: KeyKind::Public,
        name: Some("web".into()),
        created: Time(5),
        ..key_record(key(2), 2)
    };
    let theirs = KeyRecord {
        project: project(2),
        ..key_record(key(3), 3)
    };
    for record in [public.clone(), key_record(key(1), 1), theirs] {
        store.put_key(record).await.stored();
    }
    refused!(store.put_key(key_record(key(9), 1)).await, StoreError::Exists);
    refused!(store.put_key(key_record(key(1), 9)).await, StoreError::Exists);
    assert_eq!(store.key([2; 32]).await.stored(), Some(public.clone()));
    assert_eq!(store.key([9; 32]).await.stored(), None);
    assert_eq!(
        store.keys(project(1)).await.stored(),
        [key_record(key(1), 1), public]
    );
    assert!(
        !store.remove_key(project(2), key(1)).await.stored(),
        "another project's"
    );
    assert!(store.remove_key(project(1), key(1)).await.stored());
    assert!(!store.remove_key(project(1), key(1)).await.stored());
    assert_eq!(store.key([1; 32]).await.stored(), None);
}

async fn an_answer_is_remembered_with_its_append(store: Arc<dyn Store>) {
    let mut append = say(space(1), "once");
    append.idempotency = vec![answer("k")];
    store.append(append.clone()).await.stored();
    assert_eq!(
        store.idempotency(project(1), "k").await.stored(),
        Some(answer("k"))
    );
    assert_eq!(store.idempotency(project(2), "k").await.stored(), None);
    assert_eq!(store.idempotency(project(1), "K").await.stored(), None);
    append.idempotency = vec![IdempotencyRecord {
        project: project(2),
        ..answer("k")
    }];
    store.append(append).await.stored();
}

async fn an_append_with_a_known_answer_is_refused_and_nothing_is_written(store: Arc<dyn Store>) {
    let mut first = say(space(1), "once");
    first.idempotency = vec![answer("k")];
    store.append(first.clone()).await.stored();
    let mut with_run = create(run_record(run(1), space(1)));
    with_run.idempotency = first.idempotency.clone();
    refused!(store.append(with_run).await, StoreError::Exists);
    assert_eq!(store.run(run(1)).await.stored(), None);
    assert_eq!(store.run_log(run(1), EVERYTHING).await.stored().entries, []);
    let mut other = first.clone();
    other.idempotency = vec![IdempotencyRecord {
        request: [8; 32],
        ..answer("k")
    }];
    refused!(store.append(other).await, StoreError::Exists);
    assert_eq!(
        store.idempotency(project(1), "k").await.stored(),
        Some(answer("k"))
    );
    let next = store.append(say(space(1), "more")).await.stored();
    assert_eq!(next.first, Seq::durable(2));
}

async fn an_answer_is_forgotten_after_a_day(store: Arc<dyn Store>) {
    const DAY: Duration = Duration::from_hours(24);
    let at = async |time| {
        let mut append = say(space(1), "again");
        append.idempotency = vec![IdempotencyRecord { time, ..answer("k") }];
        store.append(append).await
    };
    let start = Time(1_700_000_000_000);
    at(start).await.stored();
    refused!(at(start.after(DAY)).await, StoreError::Exists);
    let later = start.after(DAY + Duration::from_millis(1));
    at(later).await.stored();
    assert_eq!(
        store
            .idempotency(project(1), "k")
            .await
            .stored()
            .expect("the answer")
            .time,
        later
    );
}

async fn a_store_says_that_it_is_ready(store: Arc<dyn Store>) {
    store.ready().await.stored();
    store.ready().await.stored();
}
