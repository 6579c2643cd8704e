//! A folder of agents: what its files say is what the project has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use toolgate_engine::records::{Change, Listing, NewRecord, Owner, Records, Shelf};
use toolgate_engine::{AgentError, Engine};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;

use super::{FILE_BYTES_MAX, Fault, Written};

/// How often the folder is looked at. Looking asks for the files' times and sizes, and reads none.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Most files of a folder.
const FILES_MAX: usize = 1_000;
/// Which file an agent was read from. It outlives the process: a file that was removed meanwhile is noticed.
const KIND: &str = "agent-file";

/// The agents of a folder.
pub struct Folder {
    path: PathBuf,
    engine: Engine,
    records: Arc<dyn Records>,
    project: ProjectId,
    /// Every file as it was when it was last read; none before the first look.
    seen: Option<BTreeMap<String, Stamp>>,
    /// Files that were missing at the last look. Editors take a file away for a moment while they write it, and with an
    /// agent goes all that it remembers: it is gone when its file is missing twice. None before the first look, when
    /// what is missing went while nobody looked.
    missing: Option<BTreeSet<String>>,
}

/// Tells a changed file from one that stayed.
type Stamp = (Option<SystemTime>, u64);

/// What is kept of a file.
#[derive(Serialize, Deserialize)]
struct Kept {
    agent: AgentName,
}

impl Folder {
    /// Reads every file of a folder that is there.
    pub async fn open(
        path: &Path,
        engine: Engine,
        records: Arc<dyn Records>,
        project: ProjectId,
    ) -> anyhow::Result<Self> {
        if !path.is_dir() {
            bail!(
                "there is no folder {} with agents; make it, or leave out --agents",
                path.display()
            );
        }
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

    /// Follows the folder until `stop` fires.
    pub async fn watch(mut self, stop: CancellationToken) {
        while stop
            .run_until_cancelled(tokio::time::sleep(LOOK_EVERY))
            .await
            .is_some()
        {
            if let Err(error) = self.look().await {
                // Forgotten, so that the next look tries everything again.
                self.seen = None;
                tracing::error!(folder = %self.path.display(), error = format!("{error:#}"), "the agents of a folder could not be read");
            }
        }
    }

    /// Makes the agents what the files say now. A file that is wrong changes nothing.
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
        // Of two files with one agent it is in the one that is there.
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
            match self.take(file, owner_is_there).await? {
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
            // One that gave no agent may have waited for the name that is free now.
            seen.retain(|file, _| owners.values().any(|owner| owner == file));
        }
        self.seen = Some(seen);
        Ok(())
    }

    /// Stores the agent of a file, or says what is wrong with it.
    async fn take(
        &self,
        file: &str,
        owner: impl Fn(&AgentName) -> Option<String>,
    ) -> anyhow::Result<Result<AgentName, Vec<Fault>>> {
        let path = self.path.join(file);
        let text = match tokio::task::spawn_blocking(move || text(&path)).await? {
            Ok(text) => text,
            Err(fault) => return Ok(Err(vec![fault])),
        };
        let has_action = |name: &str| self.engine.has_action(name);
        let written = match Written::read(Path::new(file), &text, &has_action) {
            Ok(written) => written,
            Err(faults) => return Ok(Err(faults)),
        };
        let name = written.name.clone();
        if let Some(owner) = owner(&name) {
            return Ok(Err(vec![Fault::at(
                1,
                format!("the agent {name} is written in {owner} already"),
            )]));
        }
        let config: Json = written.config.clone().into();
        let faults = written.faults(self.engine.check_agent(&name, &config));
        if !faults.is_empty() {
            return Ok(Err(faults));
        }
        let stored = self.engine.store().agent(self.project, &name, None).await?;
        if stored.is_some_and(|stored| stored.config == config) {
            return Ok(Ok(name));
        }
        match self.engine.put_agent(self.project, &name, config).await {
            Ok(revision) => {
                tracing::info!(file, agent = %name, revision, "an agent was read from its file");
                Ok(Ok(name))
            }
            Err(AgentError::Invalid(problems)) => Ok(Err(written.faults(problems))),
            Err(AgentError::Store(error)) => Err(error.into()),
        }
    }

    /// Removes the agent that was in `file`, unless another file has it now.
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
        tracing::info!(file, %agent, "an agent was removed with its file");
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

    fn shelf(&self) -> Shelf {
        Shelf {
            project: self.project,
            owner: Owner::Project,
            kind: KIND,
        }
    }

    /// The agent of every file that gave one.
    async fn kept(&self) -> anyhow::Result<BTreeMap<String, AgentName>> {
        let listing = Listing {
            limit: FILES_MAX,
            ..Listing::default()
        };
        let mut kept = BTreeMap::new();
        for record in self.records.list_records(self.shelf(), listing).await? {
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
            .change_records(self.shelf(), Vec::new(), vec![change], now)
            .await?)
    }
}

fn is_agent(name: &str) -> bool {
    let is_written = name.ends_with(".md") || name.ends_with(".json");
    is_written && !name.starts_with('.') && !is_about_the_folder(name)
}

/// A file that people read about the agents beside it.
pub fn is_about_the_folder(name: &str) -> bool {
    name.eq_ignore_ascii_case("readme.md")
}

/// The files of a folder that may be agents.
fn list(folder: &Path) -> anyhow::Result<BTreeMap<String, Stamp>> {
    let mut files = BTreeMap::new();
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot look into {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if !is_agent(&name) {
            continue;
        }
        // A file that goes away meanwhile is gone; a link counts as what it leads to.
        let Ok(about) = std::fs::metadata(entry.path()) else {
            continue;
        };
        if about.is_file() {
            files.insert(name, (about.modified().ok(), about.len()));
        }
        if files.len() > FILES_MAX {
            bail!("{} has more than {FILES_MAX} agents", folder.display());
        }
    }
    Ok(files)
}

/// What a file says, unless it is too long or no text.
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
