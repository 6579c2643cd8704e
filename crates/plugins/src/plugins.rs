//! Everything that an operator does with the plugins of a project.

use std::sync::Arc;
use std::time::Duration;

use semver::Version;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use toolgate_egress::{BodyLimit, Egress, Policy, Request};
use toolgate_engine::clock::Clock;
use toolgate_engine::record_index::{INDEX, put};
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_engine::records::{Amendment, Change, Records};
use toolgate_engine::shares::share_of;
use toolgate_engine::sources::Sources;
use toolgate_engine::store::StoreError;
use toolgate_engine::tool_names::{NamesUnknown, TakenNames};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::Problem;
use toolgate_package::document::DOCUMENT_BYTES_MAX;
use toolgate_package::{Audit, Package, PackageHash};
use url::Url;

use crate::cache::{Cache, Snapshot};
use crate::curators::NewCurator;
use crate::error::{PluginError, Reason, Refused};
use crate::index::{self, Curator, Index, Installed, Read, Revocation, package_id, record_set};
use crate::plan::{self, Ground};
use crate::review::{Action, Offer, Review};
use crate::revoke::{Revoke, revoke};
use crate::settings::{PluginResolver, PluginSettings};
use crate::source::SOURCE;
use crate::versions::{changes_signer, fresh_storage, made_current, went_back};

/// Longest time that fetching a package may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes of the index after an installation or a new key: it is read whenever something may have changed.
const INDEX_BYTES_MAX: usize = 1 << 20;
/// What the plugins work with.
pub struct PluginsParts {
    /// Where they are stored.
    pub records: Arc<dyn Records>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The settings of projects.
    pub resolver: Arc<dyn PluginResolver>,
    /// Connections to servers of others.
    pub egress: Egress,
    /// Version of the gateway, which packages may ask for.
    pub engine: Version,
}

/// The plugins of all projects. Cheap to clone.
#[derive(Clone)]
pub struct Plugins(Arc<Inner>);

struct Inner {
    updater: RecordUpdater,
    clock: Arc<dyn Clock>,
    resolver: Arc<dyn PluginResolver>,
    egress: Egress,
    engine: Version,
    cache: Cache,
}

/// A package that was read, with what takes time to find out. Made off the runtime's threads.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub(crate) package: Package,
    pub(crate) bytes: u64,
    pub(crate) document_hash: String,
    pub(crate) audit: Audit,
}

/// A stored document.
#[derive(Debug, Clone)]
pub struct StoredDocument {
    /// Its text.
    pub body: Json,
    /// SHA-256 of the text, in hex.
    pub hash: String,
}

impl Candidate {
    /// Reads a document; gives all its problems. Takes some milliseconds for a large one.
    pub fn parse(document: &[u8]) -> Result<Self, Vec<Problem>> {
        let package = Package::parse(document)?;
        let stored = Json::from(package.document());
        Ok(Self {
            bytes: stored.as_str().len() as u64,
            document_hash: document_hash(&stored),
            audit: toolgate_package::audit(&package),
            package,
        })
    }
    /// The package.
    pub fn package(&self) -> &Package {
        &self.package
    }
}

/// A package to install.
pub struct Install {
    /// The package.
    pub candidate: Candidate,
    /// Address that it was fetched from.
    pub source_url: Option<String>,
    /// Another curator than so far may sign the plugin.
    pub replace_curator: bool,
}

/// Where a rollback goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RollBack {
    /// To the package that was current before.
    Previous,
    /// To the stored package of the plugin with this hash.
    To(String),
}

/// A document that was signed.
pub struct Signature {
    /// The document with its hashes and signatures.
    pub document: Value,
    /// What a reviewer should look at in it.
    pub audit: Audit,
}

/// A decided change: the index as it will be, and the other records.
type Decided<T> = Result<(Option<(Index, Vec<Change>)>, T), PluginError>;

