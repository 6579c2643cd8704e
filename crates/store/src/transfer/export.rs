//! Writes everything that is stored, or all of one project, to a file.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;

use super::Database;
use super::row::{FORMAT, Header, Manifest};
use super::tables::TABLES;

/// Writes all projects, or one, as they are at this moment; the database may be in use. Gives what was written.
pub async fn export(
    database: &mut dyn Database,
    project: Option<ProjectId>,
    to: impl Write,
    mut progress: impl FnMut(u64),
) -> Result<Manifest, StoreError> {
    let mut file = GzEncoder::new(to, Compression::default());
    let mut write = |line: &str| writeln!(file, "{line}").map_err(unwritable);
    let header = Header {
        toolgate_export: FORMAT,
        id: uuid::Uuid::now_v7().to_string(),
        project: project.map(|project| project.to_string()),
    };
    write(&json(&header))?;
    database.begin_snapshot().await?;
    let mut manifest = Manifest::default();
    for table in TABLES {
        let mut last = None;
        loop {
            let rows = database.rows(table, project, last.as_ref()).await?;
            for row in &rows {
                let line = row.line(table);
                manifest.count(table, &line);
                write(&line)?;
            }
            progress(manifest.rows());
            match rows.into_iter().last() {
                Some(row) => last = Some(row),
                None => break,
            }
        }
    }
    write(&json(&manifest))?;
    file.finish().and_then(|mut to| to.flush()).map_err(unwritable)?;
    Ok(manifest)
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("it prints as JSON")
}

fn unwritable(error: std::io::Error) -> StoreError {
    StoreError::Unavailable(format!("the file cannot be written: {error}"))
}
