//! Settings from the environment: `http.body_bytes_max` is `TOOLGATE_HTTP_BODY_BYTES_MAX`.

use anyhow::anyhow;
use serde::Deserialize;
use toml::{Table, Value};

use super::{SAMPLE, Settings};

/// Names that others gave to some settings. Ours win; of two for one setting the first does.
const FOREIGN_NAMES: &[(&str, &str)] = &[
    ("OPENAI_API_KEY", "vendors.openai_key"),
    ("ANTHROPIC_API_KEY", "vendors.anthropic_key"),
    ("GEMINI_API_KEY", "vendors.google_key"),
    ("GOOGLE_API_KEY", "vendors.google_key"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "telemetry.otlp_endpoint"),
];

/// What `file` says, overlaid by the environment. A variable that is set but empty counts as not set.
pub fn overlay(file: Table, env: impl Fn(&str) -> Option<String>) -> anyhow::Result<Settings> {
    let env = |name: &str| env(name).filter(|text| !text.is_empty());
    let mut table = file;
    for path in paths() {
        if let Some((name, text)) = names(&path).find_map(|name| Some((name.clone(), env(&name)?))) {
            table = with(&table, &path, &text).map_err(|error| {
                // The value may be a secret: only the reason is told, and it quotes no text that fits.
                anyhow!(
                    "{name} does not fit the setting `{path}`: {}",
                    error.message().trim()
                )
            })?;
        }
    }
    Ok(Settings::deserialize(table)?)
}

/// `table` with `text` at `path`, read as whatever the setting wants: a text, a TOML value, a list.
fn with(table: &Table, path: &str, text: &str) -> Result<Table, toml::de::Error> {
    let list = || Value::Array(text.split(',').map(|item| item.trim().into()).collect());
    let literal = toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut table| table.remove("value"));
    let readings = [Some(Value::from(text)), literal, Some(list())];
    let mut attempts = readings.into_iter().flatten().map(|value| {
        let changed = set(table.clone(), path, value);
        Settings::deserialize(changed.clone()).map(|_| changed)
    });
    let first = attempts.next().expect("a text is always tried");
    first.or_else(|error| attempts.find_map(Result::ok).ok_or(error))
}

fn set(mut table: Table, path: &str, value: Value) -> Table {
    match path.split_once('.') {
        None => drop(table.insert(path.into(), value)),
        Some((section, rest)) => {
            let inner = match table.remove(section) {
                Some(Value::Table(inner)) => inner,
                _ => Table::new(),
            };
            table.insert(section.into(), set(inner, rest, value).into());
        }
    }
    table
}

/// The names of a setting, the strongest first.
fn names(path: &str) -> impl Iterator<Item = String> {
    let own = format!("TOOLGATE_{}", path.replace('.', "_").to_uppercase());
    let foreign = FOREIGN_NAMES.iter().filter(move |(_, of)| *of == path);
    std::iter::once(own).chain(foreign.map(|(name, _)| (*name).into()))
}

/// The place of every setting.
fn paths() -> Vec<String> {
    fn walk(table: &Table, prefix: &str, paths: &mut Vec<String>) {
        for (key, value) in table {
            match value {
                Value::Table(inner) => walk(inner, &format!("{prefix}{key}."), paths),
                _ => paths.push(format!("{prefix}{key}")),
            }
        }
    }
    let mut paths = Vec::new();
    walk(&SAMPLE.parse().expect("the sample is TOML"), "", &mut paths);
    paths
}
