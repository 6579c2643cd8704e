//! The files of spaces: the same ones that agents read and write.

use reqwest::header::{CONTENT_TYPE, HeaderMap, IF_MATCH, IF_NONE_MATCH};
use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use toolgate_kernel::id::SpaceId;
use toolgate_kernel::time::Time;

use crate::client::Client;
use crate::error::Error;
use crate::http::Patience;

const FILE_VERSION: &str = "toolgate-file-version";

/// What there is to say of a file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// Unique in its space.
    pub path: String,
    /// What it holds.
    pub mime_type: String,
    /// How much.
    pub bytes: u64,
    /// Counts its changes, from 1.
    pub version: u64,
    /// When it was first written.
    pub created_at: Time,
    /// When this version was written.
    pub updated_at: Time,
}

/// A page of files, by name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilePage {
    /// The files.
    pub files: Vec<File>,
    /// What to give as `after` for the next page; none on the last.
    pub next_cursor: Option<String>,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct FileContent {
    /// Its media type.
    pub mime_type: String,
    /// Counts its changes, from 1.
    pub version: u64,
    /// All of it.
    pub data: Vec<u8>,
}

/// What must be so for a file to be changed; otherwise it is refused with `CHANGED`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Only {
    /// Nothing.
    #[default]
    Always,
    /// There is none of this name.
    New,
    /// It has this version.
    Version(u64),
}

/// Lists, reads, writes and deletes the files of a space.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    pub(crate) client: &'a Client,
    pub(crate) space: SpaceId,
}

impl Files<'_> {
    /// Files whose names begin so, behind the one named.
    pub async fn list(&self, prefix: &str, after: Option<&str>) -> Result<FilePage, Error> {
        let mut query = vec![("prefix", prefix.to_owned())];
        query.extend(after.map(|after| ("after", after.to_owned())));
        let path = format!("v1/spaces/{}/files", self.space);
        self.client.http().get(&path, &query).await
    }

    /// The newest version of a file.
    pub async fn read(&self, path: &str) -> Result<FileContent, Error> {
        let request = self.request(Method::GET, path, Only::Always)?;
        let http = self.client.http();
        let answer = http.answer(request, Patience::Brief).await?;
        let mime_type = header(answer.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
        let version = header(answer.headers(), FILE_VERSION).and_then(|text| text.parse().ok());
        Ok(FileContent {
            mime_type,
            version: version.ok_or_else(|| Error::Protocol("a file without its version".into()))?,
            data: answer
                .bytes()
                .await
                .map_err(|error| http.unreachable(error))?
                .into(),
        })
    }

    /// Writes a file, whole. What it holds is what its name says.
    pub async fn write(&self, path: &str, data: impl Into<Vec<u8>>, only: Only) -> Result<File, Error> {
        let request = self.request(Method::PUT, path, only)?.body(data.into());
        // With a condition a second try could not tell its own first one from somebody else's.
        let patience = match only {
            Only::Always => Patience::Brief,
            Only::New | Only::Version(_) => Patience::Once,
        };
        self.client.http().read(request, patience).await
    }

    /// Takes a file away, with its earlier versions.
    pub async fn delete(&self, path: &str, only: Only) -> Result<(), Error> {
        let request = self.request(Method::DELETE, path, only)?;
        self.client.http().answer(request, Patience::Once).await.map(drop)
    }

    fn request(&self, method: Method, path: &str, only: Only) -> Result<RequestBuilder, Error> {
        let mut segments = vec![
            "v1".to_owned(),
            "spaces".to_owned(),
            self.space.to_string(),
            "files".to_owned(),
        ];
        for part in path.split('/') {
            // An address would be shortened by these, and lead somewhere else.
            if matches!(part, "" | "." | "..") {
                return Err(Error::Setup(format!("{path:?} is no name of a file")));
            }
            segments.push(part.to_owned());
        }
        let request = self.client.http().request_segments(method, &segments, &[]);
        Ok(match only {
            Only::Always => request,
            Only::New => request.header(IF_NONE_MATCH, "*"),
            Only::Version(version) => request.header(IF_MATCH, format!("\"{version}\"")),
        })
    }
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}
