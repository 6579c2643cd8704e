//! Deleting runs, spaces and people, and what is left of their logs.

use std::sync::Arc;

use toolgate_engine::consumption::{Consumed, Consumer, Consumption, Days};
use toolgate_engine::store::{
    Deleted, LogPlace, LogRange, MemberRecord, RunRecord, RunWrite, SpaceRecord, Store, StoreError, Trim,
    TrimLimit,
};
use toolgate_engine::usage::Day;
use toolgate_kernel::event::{Said, Seq, Status};
use toolgate_kernel::id::{CallId, MessageId, RunId, SpaceId};
use toolgate_kernel::message::Message;
use toolgate_kernel::time::Time;

use super::samples::{
    EVERYTHING, create, entity, entity_record, extend, node, project, run, run_record, say, space,
    space_record, text,
};
use super::{Stored, checks, refused};

checks! {
    an_ended_run_is_removed_and_an_open_one_is_not,
    places_are_not_given_again_after_the_last_entries_were_deleted,
    a_log_is_trimmed_in_portions,
    entries_of_no_run_are_trimmed_by_their_time,
    entries_of_no_run_are_found_in_spaces_with_and_without_runs,
    deletions_and_rewrites_of_a_space_are_counted,
    sums_of_a_person_become_those_of_nobody_and_old_ones_go,
    nodes_that_are_long_gone_are_forgotten_unless_they_hold_a_run,
    a_space_that_was_emptied_counts_for_no_quota,
    a_removed_space_takes_no_new_run_and_no_message,
    trees_end_with_their_last_run,
    only_the_project_itself_learns_what_was_deleted,
    entries_are_found_by_their_text_and_rewritten,
    an_entity_is_removed_and_its_memberships_stay_until_its_spaces_are_left,
    nothing_begins_for_a_person_who_was_deleted,
    what_is_consumed_for_a_deleted_person_counts_for_nobody,
    figures_of_tools_are_removed_by_day,
}

const ALL: TrimLimit = TrimLimit {
    entries: 1_000,
    bytes: usize::MAX,
};

/// Creates a run with one entry and ends it with another, at `time`.
async fn ended(store: &dyn Store, record: RunRecord, time: i64) {
    let begun = store.append(create(record.clone())).await.stored();
    end(store, &record, begun.last(), time).await;
}

async fn end(store: &dyn Store, record: &RunRecord, seen: Seq, time: i64) {
    let mut last = extend(record, seen);
    last.time = Time(time);
    let RunWrite::Extend { status, .. } = &mut last.run else {
        unreachable!("an extension")
    };
    *status = Status::Completed;
    store.append(last).await.stored();
}

async fn places(store: &dyn Store, of: u64) -> Vec<u64> {
    let log = store.space_log(space(of), EVERYTHING).await.stored();
    log.entries.iter().map(|entry| entry.first.index()).collect()
}

async fn an_ended_run_is_removed_and_an_open_one_is_not(store: Arc<dyn Store>) {
    store.create_space(space_record(space(1))).await.stored();
    let open = run_record(run(2), space(1));
    ended(&*store, run_record(run(1), space(1)), 5).await;
    store.append(create(open.clone())).await.stored();
    let both = vec![run(1), run(2)];
    refused!(
        store.remove_runs(project(1), both, Time(6)).await,
        StoreError::Conflict
    );
    assert!(store.run(run(1)).await.stored().is_some(), "all or none");
    let other_project = store.remove_runs(project(2), vec![run(1)], Time(6)).await;
    other_project.stored();
    assert!(store.run(run(1)).await.stored().is_some(), "not of that project");

    for _ in 0..2 {
        store
            .remove_runs(project(1), vec![run(1)], Time(6))
            .await
            .stored();
        store.trim_log(Trim::Run(run(1)), ALL).await.stored();
    }
    assert_eq!(store.run(run(1)).await.stored(), None);
    assert!(
        store
            .run_log(run(1), EVERYTHING)
            .await
            .stored()
            .entries
            .is_empty()
    );
    assert_eq!(places(&*store, 1).await, [3], "the open run's");
    assert_eq!(store.log_floor(space(1)).await.stored(), Seq::durable(2));
    let version = store.run(run(2)).await.stored().expect("it is there").version;
    end(&*store, &open, version, 7).await;
    assert_eq!(places(&*store, 1).await, [3, 4]);
}

