//! What a process did to its disk, and what the disk holds when the power fails.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use crate::harness::Random;

/// Bytes that a disk writes whole or not at all.
const SECTOR: usize = 512;
/// Bytes of `struct record` in shim.c.
const HEAD: usize = 32;

/// Everything that happened, in order.
pub struct Journal {
    bytes: Vec<u8>,
    pub records: Vec<Record>,
}

/// One change of a file or of a name, or a sync.
#[derive(Debug, Clone)]
pub struct Record {
    pub name: String,
    pub step: Step,
    /// Where it ends in the journal.
    pub end: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Create,
    /// Gives the file this many bytes.
    Cut(u64),
    /// Writes these bytes of the journal at an offset.
    Write(u64, Range<usize>),
    Sync {
        worked: bool,
    },
    Remove,
    /// Gives the file this name.
    Rename(String),
}

/// What becomes of changes that no sync has made sure of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unsynced {
    /// Nothing of them is on the disk.
    Lost,
    /// Any of them are, whole or in part.
    Torn,
    /// All of them are: the process was killed, the power stays on.
    Kept,
}

/// The files of a directory.
pub type Files = BTreeMap<String, Vec<u8>>;

impl Journal {
    pub fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).expect("a journal");
        let mut records = Vec::new();
        let mut at = 0;
        // The last record may be half written: its process was killed.
        while let Some((record, end)) = parse(&bytes, at) {
            records.push(record);
            at = end;
        }
        Self { bytes, records }
    }

    /// How many records stand before this place of the journal.
    pub fn before(&self, place: u64) -> usize {
        self.records.partition_point(|record| record.end <= place)
    }

    /// What is on the disk when the power fails after `count` records. Syncs after the first `honest` ones have lied: they
    /// worked, and nothing came of them.
    pub fn cut(&self, count: usize, honest: usize, unsynced: Unsynced, random: &mut Random) -> Files {
        let mut disk = Disk::default();
        for (number, record) in self.records[..count].iter().enumerate() {
            match record.step {
                Step::Sync { worked: true } if number >= honest => {}
                _ => disk.take(record, &self.bytes),
            }
        }
        disk.files(&self.bytes, unsynced, random)
    }
}

fn parse(bytes: &[u8], at: usize) -> Option<(Record, usize)> {
    let head = bytes.get(at..at + HEAD)?;
    let small = |from: usize| u32::from_le_bytes(head[from..from + 4].try_into().unwrap());
    let large = |from: usize| u64::from_le_bytes(head[from..from + 8].try_into().unwrap());
    let names = at + HEAD;
    let others = names + small(4) as usize;
    let data = others + small(8) as usize;
    let end = data + large(24) as usize;
    let text = |range: Range<usize>| Some(std::str::from_utf8(bytes.get(range)?).unwrap().to_owned());
    bytes.get(data..end)?;
    let step = match small(0) {
        1 => Step::Create,
        2 => Step::Cut(large(16)),
        3 => Step::Write(large(16), data..end),
        4 => Step::Sync {
            worked: small(12) == 0,
        },
        5 => Step::Remove,
        6 => Step::Rename(text(others..data)?),
        other => panic!("no such record: {other}"),
    };
    let record = Record {
        name: text(names..others)?,
        step,
        end: end as u64,
    };
    Some((record, end))
}

/// A disk while the records are gone through.
#[derive(Default)]
struct Disk {
    files: Vec<File>,
    /// As processes see it.
    names: BTreeMap<String, usize>,
    /// As the last sync of the directory has left it.
    names_synced: BTreeMap<String, usize>,
    /// How the names have changed since.
    names_pending: Vec<BTreeMap<String, usize>>,
}

#[derive(Default)]
struct File {
    synced: Vec<u8>,
    /// Changes that stand behind what is synced, in order.
    later: Vec<(Step, Fate)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    /// Waits for a sync.
    Pending,
    /// A sync failed: the system takes it for written, so no later sync writes it.
    GivenUp,
    Synced,
}

