//! Records of built-in tools, in an ordered map.

use std::collections::{BTreeMap, HashMap, HashSet};

use toolgate_engine::records::{
    Amendment, Change, Expected, Found, Listing, NewRecord, Owner, Receipt, Record, RecordSet,
};
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use toolgate_kernel::words::words;

/// Characters of a text that stand for what was found.
const SNIPPET_CHARS: usize = 200;
/// Of these, how many stand before it.
const BEFORE_CHARS: usize = 60;

/// Records of built-in tools, and receipts.
#[derive(Default)]
pub(super) struct RecordTable {
    /// Every record, by set and id, with the words it is found by.
    kept: BTreeMap<(RecordSet, String), (Record, Option<String>)>,
    receipts: HashMap<(ProjectId, String), Receipt>,
}

impl RecordTable {
    pub fn get(&self, set: RecordSet, id: &str) -> Option<Record> {
        self.kept
            .get(&(set, id.to_owned()))
            .map(|(record, _)| record.clone())
    }

    fn in_set(&self, set: RecordSet) -> impl Iterator<Item = &(Record, Option<String>)> {
        let rest = self.kept.range((set, String::new())..);
        rest.take_while(move |((other, _), _)| *other == set)
            .map(|(_, kept)| kept)
    }

    fn listed(&self, set: RecordSet, listing: &Listing) -> impl Iterator<Item = &Record> {
        self.in_set(set).map(|(record, _)| record).filter(|record| {
            let behind = listing.after.as_ref().is_none_or(|after| record.id > *after);
            behind && record.id.starts_with(&listing.prefix)
        })
    }

    pub fn list(&self, set: RecordSet, listing: &Listing) -> Vec<Record> {
        let listed = self.listed(set, listing).take(listing.limit);
        listed.map(without_data).collect()
    }

    pub fn list_data(&self, set: RecordSet, listing: &Listing) -> Vec<(String, Vec<u8>)> {
        let listed = self.listed(set, listing);
        let with_data = listed.filter_map(|record| Some((record.id.clone(), record.data.clone()?)));
        with_data.take(listing.limit).collect()
    }

    pub fn receipt(&self, project: ProjectId, key: &str) -> Option<Json> {
        let receipt = self.receipts.get(&(project, key.to_owned()))?;
        Some(receipt.answer.clone())
    }

    /// Whether a receipt can be kept: `Exists` when it is there.
    pub fn check_receipt(&self, project: ProjectId, receipt: Option<&Receipt>) -> Result<(), StoreError> {
        match receipt {
            Some(receipt) if self.receipts.contains_key(&(project, receipt.key.clone())) => {
                Err(StoreError::Exists)
            }
            _ => Ok(()),
        }
    }

    pub fn keep_receipt(&mut self, project: ProjectId, receipt: Option<Receipt>) {
        let Some(receipt) = receipt else { return };
        let oldest = crate::receipts_kept_since(receipt.time);
        self.receipts.retain(|_, kept| kept.time >= oldest);
        self.receipts.insert((project, receipt.key.clone()), receipt);
    }

    /// Takes away all that somebody owns.
    pub fn remove_project(&mut self, project: ProjectId) {
        self.kept.retain(|(shelf, _), _| shelf.project != project);
        self.receipts.retain(|(of, _), _| *of != project);
    }

    pub fn remove_owned(&mut self, project: ProjectId, owner: Owner) {
        self.kept
            .retain(|(set, _), _| (set.project, set.owner) != (project, owner));
    }

    pub fn size(&self, set: RecordSet) -> (u64, u64) {
        self.in_set(set).fold((0, 0), |(count, bytes), (record, _)| {
            let data = record.data.as_ref().map_or(0, Vec::len);
            (count + 1, bytes + (record.body.as_str().len() + data) as u64)
        })
    }