async fn places_are_not_given_again_after_the_last_entries_were_deleted(store: Arc<dyn Store>) {
    store.create_space(space_record(space(1))).await.stored();
    store.append(say(space(1), "before")).await.stored();
    ended(&*store, run_record(run(1), space(1)), 5).await;
    assert_eq!(store.log_floor(space(1)).await.stored(), Seq(0));
    store
        .remove_runs(project(1), vec![run(1)], Time(6))
        .await
        .stored();
    store.trim_log(Trim::Run(run(1)), ALL).await.stored();
    assert_eq!(store.space_tail(space(1)).await.stored(), Seq::durable(3));
    let next = store.append(say(space(1), "after")).await.stored();
    assert_eq!(next.first, Seq::durable(4));
    let page = store
        .space_log(space(1), LogRange::after(Seq::durable(2)))
        .await
        .stored();
    assert_eq!(page.entries.len(), 1, "from a cursor in the gap on");
    assert_eq!(places(&*store, 1).await, [1, 4]);
}

async fn a_log_is_trimmed_in_portions(store: Arc<dyn Store>) {
    let record = run_record(run(1), space(1));
    store.create_space(space_record(space(1))).await.stored();
    let mut seen = store.append(create(record.clone())).await.stored().last();
    for _ in 0..8 {
        seen = store.append(extend(&record, seen)).await.stored().last();
    }
    end(&*store, &record, seen, 5).await;
    store
        .remove_runs(project(1), vec![run(1)], Time(6))
        .await
        .stored();
    let few = TrimLimit {
        entries: 4,
        bytes: usize::MAX,
    };
    let stored = store.run_bytes(run(1)).await.stored();
    assert_eq!(store.run_bytes(run(2)).await.stored(), 0, "it stored nothing");
    let first = store.trim_log(Trim::Run(run(1)), few).await.stored();
    assert_eq!((first.entries, first.more), (4, true));
    assert!(first.bytes > 0);
    assert_eq!(store.log_floor(space(1)).await.stored(), Seq::durable(4));
    let small = TrimLimit {
        entries: 100,
        bytes: 1,
    };
    let second = store.trim_log(Trim::Run(run(1)), small).await.stored();
    assert_eq!((second.entries, second.more), (1, true), "one at least");
    let rest = store.trim_log(Trim::Run(run(1)), ALL).await.stored();
    assert_eq!((rest.entries, rest.more), (5, false));
    assert_eq!(stored, first.bytes + second.bytes + rest.bytes);
    let none = store.trim_log(Trim::Run(run(1)), ALL).await.stored();
    assert_eq!((none.entries, none.more), (0, false));
}

async fn entries_of_no_run_are_trimmed_by_their_time(store: Arc<dyn Store>) {
    store.create_space(space_record(space(1))).await.stored();
    for time in [1, 5, 9] {
        let mut append = say(space(1), "hello");
        append.time = Time(time);
        store.append(append).await.stored();
    }
    store.append(create(run_record(run(1), space(1)))).await.stored();
    let trimmed = store.trim_log(Trim::Loose(space(1), Time(6)), ALL).await.stored();
    assert_eq!(trimmed.entries, 2);
    assert_eq!(places(&*store, 1).await, [3, 4]);
}

