//! Rate limit of the runs that one agent's plans start, per hour. The counter is one of the agent's records, so it
//! holds over all nodes and restarts.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolgate_engine::records::{Change, Expected, NewRecord, RecordSet, Records};
use toolgate_engine::store::StoreError;
use toolgate_kernel::time::Time;

const KIND: &str = "plan-hour";
const ID: &str = "starts";
const HOUR_MS: i64 = 3_600_000;
/// Most attempts to count while other nodes count too.
const ATTEMPTS: usize = 8;

/// Starts in the hour of an agent's last start.
#[derive(Default, Serialize, Deserialize)]
struct Hour {
    /// Hours since 1970.
    hour: i64,
    /// Keys of the scheduled messages that were posted: the same message counts once.
    started: BTreeSet<String>,
}

/// Counts one start against the quota of the plans in `set`. If the quota is used up it returns the time at which the
/// next hour begins, and counts nothing.
pub(super) async fn take(
    records: &Arc<dyn Records>,
    set: RecordSet,
    message_key: &str,
    max: u32,
    now: Time,
) -> Result<Option<Time>, StoreError> {
    let set = RecordSet { kind: KIND, ..set };
    let this = now.0.div_euclid(HOUR_MS);
    for _ in 0..ATTEMPTS {
        let record = records.record(set, ID).await?;
        let version = record.as_ref().map(|record| record.version);
        let stored = record.and_then(|record| record.body.read::<Hour>().ok());
        let mut hour = stored.filter(|hour| hour.hour == this).unwrap_or_default();
        if hour.started.contains(message_key) {
            return Ok(None);
        }
        if hour.started.len() >= max as usize {
            return Ok(Some(Time((this + 1) * HOUR_MS)));
        }
        hour.hour = this;
        hour.started.insert(message_key.to_owned());
        let put = Change::Put(NewRecord {
            id: ID.into(),
            body: serde_json::to_value(&hour).expect("it has text keys").into(),
            text: None,
            data: None,
            due: None,
        });
        let expected = Expected {
            id: ID.into(),
            version,
        };
        match records.change_records(set, vec![expected], vec![put], now).await {
            Ok(()) => return Ok(None),
            Err(StoreError::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    Err(StoreError::Unavailable("too many count at once".into()))
}
