//! Workspace files of spaces: the same files that agents read and write.

use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderMap, IF_MATCH, IF_NONE_MATCH};
use serde::Deserialize;
use toolgate_protocol::id::SpaceId;
use toolgate_protocol::time::Time;

use crate::client::Client;
use crate::error::Error;
use crate::http::RetryPolicy;
use crate::transport::Request;

const FILE_VERSION: &str = "toolgate-file-version";

/// Metadata of a file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// Path, unique in its space.
    pub path: String,
    /// Media type of the content.
    pub mime_type: String,
    /// Size of the content in bytes.
    pub bytes: u64,
    /// Version number: starts at 1 and grows with every change; never reused.
    pub version: u64,
    /// When it was created.
    pub created_at: Time,
    /// When this version was written.
    pub updated_at: Time,
}

/// A page of files, ordered by path.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilePage {
    /// The files of this page.
    pub files: Vec<File>,
    /// The value of `after` for the next page; `None` on the last.
    pub next_cursor: Option<String>,
}

/// A file's content.
#[derive(Debug, Clone, PartialEq)]
pub struct FileContent {
    /// Media type of the content.
    pub mime_type: String,
    /// Version number of this content.
    pub version: u64,
    /// The complete content.
    pub data: Vec<u8>,
}

/// The precondition of a change; if it does not hold, the change is rejected with `CHANGED`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Only {
    /// No precondition.
    #[default]
    Always,
    /// The file does not exist.
    New,
    /// The file has this version.
    Version(u64),
}

/// Lists, reads, writes and deletes the files of a space.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    pub(crate) client: &'a Client,
    pub(crate) space: SpaceId,
}

impl Files<'_> {
    /// Files whose paths begin with `prefix`, after the path `after`.
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
        let (headers, data) = http.read_bytes(request, RetryPolicy::Brief).await?;
        let mime_type = header(&headers, CONTENT_TYPE.as_str()).unwrap_or_default();
        let version = header(&headers, FILE_VERSION).and_then(|text| text.parse().ok());
        Ok(FileContent {
            mime_type,
            version: version
                .ok_or_else(|| Error::Protocol("the gateway sent a file without a version".into()))?,
            data,
        })
    }

    /// Writes a whole file. The media type follows from the path's extension.
    pub async fn write(&self, path: &str, data: impl Into<Vec<u8>>, only: Only) -> Result<File, Error> {
        let request = self.request(Method::PUT, path, only)?.body(data.into());
        // Not retried with a precondition: a second attempt could not tell its own first write from another
        // client's.
        let retries = match only {
            Only::Always => RetryPolicy::Brief,
            Only::New | Only::Version(_) => RetryPolicy::Once,
        };
        self.client.http().read(request, retries).await
    }

    /// Deletes a file and its earlier versions.
    pub async fn delete(&self, path: &str, only: Only) -> Result<(), Error> {
        let request = self.request(Method::DELETE, path, only)?;
        self.client
            .http()
            .send_request(request, RetryPolicy::Once)
            .await
            .map(drop)
    }

    fn request(&self, method: Method, path: &str, only: Only) -> Result<Request, Error> {
        let mut segments = vec![
            "v1".to_owned(),
            "spaces".to_owned(),
            self.space.to_string(),
            "files".to_owned(),
        ];
        for part in path.split('/') {
            // URL normalization would remove these segments, and the request would reach another path.
            if matches!(part, "" | "." | "..") {
                return Err(Error::Setup(format!(
                    "{path:?} is not a file path, expected one like \"notes/today.md\""
                )));
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
