//! What the gateway's own tools keep, in a plain map.

use std::collections::{BTreeMap, HashSet};

use toolgate_engine::records::{Change, Expected, Found, Listing, NewRecord, Record, Shelf};
use toolgate_engine::store::StoreError;
use toolgate_kernel::time::Time;
use toolgate_kernel::words::words;

/// Characters of a text that stand for what was found.
const SNIPPET_CHARS: usize = 200;
/// Of these, how many stand before it.
const BEFORE_CHARS: usize = 60;

/// Every record, by shelf and id, with the words it is found by.
#[derive(Default)]
pub(super) struct Shelves(BTreeMap<(Shelf, String), (Record, Option<String>)>);

impl Shelves {
    pub fn get(&self, shelf: Shelf, id: &str) -> Option<Record> {
        self.0
            .get(&(shelf, id.to_owned()))
            .map(|(record, _)| record.clone())
    }

    fn on(&self, shelf: Shelf) -> impl Iterator<Item = &(Record, Option<String>)> {
        let rest = self.0.range((shelf, String::new())..);
        rest.take_while(move |((other, _), _)| *other == shelf)
            .map(|(_, kept)| kept)
    }

    pub fn list(&self, shelf: Shelf, listing: &Listing) -> Vec<Record> {
        let wanted = self.on(shelf).map(|(record, _)| record).filter(|record| {
            let behind = listing.after.as_ref().is_none_or(|after| record.id > *after);
            behind && record.id.starts_with(&listing.prefix)
        });
        wanted.take(listing.limit).map(without_data).collect()
    }

    pub fn size(&self, shelf: Shelf) -> (u64, u64) {
        self.on(shelf).fold((0, 0), |(count, bytes), (record, _)| {
            let data = record.data.as_ref().map_or(0, Vec::len);
            (count + 1, bytes + (record.body.as_str().len() + data) as u64)
        })
    }

    pub fn change(
        &mut self,
        shelf: Shelf,
        expected: &[Expected],
        changes: Vec<Change>,
        now: Time,
    ) -> Result<(), StoreError> {
        let as_expected =
            |wanted: &Expected| self.get(shelf, &wanted.id).map(|record| record.version) == wanted.version;
        if !expected.iter().all(as_expected) {
            return Err(StoreError::Conflict);
        }
        for change in changes {
            match change {
                Change::Put(new) => self.put(shelf, new, now),
                Change::Remove(id) => _ = self.0.remove(&(shelf, id)),
                Change::Clear => self.0.retain(|(other, _), _| *other != shelf),
            }
        }
        Ok(())
    }

    fn put(&mut self, shelf: Shelf, new: NewRecord, now: Time) {
        let NewRecord {
            id,
            body,
            text,
            data,
            due,
        } = new;
        let old = self.get(shelf, &id);
        let record = Record {
            id: id.clone(),
            body,
            data,
            due,
            created: old.as_ref().map_or(now, |old| old.created),
            updated: now,
            version: old.map_or(0, |old| old.version) + 1,
        };
        self.0.insert((shelf, id), (record, text));
    }

    pub fn find(&self, shelf: Shelf, wanted: &str, limit: usize) -> Vec<Found> {
        let wanted: HashSet<String> = words(wanted).collect();
        let mut found: Vec<Found> = self
            .on(shelf)
            .filter_map(|(record, text)| {
                let text = text.as_ref()?;
                let hits = words(text).filter(|word| wanted.contains(word)).count();
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

    pub fn due(&self, kind: &'static str, now: Time, limit: usize) -> Vec<(Shelf, Record)> {
        let mut due: Vec<(Shelf, Record)> = self
            .0
            .iter()
            .filter(|((shelf, _), (record, _))| {
                shelf.kind == kind && record.due.is_some_and(|due| due <= now)
            })
            .map(|((shelf, _), (record, _))| (*shelf, without_data(record)))
            .collect();
        due.sort_by_key(|(_, record)| record.due);
        due.truncate(limit);
        due
    }

    pub fn next_due(&self, kind: &'static str) -> Option<Time> {
        let kept = self.0.iter().filter(|((shelf, _), _)| shelf.kind == kind);
        kept.filter_map(|(_, (record, _))| record.due).min()
    }
}

/// A piece of the text around the first of the words.
fn snippet(text: &str, wanted: &HashSet<String>) -> String {
    let mut at = 0;
    for part in text.split_inclusive(char::is_whitespace) {
        if words(part).any(|word| wanted.contains(&word)) {
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
