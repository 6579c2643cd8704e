//! Settings from the environment: `http.body_bytes_max` is `TOOLGATE_HTTP_BODY_BYTES_MAX`.

use std::ffi::OsString;

use anyhow::{anyhow, bail};
use serde::Deserialize;
use toml::{Table, Value};
use toolgate_kernel::guess::{guess, slips};
use toolgate_kernel::problem::{choice, preview};

use super::outbound::{OWN_KEY, SECRET_PREFIX};
use super::{SAMPLE, Settings};

/// Names that others gave to some settings. Ours win; of two for one setting the first does.
const FOREIGN_NAMES: &[(&str, &str)] = &[
    ("OPENAI_API_KEY", "vendors.openai_key"),
    ("ANTHROPIC_API_KEY", "vendors.anthropic_key"),
    ("GEMINI_API_KEY", "vendors.google_key"),
    ("GOOGLE_API_KEY", "vendors.google_key"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "telemetry.otlp_endpoint"),
];

/// Variables of ours that are no settings: flags, and what other programs of ours read.
const OTHER_NAMES: [&str; 6] = [
    "TOOLGATE_CONFIG",
    "TOOLGATE_NO_AUTH",
    "TOOLGATE_URL",
    "TOOLGATE_BIN",
    "TOOLGATE_CURATOR_KEY_FILE",
    "TOOLGATE_CURATOR_ID",
];
/// Beginnings of names that somebody else chooses the rest of: secrets of tools, the tests, and what Kubernetes tells every
/// container of a service that is called `toolgate`.
const OPEN_PREFIXES: [&str; 4] = [
    SECRET_PREFIX,
    "TOOLGATE_TEST_",
    "TOOLGATE_SERVICE_",
    "TOOLGATE_PORT_",
];
/// Names that other programs have for some settings, each with ours. They are suggested, not read.
const USUAL_NAMES: [(&str, &str); 9] = [
    ("TOOLGATE_HOST", "TOOLGATE_LISTEN"),
    (KUBERNETES_PORT, "TOOLGATE_LISTEN"),
    ("TOOLGATE_ADDR", "TOOLGATE_LISTEN"),
    ("TOOLGATE_ADDRESS", "TOOLGATE_LISTEN"),
    ("TOOLGATE_BIND", "TOOLGATE_LISTEN"),
    ("TOOLGATE_DATA_DIR", "TOOLGATE_DATA"),
    ("TOOLGATE_DATADIR", "TOOLGATE_DATA"),
    ("TOOLGATE_MODEL", "TOOLGATE_MODEL_NAME"),
    // The default model's provider follows from its address.
    ("TOOLGATE_MODEL_PROVIDER", "TOOLGATE_MODEL_BASE_URL"),
];
/// Most settings that a name may be short for, to suggest them.
const MEANT_MAX: usize = 3;
/// Kubernetes sets it to an address such as `tcp://10.0.0.1:8787`. A person who sets it to a number means the port to listen on.
const KUBERNETES_PORT: &str = "TOOLGATE_PORT";

/// Refuses variables of this process that begin like ours and are none.
pub fn check_process() -> anyhow::Result<()> {
    // What is not UTF-8 is no name of ours; a value that is not is read where it is wanted.
    let readable = |(name, text): (OsString, OsString)| {
        Some((name.into_string().ok()?, text.to_string_lossy().into_owned()))
    };
    check_names(std::env::vars_os().filter_map(readable))
}

/// Whether a name has one letter too many, too few or another, or the letters in another order.
fn is_slip_of_own_key(name: &str) -> bool {
    let sorted = |name: &str| {
        let mut letters: Vec<char> = name.chars().collect();
        letters.sort_unstable();
        letters
    };
    slips(name, OWN_KEY) <= 1 || sorted(name) == sorted(OWN_KEY)
}

/// Refuses variables that begin like ours and are none: one that is misspelt would be left out without a word.
pub fn check_names(variables: impl IntoIterator<Item = (String, String)>) -> anyhow::Result<()> {
    let settings: Vec<String> = paths().iter().flat_map(|path| names_of(path)).collect();
    let known: Vec<&str> = settings.iter().map(String::as_str).chain(OTHER_NAMES).collect();
    let is_known = |name: &str, text: &str| {
        known.contains(&name)
            || name == KUBERNETES_PORT && text.starts_with("tcp://")
            || OPEN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    for (name, text) in variables {
        if let Some(secret) = name.strip_prefix(SECRET_PREFIX)
            && secret != OWN_KEY
            && is_slip_of_own_key(secret)
        {
            bail!(
                "{name} looks like a misspelt {SECRET_PREFIX}{OWN_KEY}, correct it, or rename the tool's secret, or put it under \
                 [secrets] in the settings file"
            );
        }
        if name.starts_with("TOOLGATE_") && !is_known(&name, &text) {
            let usual = USUAL_NAMES.iter().find(|(usual, _)| *usual == name);
            let meant = match usual.map(|(_, ours)| *ours).or_else(|| guess(&name, &known)) {
                Some(meant) => vec![meant],
                None => longer_names(&name, &known),
            };
            let hint = match meant.split_last() {
                Some((last, [])) => format!("did you mean {last}?"),
                Some((last, rest)) => format!("did you mean {} or {last}?", rest.join(", ")),
                None => "`toolgate settings` prints every setting".into(),
            };
            bail!("the environment has {name}, which is no setting, {hint}");
        }
    }
    Ok(())
}

/// The few names that have all words of `name` in their order: `TOOLGATE_MODEL_URL` is short for `TOOLGATE_MODEL_BASE_URL`.
fn longer_names<'k>(name: &str, known: &[&'k str]) -> Vec<&'k str> {
    let has_all_words = |known: &str| {
        let mut there = known.split('_');
        name.split('_').all(|word| there.any(|other| other == word))
    };
    let found: Vec<&str> = known
        .iter()
        .copied()
        .filter(|known| has_all_words(known))
        .collect();
    if found.len() <= MEANT_MAX {
        found
    } else {
        Vec::new()
    }
}

/// What `file` says, overlaid by the environment. A variable that is set but empty counts as not set.
pub fn overlay(file: Table, env: impl Fn(&str) -> Option<String>) -> anyhow::Result<Settings> {
    let env = |name: &str| env(name).filter(|text| !text.is_empty());
    let mut table = file;
    for path in paths() {
        if let Some((name, text)) = names_of(&path).find_map(|name| Some((name.clone(), env(&name)?))) {
            table = with(&table, &path, &text).map_err(|error| {
                // The value may be a secret: only the reason is told, and it quotes no text that fits.
                anyhow!(
                    "{name} does not fit the setting `{path}`: {}",
                    in_words(error.message().trim(), &text)
                )
            })?;
        }
    }
    Ok(Settings::deserialize(table)?)
}

/// Why `text` does not fit, for people: serde names the types of Rust.
fn in_words(reason: &str, text: &str) -> String {
    let is_serdes = ["invalid type: ", "invalid value: ", "unknown variant "]
        .iter()
        .any(|start| reason.starts_with(start));
    let Some((_, expected)) = reason.rsplit_once(", expected ").filter(|_| is_serdes) else {
        return reason.to_owned();
    };
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let expected = match expected {
        "usize" | "u64" => "a whole number, 0 or more".to_owned(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "a boolean" => "true or false".to_owned(),
        _ if !known.is_empty() => choice(&known),
        other => other.to_owned(),
    };
    format!("expected {expected}, got {}", preview(text))
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
fn names_of(path: &str) -> impl Iterator<Item = String> {
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
