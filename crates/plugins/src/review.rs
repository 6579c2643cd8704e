//! What installing a package would do, for whoever decides on it.

use std::collections::BTreeSet;

use semver::Version;
use serde_json::Value;
use toolgate_kernel::time::Time;
use toolgate_package::{Audit, Package, PackageHash, Verification, verify};

use crate::curators::keys;
use crate::error::{Reason, Refused};
use crate::index::{Index, Signed, Stored};
use crate::plan::{Ground, against_storing};
use crate::plugins::Candidate;
use crate::trust::{Stopped, Trust, trust_of};

/// Ids that stand for something else in addresses.
const RESERVED: [&str; 2] = ["sign", "revoke"];

/// What installing a package would do.
#[derive(Debug, Clone)]
pub struct Review {
    /// Hash of the package.
    pub hash: String,
    /// What there is to know of it.
    pub package: Stored,
    /// What would become of the plugin.
    pub action: Action,
    /// Version that is current now.
    pub from: Option<String>,
    /// Whether it claims a hash or a signature that does not hold.
    pub rejected: bool,
    /// How far it is trusted; why not, if it is not.
    pub trust: Result<Trust, String>,
    /// Its permissions in plain words.
    pub permissions: Vec<PermissionWords>,
    /// What would change in the tools of the plugin, by name.
    pub tools: ToolChanges,
    /// What a reviewer should look at in its code.
    pub audit: Audit,
    /// What stands against it; empty if it can be installed.
    pub refused: Vec<Refused>,
}

/// What would become of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is installed for the first time.
    Install,
    /// A later version replaces the current one.
    Upgrade,
    /// An earlier version replaces the current one.
    Downgrade,
    /// Another package of the same version replaces the current one.
    Replace,
    /// Nothing: it is the current package already.
    None,
}

/// A permission that a package asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionWords {
    /// As the package writes it.
    pub permission: String,
    /// What it allows, in plain words.
    pub words: String,
    /// Whether the current version does not have it.
    pub added: bool,
}

/// Changes of the tools of a plugin, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolChanges {
    /// Tools that the current version does not have.
    pub added: Vec<String>,
    /// Tools that only the current version has.
    pub removed: Vec<String>,
    /// Tools that both have; their definition or code may differ.
    pub kept: Vec<String>,
    /// What differs in the definitions of kept tools.
    pub changed: Vec<MemberChange>,
    /// Kept tools whose code differs.
    pub other_code: Vec<String>,
}

/// A member of a kept tool's definition that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberChange {
    /// Name of the tool.
    pub tool: String,
    /// Name of the member, such as `approval` or `parameters`.
    pub member: String,
    /// What the current version has; none if it lacks the member.
    pub from: Option<Value>,
    /// What the package has; none if it lacks the member.
    pub to: Option<Value>,
}

/// A package to look at, with what whoever brings it says.
pub(crate) struct Offer<'a> {
    pub candidate: &'a Candidate,
    pub source_url: Option<&'a str>,
    /// Another curator than so far may sign the plugin.
    pub replace_curator: bool,
    /// The package that is current.
    pub before: Option<&'a Package>,
    pub now: Time,
}

impl Offer<'_> {
    /// Looks at everything that stands for and against it.
    pub fn review(&self, index: &Index, ground: &Ground<'_>) -> Review {
        let package = &self.candidate.package;
        let hash = package.hash().to_string();
        let verification = verify(package, &keys(index), self.now);
        let (signed, rejected) = signed(verification);
        let stored = self.stored(signed);
        let (is_rejected, trust) = (
            rejected.is_some(),
            match rejected {
                Some(words) => Err(words),
                None => trust_of(&stored.signed, &stored.permissions, ground.settings),
            },
        );
        let mut refused = Vec::new();
        if index.is_revoked(&hash, Some(&stored)) {
            refused.push(Reason::Revoked.at("/packageHash", "this package was revoked"));
        }
        if let Err(words) = &trust {
            refused.push(Reason::NotVerified.at("/packageSignature", words.clone()));
        }
        refused.extend(self.other_curator(index, &stored));
        refused.extend(reserved_id(&stored.plugin));
        refused.extend(ground.against_running(index, &stored));
        refused.extend(against_storing(index, &hash, &stored, &ground.settings.limits));
        let current = index.current(&stored.plugin);
        Review {
            action: action(current, &hash, &stored),
            from: current.map(|(_, current)| current.version.clone()),
            rejected: is_rejected,
            trust,
            permissions: permissions(&stored, current.map(|(_, current)| current)),
            tools: self.tool_changes(&stored, current.map(|(_, current)| current)),
            audit: self.candidate.audit.clone(),
            refused,
            package: stored,
            hash,
        }
    }

    fn tool_changes(&self, package: &Stored, current: Option<&Stored>) -> ToolChanges {
        let mut changes = changes(package, current);
        let tool = |package: &'_ Package, name: &str| {
            let tool = package.tools().iter().find(|tool| tool.name.as_str() == name);
            tool.cloned()
        };
        for name in &changes.kept {
            let before = self.before.and_then(|before| tool(before, name));
            let (Some(before), Some(after)) = (before, tool(&self.candidate.package, name)) else {
                continue;
            };
            changes
                .changed
                .extend(member_changes(name, &before.definition, &after.definition));
            if before.executor_code != after.executor_code {
                changes.other_code.push(name.clone());
            }
        }
        changes
    }

    fn stored(&self, signed: Signed) -> Stored {
        let package = &self.candidate.package;
        let dependencies = package.dependencies().iter();
        Stored {
            plugin: package.id().to_string(),
            name: package.name().to_owned(),
            version: package.version().to_string(),
            bytes: self.candidate.bytes,
            tools: package.tools().iter().map(|tool| tool.name.to_string()).collect(),
            permissions: package.permissions().written(),
            dependencies: dependencies
                .map(|(id, range)| (id.to_string(), range.to_string()))
                .collect(),
            engine: package.engine().map(ToString::to_string),
            content_hash: Some(package.content_hash().to_string()),
            signed,
            document_hash: Some(self.candidate.document_hash.clone()),
            source_url: self.source_url.or(package.source_url()).map(str::to_owned),
            added_at: self.now,
        }
    }

    /// Whoever signs a plugin decides what its id stands for, so another signer is a decision of the operator's.
    fn other_curator(&self, index: &Index, package: &Stored) -> Option<Refused> {
        let (_, current) = index.current(&package.plugin)?;
        let (before, _) = current.signed.by()?;
        let now = package.signed.by().map(|(curator, _)| curator);
        if self.replace_curator || now == Some(before) {
            return None;
        }
        let signer = now.map_or("nobody".to_owned(), |now| format!("{now:?}"));
        let words = format!(
            "the installed version is signed by {before:?}, this one by {signer}; say replaceCurator if that is meant"
        );
        Some(Reason::NotVerified.at("/curatorId", words))
    }
}