async fn entries_of_no_run_are_found_in_spaces_with_and_without_runs(store: Arc<dyn Store>) {
    let at = |n: u64, time: i64| {
        let mut append = say(space(n), "hello");
        append.time = Time(time);
        append
    };
    for n in 1..=4 {
        store.create_space(space_record(space(n))).await.stored();
    }
    store.append(create(run_record(run(1), space(1)))).await.stored();
    // Clocks of nodes differ, so a later place may have an earlier time.
    for (n, time) in [(1, 5), (1, 3), (1, 9), (3, 4), (4, 8)] {
        store.append(at(n, time)).await.stored();
    }
    let none = SpaceId::from_bytes([0; 16]);
    let looked = store.loose_spaces(project(1), Time(6), none, 3).await.stored();
    assert_eq!(
        (looked.spaces, looked.next),
        (vec![space(1), space(3)], Some(space(3)))
    );
    let rest = store
        .loose_spaces(project(1), Time(6), space(3), 3)
        .await
        .stored();
    assert_eq!((rest.spaces, rest.next), (vec![], None), "too new");
    let foreign = store.loose_spaces(project(2), Time(6), none, 3).await.stored();
    assert_eq!((foreign.spaces, foreign.next), (vec![], None));

    let start = (Time(i64::MIN), Seq(0));
    let first = store.loose_entries(space(1), Time(6), start, 1).await.stored();
    assert_eq!(first[0].time, Time(3));
    let after = (first[0].time, first[0].first);
    let rest = store.loose_entries(space(1), Time(6), after, 9).await.stored();
    let times: Vec<Time> = rest.iter().map(|entry| entry.time).collect();
    assert_eq!(times, [Time(5)]);
    assert!(rest[0].run.is_none());
    let one = TrimLimit {
        entries: 1,
        bytes: usize::MAX,
    };
    let trimmed = store.trim_log(Trim::Loose(space(1), Time(6)), one).await.stored();
    assert_eq!((trimmed.entries, trimmed.more), (1, true));
    let trimmed = store.trim_log(Trim::Loose(space(1), Time(6)), ALL).await.stored();
    assert_eq!((trimmed.entries, trimmed.more), (1, false));
    assert_eq!(places(&*store, 1).await, [1, 4]);
    assert_eq!(store.log_floor(space(1)).await.stored(), Seq::durable(3));
}

async fn deletions_and_rewrites_of_a_space_are_counted(store: Arc<dyn Store>) {
    store.create_space(space_record(space(1))).await.stored();
    store.append(say(space(1), "first")).await.stored();
    ended(&*store, run_record(run(1), space(1)), 5).await;
    ended(&*store, run_record(run(2), space(1)), 5).await;
    let count = async || store.log_rewrites(space(1)).await.stored();
    assert_eq!(count().await, 0);
    store.trim_log(Trim::Run(run(2)), ALL).await.stored();
    let later = count().await;
    assert!(later > 0);
    // Before what was deleted: the floor stays where it is.
    store.trim_log(Trim::Run(run(1)), ALL).await.stored();
    let earlier = count().await;
    assert!(earlier > later, "{earlier} after {later}");
    let floor = store.log_floor(space(1)).await.stored();
    let log = store.space_log(space(1), EVERYTHING).await.stored();
    let entry = log.entries[0].clone();
    store.rewrite_entry(entry, vec![text("(removed)")]).await.stored();
    assert!(count().await > earlier);
    assert_eq!(
        store.log_floor(space(1)).await.stored(),
        floor,
        "nothing was deleted"
    );
    assert_eq!(store.log_rewrites(space(2)).await.stored(), 0);
}