/// What a change that takes names is decided by, besides the index.
struct Names {
    /// Names that other sources have.
    taken: TakenNames,
    /// The package of the plugin that is current.
    before: Option<Arc<Package>>,
}

impl Plugins {
    /// The plugins in this store.
    pub fn new(parts: PluginsParts) -> Self {
        Self(Arc::new(Inner {
            cache: Cache::new(parts.records.clone(), parts.resolver.clone()),
            updater: RecordUpdater::new(parts.records),
            clock: parts.clock,
            resolver: parts.resolver,
            egress: parts.egress,
            engine: parts.engine,
        }))
    }

    /// The index of a project as it is stored now, and the project's settings.
    pub async fn index(&self, project: ProjectId) -> Result<(Index, Arc<PluginSettings>), StoreError> {
        Ok((self.read(project).await?.index, self.settings(project).await?))
    }

    /// The document of a stored package, its code included; for the project's backend only. `hash` is that of the package
    /// or that of the document: one package may be stored with other signatures later, and then its document has another.
    pub async fn document(
        &self,
        project: ProjectId,
        hash: &str,
    ) -> Result<Option<StoredDocument>, StoreError> {
        let index = self.read(project).await?.index;
        let package = index.package_of_document(hash).unwrap_or(hash);
        let records = self.0.updater.records();
        let record = records.record(record_set(project), &package_id(package)).await?;
        Ok(record.map(|record| StoredDocument {
            hash: document_hash(&record.body),
            body: record.body,
        }))
    }

    /// Says what installing a package would do, and changes nothing.
    pub async fn review(
        &self,
        project: ProjectId,
        install: &Install,
        sources: &Sources,
    ) -> Result<Review, PluginError> {
        let taken = sources.taken_names(project, SOURCE).await?;
        let (read, settings) = (self.read(project).await?, self.settings(project).await?);
        let before = self
            .current_package(project, &read.index, install.candidate.package.id().as_str())
            .await?;
        let ground = self.ground(&settings, &taken);
        Ok(self.reviewed(&read.index, install, before.as_deref(), &ground))
    }

    /// Installs a package, or replaces the current one of its plugin, unless something stands against it: then all of it
    /// is told and nothing is changed. `sources` are all of the gateway: none of them loses a name to the plugin.
    pub async fn install(
        &self,
        project: ProjectId,
        install: Install,
        sources: &Sources,
    ) -> Result<Review, PluginError> {
        let settings = self.settings(project).await?;
        let plugin = install.candidate.package.id().to_string();
        let decide = |read: &Read, names: &Names| {
            let ground = self.ground(&settings, &names.taken);
            let review = self.reviewed(&read.index, &install, names.before.as_deref(), &ground);
            if !review.refused.is_empty() {
                return Err(PluginError::Refused(review.refused));
            }
            if review.action == Action::None {
                return Ok((None, review));
            }
            let mut index = read.index.clone();
            let plugin = &review.package.plugin;
            let current = read.index.current(plugin).map(|(_, current)| current);
            let other_signer = current.is_some_and(|current| changes_signer(current, &review.package));
            let mut changes = made_current(&mut index, plugin, &review.hash, self.0.clock.now());
            if other_signer {
                changes.extend(fresh_storage(&mut index, plugin));
            }
            // The same package may come again with a better signature, which stands outside of its hash.
            if other_signer || !index.holds_verified(&review.hash) {
                changes.push(put(
                    package_id(&review.hash),
                    install.candidate.package.document().into(),
                ));
                index.packages.insert(review.hash.clone(), review.package.clone());
            }
            within_size(&index)?;
            Ok((Some((index, changes)), review))
        };
        self.change_names(project, &plugin, sources, decide).await
    }

