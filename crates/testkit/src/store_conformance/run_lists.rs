//! Lists of runs.

use std::sync::Arc;

use toolgate_engine::store::{RunFilter, RunRecord, Store};
use toolgate_kernel::event::Status;
use toolgate_kernel::id::{CallId, RunId};

use super::samples::{create, project, run, run_record, space};
use super::{Stored, checks};

checks![
    runs_are_listed_newest_first_in_pages,
    a_list_keeps_to_its_filter,
    a_list_keeps_to_its_project,
];

const ALL: RunFilter = RunFilter {
    space: None,
    status: None,
    parent: None,
    before: None,
    limit: usize::MAX,
};

async fn ids(store: &Arc<dyn Store>, filter: RunFilter) -> Vec<RunId> {
    store
        .runs(project(1), filter)
        .await
        .stored()
        .into_iter()
        .map(|record| record.id)
        .collect()
}

async fn runs_are_listed_newest_first_in_pages(store: Arc<dyn Store>) {
    for n in [3, 1, 5, 2, 4] {
        store.append(create(run_record(run(n), space(n)))).await.stored();
    }
    assert_eq!(ids(&store, ALL).await, [5, 4, 3, 2, 1].map(run));
    let page = async |before| {
        ids(
            &store,
            RunFilter {
                before,
                limit: 2,
                ..ALL
            },
        )
        .await
    };
    assert_eq!(page(None).await, [run(5), run(4)]);
    assert_eq!(page(Some(run(4))).await, [run(3), run(2)]);
    assert_eq!(page(Some(run(2))).await, [run(1)]);
    assert_eq!(page(Some(run(1))).await, []);
    assert_eq!(ids(&store, RunFilter { limit: 0, ..ALL }).await, []);
}

async fn a_list_keeps_to_its_filter(store: Arc<dyn Store>) {
    for n in 1..=8 {
        let record = RunRecord {
            status: if n % 2 == 0 {
                Status::WaitingTool
            } else {
                Status::Completed
            },
            parent: (n > 4).then_some(CallId {
                run: run(1),
                number: n as u32,
            }),
            ..run_record(run(n), space(n % 3))
        };
        store.append(create(record)).await.stored();
    }
    let (space, parent) = (Some(space(2)), Some(run(1)));
    let status = Some(Status::WaitingTool);
    assert_eq!(ids(&store, RunFilter { space, ..ALL }).await, [8, 5, 2].map(run));
    assert_eq!(
        ids(&store, RunFilter { status, ..ALL }).await,
        [8, 6, 4, 2].map(run)
    );
    assert_eq!(
        ids(&store, RunFilter { parent, ..ALL }).await,
        [8, 7, 6, 5].map(run)
    );
    assert_eq!(
        ids(&store, RunFilter { space, status, ..ALL }).await,
        [8, 2].map(run)
    );
    let all = RunFilter {
        space,
        status,
        parent,
        before: Some(run(9)),
        limit: 5,
    };
    assert_eq!(ids(&store, all).await, [run(8)]);
    assert_eq!(
        ids(
            &store,
            RunFilter {
                parent: Some(run(2)),
                ..ALL
            }
        )
        .await,
        []
    );
}

async fn a_list_keeps_to_its_project(store: Arc<dyn Store>) {
    let theirs = RunRecord {
        project: project(2),
        ..run_record(run(2), space(1))
    };
    store.append(create(run_record(run(1), space(1)))).await.stored();
    store.append(create(theirs)).await.stored();
    assert_eq!(ids(&store, ALL).await, [run(1)]);
    let of_space = RunFilter {
        space: Some(space(1)),
        ..ALL
    };
    assert_eq!(ids(&store, of_space.clone()).await, [run(1)]);
    let theirs = store.runs(project(2), of_space).await.stored();
    assert_eq!(
        theirs.iter().map(|record| record.id).collect::<Vec<_>>(),
        [run(2)]
    );
    assert_eq!(store.runs(project(3), ALL).await.stored(), []);
}
