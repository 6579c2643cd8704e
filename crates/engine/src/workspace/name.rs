//! Names of files in a workspace, in a form that cannot escape it.

use std::fmt;
use std::str::FromStr;

use toolgate_kernel::id::{CallId, RunId};

/// Longest name in bytes.
const BYTES_MAX: usize = 512;
/// Most parts of a name: folders and the file itself.
const PARTS_MAX: usize = 16;
/// Folder of tool outputs that are too large for a conversation.
pub(super) const OUTPUTS: &str = "outputs/";
/// Stands behind every name in that folder and before every name behind it.
pub(super) const AFTER_OUTPUTS: &str = "outputs/\u{10ffff}";

/// A relative name with `/` between its parts: no `..`, nothing that is or looks like a separator elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileName(String);

/// Why a name is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no name of a file: {reason}; expected one like \"notes/today.md\"")]
pub struct BadFileName {
    name: String,
    reason: &'static str,
}

impl FileName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// Name of the file with a call's output.
    pub fn of_output(call: CallId, ending: &str) -> Self {
        Self(format!("{OUTPUTS}{call}.{ending}"))
    }
    /// Extension, in lower case.
    pub fn extension(&self) -> Option<String> {
        let file = self.0.rsplit('/').next().unwrap_or_default();
        let (stem, extension) = file.rsplit_once('.')?;
        (!stem.is_empty()).then(|| extension.to_ascii_lowercase())
    }
}

/// How the names of the outputs of a run's calls begin.
pub(crate) fn outputs_of(run: RunId) -> String {
    format!("{OUTPUTS}{}", CallId::prefix_of(run))
}

/// Whether it names a call's output. Only the gateway writes there, and only agents and backends read it.
pub fn is_output(path: &str) -> bool {
    path.starts_with(OUTPUTS)
}

/// Drops `.` and empty parts; rejects path traversal.
impl FromStr for FileName {
    type Err = BadFileName;
    fn from_str(raw: &str) -> Result<Self, BadFileName> {
        read(raw).map(Self).map_err(|reason| BadFileName {
            name: raw.chars().take(100).collect(),
            reason,
        })
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

fn read(raw: &str) -> Result<String, &'static str> {
    if raw.len() > BYTES_MAX {
        return Err("it is longer than 512 bytes");
    }
    if raw.starts_with('/') {
        return Err("it must not begin with a slash");
    }
    if let Some(reason) = raw.chars().find_map(refused) {
        return Err(reason);
    }
    let lower = raw.to_ascii_lowercase();
    if ["%2e", "%2f", "%5c", "%00"]
        .iter()
        .any(|code| lower.contains(code))
    {
        return Err("it hides a dot or a separator in percent signs");
    }
    let parts: Vec<&str> = raw.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.is_empty() {
        return Err("it is empty");
    }
    if raw.ends_with('/') {
        return Err("it names a folder");
    }
    if parts.len() > PARTS_MAX {
        return Err("it has more than 16 parts");
    }
    if parts.contains(&"..") {
        return Err("it leads up, out of its folder");
    }
    for part in &parts {
        // Some systems drop trailing dots and spaces, so that `.. ` is `..` there.
        if part.ends_with(['.', ' ']) || part.starts_with(' ') {
            return Err("a part of it begins with a space, or ends with a dot or a space");
        }
    }
    Ok(parts.join("/"))
}

/// Why this character is not allowed in a name.
fn refused(c: char) -> Option<&'static str> {
    match c {
        '\\' | ':' => Some("a backslash or a colon separates names on some systems"),
        _ if c.is_control() => Some("it has a control character"),
        // Unicode characters that look like slashes, backslashes and `..`.
        '\u{2044}' | '\u{2215}' | '\u{2216}' | '\u{2571}' | '\u{2572}' | '\u{27cb}' | '\u{27cd}'
        | '\u{29f5}' | '\u{29f8}' | '\u{29f9}' | '\u{2cc6}' | '\u{3033}' | '\u{31d3}' | '\u{fe68}'
        | '\u{ff0f}' | '\u{ff3c}' | '\u{1735}' | '\u{2024}' | '\u{2025}' | '\u{2026}' | '\u{fe52}'
        | '\u{ff0e}' | '\u{a4f8}' | '\u{a60e}' | '\u{0701}' | '\u{0702}' => {
            Some("it has a character that looks like a separator or a dot")
        }
        // Invisible characters, and those that change the writing direction.
        '\u{00ad}'
        | '\u{034f}'
        | '\u{061c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => Some("it has an invisible character"),
        _ if c.is_whitespace() && c != ' ' => Some("it has an odd space"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(raw: &str) -> Result<String, String> {
        raw.parse::<FileName>()
            .map(|name| name.0)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn plain_names_are_kept_and_tidied() {
        for (raw, kept) in [
            ("notes.md", "notes.md"),
            ("./a//b/./c.txt", "a/b/c.txt"),
            ("Küche/übung 1.txt", "Küche/übung 1.txt"),
            (".env", ".env"),
            ("a..b", "a..b"),
            ("100%.txt", "100%.txt"),
            ("ノート/計画.md", "ノート/計画.md"),
        ] {
            assert_eq!(name(raw).as_deref(), Ok(kept));
        }
    }

    #[test]
    fn names_that_could_lead_elsewhere_are_refused() {
        let long = "x".repeat(513);
        for raw in [
            "",
            ".",
            "./",
            "a/",
            "/etc/passwd",
            "..",
            "../x",
            "a/../b",
            "a/..",
            "..\\x",
            "a\\b",
            "C:x",
            "file:x",
            "a\0b",
            "a\nb",
            "a\u{7f}",
            "a\u{85}b",
            "..\u{200b}/x",
            "a\u{2044}b",
            "a\u{ff0f}b",
            "\u{2025}/x",
            "\u{ff0e}\u{ff0e}/x",
            "a/.. /b",
            "a/.../b",
            " a",
            "a ",
            "%2e%2e/x",
            "a%2Fb",
            "a%5cb",
            "\u{202e}txt",
            "a\u{a0}b",
            &long,
            "a/".repeat(17).trim_end_matches('/'),
        ] {
            assert!(name(raw).is_err(), "{raw:?} was taken");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_taken_stays_below_its_folder_and_reads_the_same_again(raw in "\\PC{0,40}|[./\\\\a%2eEfF ]{0,20}") {
            if let Ok(kept) = name(&raw) {
                let parts: Vec<&str> = kept.split('/').collect();
                prop_assert!(parts.iter().all(|part| !matches!(*part, "" | "." | "..")), "{:?}", kept);
                prop_assert!(!kept.contains('\\') && !kept.chars().any(char::is_control));
                prop_assert_eq!(name(&kept), Ok(kept));
            }
        }
    }
}