    /// Goes back to a stored package of a plugin. What stands against it is checked as for an installation, but its
    /// signature counts as it was found when it was stored: an expired key does not stop a rollback.
    pub async fn roll_back(
        &self,
        project: ProjectId,
        plugin: &str,
        to: &RollBack,
        sources: &Sources,
    ) -> Result<(), PluginError> {
        let settings = self.settings(project).await?;
        let decide = |read: &Read, names: &Names| {
            let index = &read.index;
            let installed = installed(index, plugin)?;
            let hash = match to {
                RollBack::Previous => installed.history.last().cloned().ok_or_else(|| {
                    PluginError::Missing(format!("version of {plugin:?} before the current one"))
                })?,
                RollBack::To(hash) => hash.clone(),
            };
            let package = index
                .packages
                .get(&hash)
                .filter(|package| package.plugin == plugin);
            let package = package.ok_or_else(|| {
                PluginError::Missing(format!("stored package of {plugin:?} with this hash"))
            })?;
            let mut refused: Vec<Refused> = index
                .trust(&hash, &settings)
                .err()
                .iter()
                .map(Refused::from)
                .collect();
            refused.extend(
                self.ground(&settings, &names.taken)
                    .against_running(index, package),
            );
            if !refused.is_empty() {
                return Err(PluginError::Refused(refused));
            }
            let mut next = index.clone();
            went_back(&mut next, plugin, &hash, self.0.clock.now());
            let changes = match index.current(plugin) {
                Some((_, current)) if changes_signer(current, package) => fresh_storage(&mut next, plugin),
                Some(_) | None => Vec::new(),
            };
            Ok((Some((next, changes)), ()))
        };
        self.change_names(project, plugin, sources, decide).await
    }

    /// Removes a plugin, unless others need it. Runs under way keep its packages, which stay stored until `purge`.
    pub async fn remove(&self, project: ProjectId, plugin: &str, purge: bool) -> Result<(), PluginError> {
        let decide = |read: &Read| {
            let mut index = read.index.clone();
            let refused = plan::against_removing(&index, plugin);
            if !refused.is_empty() {
                return Err(PluginError::Refused(refused));
            }
            let removed = index.plugins.remove(plugin);
            let mut changes: Vec<Change> = removed
                .iter()
                .map(|gone| Change::Remove(gone.data.clone()))
                .collect();
            let packages: Vec<String> = index.versions(plugin).map(|(hash, _)| hash.clone()).collect();
            if removed.is_none() && (packages.is_empty() || !purge) {
                return Err(missing_plugin(plugin));
            }
            for hash in packages.iter().filter(|_| purge) {
                index.packages.remove(hash);
                changes.push(Change::Remove(package_id(hash)));
            }
            Ok((Some((index, changes)), ()))
        };
        self.change(project, decide).await
    }

    /// Deletes a stored package that is not the current one of its plugin. Runs that have pinned it cannot call it any more.
    pub async fn purge(&self, project: ProjectId, hash: &str) -> Result<(), PluginError> {
        let decide = |read: &Read| {
            let mut index = read.index.clone();
            let missing = || PluginError::Missing("stored package with this hash".into());
            let package = index.packages.remove(hash).ok_or_else(missing)?;
            if let Some(installed) = index.plugins.get_mut(&package.plugin) {
                if installed.current == hash {
                    let words = format!(
                        "it is the current package of {:?}; remove the plugin instead",
                        package.plugin
                    );
                    return Err(PluginError::Refused(vec![Reason::Dependency.at("", words)]));
                }
                installed.history.retain(|earlier| earlier != hash);
            }
            Ok((Some((index, vec![Change::Remove(package_id(hash))])), ()))
        };
        self.change(project, decide).await
    }

    /// Stops packages for good, on this node at once and on others within a second; calls under way are cut off.
    pub async fn revoke(
        &self,
        project: ProjectId,
        what: &Revoke,
        reason: Option<&str>,
    ) -> Result<(), PluginError> {
        let revocation = Revocation {
            time: self.0.clock.now(),
            reason: reason.map(str::to_owned),
        };
        let decide = |read: &Read| {
            let mut index = read.index.clone();
            revoke(&mut index, what, &revocation)?;
            Ok((Some((index, Vec::new())), ()))
        };
        self.change(project, decide).await
    }