    pub fn amend(&mut self, set: RecordSet, amendment: Amendment, now: Time) -> Result<(), StoreError> {
        let Amendment {
            expected,
            at_most,
            changes,
            receipt,
        } = amendment;
        self.check_receipt(set.project, receipt.as_ref())?;
        let as_expected =
            |wanted: &Expected| self.get(set, &wanted.id).map(|record| record.version) == wanted.version;
        if !expected.iter().all(as_expected) {
            return Err(StoreError::Conflict);
        }
        if at_most.is_some_and(|most| self.count_after(set, &changes) as u64 > most) {
            return Err(StoreError::Conflict);
        }
        for change in changes {
            match change {
                Change::Put(new) => self.put(set, new, now),
                Change::Remove(id) => _ = self.kept.remove(&(set, id)),
                Change::Clear => self.kept.retain(|(other, _), _| *other != set),
            }
        }
        self.keep_receipt(set.project, receipt);
        Ok(())
    }

    fn count_after(&self, set: RecordSet, changes: &[Change]) -> usize {
        let mut ids: HashSet<&str> = self.in_set(set).map(|(record, _)| record.id.as_str()).collect();
        for change in changes {
            match change {
                Change::Put(new) => _ = ids.insert(&new.id),
                Change::Remove(id) => _ = ids.remove(id.as_str()),
                Change::Clear => ids.clear(),
            }
        }
        ids.len()
    }

    fn put(&mut self, set: RecordSet, new: NewRecord, now: Time) {
        let NewRecord {
            id,
            body,
            text,
            data,
            due,
        } = new;
        let old = self.get(set, &id);
        let record = Record {
            id: id.clone(),
            body,
            data,
            due,
            created: old.as_ref().map_or(now, |old| old.created),
            updated: now,
            version: old.map_or(0, |old| old.version) + 1,
        };
        self.kept.insert((set, id), (record, text));
    }

    pub fn find(&self, set: RecordSet, wanted: &str, limit: usize) -> Vec<Found> {
        let wanted: HashSet<String> = words(wanted).map(stem).collect();
        let mut found: Vec<Found> = self
            .in_set(set)
            .filter_map(|(record, text)| {
                let text = text.as_ref()?;
                let hits = words(text).map(stem).filter(|word| wanted.contains(word)).count();
                (hits > 0).then(|| Found {
                    record: without_data(record),
                    score: hits as f64,
                    snippet: snippet(text, &wanted),
                })
            })
            .collect();
        found.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| a.record.id.cmp(&b.record.id))
        });
        found.truncate(limit);
        found
    }

    pub fn due(&self, kind: &'static str, now: Time, limit: usize) -> Vec<(RecordSet, Record)> {
        let mut due: Vec<(RecordSet, Record)> = self
            .kept
            .iter()
            .filter(|((set, _), (record, _))| set.kind == kind && record.due.is_some_and(|due| due <= now))
            .map(|((set, _), (record, _))| (*set, without_data(record)))
            .collect();
        due.sort_by_key(|(_, record)| record.due);
        due.truncate(limit);
        due
    }

    pub fn next_due(&self, kind: &'static str) -> Option<Time> {
        let kept = self.kept.iter().filter(|((set, _), _)| set.kind == kind);
        kept.filter_map(|(_, (record, _))| record.due).min()
    }
}

/// A word without its usual endings: enough that `running shoes` are found by `run shoe`.
fn stem(mut word: String) -> String {
    for ending in ["ing", "ed", "s"] {
        let Some(start) = word.strip_suffix(ending) else {
            continue;
        };
        let said = start.contains(['a', 'e', 'i', 'o', 'u', 'y']) && !start.ends_with('s');
        if said && start.is_ascii() {
            word.truncate(start.len());
            let doubled =
                word.len() > 2 && word.as_bytes()[word.len() - 1] == word.as_bytes()[word.len() - 2];
            if ending != "s" && doubled && !word.ends_with(['l', 's', 'z']) {
                word.pop();
            }
            break;
        }
    }
    word
}

/// A piece of the text around the first of the words.
fn snippet(text: &str, wanted: &HashSet<String>) -> String {
    let mut at = 0;
    for part in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        if words(part).map(stem).any(|word| wanted.contains(&word)) {
            break;
        }
        at += part.len();
    }
    let before = text[..at].char_indices().rev().take(BEFORE_CHARS).last();
    let start = before.map_or(at, |(start, _)| start);
    text[start..].chars().take(SNIPPET_CHARS).collect()
}

fn without_data(record: &Record) -> Record {
    Record {
        data: None,
        ..record.clone()
    }
}
