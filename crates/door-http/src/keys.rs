//! API keys: made once, shown once, kept as a hash.

use toolgate_engine::store::{KeyKind, KeyRecord};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;

/// A fresh key and its row. The key itself is nowhere else.
pub fn mint(_project: ProjectId, _kind: KeyKind, _name: Option<String>, _now: Time) -> (String, KeyRecord) {
    todo!()
}

/// The row of a key that somebody chose; refused when it has the wrong prefix or is too short.
pub fn record(_key: &str, _project: ProjectId, _kind: KeyKind, _now: Time) -> Result<KeyRecord, String> {
    todo!()
}

/// What the store looks a key up by.
pub fn hash(_key: &str) -> [u8; 32] {
    todo!()
}
