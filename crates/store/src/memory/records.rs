//! Records of built-in tools, in an ordered map.

use std::collections::{BTreeMap, HashMap, HashSet};

use toolgate_engine::records::{
    Amendment, Change, Expected, Found, FoundRecords, Listing, NewRecord, Owner, Receipt, Record, RecordSet,
    Reindexed, SearchText, Turn,
};
use toolgate_engine::store::{Purged, StoreError};
use toolgate_engine::workspace::FILE;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use toolgate_search::{ANALYSIS, Query, Weighed, rank};

/// Records of built-in tools, and receipts.
#[derive(Default)]
pub(super) struct RecordTable {
    /// Every record, by set and id, with the terms it is found by.
    kept: BTreeMap<(RecordSet, String), (Record, Option<SearchText>)>,
    receipts: HashMap<(ProjectId, String), Receipt>,
}

impl RecordTable {
    pub fn get(&self, set: RecordSet, id: &str) -> Option<Record> {
        self.kept
            .get(&(set, id.to_owned()))
            .map(|(record, _)| record.clone())
    }

    fn in_set(&self, set: RecordSet) -> impl Iterator<Item = &(Record, Option<SearchText>)> {
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

    pub fn remove_owned(&mut self, project: ProjectId, owner: Owner) -> Purged {
        let mut removed = Purged::new();
        self.kept.retain(|(set, _), _| {
            let is_owned = (set.project, set.owner) == (project, owner);
            if is_owned {
                *removed.entry(set.kind.to_owned()).or_default() += 1;
            }
            !is_owned
        });
        removed
    }

    pub fn remove_some(&mut self, project: ProjectId, owner: Owner, limit: usize) -> Purged {
        let owned = self.kept.keys();
        let owned = owned.filter(|(set, _)| (set.project, set.owner) == (project, owner));
        let chosen: Vec<_> = owned.take(limit).cloned().collect();
        let mut removed = Purged::new();
        for key in chosen {
            self.kept.remove(&key);
            *removed.entry(key.0.kind.to_owned()).or_default() += 1;
        }
        removed
    }

    /// Whether somebody owns records. Of files one is the count of what they take up, which stays when the last is deleted.
    pub fn has_owned(&self, project: ProjectId, owner: Owner) -> bool {
        let owned = self.kept.keys();
        let mut owned = owned.filter(|(set, _)| (set.project, set.owner) == (project, owner));
        let first = owned.next();
        first.is_some_and(|(set, _)| set.kind != FILE) || owned.next().is_some()
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
            turn,
        } = amendment;
        self.check_receipt(set.project, receipt.as_ref())?;
        let version = |set, id: &str| self.get(set, id).map(|record| record.version);
        let as_expected = |wanted: &Expected| version(set, &wanted.id) == wanted.version;
        let in_turn = |turn: &Turn| version(turn.set, &turn.id) == turn.version;
        if !expected.iter().all(as_expected) || !turn.iter().all(in_turn) {
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
        if let Some(turn) = turn {
            self.put(turn.set, turn.record(), now);
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

    pub fn find(&self, sets: &[RecordSet], question: &str, limit: usize) -> FoundRecords {
        let query = Query::new(question);
        let searchable: Vec<(&RecordSet, &Record, &SearchText)> = sets
            .iter()
            .flat_map(|set| self.in_set(*set).map(move |(record, text)| (set, record, text)))
            .filter_map(|(set, record, text)| Some((set, record, text.as_ref()?)))
            .collect();
        let mut rows: HashMap<&str, Vec<u64>> = HashMap::new();
        for (row, (_, _, text)) in searchable.iter().enumerate() {
            for term in &text.terms {
                rows.entry(term).or_default().push(row as u64);
            }
        }
        let having = |term: &String| rows.get(term.as_str()).cloned().unwrap_or_default();
        let lists: Vec<Vec<u64>> = query.lookups().iter().map(having).collect();
        let ranking = rank(&query, &lists, searchable.len() as u64, limit);
        let found = |(row, score): &(u64, f64)| {
            let (set, record, _) = searchable[*row as usize];
            Found {
                set: *set,
                record: without_data(record),
                score: *score,
            }
        };
        FoundRecords {
            hits: ranking.rows.iter().map(found).collect(),
            query: Weighed::new(&query, &ranking.weights),
        }
    }

    pub fn stale(&self, kind: &'static str, limit: usize) -> Vec<(RecordSet, Record)> {
        let of_kind = self.kept.iter().filter(|((set, _), _)| set.kind == kind);
        of_kind
            .filter(|(_, (_, text))| text.as_ref().is_some_and(|text| text.analysis < ANALYSIS))
            .map(|((set, _), (record, _))| (*set, record.clone()))
            .take(limit)
            .collect()
    }

    pub fn reindex(&mut self, set: RecordSet, reindexed: Vec<Reindexed>) {
        for Reindexed { id, version, text } in reindexed {
            let kept = self.kept.get_mut(&(set, id));
            if let Some((_, old)) = kept.filter(|(record, _)| record.version == version) {
                *old = Some(text);
            }
        }
    }

    pub fn sets(&self, kind: &'static str) -> Vec<RecordSet> {
        let mut sets: Vec<RecordSet> = self.kept.keys().map(|(set, _)| *set).collect();
        sets.dedup();
        sets.retain(|set| set.kind == kind);
        sets
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

fn without_data(record: &Record) -> Record {
    Record {
        data: None,
        ..record.clone()
    }
}
