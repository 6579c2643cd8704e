//! `toolgate plugin sign`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use toolgate_package::key::PEM_BYTES_MAX;
use toolgate_package::{CuratorId, KeyId, Package, SignError, SigningKey, audit};
use zeroize::Zeroizing;

use super::file::{Source, read_bounded, told, write_whole};
use super::report;
use crate::output;

#[derive(Debug, Args)]
pub struct Sign {
    /// Package file, or a folder with a plugin.json
    file: PathBuf,
    /// Private key in PEM (PKCS#8), as `toolgate plugin keygen` makes it
    #[arg(long, value_name = "FILE", env = "TOOLGATE_CURATOR_KEY_FILE")]
    key: PathBuf,
    /// Your id as a curator, by which projects know your public keys
    #[arg(long, value_name = "ID", env = "TOOLGATE_CURATOR_ID")]
    curator: CuratorId,
    /// Id of the key [default: the fingerprint of the public key]
    #[arg(long, value_name = "ID")]
    key_id: Option<KeyId>,
    /// Where to write the signed package; `-` prints it [default: the file itself, or ID.json beside it if its code is
    /// in files of its own]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Sign {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let source = Source::read(&self.file)?;
        let key = read_key(&self.key)?;
        let key_id = self.key_id.unwrap_or_else(|| key.public().fingerprint());
        let signed = toolgate_package::sign(source.document.clone(), &key, &self.curator, Some(&key_id))
            .map_err(|SignError(problems)| told(&source.path, &problems))?;
        let text = format!("{}\n", serde_json::to_string_pretty(&signed)?);
        let package = Package::parse(text.as_bytes()).map_err(|problems| told(&source.path, &problems))?;
        let out = self.out.unwrap_or_else(|| match source.code_files.is_empty() {
            true => source.path.clone(),
            false => source.path.with_file_name(format!("{}.json", package.id())),
        });
        if out.as_os_str() == "-" {
            output::print(&text)?;
            return Ok(ExitCode::SUCCESS);
        }
        write_whole(&out, &text)?;
        output::print(&format!(
            "{}signed by    {} with key {key_id}\nwritten to   {}\n",
            report::audited(&audit(&package)),
            self.curator,
            out.display()
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn read_key(path: &Path) -> anyhow::Result<SigningKey> {
    let pem = Zeroizing::new(read_bounded(path, PEM_BYTES_MAX)?);
    let mode = std::fs::metadata(path).map(|file| file.permissions().mode());
    if mode.is_ok_and(|mode| mode & 0o077 != 0) {
        eprintln!("warning: others can read {0}; run: chmod 600 {0}", path.display());
    }
    let text = std::str::from_utf8(&pem).with_context(|| format!("{} is not PEM", path.display()))?;
    SigningKey::from_pem(text).with_context(|| format!("{} is not a key to sign with", path.display()))
}