    /// Adds a curator or changes one: keys are added, or get other dates. A revoked curator is trusted again by a new key.
    pub async fn put_curator(
        &self,
        project: ProjectId,
        id: &str,
        written: NewCurator,
    ) -> Result<Curator, PluginError> {
        let now = self.0.clock.now();
        let decide = |read: &Read| {
            let curator = written.applied(id, &read.index, now)?;
            let mut index = read.index.clone();
            index.curators.insert(id.to_owned(), curator.clone());
            within_size(&index)?;
            Ok((Some((index, Vec::new())), curator))
        };
        self.change(project, decide).await
    }

    /// Fetches the document of a package with this hash.
    pub async fn fetch(
        &self,
        project: ProjectId,
        url: Url,
        expected: PackageHash,
    ) -> Result<Candidate, PluginError> {
        let settings = self.settings(project).await?;
        let egress = self.0.egress.within(share_of(project, None));
        let client = egress.client(Policy::public(settings.allow.clone()).within(FETCH_TIMEOUT));
        let response = client
            .send(Request::get(url, BodyLimit::Whole(DOCUMENT_BYTES_MAX)))
            .await?;
        if !response.status.is_success() {
            let words = format!("the server answered with status {}", response.status.as_u16());
            return Err(toolgate_egress::EgressError::Unusable(words).into());
        }
        let candidate = off_threads(move || Candidate::parse(&response.body)).await?;
        let candidate = candidate.map_err(PluginError::Invalid)?;
        match candidate.package.hash() {
            found if found == expected => Ok(candidate),
            found => Err(PluginError::OtherPackage {
                found: found.to_string(),
                expected: expected.to_string(),
            }),
        }
    }

    /// Signs a document with the project's key, for whoever shows an API key that may; `key` is its id, none where no keys
    /// are asked for.
    pub async fn sign(
        &self,
        project: ProjectId,
        candidate: Candidate,
        key: Option<&str>,
    ) -> Result<Signature, PluginError> {
        let cannot = |words: &str| PluginError::CannotSign(words.into());
        let settings = self.settings(project).await?;
        let signing = settings.signing.as_ref().ok_or_else(|| {
            cannot(
                "the project has no signing key; make one with `toolgate plugin keygen`, keep its private key as a secret, \
                 and set plugins.signing (curator, secret, keys) in the project's settings",
            )
        })?;
        if key.is_some_and(|key| !signing.allowed.iter().any(|allowed| allowed == key)) {
            let words = "this key may not sign; add its id to plugins.signing.keys in the project's settings";
            return Err(cannot(words));
        }
        if signing.private_key.is_none() {
            let words = "plugins.signing.secret in the project's settings names no secret that is set; keep the private key there";
            return Err(cannot(words));
        }
        let signing = signing.clone();
        off_threads(move || signing.sign(candidate)).await?
    }

    /// The plugins of a project as they were at most a second ago.
    pub(crate) async fn snapshot(&self, project: ProjectId) -> Result<Arc<Snapshot>, StoreError> {
        self.0.cache.snapshot(project).await
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.0.cache
    }

    pub(crate) fn updater(&self) -> &RecordUpdater {
        &self.0.updater
    }

    pub(crate) fn egress(&self) -> &Egress {
        &self.0.egress
    }

    pub(crate) async fn settings(&self, project: ProjectId) -> Result<Arc<PluginSettings>, StoreError> {
        self.0.resolver.plugin_settings(project).await
    }

    fn reviewed(
        &self,
        index: &Index,
        install: &Install,
        before: Option<&Package>,
        ground: &Ground<'_>,
    ) -> Review {
        let offer = Offer {
            candidate: &install.candidate,
            source_url: install.source_url.as_deref(),
            replace_curator: install.replace_curator,
            before,
            now: self.0.clock.now(),
        };
        offer.review(index, ground)
    }

