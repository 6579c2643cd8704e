//! `toolgate plugin verify`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use toolgate_engine::clock::{Clock as _, SystemClock};
use toolgate_package::key::PEM_BYTES_MAX;
use toolgate_package::{CuratorId, CuratorKey, CuratorKeys, KeyId, Package, PublicKey, Verification, audit};

use super::file::{Source, read_bounded, read_curators};
use super::report;
use crate::output;

#[derive(Debug, Args)]
pub struct Verify {
    /// Package file, or a folder with a plugin.json
    file: PathBuf,
    /// A curator's public key in PEM; may be given several times
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// Curator whose key that is [default: the one that the package names]
    #[arg(long, value_name = "ID", requires = "key")]
    curator: Option<CuratorId>,
    /// Id of the key [default: its fingerprint]
    #[arg(long, value_name = "ID", requires = "key")]
    key_id: Option<KeyId>,
    /// JSON file with the keys of several curators: `{"CURATOR": {"keys": [{"publicKey": PEM, …}]}}`
    #[arg(long, value_name = "FILE")]
    curators: Option<PathBuf>,
    /// A valid package without a signature is a success
    #[arg(long)]
    unsigned: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

impl Verify {
    /// Prints the report; the exit code is 0 if a given key has signed the whole package.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let source = Source::read(&self.file)?;
        let package = source.package()?;
        let keys = self.keys(&package)?;
        let verification = toolgate_package::verify(&package, &keys, SystemClock.now());
        let good = match &verification {
            Verification::Verified { .. } => true,
            Verification::Unsigned => self.unsigned,
            Verification::ToolsOnly { .. } | Verification::Rejected(_) => false,
        };
        let text = match self.json {
            true => {
                let (state, code) = report::state(&verification);
                let words = report::words(&verification);
                let report = json!({
                    "state": state, "code": code, "detail": words, "audit": audit(&package),
                });
                format!("{}\n", serde_json::to_string_pretty(&report)?)
            }
            false => format!(
                "{}signature    {}\n",
                report::described(&package),
                report::words(&verification)
            ),
        };
        output::print(&text)?;
        Ok(match good {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }

    fn keys(&self, package: &Package) -> anyhow::Result<CuratorKeys> {
        let mut keys = match &self.curators {
            None => CuratorKeys::default(),
            Some(path) => read_curators(path)?,
        };
        let curator = self.curator.as_ref().or(package.claimed_curator());
        // Nobody has signed it, so there is nothing to verify with a key.
        let Some(curator) = curator else {
            return Ok(keys);
        };
        for path in &self.key {
            let mut key = CuratorKey::new(read_key(path)?);
            if let Some(id) = &self.key_id {
                key.id = id.clone();
            }
            keys.add(curator.clone(), key);
        }
        Ok(keys)
    }
}

fn read_key(path: &Path) -> anyhow::Result<PublicKey> {
    let bytes = read_bounded(path, PEM_BYTES_MAX)?;
    let text = std::str::from_utf8(&bytes).with_context(|| format!("{} is not PEM", path.display()))?;
    PublicKey::from_pem(text).with_context(|| format!("{} is not a public key", path.display()))
}