async fn sums_of_a_person_become_those_of_nobody_and_old_ones_go(store: Arc<dyn Store>) {
    let day = |day: i64| Time(day * 24 * 3_600_000);
    store.create_space(space_record(space(1))).await.stored();
    for (number, (of, time)) in [(Some(1), 1), (Some(1), 2), (None, 2), (Some(2), 3)]
        .into_iter()
        .enumerate()
    {
        let mut begin = create(run_record(run(number as u64 + 1), space(1)));
        begin.time = day(time);
        begin.consumption = vec![Consumption {
            project: project(1),
            agent: "cook".parse().expect("a name"),
            user: of.map(entity),
            model: "demo:demo".into(),
            consumed: Consumed::RUN,
        }];
        store.append(begin).await.stored();
        end(
            &*store,
            &run_record(run(number as u64 + 1), space(1)),
            Seq::durable(2 * number as u64 + 1),
            time,
        )
        .await;
    }
    let days = Days {
        first: Day(0),
        last: Day(9),
    };
    let runs = async |consumer| store.consumed(project(1), consumer, days).await.stored().runs;
    assert_eq!(runs(Consumer::User(entity(1))).await, 2);
    let other = store.unlink_consumption(project(2), entity(1), 9).await;
    assert_eq!(other.stored(), 0, "of another project");
    let first = store.unlink_consumption(project(1), entity(1), 1).await;
    assert_eq!(first.stored(), 1);
    let rest = store.unlink_consumption(project(1), entity(1), 9).await;
    assert_eq!(rest.stored(), 1);
    assert_eq!(runs(Consumer::User(entity(1))).await, 0);
    assert_eq!(runs(Consumer::User(entity(2))).await, 1);
    assert_eq!(runs(Consumer::Project).await, 4, "none is lost");
    let removed = store.remove_consumption(project(1), Day(3), 1).await.stored();
    assert_eq!(removed, 1);
    assert_eq!(runs(Consumer::Project).await, 3);
    let removed = store.remove_consumption(project(1), Day(3), 9).await.stored();
    assert_eq!(removed, 1, "two runs of nobody on one day are one sum");
    assert_eq!(runs(Consumer::Project).await, 1);
}

async fn nodes_that_are_long_gone_are_forgotten_unless_they_hold_a_run(store: Arc<dyn Store>) {
    store.create_space(space_record(space(1))).await.stored();
    store.append(create(run_record(run(1), space(1)))).await.stored();
    for (n, until) in [(7, 10), (8, 10), (9, 100)] {
        store.heartbeat(node(n), Time(until)).await.stored();
    }
    let claimed = store.claim(run(1), node(8), Time(5)).await.stored();
    assert!(claimed.is_some());
    assert_eq!(store.forget_nodes(Time(50)).await.stored(), 1);
    assert_eq!(store.forget_nodes(Time(50)).await.stored(), 0);
    let claimable = store.claimable(Time(50), 9).await.stored();
    assert_eq!(claimable, [run(1)], "the runs of the holder are still found");
}

async fn a_space_that_was_emptied_counts_for_no_quota(store: Arc<dyn Store>) {
    let has = async || store.holdings(project(1), entity(1)).await.stored().spaces;
    for number in [1, 2, 3] {
        let record = SpaceRecord {
            by_backend: false,
            members: vec![entity(1)],
            ..space_record(space(number))
        };
        store.create_space(record).await.stored();
    }
    assert_eq!(has().await, 3, "nothing was said in them yet");
    ended(&*store, run_record(run(1), space(1)), 5).await;
    ended(&*store, run_record(run(2), space(2)), 5).await;
    store.append(say(space(2), "hello")).await.stored();
    for number in [1, 2] {
        let runs = vec![run(number)];
        store.remove_runs(project(1), runs, Time(6)).await.stored();
        assert_eq!(has().await, 4 - number, "its entries are there");
        store.trim_log(Trim::Run(run(number)), ALL).await.stored();
        assert_eq!(has().await, 2, "one has nothing, another what started no run");
    }
    store.trim_log(Trim::Loose(space(2), Time(9)), ALL).await.stored();
    assert_eq!(has().await, 1);
    store.append(say(space(1), "again")).await.stored();
    assert_eq!(has().await, 2);
}