    fn ground<'a>(&'a self, settings: &'a PluginSettings, taken: &'a TakenNames) -> Ground<'a> {
        Ground {
            settings,
            engine: &self.0.engine,
            taken,
        }
    }

    /// The current package of a plugin; none if it is not installed.
    async fn current_package(
        &self,
        project: ProjectId,
        index: &Index,
        plugin: &str,
    ) -> Result<Option<Arc<Package>>, StoreError> {
        match index.current(plugin) {
            Some((hash, _)) => self.0.cache.package(project, hash).await,
            None => Ok(None),
        }
    }

    async fn read(&self, project: ProjectId) -> Result<Read, StoreError> {
        let records = self.0.updater.records();
        index::read(records.record(record_set(project), INDEX).await?)
    }

    /// Reads, decides and writes in one transaction; again if another node was faster.
    async fn change<T>(
        &self,
        project: ProjectId,
        decide: impl Fn(&Read) -> Decided<T>,
    ) -> Result<T, PluginError> {
        let decide = |read: Read| {
            let (changed, result) = decide(&read)?;
            Ok::<_, PluginError>((amendment(&read, changed), result))
        };
        let (set, now) = (record_set(project), self.0.clock.now());
        let changed = self
            .0
            .updater
            .update(set, now, || self.read(project), decide)
            .await;
        // Also after a failure: a store that gave no answer may have done it.
        self.0.cache.changed(project).await;
        changed
    }

    /// The same for a change that may take names: it is decided again if another source takes one meanwhile.
    async fn change_names<T>(
        &self,
        project: ProjectId,
        plugin: &str,
        sources: &Sources,
        decide: impl Fn(&Read, &Names) -> Decided<T>,
    ) -> Result<T, PluginError> {
        let read = || async {
            let taken = sources.taken_names(project, SOURCE).await;
            let read = self.read(project).await?;
            let before = self.current_package(project, &read.index, plugin).await?;
            Ok((read, taken.map(|taken| Names { taken, before })))
        };
        let decide = |(read, names): (Read, Result<Names, NamesUnknown>)| {
            let names = names?;
            let (changed, result) = decide(&read, &names)?;
            let turn = changed.is_some().then(|| names.taken.turn());
            let amendment = amendment(&read, changed);
            Ok::<_, PluginError>((Amendment { turn, ..amendment }, result))
        };
        let (set, now) = (record_set(project), self.0.clock.now());
        let changed = self.0.updater.update(set, now, read, decide).await;
        self.0.cache.changed(project).await;
        changed
    }
}

/// Stores a decided change, if the index is still as it was read.
fn amendment(read: &Read, changed: Option<(Index, Vec<Change>)>) -> Amendment {
    changed.map_or_else(Amendment::default, |(index, changes)| {
        read.replaced_by(&index, changes)
    })
}

fn document_hash(document: &Json) -> String {
    let digest = Sha256::digest(document.as_str());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Does work that takes more than a moment where nobody waits for the thread.
async fn off_threads<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, PluginError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| StoreError::Unavailable("work on a package was given up".into()).into())
}

/// Refuses an index that has grown too large to be read often.
fn within_size(index: &Index) -> Result<(), PluginError> {
    let bytes = serde_json::to_string(index).map_or(usize::MAX, |text| text.len());
    if bytes <= INDEX_BYTES_MAX {
        return Ok(());
    }
    let words = format!(
        "what is known of the project's curators and packages would have {bytes} bytes, at most {INDEX_BYTES_MAX} are \
         allowed; purge old versions first"
    );
    Err(PluginError::Refused(vec![Reason::LimitExceeded.at("", words)]))
}

fn installed<'i>(index: &'i Index, plugin: &str) -> Result<&'i Installed, PluginError> {
    index.plugins.get(plugin).ok_or_else(|| missing_plugin(plugin))
}

pub(crate) fn missing_plugin(plugin: &str) -> PluginError {
    PluginError::Missing(format!("plugin {plugin:?} in this project"))
}
