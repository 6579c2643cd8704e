//! `toolgate plugin`: makes, signs and verifies plugin packages, and manages those of a running gateway.

mod create;
mod file;
mod keygen;
mod remote;
mod report;
mod run;
mod sign;
mod verify;

use std::process::ExitCode;

use clap::Subcommand;
use toolgate_package::SCHEMA;

use crate::output;

pub use file::read_curators;
pub use remote::Remote;

#[derive(Debug, Subcommand)]
pub enum Plugin {
    /// Make a package to start from
    New(create::New),
    /// Make a pair of keys for signing packages
    Keygen(keygen::Keygen),
    /// Sign a package, and report what is in it
    Sign(sign::Sign),
    /// Check a package and its signatures
    Verify(verify::Verify),
    /// Try a tool of a package in the sandbox
    Run(run::Run),
    /// Install a package into a project of a running gateway, or replace the version it has
    Install(remote::Install),
    /// List the plugins of a project
    List(remote::List),
    /// Remove a plugin from a project
    Remove(remote::Remove),
    /// Let a project install what a curator signs
    Trust(remote::Trust),
    /// Print the JSON Schema of packages
    Schema,
}

impl Plugin {
    /// Does what was asked; the exit code is 0 if everything is as it should be.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::New(new) => new.run(),
            Self::Keygen(keygen) => keygen.run(),
            Self::Sign(sign) => sign.run(),
            Self::Verify(verify) => verify.run(),
            Self::Run(run) => run.run(),
            Self::Install(install) => install.run(),
            Self::List(list) => list.run(),
            Self::Remove(remove) => remove.run(),
            Self::Trust(trust) => trust.run(),
            Self::Schema => {
                output::print(SCHEMA)?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}
