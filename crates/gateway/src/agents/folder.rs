//! Keeps the project's agents in step with the files of a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use toolgate_engine::records::{Change, Listing, NewRecord, Owner, RecordSet, Records};
use toolgate_engine::tools::BUILT_IN;
use toolgate_engine::{AgentError, Engine};
use toolgate_kernel::agent::config_warnings;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;

use super::{AgentFile, FILE_BYTES_MAX, Fault};

/// Interval between two looks at the folder. A look reads only the files' times and sizes.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Most files of a folder.
const FILES_MAX: usize = 1_000;
/// Kind of the records that store which file an agent was read from. They outlive the process, so that a file
/// which is removed while the gateway is down is noticed.
const KIND: &str = "agent-file";

/// A folder with agent files.
pub struct Folder {
    path: PathBuf,
    engine: Engine,
    records: Arc<dyn Records>,
    project: ProjectId,
    /// Every file as it was when it was last read; `None` before the first look.
    seen: Option<BTreeMap<String, Stamp>>,
    /// Files that were missing at the last look. Editors remove a file for a moment while they save it, and
    /// retiring an agent cancels its runs: so an agent is retired only when its file is missing twice
    /// in a row. `None` before the first look: files that are missing then were removed while the gateway was
    /// down.
    missing: Option<BTreeSet<String>>,
}

/// Distinguishes a changed file from an unchanged one: modification time and size.
type Stamp = (Option<SystemTime>, u64);

/// The stored record of a file.
#[derive(Serialize, Deserialize)]
struct Kept {
    agent: AgentName,
}

impl Folder {
    /// Fails if the folder cannot be read. Changes nothing.
    pub fn check(path: &Path) -> anyhow::Result<()> {
        if path.is_file() {
            let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            bail!(
                "--agents wants a folder and {} is a file, give the folder that it is in, --agents {}",
                path.display(),
                folder.unwrap_or(Path::new(".")).display()
            );
        }
        if !path.is_dir() {
            bail!(
                "the agents folder {} does not exist, create it or choose another with --agents",
                path.display()
            );
        }
        list(path).map(drop)
    }

    /// Reads every file of the folder. Fails if the folder does not exist.
    pub async fn open(
        path: &Path,
        engine: Engine,
        records: Arc<dyn Records>,
        project: ProjectId,
    ) -> anyhow::Result<Self> {
        Self::check(path)?;
        let mut folder = Self {
            path: path.to_owned(),
            engine,
            records,
            project,
            seen: None,
            missing: None,
        };
        folder.look().await?;
        Ok(folder)
    }

    /// Follows changes of the folder until `stop` fires.
    pub async fn watch(mut self, stop: CancellationToken) {
        while stop
            .run_until_cancelled(tokio::time::sleep(LOOK_EVERY))
            .await
            .is_some()
        {
            if let Err(error) = self.look().await {
                // Cleared, so that the next look reads every file again.
                self.seen = None;
                tracing::error!(folder = %self.path.display(), error = format!("{error:#}"), "the agents folder could not be read");
            }
        }
    }

    /// Brings the agents in step with the files. An invalid file changes nothing.
    async fn look(&mut self) -> anyhow::Result<()> {
        let path = self.path.clone();
        let present = tokio::task::spawn_blocking(move || list(&path)).await??;
        let waits = self.missing.as_ref().is_none_or(|missing| !missing.is_empty());
        if self.seen.as_ref() == Some(&present) && !waits {
            return Ok(());
        }
        let seen = self.seen.take().unwrap_or_default();
        let kept = self.kept().await?;
        let (there, missing): (Vec<_>, Vec<_>) =
            kept.iter().partition(|(file, _)| present.contains_key(*file));
        // An agent with two files belongs to the one that still exists.
        let mut owners: BTreeMap<AgentName, String> = missing
            .iter()
            .chain(&there)
            .map(|(file, agent)| ((*agent).clone(), (*file).clone()))
            .collect();
        for file in present
            .keys()
            .filter(|file| present.get(*file) != seen.get(*file))
        {
            let owner_is_there = |agent: &AgentName| {
                let owner = owners
                    .get(agent)
                    .filter(|owner| *owner != file && present.contains_key(*owner));
                owner.cloned()
            };
            match self.store_agent(file, owner_is_there).await? {
                Ok(agent) => {
                    owners.insert(agent.clone(), file.clone());
                    if let Some(before) = kept.get(file).filter(|before| **before != agent) {
                        self.remove(before, file, &owners).await?;
                    }
                    self.keep(file, Some(agent)).await?;
                }
                Err(faults) => {
                    self.report(file, &faults);
                }
            }
        }
        let (gone, waits): (Vec<_>, Vec<_>) = missing
            .into_iter()
            .partition(|(file, _)| self.missing.as_ref().is_none_or(|before| before.contains(*file)));
        self.missing = Some(waits.into_iter().map(|(file, _)| file.clone()).collect());
        for (file, agent) in &gone {
            self.remove(agent, file, &owners).await?;
            self.keep(file, None).await?;
        }
        let mut seen = present;
        if !gone.is_empty() {
            // A file whose agent was not stored may have waited for a name that is free now: read it again.
            seen.retain(|file, _| owners.values().any(|owner| owner == file));
        }
        self.seen = Some(seen);
        Ok(())
    }

