//! Usage counters of tools.

use std::sync::Arc;
use std::time::Duration;

use toolgate_engine::store::{Append, Store, StoreError};
use toolgate_engine::usage::{Day, Latency, ToolUse, Usage, UsageRecord};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::event::Seq;
use toolgate_kernel::time::Time;

use super::samples::{create, extend, project, run, run_record, say, space};
use super::{Stored, checks, refused};

checks![
    calls_are_counted_by_end_and_latency,
    figures_are_of_one_tool_of_one_project_since_a_day,
    a_refused_append_counts_nothing,
    every_code_is_read_as_it_was_written,
];

const DAY: i64 = 24 * 3600 * 1000;

pub(super) fn used(tool: &str, code: Option<ErrorCode>, millis: u64) -> ToolUse {
    ToolUse {
        project: project(1),
        tool: tool.into(),
        code,
        latency: Latency::of(Duration::from_millis(millis)),
    }
}

fn on(day: i64, usage: Vec<ToolUse>) -> Append {
    Append {
        usage,
        time: Time(day * DAY + 1),
        ..say(space(1), "a call ended")
    }
}

async fn read(store: &Arc<dyn Store>, tool: &str, since: i64) -> Vec<UsageRecord> {
    let mut records = store.usage(project(1), tool, Day(since)).await.stored();
    records.sort_by_key(|record| (record.code, record.latency));
    records
}

fn record(code: Option<ErrorCode>, millis: u64, calls: u64) -> UsageRecord {
    let latency = Latency::of(Duration::from_millis(millis));
    UsageRecord { code, latency, calls }
}

async fn calls_are_counted_by_end_and_latency(store: Arc<dyn Store>) {
    assert_eq!(read(&store, "search", 0).await, []);
    let timeout = Some(ErrorCode::Timeout);
    let two = vec![used("search", None, 5), used("search", timeout, 5)];
    store.append(on(1, two)).await.stored();
    store.append(on(1, vec![used("search", None, 5)])).await.stored();
    store
        .append(on(1, vec![used("search", None, 900)]))
        .await
        .stored();
    let expected = [record(None, 5, 2), record(None, 900, 1), record(timeout, 5, 1)];
    assert_eq!(read(&store, "search", 0).await, expected);
    assert_eq!(Usage::sum(&expected).calls, 4);
}

async fn figures_are_of_one_tool_of_one_project_since_a_day(store: Arc<dyn Store>) {
    for day in [1, 2, 4] {
        store
            .append(on(day, vec![used("search", None, 1)]))
            .await
            .stored();
    }
    store
        .append(on(4, vec![used("searches", None, 1)]))
        .await
        .stored();
    let mut foreign = used("search", None, 1);
    foreign.project = project(2);
    store.append(on(4, vec![foreign])).await.stored();
    for (since, calls) in [(0, 3), (1, 3), (2, 2), (3, 1), (4, 1)] {
        assert_eq!(read(&store, "search", since).await, [record(None, 1, calls)]);
    }
    assert_eq!(read(&store, "search", 5).await, []);
}

async fn a_refused_append_counts_nothing(store: Arc<dyn Store>) {
    let row = run_record(run(1), space(1));
    let begun = store.append(create(row.clone())).await.stored();
    let usage = vec![used("search", None, 1)];
    let stale = Append {
        usage: usage.clone(),
        ..extend(&row, Seq(begun.last().0 + Seq::STRIDE))
    };
    refused!(store.append(stale).await, StoreError::Conflict);
    assert_eq!(read(&store, "search", 0).await, []);
    let taken = Append {
        usage,
        ..extend(&row, begun.last())
    };
    store.append(taken).await.stored();
    assert_eq!(read(&store, "search", 0).await, [record(None, 1, 1)]);
}

async fn every_code_is_read_as_it_was_written(store: Arc<dyn Store>) {
    let codes = [
        ErrorCode::NotFound,
        ErrorCode::ValidationFailed,
        ErrorCode::PrerequisitesNotMet,
        ErrorCode::PermissionDenied,
        ErrorCode::LimitExceeded,
        ErrorCode::Denied,
        ErrorCode::Timeout,
        ErrorCode::Cancelled,
        ErrorCode::Superseded,
        ErrorCode::ExecutionFailed,
        ErrorCode::Interrupted,
        ErrorCode::Unavailable,
        ErrorCode::InvalidOutput,
    ];
    let usage = codes.iter().map(|code| used("search", Some(*code), 0)).collect();
    store.append(on(1, usage)).await.stored();
    let read = read(&store, "search", 0).await;
    assert_eq!(
        read.iter().map(|record| record.code).collect::<Vec<_>>(),
        codes.map(Some)
    );
}
