//! `toolgate store export` and `import`: everything that is stored, from any database to any other.

use std::fs::File;
use std::io::{BufReader, BufWriter, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;
use toolgate_store::transfer::{
    Database as Rows, Manifest, PostgresDatabase, SqliteDatabase, export, import,
};

use super::{Database, Place, block_on};
use crate::output;

#[derive(Debug, Args)]
pub struct Export {
    /// File to write; it must not be there yet
    to: PathBuf,
    /// Only this project, by its id
    #[arg(long, value_name = "PROJECT")]
    project: Option<ProjectId>,
    #[command(flatten)]
    place: Place,
}

impl Export {
    /// Writes the file; a gateway may use the database meanwhile.
    pub fn run(self) -> anyhow::Result<()> {
        let database = self.place.database()?;
        let shown = self.to.display();
        let draft = draft(&self.to);
        if self.to.exists() {
            bail!("{shown} is there already, choose another name");
        }
        let work = async {
            let mut rows: Box<dyn Rows> = match &database {
                Database::Sqlite(path) => Box::new(SqliteDatabase::open(path)?),
                Database::Postgres(address) => Box::new(PostgresDatabase::open(address).await?),
            };
            let file = BufWriter::new(private(&draft)?);
            let manifest = export(&mut *rows, self.project, file, progress("exported")).await?;
            File::open(&draft)?.sync_all()?;
            std::fs::rename(&draft, &self.to)?;
            anyhow::Ok(manifest)
        };
        let manifest = block_on(work)?.inspect_err(|_| {
            // The first error tells more than a second one.
            let _ = std::fs::remove_file(&draft);
        });
        let manifest = manifest.with_context(|| format!("cannot export {database} to {shown}"))?;
        output::print(&format!("exported {database} to {shown}\n{}", table(&manifest)))?;
        Ok(())
    }
}

#[derive(Debug, Args)]
pub struct Import {
    /// File that `toolgate store export` has written
    from: PathBuf,
    #[command(flatten)]
    place: Place,
    /// Add to a database that has projects already
    #[arg(long)]
    force: bool,
}

impl Import {
    /// Reads the file into the database, which no gateway may use meanwhile. Interrupted, it goes on when it is run again.
    pub fn run(self) -> anyhow::Result<()> {
        let database = self.place.database()?;
        let shown = self.from.display();
        let file = File::open(&self.from).with_context(|| format!("cannot read {shown}"))?;
        let work = async {
            let mut rows: Box<dyn Rows> = match &database {
                Database::Sqlite(path) => Box::new(SqliteDatabase::create(path)?),
                Database::Postgres(address) => Box::new(PostgresDatabase::create(address).await?),
            };
            import(&mut *rows, BufReader::new(file), self.force, progress("imported")).await
        };
        let imported = match block_on(work)? {
            Err(StoreError::Exists) => bail!(
                "{database} has projects of this file already, or others; import into an empty database, or use --force to add \
                 to what it has"
            ),
            other => other.with_context(|| format!("cannot import {shown} into {database}"))?,
        };
        let verified = match imported.verified {
            true => "counts and hashes agree",
            false => "what it had before was not told apart, so counts and hashes were not compared",
        };
        let resumed = match imported.resumed_after {
            0 => String::new(),
            rows => format!(", of which {rows} rows were there from an import before"),
        };
        output::print(&format!(
            "imported {shown} into {database}{resumed}; {verified}\n{}",
            table(&imported.manifest)
        ))?;
        Ok(())
    }
}

/// Rows of each table, for people.
fn table(manifest: &Manifest) -> String {
    let lines = manifest
        .tables
        .iter()
        .map(|(name, tally)| format!("  {name:<12} {}\n", tally.rows));
    lines.collect()
}

/// Says now and then how far it is, if somebody watches.
fn progress(verb: &'static str) -> impl FnMut(u64) {
    const EVERY: Duration = Duration::from_secs(1);
    let watched = std::io::stderr().is_terminal();
    let mut told = Instant::now();
    move |rows| {
        if watched && told.elapsed() >= EVERY {
            eprintln!("{verb} {rows} rows");
            told = Instant::now();
        }
    }
}

fn draft(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// A new file that only its owner may read: it holds configurations with secrets.
fn private(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