impl Disk {
    fn take(&mut self, record: &Record, bytes: &[u8]) {
        match &record.step {
            Step::Create => {
                self.files.push(File::default());
                self.rename(|names, new| {
                    names.insert(record.name.clone(), new);
                });
            }
            Step::Remove => self.rename(|names, _| {
                names.remove(&record.name);
            }),
            Step::Rename(to) => self.rename(|names, _| {
                let file = names.remove(&record.name).expect("it is there");
                names.insert(to.clone(), file);
            }),
            Step::Sync { worked } if record.name == "." => {
                if *worked {
                    self.names_synced = self.names.clone();
                    self.names_pending.clear();
                }
            }
            Step::Sync { worked } => self.file(&record.name).sync(*worked, bytes),
            step @ (Step::Cut(_) | Step::Write(..)) => {
                self.file(&record.name).later.push((step.clone(), Fate::Pending));
            }
        }
    }

    fn rename(&mut self, change: impl FnOnce(&mut BTreeMap<String, usize>, usize)) {
        change(&mut self.names, self.files.len().saturating_sub(1));
        self.names_pending.push(self.names.clone());
    }

    fn file(&mut self, name: &str) -> &mut File {
        let number = *self
            .names
            .get(name)
            .unwrap_or_else(|| panic!("{name} was never created"));
        &mut self.files[number]
    }

    /// Names change in order, as file systems with a journal have it; contents in any.
    fn files(&self, bytes: &[u8], unsynced: Unsynced, random: &mut Random) -> Files {
        let pending = match unsynced {
            Unsynced::Lost => 0,
            Unsynced::Torn => random.below(self.names_pending.len() as u64 + 1) as usize,
            Unsynced::Kept => self.names_pending.len(),
        };
        let names = match pending {
            0 => &self.names_synced,
            some => &self.names_pending[some - 1],
        };
        names
            .iter()
            .map(|(name, file)| (name.clone(), self.files[*file].content(bytes, unsynced, random)))
            .collect()
    }
}

impl File {
    fn sync(&mut self, worked: bool, bytes: &[u8]) {
        let becomes = match worked {
            true => Fate::Synced,
            false => Fate::GivenUp,
        };
        for (_, fate) in &mut self.later {
            if *fate == Fate::Pending {
                *fate = becomes;
            }
        }
        let sure = self.later.iter().take_while(|(_, fate)| *fate == Fate::Synced);
        let sure = sure.count();
        for (step, _) in self.later.drain(..sure) {
            apply(&mut self.synced, &step, bytes);
        }
    }

    fn content(&self, bytes: &[u8], unsynced: Unsynced, random: &mut Random) -> Vec<u8> {
        let mut content = self.synced.clone();
        for (step, fate) in &self.later {
            match (fate, unsynced) {
                (Fate::Synced, _) | (_, Unsynced::Kept) => apply(&mut content, step, bytes),
                (_, Unsynced::Lost) => {}
                (_, Unsynced::Torn) => tear(&mut content, step, bytes, random),
            }
        }
        content
    }
}

fn apply(content: &mut Vec<u8>, step: &Step, bytes: &[u8]) {
    match step {
        Step::Cut(length) => content.resize(*length as usize, 0),
        Step::Write(offset, data) => write(content, *offset as usize, &bytes[data.clone()]),
        Step::Create | Step::Sync { .. } | Step::Remove | Step::Rename(_) => {
            unreachable!("no change of a file")
        }
    }
}

/// Applies a change, or a part of it, or nothing.
fn tear(content: &mut Vec<u8>, step: &Step, bytes: &[u8], random: &mut Random) {
    let Step::Write(offset, data) = step else {
        return if random.one_in(2) {
            apply(content, step, bytes)
        };
    };
    let (offset, data) = (*offset as usize, &bytes[data.clone()]);
    let middle = random.below(data.len() as u64) as usize;
    match random.below(5) {
        0 => {}
        1 => write(content, offset, data),
        2 => write(content, offset, &data[..middle]),
        3 => write(content, offset + middle, &data[middle..]),
        _ => {
            let mut from = 0;
            while from < data.len() {
                let to = data.len().min(from + SECTOR - (offset + from) % SECTOR);
                if random.one_in(2) {
                    write(content, offset + from, &data[from..to]);
                }
                from = to;
            }
        }
    }
}

fn write(content: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if content.len() < offset + data.len() {
        content.resize(offset + data.len(), 0);
    }
    content[offset..offset + data.len()].copy_from_slice(data);
}