async fn a_removed_space_takes_no_new_run_and_no_message(store: Arc<dyn Store>) {
    let record = run_record(run(1), space(1));
    let home = SpaceRecord {
        members: vec![entity(1)],
        ..space_record(space(1))
    };
    store.create_space(home.clone()).await.stored();
    let begun = store.append(create(record.clone())).await.stored();
    store.remove_space(project(2), space(1), Time(5)).await.stored();
    assert!(
        store.space(space(1)).await.stored().is_some(),
        "of another project"
    );
    for _ in 0..2 {
        store.remove_space(project(1), space(1), Time(5)).await.stored();
    }
    assert_eq!(store.space(space(1)).await.stored(), None);
    assert_eq!(store.member(space(1), entity(1)).await.stored(), None);
    refused!(
        store.append(say(space(1), "late")).await,
        StoreError::SpaceDeleted
    );
    let late = create(run_record(run(2), space(1)));
    refused!(store.append(late).await, StoreError::SpaceDeleted);
    let mut again = create(run_record(run(3), space(1)));
    let RunWrite::Create { space: made, .. } = &mut again.run else {
        unreachable!("a new run")
    };
    *made = Some(Box::new(home));
    refused!(store.append(again).await, StoreError::SpaceDeleted);
    end(&*store, &record, begun.last(), 6).await;
    let trimmed = store.trim_log(Trim::Space(space(1)), ALL).await.stored();
    assert_eq!((trimmed.entries, trimmed.more), (2, false));
    assert!(places(&*store, 1).await.is_empty());
    assert_eq!(store.log_floor(space(1)).await.stored(), Seq(0));
}

async fn trees_end_with_their_last_run(store: Arc<dyn Store>) {
    let child = |n: u64, of: u64| RunRecord {
        parent: Some(CallId {
            run: run(of),
            number: 0,
        }),
        root: run(of),
        ..run_record(run(n), space(n))
    };
    for (id, time) in [(1, 5), (2, 3), (3, 20), (4, 4)] {
        ended(&*store, run_record(run(id), space(id)), time).await;
    }
    ended(&*store, child(11, 1), 9).await;
    store.append(create(child(12, 2))).await.stored();
    let foreign = RunRecord {
        project: project(2),
        ..run_record(run(5), space(5))
    };
    ended(&*store, foreign, 1).await;
    let ids = async |before: i64, limit: usize| {
        let trees = store.ended_trees(project(1), Time(before), limit).await.stored();
        trees.into_iter().map(|run| run.id).collect::<Vec<RunId>>()
    };
    assert_eq!(
        ids(8, 10).await,
        [run(4)],
        "one has a later child, one an open one"
    );
    assert_eq!(ids(9, 10).await, [run(4), run(1)]);
    assert_eq!(ids(30, 2).await, [run(4), run(1)]);
    assert_eq!(ids(30, 10).await, [run(4), run(1), run(3)]);
}

async fn only_the_project_itself_learns_what_was_deleted(store: Arc<dyn Store>) {
    ended(&*store, run_record(run(1), space(1)), 5).await;
    store
        .remove_runs(project(1), vec![run(1)], Time(6))
        .await
        .stored();
    let id = Deleted::Run(run(1));
    assert!(store.was_deleted(project(1), id).await.stored());
    assert!(!store.was_deleted(project(2), id).await.stored());
    assert!(
        !store
            .was_deleted(project(1), Deleted::Space(space(1)))
            .await
            .stored()
    );
    let days = |days: i64| Time(6 + days * 24 * 3_600_000);
    store.remove_space(project(1), space(9), days(6)).await.stored();
    assert!(store.was_deleted(project(1), id).await.stored());
    store.remove_space(project(1), space(9), days(8)).await.stored();
    assert!(!store.was_deleted(project(1), id).await.stored(), "long ago");
}

