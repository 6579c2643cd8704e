//! `toolgate plugin keygen`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use toolgate_package::{Algorithm, SigningKey};

use crate::output;

/// Only its owner reads a private key.
const PRIVATE_MODE: u32 = 0o600;
const PUBLIC_MODE: u32 = 0o644;

#[derive(Debug, Args)]
pub struct Keygen {
    /// Where to write: the keys are NAME.key.pem (private) and NAME.pub.pem
    #[arg(long, value_name = "NAME", default_value = "curator")]
    out: PathBuf,
    /// Signature algorithm
    #[arg(long, value_enum, default_value_t = Kind::Ed25519)]
    algorithm: Kind,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Ed25519,
    /// RSASSA-PKCS1-v1_5 with SHA-256 and 3072 bits
    Rsa,
}

impl Keygen {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let file = |ending: &str| {
            let mut path = self.out.clone().into_os_string();
            path.push(ending);
            PathBuf::from(path)
        };
        let (private, public) = (file(".key.pem"), file(".pub.pem"));
        if let Some(there) = [&private, &public].into_iter().find(|path| path.exists()) {
            bail!(
                "{} is there already and is not overwritten; choose another name with --out",
                there.display()
            );
        }
        let key = SigningKey::generate(match self.algorithm {
            Kind::Ed25519 => Algorithm::Ed25519,
            Kind::Rsa => Algorithm::Rsa,
        });
        write_new(&private, &key.to_pem(), PRIVATE_MODE)?;
        write_new(&public, &key.public().to_pem(), PUBLIC_MODE)?;
        output::print(&format!(
            "private key  {} (keep it secret; who has it signs in your name)\n\
             public key   {} (give it to whoever installs your plugins)\n\
             key id       {}\n",
            private.display(),
            public.display(),
            key.public().fingerprint(),
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn write_new(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .with_context(failed)?;
    file.write_all(text.as_bytes()).with_context(failed)?;
    file.sync_all().with_context(failed)
}
