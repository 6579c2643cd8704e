//! Changes by hand of what the tools of this crate store.

use async_trait::async_trait;
use serde_json::Value;
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_engine::records::{Amendment, Change, Expected, NewRecord, Record};
use toolgate_engine::state_editor::{Edit, EditError, StateEditor};
use toolgate_engine::workspace::Only;
use toolgate_kernel::members::Members;
use toolgate_kernel::problem::{Problem, Problems};
use toolgate_kernel::time::Time;

use crate::plans::PlanLimits;
use crate::{goals, memory, plans};

/// Changes goals, memories and plans.
pub struct Editor {
    /// What changes records.
    pub updater: RecordUpdater,
    /// Limits on plans.
    pub plans: PlanLimits,
}

#[async_trait]
impl StateEditor for Editor {
    async fn change(&self, edit: Edit, now: Time) -> Result<Record, EditError> {
        let changes = edit.changes.to_value();
        let records = self.updater.records().clone();
        let read = || records.record(edit.set, &edit.id);
        let decide = |record: Option<Record>| {
            let record = record.filter(|record| is_made_for(record, &edit));
            let record = record.ok_or(EditError::Missing)?;
            match edit.only {
                Only::Always | Only::Existing => {}
                Only::Version(version) if version == record.version => {}
                Only::Version(_) | Only::New => return Err(EditError::Changed(record.version)),
            }
            let new = self.changed(edit.set.kind, &record, &changes, now)?;
            let id = new.id.clone();
            Ok((amendment(&record, new), id))
        };
        let id = self.updater.update(edit.set, now, read, decide).await?;
        let changed = records.record(edit.set, &id).await?;
        changed.ok_or(EditError::Missing)
    }
}

fn is_made_for(record: &Record, edit: &Edit) -> bool {
    let person = edit.made_for.map(|person| person.to_string());
    person.is_none_or(|person| record.body.to_value()["askedBy"] == person.as_str())
}

fn amendment(record: &Record, new: NewRecord) -> Amendment {
    let mut expected = vec![Expected {
        id: record.id.clone(),
        version: Some(record.version),
    }];
    let mut changes = Vec::new();
    if new.id != record.id {
        expected.push(Expected {
            id: new.id.clone(),
            version: None,
        });
        changes.push(Change::Remove(record.id.clone()));
    }
    changes.push(Change::Put(new));
    Amendment {
        expected,
        changes,
        ..Amendment::default()
    }
}

impl Editor {
    fn changed(
        &self,
        kind: &str,
        record: &Record,
        changes: &Value,
        now: Time,
    ) -> Result<NewRecord, EditError> {
        let known: &[&str] = match kind {
            goals::KIND => &goals::CHANGEABLE,
            memory::KIND => &memory::CHANGEABLE,
            plans::KIND => &plans::CHANGEABLE,
            _ => return Err(EditError::Missing),
        };
        let problems = Problems::of_new();
        let new = Members::open(changes, "", known, &problems).and_then(|changes| {
            if known.iter().all(|member| changes.get(member).is_none()) {
                changes.lacks(format!("expected at least one of {}", known.join(", ")));
                return None;
            }
            match kind {
                goals::KIND => goals::changed(record, &changes),
                memory::KIND => memory::changed(record, &changes),
                _ => plans::changed(record, &changes, self.plans, now),
            }
        });
        if new.is_none() && problems.is_empty() {
            tracing::error!(record = record.id, kind, "a stored record cannot be read");
            let words = "what is stored cannot be read; delete it";
            return Err(EditError::Invalid(vec![Problem::new("", words)]));
        }
        problems.or(new).map_err(EditError::Invalid)
    }
}
