//! How many runs the plans of one agent may start in an hour, counted with the agent's records: on all nodes together,
//! and over restarts.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolgate_engine::records::{Change, Expected, NewRecord, Records, Shelf};
use toolgate_engine::store::StoreError;
use toolgate_kernel::time::Time;

const KIND: &str = "plan-hour";
const ID: &str = "starts";
const HOUR_MS: i64 = 3_600_000;
/// How often a count is tried while others count too.
const ATTEMPTS: usize = 8;

/// The starts of the hour that an agent's plans were last started in.
#[derive(Default, Serialize, Deserialize)]
struct Hour {
    /// Hours since 1970.
    hour: i64,
    /// What was started, by name: the same occasion counts once.
    started: BTreeSet<String>,
}

/// Counts a start of the plans on `shelf`. When it would be one too many it is not counted, and the answer is when the
/// next hour begins.
pub(super) async fn take(
    records: &Arc<dyn Records>,
    shelf: Shelf,
    occasion: &str,
    max: u32,
    now: Time,
) -> Result<Option<Time>, StoreError> {
    let shelf = Shelf { kind: KIND, ..shelf };
    let this = now.0.div_euclid(HOUR_MS);
    for _ in 0..ATTEMPTS {
        let record = records.record(shelf, ID).await?;
        let version = record.as_ref().map(|record| record.version);
        let stored = record.and_then(|record| record.body.read::<Hour>().ok());
        let mut hour = stored.filter(|hour| hour.hour == this).unwrap_or_default();
        if hour.started.contains(occasion) {
            return Ok(None);
        }
        if hour.started.len() >= max as usize {
            return Ok(Some(Time((this + 1) * HOUR_MS)));
        }
        hour.hour = this;
        hour.started.insert(occasion.to_owned());
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
        match records
            .change_records(shelf, vec![expected], vec![put], now)
            .await
        {
            Ok(()) => return Ok(None),
            Err(StoreError::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    Err(StoreError::Unavailable("too many count at once".into()))
}
