//! Names for the tools of MCP servers.

use sha2::{Digest as _, Sha256};
use toolgate_kernel::name::NAME_CHARS_MAX;

/// What every name begins with.
pub const TOOL_NAME_PREFIX: &str = "mcp_";
/// Characters of the hash that tells names apart that would otherwise be the same.
const HASH_CHARS: usize = 8;

/// `mcp_<server>_<tool>`, made to fit what every model takes. A name that had to be changed, by a character or in its
/// length, ends in a hash of the original; it is cut in the server's part first. Never taken apart again: the
/// catalog remembers what each name stands for.
pub fn tool_name(server: &str, tool: &str) -> String {
    let (short_server, short_tool) = (plain(server), plain(tool));
    let name = format!("{TOOL_NAME_PREFIX}{short_server}_{short_tool}");
    if name.len() <= NAME_CHARS_MAX && short_server == server && short_tool == tool {
        return name;
    }
    distinct_tool_name(server, tool)
}

/// A name with a hash in any case, for a tool whose plain name another one has: `a_b` with `c`, and `a` with `b_c`.
pub fn distinct_tool_name(server: &str, tool: &str) -> String {
    let (short_server, short_tool) = (plain(server), plain(tool));
    let around = TOOL_NAME_PREFIX.len() + "__".len() + HASH_CHARS;
    let room = NAME_CHARS_MAX - around;
    let tool_part = &short_tool[..short_tool.len().min(room)];
    let server_part = &short_server[..short_server.len().min(room - tool_part.len())];
    format!(
        "{TOOL_NAME_PREFIX}{server_part}_{tool_part}_{}",
        hash(server, tool)
    )
}

/// The text with every character that does not fit replaced.
fn plain(text: &str) -> String {
    let fit = |c: char| match c.is_ascii_alphanumeric() || c == '-' {
        true => c,
        false => '_',
    };
    text.chars().map(fit).collect()
}

fn hash(server: &str, tool: &str) -> String {
    let digest = Sha256::digest(format!("{server}\0{tool}"));
    digest
        .iter()
        .take(HASH_CHARS / 2)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_fits_stays_as_it_is() {
        assert_eq!(tool_name("time", "get_current_time"), "mcp_time_get_current_time");
    }

    #[test]
    fn every_other_name_fits_and_differs_from_its_neighbours() {
        let long = "x".repeat(80);
        let pairs = [
            ("files", "read.file"),
            ("files", "read/file"),
            ("fi_les", "read file"),
            (long.as_str(), "tool"),
            ("server", long.as_str()),
            (long.as_str(), long.as_str()),
            ("überserver", "lösche"),
        ];
        let names: Vec<String> = pairs
            .iter()
            .map(|(server, tool)| tool_name(server, tool))
            .collect();
        for name in &names {
            assert!(name.parse::<toolgate_kernel::name::ToolName>().is_ok(), "{name}");
        }
        let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        assert!(
            names[3].contains("_tool_"),
            "cut in the server's part: {}",
            names[3]
        );
    }
}
