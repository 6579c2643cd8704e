//! What is told of plugins.

use std::collections::BTreeMap;

use serde::Serialize;
use toolgate_http::schema;
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use toolgate_plugins::{
    Action, Index, MemberChange, Mode, PluginSettings, Review, Revocation, Signature, Signed, Stored,
    permission_words,
};
use utoipa::ToSchema;

/// The plugins of a project.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PluginList {
    /// Which plugins may run: `production` or `development`.
    #[schema(value_type = PluginMode)]
    mode: &'static str,
    /// Installed plugins, by id.
    plugins: Vec<PluginBody>,
    /// Stored packages of removed plugins: runs under way may still use them.
    removed: Vec<PackageBody>,
    /// Bytes of all stored packages.
    stored_bytes: u64,
}

/// Which plugins may run.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "describes words of the settings")]
pub(crate) enum PluginMode {
    Production,
    Development,
}

/// An installed plugin; never its code.
#[derive(Serialize, ToSchema)]
#[schema(as = Plugin)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PluginBody {
    /// The plugin's id.
    id: String,
    /// Whether its tools are offered.
    running: bool,
    /// Why its tools are not offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_because: Option<String>,
    /// The current package.
    current: PackageBody,
    /// The other stored packages of the plugin.
    other_versions: Vec<PackageBody>,
    /// Hashes of the packages that a rollback goes back to, the next one last.
    history: Vec<String>,
    /// When the plugin was installed.
    #[schema(value_type = schema::Time)]
    installed_at: Time,
    /// When its current package was chosen.
    #[schema(value_type = schema::Time)]
    updated_at: Time,
}

/// A stored package; never its code.
#[derive(Serialize, ToSchema)]
#[schema(as = PluginPackage)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PackageBody {
    /// Hash of the package.
    package_hash: String,
    /// SHA-256 of the stored document, signatures included; absent for one of before it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    document_hash: Option<String>,
    /// Id of its plugin.
    plugin: String,
    /// Name for people.
    name: String,
    /// The version.
    version: String,
    /// Who signed it.
    verification: VerificationBody,
    /// Names of its tools.
    tools: Vec<String>,
    /// Its permissions.
    permissions: Vec<PermissionBody>,
    /// Version ranges of the plugins that it needs, by id.
    dependencies: BTreeMap<String, String>,
    /// Range of gateway versions that it needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<String>,
    /// Where it was fetched from.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_url: Option<String>,
    /// Bytes of the document.
    bytes: u64,
    /// When it was stored.
    #[schema(value_type = schema::Time)]
    added_at: Time,
    /// Set when it was revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<RevocationBody>,
}

/// What the signature of a package was found to be.
#[derive(Serialize, ToSchema)]
#[schema(as = PluginVerification)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VerificationBody {
    /// `verified`: all of it is signed. `tools-only`: permissions, version and id are not. `unsigned`: nobody vouches for
    /// it. `rejected`: its signature does not hold.
    #[schema(value_type = VerificationState)]
    state: &'static str,
    /// Who signed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    curator: Option<String>,
    /// With which key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// Why that is not enough for it to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// What a signature was found to be.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
#[expect(dead_code, reason = "describes words of an answer")]
pub(crate) enum VerificationState {
    Verified,
    ToolsOnly,
    Unsigned,
    Rejected,
}

/// A permission of a package.
#[derive(Serialize, ToSchema)]
#[schema(as = PluginPermission)]
pub(crate) struct PermissionBody {
    /// As the package writes it.
    permission: String,
    /// What it allows, in plain words.
    description: String,
    /// In a review: whether the current version does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<bool>,
}

/// That something was revoked.
#[derive(Serialize, ToSchema)]
#[schema(as = Revocation)]
pub(crate) struct RevocationBody {
    /// Time of the revocation.
    #[schema(value_type = schema::Time)]
    time: Time,
    /// Why, in the operator's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// What installing a package does, or would do.
#[derive(Serialize, ToSchema)]
#[schema(as = PluginReview)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReviewBody {
    /// Whether it was installed by this request.
    installed: bool,
    /// What becomes of the plugin.
    #[schema(value_type = ReviewAction)]
    action: &'static str,
    /// The version that was current before.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_version: Option<String>,
    /// The package.
    package: PackageBody,
    /// What changes in the tools of the plugin.
    tools: ToolChangesBody,
    /// The audit report: size, constructs in the code, hosts that it names, warnings.
    #[schema(value_type = Object)]
    audit: Json,
    /// What stands against it; empty if it can be installed.
    problems: Vec<PluginProblem>,
}

/// What becomes of a plugin.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "describes words of an answer")]
pub(crate) enum ReviewAction {
    Install,
    Upgrade,
    Downgrade,
    Replace,
    None,
}

/// Changes of the tools of a plugin, by name.
#[derive(Serialize, ToSchema)]
#[schema(as = PluginToolChanges)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolChangesBody {
    /// Tools that the current version does not have.
    added: Vec<String>,
    /// Tools that only the current version has.
    removed: Vec<String>,
    /// Tools that both have.
    kept: Vec<String>,
    /// What differs in the definitions of kept tools, member by member.
    changed: Vec<MemberChangeBody>,
    /// Kept tools whose code differs.
    other_code: Vec<String>,
}

/// A member of a kept tool that differs.
#[derive(Serialize, ToSchema)]
#[schema(as = PluginMemberChange)]
pub(crate) struct MemberChangeBody {
    /// Name of the tool.
    tool: String,
    /// Name of the member, such as `approval`, `timeout` or `parameters`.
    member: String,
    /// What the current version has; absent if it lacks the member.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Any>)]
    from: Option<Json>,
    /// What the package has; absent if it lacks the member.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Any>)]
    to: Option<Json>,
}