    /// Stores the agent of a file, or returns its errors.
    async fn store_agent(
        &self,
        file: &str,
        owner: impl Fn(&AgentName) -> Option<String>,
    ) -> anyhow::Result<Result<AgentName, Vec<Fault>>> {
        let path = self.path.join(file);
        let text = match tokio::task::spawn_blocking(move || text(&path)).await? {
            Ok(text) => text,
            Err(fault) => return Ok(Err(vec![fault])),
        };
        let built_in = self.engine.sources().list(BUILT_IN, self.project).await;
        let has_action = |name: &str| built_in.contains_key(name);
        let written = match AgentFile::read(Path::new(file), &text, &has_action) {
            Ok(written) => written,
            Err(faults) => return Ok(Err(faults)),
        };
        let name = written.name.clone();
        if let Some(owner) = owner(&name) {
            return Ok(Err(vec![Fault::at(
                1,
                format!("the agent {name} is already defined in {owner}"),
            )]));
        }
        let config: Json = written.config.clone().into();
        let faults = written.faults(self.engine.check_agent(self.project, &name, &config).await?);
        if !faults.is_empty() {
            return Ok(Err(faults));
        }
        let stored = self.engine.agent_record(self.project, &name, None).await?;
        if stored.is_some_and(|stored| stored.config == config) {
            return Ok(Ok(name));
        }
        match self.engine.put_agent(self.project, &name, config).await {
            Ok(revision) => {
                tracing::info!(file, agent = %name, revision, "stored the agent of a file");
                let warnings = config_warnings(&written.config).into_iter();
                self.warn(file, warnings.map(|problem| written.locate(problem)));
                Ok(Ok(name))
            }
            Err(AgentError::Invalid(problems)) => Ok(Err(written.faults(problems))),
            Err(AgentError::TooManyWait(error)) => Err(error.into()),
            Err(AgentError::Store(error)) => Err(error.into()),
        }
    }

    /// Retires the agent that was in `file`, unless another file has it now. Its goals, memories and plans are kept: the
    /// file may be back in a moment, or have a typo in its name.
    async fn remove(
        &self,
        agent: &AgentName,
        file: &str,
        owners: &BTreeMap<AgentName, String>,
    ) -> anyhow::Result<()> {
        if owners.get(agent).is_some_and(|owner| owner != file) {
            return Ok(());
        }
        self.engine.remove_agent(self.project, agent).await?;
        tracing::info!(file, %agent, "retired the agent of a removed file; its goals, memories and plans are kept");
        Ok(())
    }

    fn report(&self, file: &str, faults: &[Fault]) {
        let file = self.path.join(file);
        for Fault {
            line,
            pointer,
            message,
        } in faults
        {
            tracing::error!(file = %file.display(), line, pointer, "{message}");
        }
    }

    /// Logs what is valid and most likely not meant. Agents that are missing are not told: their files may come next.
    fn warn(&self, file: &str, warnings: impl Iterator<Item = Fault>) {
        let file = self.path.join(file);
        for Fault {
            line,
            pointer,
            message,
        } in warnings
        {
            tracing::warn!(file = %file.display(), line, pointer, "{message}");
        }
    }

    fn record_set(&self) -> RecordSet {
        RecordSet {
            project: self.project,
            owner: Owner::Project,
            kind: KIND,
        }
    }

    /// The agent of every file that has stored one.
    async fn kept(&self) -> anyhow::Result<BTreeMap<String, AgentName>> {
        let listing = Listing {
            limit: FILES_MAX,
            ..Listing::default()
        };
        let mut kept = BTreeMap::new();
        for record in self.records.list_records(self.record_set(), listing).await? {
            kept.insert(record.id, record.body.read::<Kept>()?.agent);
        }
        Ok(kept)
    }

    async fn keep(&self, file: &str, agent: Option<AgentName>) -> anyhow::Result<()> {
        let change = match agent {
            None => Change::Remove(file.into()),
            Some(agent) => Change::Put(NewRecord {
                id: file.into(),
                body: serde_json::to_value(Kept { agent })?.into(),
                text: None,
                data: None,
                due: None,
            }),
        };
        let now = self.engine.clock().now();
        Ok(self
            .records
            .change_records(self.record_set(), Vec::new(), vec![change], now)
            .await?)
    }
}

fn is_agent(name: &str) -> bool {
    let is_written = name.ends_with(".md") || name.ends_with(".json");
    is_written && !name.starts_with('.') && !is_folder_readme(name)
}

/// Whether the file is documentation of the folder and not an agent.
pub fn is_folder_readme(name: &str) -> bool {
    name.eq_ignore_ascii_case("readme.md")
}

/// The files of a folder that may be agents, by name.
pub fn agent_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    Ok(list(folder)?.into_keys().map(|name| folder.join(name)).collect())
}

/// The files of a folder that may be agents, with their stamps.
fn list(folder: &Path) -> anyhow::Result<BTreeMap<String, Stamp>> {
    let mut files = BTreeMap::new();
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if !is_agent(&name) {
            continue;
        }
        // A file that vanishes meanwhile is skipped; a link counts as its target.
        let Ok(about) = std::fs::metadata(entry.path()) else {
            continue;
        };
        if about.is_file() {
            files.insert(name, (about.modified().ok(), about.len()));
        }
        if files.len() > FILES_MAX {
            bail!("{} has more than {FILES_MAX} agent files", folder.display());
        }
    }
    Ok(files)
}

/// The text of a file, unless it is too long or not UTF-8.
pub fn text(path: &Path) -> Result<String, Fault> {
    use std::io::Read;
    let mut text = String::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text));
    match read {
        Err(error) => Err(Fault::at(1, format!("cannot be read: {error}"))),
        Ok(_) if text.len() as u64 > FILE_BYTES_MAX => {
            Err(Fault::at(1, format!("has more than {FILE_BYTES_MAX} bytes")))
        }
        Ok(_) => Ok(text),
    }
}
