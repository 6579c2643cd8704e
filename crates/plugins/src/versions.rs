//! Which package of a plugin is the current one, which ones came before it, and the storage that goes with it. Changes the
//! index alone.

use serde_json::json;
use toolgate_engine::record_index::put;
use toolgate_engine::records::Change;
use toolgate_kernel::time::Time;

use crate::index::{Index, Installed, Stored};

/// Versions that a rollback can go back to, per plugin; older ones are named by their hash.
const HISTORY_MAX: usize = 20;

/// Makes a package the current one; a plugin that was not there gets storage of its own.
pub(crate) fn made_current(index: &mut Index, plugin: &str, hash: &str, now: Time) -> Vec<Change> {
    if let Some(installed) = index.plugins.get_mut(plugin) {
        let before = std::mem::replace(&mut installed.current, hash.to_owned());
        installed.updated_at = now;
        if before != hash {
            installed.history.push(before);
            let beyond = installed.history.len().saturating_sub(HISTORY_MAX);
            installed.history.drain(..beyond);
        }
        return Vec::new();
    }
    index.installations += 1;
    let data = format!("data:{}", index.installations);
    let installed = Installed {
        current: hash.to_owned(),
        history: Vec::new(),
        data: data.clone(),
        installed_at: now,
        updated_at: now,
    };
    index.plugins.insert(plugin.to_owned(), installed);
    vec![put(data, json!({}).into())]
}

/// Makes an earlier package the current one, and forgets those that came after it.
pub(crate) fn went_back(index: &mut Index, plugin: &str, hash: &str, now: Time) {
    let Some(installed) = index.plugins.get_mut(plugin) else {
        return;
    };
    if installed.current == hash {
        return;
    }
    match installed.history.iter().rposition(|earlier| earlier == hash) {
        Some(place) => installed.history.truncate(place),
        None => installed.history.push(installed.current.clone()),
    }
    installed.current = hash.to_owned();
    installed.updated_at = now;
}

/// Whether another curator answers for a plugin than before, or nobody does any more.
pub(crate) fn changes_signer(before: &Stored, after: &Stored) -> bool {
    let curator = |package: &Stored| package.signed.by().map(|(curator, _)| curator.to_owned());
    curator(before).is_some_and(|before| curator(after) != Some(before))
}

/// Gives a plugin empty storage and deletes what it had: what one curator's code has kept is not for another's.
pub(crate) fn fresh_storage(index: &mut Index, plugin: &str) -> Vec<Change> {
    let Some(installed) = index.plugins.get_mut(plugin) else {
        return Vec::new();
    };
    index.installations += 1;
    let data = format!("data:{}", index.installations);
    let before = std::mem::replace(&mut installed.data, data.clone());
    vec![Change::Remove(before), put(data, json!({}).into())]
}