async fn entries_are_found_by_their_text_and_rewritten(store: Arc<dyn Store>) {
    for n in 1..=3 {
        store.create_space(space_record(space(n))).await.stored();
        for words in ["one needle", "hay", "two needles"] {
            store.append(say(space(n), words)).await.stored();
        }
    }
    let (mut after, mut found) = (LogPlace::start(), Vec::new());
    loop {
        let page = store.find_entries(project(1), "needle", after, 2).await.stored();
        found.extend(page.entries);
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    let seen: Vec<_> = found
        .iter()
        .map(|entry| (entry.space, entry.first.index()))
        .collect();
    assert_eq!(
        seen,
        [(1, 1), (1, 3), (2, 1), (2, 3), (3, 1), (3, 3)].map(|(n, place)| (space(n), place))
    );
    let other = store
        .find_entries(project(2), "needle", LogPlace::start(), 100)
        .await
        .stored();
    assert!(other.entries.is_empty());

    let before = found.remove(1);
    store
        .rewrite_entry(before.clone(), vec![text("gone")])
        .await
        .stored();
    let log = store.space_log(space(1), EVERYTHING).await.stored();
    assert_eq!(log.entries[2].events, [text("gone")]);
    assert_eq!(
        (log.entries[2].first, log.entries[2].time),
        (before.first, before.time)
    );
    let again = store.rewrite_entry(before, vec![text("other")]).await;
    refused!(again, StoreError::Conflict);
    store.remove_space(project(1), space(2), Time(1)).await.stored();
    store.trim_log(Trim::Space(space(2)), ALL).await.stored();
    store
        .rewrite_entry(found.remove(1), vec![text("x")])
        .await
        .stored();
    assert!(places(&*store, 2).await.is_empty(), "it stays deleted");
}

async fn an_entity_is_removed_and_its_memberships_stay_until_its_spaces_are_left(store: Arc<dyn Store>) {
    store.put_entity(entity_record(entity(1), "ada")).await.stored();
    store.put_entity(entity_record(entity(2), "bob")).await.stored();
    let shared = SpaceRecord {
        members: vec![entity(1), entity(2)],
        ..space_record(space(1))
    };
    store.create_space(shared).await.stored();
    for n in 1..=3 {
        let started = RunRecord {
            user: Some(entity(if n == 3 { 2 } else { 1 })),
            title: Some("what I said".into()),
            ..run_record(run(n), space(1))
        };
        ended(&*store, started, 5).await;
    }
    assert_eq!(store.unlink_runs(project(1), entity(1), 1).await.stored(), 1);
    assert_eq!(store.unlink_runs(project(1), entity(1), 9).await.stored(), 1);
    assert_eq!(store.unlink_runs(project(1), entity(1), 9).await.stored(), 0);
    let row = store.run(run(1)).await.stored().expect("it stays");
    assert_eq!((row.user, row.title), (None, None));
    let row = store.run(run(3)).await.stored().expect("it stays");
    assert_eq!(row.user, Some(entity(2)));
    let remove = async |of: u64| {
        store
            .remove_entity(project(of), entity(1), Time(6))
            .await
            .stored()
    };
    assert!(!remove(2).await);
    assert!(remove(1).await);
    assert!(!remove(1).await);
    assert_eq!(store.entity_of(project(1), "ada").await.stored(), None);
    let theirs = async || {
        let theirs = store.spaces(project(1), Some(entity(1)), None, 9).await.stored();
        theirs.into_iter().map(|space| space.id).collect::<Vec<_>>()
    };
    assert_eq!(theirs().await, [space(1)], "so that they are found");
    store.remove_member(space(1), entity(1)).await.stored();
    assert!(theirs().await.is_empty());
    let left = store.space(space(1)).await.stored().expect("it stays");
    assert_eq!(left.members, [entity(2)]);
}

async fn nothing_begins_for_a_person_who_was_deleted(store: Arc<dyn Store>) {
    let with = |n: u64, members: Vec<_>| SpaceRecord {
        members,
        ..space_record(space(n))
    };
    let run_of = |n: u64, of: u64| RunRecord {
        user: Some(entity(of)),
        ..run_record(run(n), space(1))
    };
    let said_by = |of: u64| {
        let mut append = say(space(1), "hello");
        let message = Message::new(MessageId::from_bytes([9; 16]), Some(entity(of)), Vec::new());
        append.events = vec![Said { message }.into()];
        append
    };
    for (n, subject) in [(1, "ada"), (2, "bob"), (4, "cy")] {
        store.put_entity(entity_record(entity(n), subject)).await.stored();
    }
    let both = vec![entity(1), entity(2)];
    store.create_space(with(1, both)).await.stored();
    let open = run_of(1, 1);
    let begun = store.append(create(open.clone())).await.stored();
    for _ in 0..2 {
        store.remove_entity(project(1), entity(1), Time(6)).await.stored();
    }
    let other_project = store.remove_entity(project(2), entity(4), Time(6)).await;
    other_project.stored();
    let gone = Deleted::Entity(entity(1));
    assert!(store.was_deleted(project(1), gone).await.stored());
    assert!(!store.was_deleted(project(2), gone).await.stored());

    let among_others = vec![entity(2), entity(1)];
    for members in [vec![entity(1)], among_others] {
        refused!(
            store.create_space(with(2, members)).await,
            StoreError::EntityDeleted
        );
    }
    assert_eq!(store.space(space(2)).await.stored(), None);
    store.create_space(with(2, vec![entity(2)])).await.stored();
    refused!(
        store.add_member(space(2), entity(1)).await,
        StoreError::EntityDeleted
    );
    let given = MemberRecord::default();
    refused!(
        store.put_member(space(2), entity(1), given).await,
        StoreError::EntityDeleted
    );
    refused!(store.append(said_by(1)).await, StoreError::EntityDeleted);
    refused!(
        store.append(create(run_of(2, 1))).await,
        StoreError::EntityDeleted
    );
    let mut in_new_space = create(run_record(run(3), space(3)));
    let RunWrite::Create { space: made, .. } = &mut in_new_space.run else {
        unreachable!("a new run")
    };
    *made = Some(Box::new(with(3, vec![entity(1)])));
    refused!(store.append(in_new_space).await, StoreError::EntityDeleted);
    assert_eq!(store.space(space(3)).await.stored(), None);
    assert_eq!(places(&*store, 1).await, [begun.first.index()]);

    // What was under way ends as it would have.
    end(&*store, &open, begun.last(), 7).await;
    // Somebody new with the same subject, and everybody else.
    let again = store
        .ensure_entity(entity_record(entity(3), "ada"))
        .await
        .stored();
    assert_eq!(again.id, entity(3));
    for of in [2, 3, 4] {
        store.add_member(space(1), entity(of)).await.stored();
        store.append(said_by(of)).await.stored();
        ended(&*store, run_of(10 + of, of), 8).await;
    }
}

async fn what_is_consumed_for_a_deleted_person_counts_for_nobody(store: Arc<dyn Store>) {
    let of = |person: u64| Consumption {
        project: project(1),
        agent: "cook".parse().expect("a name"),
        user: Some(entity(person)),
        model: "demo:demo".into(),
        consumed: Consumed::RUN,
    };
    store.create_space(space_record(space(1))).await.stored();
    store.put_entity(entity_record(entity(1), "ada")).await.stored();
    let record = run_record(run(1), space(1));
    let mut seen = store.append(create(record.clone())).await.stored().last();
    store.remove_entity(project(1), entity(1), Time(6)).await.stored();
    for person in [1, 2] {
        let mut reply = extend(&record, seen);
        reply.consumption = vec![of(person)];
        seen = store.append(reply).await.stored().last();
    }
    let days = Days {
        first: Day(0),
        last: Day(9),
    };
    let runs = async |consumer| store.consumed(project(1), consumer, days).await.stored().runs;
    assert_eq!(runs(Consumer::User(entity(1))).await, 0);
    assert_eq!(runs(Consumer::User(entity(2))).await, 1);
    assert_eq!(runs(Consumer::Project).await, 2, "none is lost");
}

async fn figures_of_tools_are_removed_by_day(store: Arc<dyn Store>) {
    let day = 24 * 3_600_000;
    for (n, time) in [(1, 0), (2, day), (3, 2 * day)] {
        let mut append = create(run_record(run(n), space(n)));
        append.time = Time(time);
        append.usage = vec![super::usage::used("search", None, 5)];
        store.append(append).await.stored();
    }
    assert_eq!(store.remove_usage(project(2), Day(5)).await.stored(), 0);
    assert_eq!(store.remove_usage(project(1), Day(1)).await.stored(), 1);
    let left = store.usage(project(1), "search", Day(0)).await.stored();
    assert_eq!(left.iter().map(|record| record.calls).sum::<u64>(), 2);
}