impl From<MemberChange> for MemberChangeBody {
    fn from(change: MemberChange) -> Self {
        Self {
            tool: change.tool,
            member: change.member,
            from: change.from.map(Json::from),
            to: change.to.map(Json::from),
        }
    }
}

/// Something that stands against installing a package.
#[derive(Serialize, ToSchema)]
pub(crate) struct PluginProblem {
    /// Why, for programs.
    code: &'static str,
    /// Place in the document.
    pointer: String,
    /// Why, in words.
    message: String,
}

/// A signed package.
#[derive(Serialize, ToSchema)]
pub(crate) struct SignedBody {
    /// The document with its hashes and signatures.
    #[schema(value_type = Object)]
    document: Json,
    /// The audit report: size, constructs in the code, permissions asked for, hosts that it names, warnings.
    #[schema(value_type = Object)]
    audit: Json,
}

impl PluginList {
    pub fn of(index: &Index, settings: &PluginSettings) -> Self {
        let plugins = index.plugins.iter().filter_map(|(id, installed)| {
            let (hash, _) = index.current(id)?;
            let others = index.versions(id).filter(|(other, _)| *other != hash);
            let stopped = index.running(id, settings).err();
            Some(PluginBody {
                id: id.clone(),
                running: stopped.is_none(),
                stopped_because: stopped.map(|stopped| stopped.words().to_owned()),
                current: PackageBody::stored(index, hash)?,
                other_versions: others
                    .filter_map(|(hash, _)| PackageBody::stored(index, hash))
                    .collect(),
                history: installed.history.clone(),
                installed_at: installed.installed_at,
                updated_at: installed.updated_at,
            })
        });
        let is_removed = |package: &Stored| !index.plugins.contains_key(&package.plugin);
        let removed = index.packages.iter().filter(|(_, package)| is_removed(package));
        Self {
            mode: match settings.mode {
                Mode::Production => "production",
                Mode::Development => "development",
            },
            plugins: plugins.collect(),
            removed: removed
                .filter_map(|(hash, _)| PackageBody::stored(index, hash))
                .collect(),
            stored_bytes: index.bytes(),
        }
    }
}

impl PackageBody {
    fn stored(index: &Index, hash: &str) -> Option<Self> {
        let package = index.packages.get(hash)?;
        Some(Self::of(hash, package, index.revoked.get(hash)))
    }

    fn of(hash: &str, package: &Stored, revoked: Option<&Revocation>) -> Self {
        let permissions = package.permissions.iter().map(|permission| PermissionBody {
            permission: permission.clone(),
            description: permission_words(permission),
            added: None,
        });
        Self {
            package_hash: hash.to_owned(),
            document_hash: package.document_hash.clone(),
            plugin: package.plugin.clone(),
            name: package.name.clone(),
            version: package.version.clone(),
            verification: VerificationBody::of(&package.signed),
            tools: package.tools.clone(),
            permissions: permissions.collect(),
            dependencies: package.dependencies.clone(),
            engine: package.engine.clone(),
            source_url: package.source_url.clone(),
            bytes: package.bytes,
            added_at: package.added_at,
            revoked: revoked.map(RevocationBody::of),
        }
    }
}

impl VerificationBody {
    fn of(signed: &Signed) -> Self {
        let by = signed.by();
        Self {
            state: match signed {
                Signed::Unsigned => "unsigned",
                Signed::ToolsOnly { .. } => "tools-only",
                Signed::Verified { .. } => "verified",
            },
            curator: by.map(|(curator, _)| curator.to_owned()),
            key: by.map(|(_, key)| key.to_owned()),
            reason: None,
        }
    }
}

impl RevocationBody {
    pub fn of(revocation: &Revocation) -> Self {
        Self {
            time: revocation.time,
            reason: revocation.reason.clone(),
        }
    }
}

impl ReviewBody {
    pub fn of(review: Review, installs: bool) -> Self {
        let mut package = PackageBody::of(&review.hash, &review.package, None);
        for (told, asked) in package.permissions.iter_mut().zip(&review.permissions) {
            told.added = Some(asked.added);
        }
        if review.rejected {
            package.verification.state = "rejected";
        }
        package.verification.reason = review.trust.err();
        let problems = review.refused.into_iter().map(|refused| PluginProblem {
            code: refused.reason.code(),
            pointer: refused.problem.pointer,
            message: refused.problem.message,
        });
        Self {
            installed: installs && review.action != Action::None,
            action: match review.action {
                Action::Install => "install",
                Action::Upgrade => "upgrade",
                Action::Downgrade => "downgrade",
                Action::Replace => "replace",
                Action::None => "none",
            },
            from_version: review.from,
            package,
            tools: ToolChangesBody {
                added: review.tools.added,
                removed: review.tools.removed,
                kept: review.tools.kept,
                changed: review
                    .tools
                    .changed
                    .into_iter()
                    .map(MemberChangeBody::from)
                    .collect(),
                other_code: review.tools.other_code,
            },
            audit: written(&review.audit),
            problems: problems.collect(),
        }
    }

    /// Whether something was changed.
    pub fn changed(&self) -> bool {
        self.installed
    }
}

impl SignedBody {
    pub fn of(signature: Signature) -> Self {
        Self {
            document: signature.document.into(),
            audit: written(&signature.audit),
        }
    }
}

fn written(audit: &impl Serialize) -> Json {
    serde_json::to_value(audit).expect("a report is JSON").into()
}