/// What is stored of a verification, and why it was rejected if it was.
fn signed(verification: Verification) -> (Signed, Option<String>) {
    match verification {
        Verification::Unsigned => (Signed::Unsigned, None),
        Verification::ToolsOnly { curator, key } => (
            Signed::ToolsOnly {
                curator: curator.into(),
                key: key.into(),
            },
            None,
        ),
        Verification::Verified { curator, key } => (
            Signed::Verified {
                curator: curator.into(),
                key: key.into(),
            },
            None,
        ),
        Verification::Rejected(rejection) => (Signed::Unsigned, Some(rejection.to_string())),
    }
}

/// Plugins, packages and what is done with them share their place in addresses.
fn reserved_id(plugin: &str) -> Option<Refused> {
    let is_hash = plugin.parse::<PackageHash>().is_ok();
    let words = "it is the hash of a package, or a word of the gateway; choose another id";
    (is_hash || RESERVED.contains(&plugin)).then(|| Reason::NameConflict.at("/id", words))
}

fn action(current: Option<(&str, &Stored)>, hash: &str, package: &Stored) -> Action {
    let Some((now, current)) = current else {
        return Action::Install;
    };
    if now == hash && current.signed == package.signed {
        return Action::None;
    }
    let version = |package: &Stored| Version::parse(&package.version).ok();
    match version(package).cmp(&version(current)) {
        std::cmp::Ordering::Greater => Action::Upgrade,
        std::cmp::Ordering::Less => Action::Downgrade,
        std::cmp::Ordering::Equal => Action::Replace,
    }
}

fn permissions(package: &Stored, current: Option<&Stored>) -> Vec<PermissionWords> {
    let had = |permission: &String| current.is_some_and(|current| current.permissions.contains(permission));
    let words = package.permissions.iter().map(|permission| PermissionWords {
        words: permission_words(permission),
        added: !had(permission),
        permission: permission.clone(),
    });
    words.collect()
}

/// A permission in plain words.
pub fn permission_words(permission: &str) -> String {
    match permission.strip_prefix("fetch:") {
        Some(host) => match host.strip_prefix("*.") {
            Some(domain) => format!("send requests to every host below {domain}, and read the answers"),
            None => format!("send requests to {host}, and read the answers"),
        },
        None if permission == "storage" => {
            "keep values between calls, shared by everybody in the project who uses its tools".into()
        }
        None => permission.to_owned(),
    }
}

fn changes(package: &Stored, current: Option<&Stored>) -> ToolChanges {
    let had = current.map_or(&[][..], |current| &current.tools);
    let (kept, added) = package.tools.iter().cloned().partition(|tool| had.contains(tool));
    let removed = had.iter().filter(|tool| !package.tools.contains(tool));
    ToolChanges {
        removed: removed.cloned().collect(),
        added,
        kept,
        changed: Vec::new(),
        other_code: Vec::new(),
    }
}

/// The members that differ, by name.
fn member_changes(tool: &str, before: &Value, after: &Value) -> Vec<MemberChange> {
    let members = |definition: &Value| definition.as_object().cloned().unwrap_or_default();
    let (before, after) = (members(before), members(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differing = names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name));
    let changes = differing.map(|name| MemberChange {
        tool: tool.to_owned(),
        member: name.clone(),
        from: before.get(name).cloned(),
        to: after.get(name).cloned(),
    });
    changes.collect()
}

impl From<&Stopped> for Refused {
    fn from(stopped: &Stopped) -> Self {
        let reason = match stopped {
            Stopped::Gone | Stopped::Revoked(_) => Reason::Revoked,
            Stopped::NotVerified(_) => Reason::NotVerified,
        };
        reason.at("", stopped.words())
    }
}
