//! Whether a gateway shows what is stored, and nothing else.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Api;
use super::stored::{Stored, StoredEvent};

/// Compares every list of runs and of events with the database.
pub async fn compare(api: &Api, stored: &Stored) {
    let known = stored.runs.keys().cloned().collect();
    assert_eq!(api.runs().await, known, "the runs that are listed");
    let mut spaces: BTreeMap<&str, Vec<&StoredEvent>> = BTreeMap::new();
    for event in &stored.events {
        spaces.entry(&event.space).or_default().push(event);
    }
    for (space, log) in &spaces {
        same(api, &format!("/v1/spaces/{space}/events"), log).await;
    }
    for (name, run) in &stored.runs {
        same(api, &format!("/v1/runs/{name}/events"), &stored.log(name)).await;
        let shown = api.get(&format!("/v1/runs/{name}")).await.body;
        assert_eq!(
            [&shown["status"], &shown["spaceId"]],
            [&Value::from(run.status.as_str()), &run.space.as_str().into()],
            "{shown}"
        );
    }
}

async fn same(api: &Api, path: &str, log: &[&StoredEvent]) {
    let shown = api.list(path).await;
    let places: Vec<u64> = shown.iter().map(|event| event.seq).collect();
    let stored: Vec<u64> = log.iter().map(|stored| stored.event.seq).collect();
    assert_eq!(places, stored, "the places of {path}");
    for (shown, stored) in shown.iter().zip(log) {
        assert_eq!(shown.data, stored.shown(), "{path}");
    }
}
