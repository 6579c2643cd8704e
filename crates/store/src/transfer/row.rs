//! One row as a line of JSON, and the manifest.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::tables::{Kind, Table, named};

/// What a column of a row holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// An id.
    Id([u8; 16]),
    /// A text.
    Text(String),
    /// An integer.
    Number(i64),
    /// True or false.
    Flag(bool),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A row: one value per column of its table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row(pub(super) Vec<Value>);

impl Row {
    /// The row as a line: the name of its table, then its values.
    pub(super) fn line(&self, table: &Table) -> String {
        let values = self.0.iter().map(|value| match value {
            Value::Null => serde_json::Value::Null,
            Value::Id(id) => format!("{:032x}", u128::from_be_bytes(*id)).into(),
            Value::Text(text) => text.as_str().into(),
            Value::Number(number) => (*number).into(),
            Value::Flag(flag) => (*flag).into(),
            Value::Bytes(bytes) => STANDARD.encode(bytes).into(),
        });
        let line: Vec<serde_json::Value> = std::iter::once(table.name.into()).chain(values).collect();
        serde_json::Value::from(line).to_string()
    }

    /// The table and the row of a line.
    pub(super) fn read(line: &str) -> Result<(&'static Table, Self), String> {
        let mut parts = serde_json::from_str::<Vec<serde_json::Value>>(line)
            .map_err(|error| format!("not a row: {error}"))?
            .into_iter();
        let name = parts.next().and_then(|name| name.as_str().map(str::to_owned));
        let table = name.as_deref().and_then(named);
        let table = table.ok_or_else(|| format!("a row of the table {name:?}, which is not known"))?;
        if parts.len() != table.columns.len() {
            return Err(format!("a row of {} with {} columns", table.name, parts.len()));
        }
        let values = parts.zip(table.columns).map(|(part, column)| {
            let misfit = || format!("{}.{} holds no {:?}", table.name, column.name, column.kind);
            value(part, column.kind).ok_or_else(misfit)
        });
        Ok((table, Self(values.collect::<Result<_, _>>()?)))
    }

    /// The key of the row.
    pub(super) fn key(&self, table: &Table) -> &[Value] {
        &self.0[..table.key]
    }

    /// Bytes that the row takes in memory, roughly.
    pub(super) fn size(&self) -> usize {
        let sizes = self.0.iter().map(|value| match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::Null | Value::Id(_) | Value::Number(_) | Value::Flag(_) => 16,
        });
        sizes.sum()
    }
}

fn value(part: serde_json::Value, kind: Kind) -> Option<Value> {
    if part.is_null() {
        return Some(Value::Null);
    }
    match kind {
        Kind::Number => part.as_i64().map(Value::Number),
        Kind::Flag => part.as_bool().map(Value::Flag),
        Kind::Text => match part {
            serde_json::Value::String(text) => Some(Value::Text(text)),
            _ => None,
        },
        Kind::Id => {
            let text = part.as_str().filter(|text| text.len() == 32)?;
            u128::from_str_radix(text, 16)
                .ok()
                .map(|id| Value::Id(id.to_be_bytes()))
        }
        Kind::Bytes => STANDARD.decode(part.as_str()?).ok().map(Value::Bytes),
    }
}

/// The first line of a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Header {
    /// Version of the format.
    pub(super) toolgate_export: u32,
    /// Names this export, so that an import that was interrupted goes on with the same file only.
    pub(super) id: String,
    /// The project, for an export of one.
    pub(super) project: Option<String>,
}

/// Version of the format.
pub(super) const FORMAT: u32 = 1;

/// The last line of a file: what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// The rows of each table.
    pub tables: BTreeMap<String, Tally>,
}

impl Manifest {
    /// All rows together.
    pub fn rows(&self) -> u64 {
        self.tables.values().map(|tally| tally.rows).sum()
    }

    pub(super) fn count(&mut self, table: &Table, line: &str) {
        self.tables.entry(table.name.to_owned()).or_default().count(line);
    }
}

/// Number of rows, and a hash of them in whatever order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Number of rows.
    pub rows: u64,
    /// Sum of the SHA-256 of each row, as four numbers that are added by themselves.
    pub sha256_sum: [u64; 4],
}

impl Tally {
    fn count(&mut self, line: &str) {
        self.rows += 1;
        let hash: [u8; 32] = Sha256::digest(line).into();
        let (numbers, _) = hash.as_chunks::<8>();
        for (sum, number) in self.sha256_sum.iter_mut().zip(numbers) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*number));
        }
    }
}
