//! What is printed of a package.

use std::fmt::Write as _;

use toolgate_package::{Audit, Package, Rejection, Verification};

/// A line per property of a package.
pub fn described(package: &Package) -> String {
    let tools: Vec<&str> = package.tools().iter().map(|tool| tool.name.as_str()).collect();
    let needs: Vec<String> = package
        .dependencies()
        .iter()
        .map(|(id, range)| format!("{id} {range}"))
        .collect();
    let mut text = format!("package      {} {}\n", package.id(), package.version());
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:<12} {value}").expect("a string takes everything");
    };
    line("tools", tools.join(", "));
    line("permissions", or_none(&package.permissions().written()));
    line("depends on", or_none(&needs));
    line(
        "engine",
        package.engine().map_or("any".into(), ToString::to_string),
    );
    line("contentHash", package.content_hash().to_string());
    line("packageHash", package.hash().to_string());
    text
}

/// The audit report, for people.
pub fn audited(audit: &Audit) -> String {
    let mut text = format!(
        "package      {} {}, {} bytes\npermissions  {}\nhosts named  {}\n",
        audit.id,
        audit.version,
        audit.bytes,
        or_none(&audit.permissions),
        or_none(&audit.hosts),
    );
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:<12} {value}").expect("a string takes everything");
    };
    for tool in &audit.tools {
        let found: Vec<String> = tool
            .constructs
            .iter()
            .map(|construct| format!("{} (line {})", construct.name, construct.line))
            .collect();
        let size = format!("{} bytes, {} lines", tool.code_bytes, tool.code_lines);
        line("tool", format!("{}: {size}; uses {}", tool.name, or_none(&found)));
    }
    for warning in &audit.warnings {
        line("warning", warning.clone());
    }
    line("contentHash", audit.content_hash.to_string());
    line("packageHash", audit.package_hash.to_string());
    text
}

/// Stable words for a verification: its state, and the code of a rejection.
pub fn state(verification: &Verification) -> (&'static str, Option<&'static str>) {
    match verification {
        Verification::Unsigned => ("unsigned", None),
        Verification::ToolsOnly { .. } => ("tools-only", None),
        Verification::Verified { .. } => ("verified", None),
        Verification::Rejected(rejection) => ("rejected", Some(rejection.code())),
    }
}

/// A verification in a sentence.
pub fn words(verification: &Verification) -> String {
    match verification {
        Verification::Unsigned => "none; sign it with: toolgate plugin sign".into(),
        Verification::ToolsOnly { curator, key } => format!(
            "only the tools are signed, by {curator} with key {key}; id, version, permissions and dependencies are not"
        ),
        Verification::Verified { curator, key } => format!("verified: signed by {curator} with key {key}"),
        Verification::Rejected(rejection) => match rejection {
            Rejection::UnknownCurator(curator) => format!(
                "not verified: signed in the name of {curator}; give their public key with --key FILE"
            ),
            other => format!("rejected: {other}"),
        },
    }
}

fn or_none(items: &[String]) -> String {
    match items.is_empty() {
        true => "none".into(),
        false => items.join(", "),
    }
}
