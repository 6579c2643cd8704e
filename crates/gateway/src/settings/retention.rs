//! How long what has ended is kept, and where it is archived before it is deleted.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;
use toolgate_archive::S3Settings;
use toolgate_engine::retention::{APPLIED_EVERY, Rules};
use toolgate_kernel::agent::Secret;

use super::text;

/// How long what has ended is kept.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Ended runs with their events; for ever if not set.
    #[serde(deserialize_with = "text::optional_duration")]
    pub runs: Option<Duration>,
    /// Files of spaces that nobody changes.
    #[serde(deserialize_with = "text::optional_duration")]
    pub files: Option<Duration>,
    /// Deliveries that were given up.
    #[serde(deserialize_with = "text::optional_duration")]
    pub deliveries: Option<Duration>,
    /// Figures of tools.
    #[serde(deserialize_with = "text::optional_duration")]
    pub usage: Option<Duration>,
    /// How often the rules are applied; of the gateway's own section only.
    #[serde(deserialize_with = "text::duration")]
    pub apply_every: Duration,
    /// Where it is archived before it is deleted.
    pub archive: Archive,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            runs: None,
            files: None,
            deliveries: None,
            usage: None,
            apply_every: APPLIED_EVERY,
            archive: Archive::default(),
        }
    }
}

/// An archive: a folder or a bucket.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Archive {
    /// A folder.
    #[serde(deserialize_with = "text::path")]
    pub folder: Option<PathBuf>,
    /// Address of an S3-compatible server.
    #[serde(deserialize_with = "text::optional")]
    pub endpoint: Option<String>,
    /// Name of the bucket.
    pub bucket: String,
    /// What the names of objects begin with.
    pub prefix: String,
    /// Region that requests are signed for.
    pub region: String,
    /// Id of the access key.
    pub access_key: String,
    /// Secret of the access key.
    #[serde(deserialize_with = "text::secret")]
    pub secret_key: Option<Secret>,
}

impl Default for Archive {
    fn default() -> Self {
        Self {
            folder: None,
            endpoint: None,
            bucket: String::new(),
            prefix: String::new(),
            region: "us-east-1".into(),
            access_key: String::new(),
            secret_key: None,
        }
    }
}

/// What projects may set over HTTP: no archive, which leads to the operator's disk and network.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionAges {
    #[serde(deserialize_with = "text::optional_duration")]
    runs: Option<Duration>,
    #[serde(deserialize_with = "text::optional_duration")]
    files: Option<Duration>,
    #[serde(deserialize_with = "text::optional_duration")]
    deliveries: Option<Duration>,
    #[serde(deserialize_with = "text::optional_duration")]
    usage: Option<Duration>,
}

/// Where a project archives.
#[derive(Debug, Clone, PartialEq)]
pub enum ArchivePlace {
    /// Nowhere.
    None,
    /// In a folder.
    Folder(PathBuf),
    /// In a bucket.
    Bucket(Box<S3Settings>),
}

impl Retention {
    /// The same archive with other rules.
    pub fn with_ages(self, ages: RetentionAges) -> Self {
        Self {
            runs: ages.runs,
            files: ages.files,
            deliveries: ages.deliveries,
            usage: ages.usage,
            ..self
        }
    }

    /// As the engine takes it.
    pub fn rules(&self) -> Rules {
        Rules {
            runs: self.runs,
            files: self.files,
            deliveries: self.deliveries,
            usage: self.usage,
        }
    }

    /// Where it is archived. An error names the setting that is wrong.
    pub fn place(&self) -> anyhow::Result<ArchivePlace> {
        let Archive {
            folder,
            endpoint,
            bucket,
            prefix,
            region,
            access_key,
            secret_key,
        } = &self.archive;
        let endpoint = text::address("retention.archive.endpoint", endpoint)?;
        match (folder, endpoint) {
            (None, None) => Ok(ArchivePlace::None),
            (Some(folder), None) => Ok(ArchivePlace::Folder(folder.clone())),
            (Some(_), Some(_)) => {
                bail!(
                    "the settings `retention.archive.folder` and `.endpoint` name two archives, set one of them"
                )
            }
            (None, Some(endpoint)) => {
                if bucket.is_empty() || access_key.is_empty() {
                    bail!("an archive in a bucket needs `retention.archive.bucket` and `.access_key`");
                }
                let secret_key = secret_key.clone();
                let secret_key =
                    secret_key.context("an archive in a bucket needs `retention.archive.secret_key`")?;
                Ok(ArchivePlace::Bucket(Box::new(S3Settings {
                    endpoint,
                    bucket: bucket.clone(),
                    prefix: match prefix.trim_matches('/') {
                        "" => String::new(),
                        prefix => format!("{prefix}/"),
                    },
                    region: region.clone(),
                    access_key: access_key.clone(),
                    secret_key,
                })))
            }
        }
    }
}
