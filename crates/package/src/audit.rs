//! The audit report: what a reviewer should look at before signing. It finds words, not intentions: a clean report proves
//! nothing, the sandbox is what contains code.

mod scan;

use serde::Serialize;

use crate::document::Package;
use crate::hash::{ContentHash, PackageHash};
use crate::id::PluginId;
use scan::Found;

/// A line longer than this is not meant to be read.
const LINE_CHARS_MAX: usize = 500;
/// Most findings of one tool that are listed.
const FINDINGS_MAX: usize = 200;

/// What there is to know of a package before signing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// The plugin.
    pub id: PluginId,
    /// Its version.
    pub version: String,
    /// Hash of the tools.
    pub content_hash: ContentHash,
    /// Hash of the document as it is now.
    pub package_hash: PackageHash,
    /// Bytes of the canonical document.
    pub bytes: usize,
    /// The tools, in order.
    pub tools: Vec<ToolAudit>,
    /// Permissions asked for.
    pub permissions: Vec<String>,
    /// Hosts that the code names, each once, in order of appearance.
    pub hosts: Vec<String>,
    /// What deserves a second look, in words.
    pub warnings: Vec<String>,
}

/// What there is to know of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAudit {
    /// The tool's name.
    pub name: String,
    /// Bytes of its code.
    pub code_bytes: usize,
    /// Lines of its code.
    pub code_lines: usize,
    /// Constructs that occur in its code, comments and texts included.
    pub constructs: Vec<Construct>,
}

/// A construct worth looking at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Construct {
    /// The word, such as `eval`.
    pub name: &'static str,
    /// Line of its first appearance, from 1.
    pub line: usize,
    /// How often it occurs.
    pub count: usize,
    /// Why it is listed.
    pub reason: &'static str,
}

/// Looks through a package. Takes time in proportion to its size.
pub fn audit(package: &Package) -> Audit {
    let mut hosts = Vec::new();
    let mut warnings = Vec::new();
    let mut uses = Uses::default();
    let tools = package.tools().iter().map(|tool| {
        let found = scan::scan(&tool.executor_code);
        uses.note(&found);
        for host in found
            .hosts
            .iter()
            .filter(|host| !hosts.contains(*host))
            .collect::<Vec<_>>()
        {
            hosts.push(host.clone());
        }
        warn_of_code(tool.name.as_str(), &found, &mut warnings);
        let mut constructs = found.constructs;
        constructs.truncate(FINDINGS_MAX);
        ToolAudit {
            name: tool.name.to_string(),
            code_bytes: tool.executor_code.len(),
            code_lines: tool.executor_code.lines().count(),
            constructs,
        }
    });
    let tools = tools.collect();
    warn_of_texts(package, &mut warnings);
    warn_of_permissions(package, &hosts, &uses, &mut warnings);
    Audit {
        id: package.id().clone(),
        version: package.version().to_string(),
        content_hash: package.content_hash(),
        package_hash: package.hash(),
        bytes: crate::canonical::text(package.document()).len(),
        tools,
        permissions: package.permissions().written(),
        hosts,
        warnings,
    }
}

/// Which host functions the code mentions.
#[derive(Default)]
struct Uses {
    fetch: bool,
    storage: bool,
}

impl Uses {
    fn note(&mut self, found: &Found) {
        let has = |name: &str| found.constructs.iter().any(|construct| construct.name == name);
        self.fetch |= has("fetch");
        self.storage |= has("storage");
    }
}

fn warn_of_code(tool: &str, found: &Found, warnings: &mut Vec<String>) {
    if let Some(line) = found.long_line {
        warnings.push(format!(
            "{tool}: line {line} of the code has more than {LINE_CHARS_MAX} characters, as minified code has; ask for the source"
        ));
    }
    if let Some(line) = found.hidden_line {
        warnings.push(format!(
            "{tool}: line {line} of the code has invisible or direction-changing characters; it may not say what it seems to"
        ));
    }
    let indirect = ["eval", "Function", "constructor", "import"];
    for construct in found
        .constructs
        .iter()
        .filter(|found| indirect.contains(&found.name))
    {
        warnings.push(format!(
            "{tool}: line {} of the code has `{}`: {}",
            construct.line, construct.name, construct.reason
        ));
    }
}

/// Descriptions are read by models: what people cannot see must not be in them.
fn warn_of_texts(package: &Package, warnings: &mut Vec<String>) {
    for tool in package.tools() {
        let text = tool.definition.to_string();
        if text.chars().any(scan::is_hidden) {
            warnings.push(format!(
                "{}: the definition has invisible or direction-changing characters, which a model reads and people do not",
                tool.name
            ));
        }
    }
}

fn warn_of_permissions(package: &Package, hosts: &[String], uses: &Uses, warnings: &mut Vec<String>) {
    let asked = package.permissions();
    for pattern in asked.fetch.iter().filter(|pattern| pattern.is_wide()) {
        warnings.push(format!("fetch:{pattern} asks for every host below a domain"));
    }
    if !asked.fetch.is_empty() && !uses.fetch {
        warnings.push("it asks for hosts, but no code mentions fetch".into());
    }
    if asked.fetch.is_empty() && uses.fetch {
        warnings
            .push("its code mentions fetch, but it asks for no host: every request will be refused".into());
    }
    if asked.storage && !uses.storage {
        warnings.push("it asks for storage, but no code mentions it".into());
    }
    if !asked.storage && uses.storage {
        warnings.push("its code mentions storage, but does not ask for it: every use will be refused".into());
    }
    for host in hosts {
        let address = format!("https://{host}/").parse();
        if !address.is_ok_and(|address| asked.allows_fetch(&address)) {
            warnings.push(format!(
                "its code names the host {host}, which it does not ask for"
            ));
        }
    }
}
