//! Limits on what a request may store or show to others, each far below that of a whole body.

use http::StatusCode;
use toolgate_kernel::json::Json;
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::problem::Problem;

use crate::problem::Refusal;

/// Most bytes of each kind of content.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContentLimits {
    /// Of the parts of one message, images in `data:` URLs included.
    pub message: usize,
    /// Of the metadata of a message, a space or an entity.
    pub metadata: usize,
    /// Of one report of progress.
    pub progress: usize,
}

impl ContentLimits {
    /// Checks a message whose content stands at `at` in the body.
    pub fn check_message(&self, message: &Message, at: &str) -> Result<(), Refusal> {
        self.check_parts(&message.parts, at)?;
        self.check_metadata(message.metadata.as_ref(), "/metadata")
    }
    /// Checks the parts of a message that stand at `at`.
    pub fn check_parts(&self, parts: &[Part], at: &str) -> Result<(), Refusal> {
        let bytes = parts.iter().map(Part::bytes).sum();
        within(bytes, self.message, at, "content.message_bytes_max")
    }
    /// Checks metadata that stands at `at`.
    pub fn check_metadata(&self, metadata: Option<&Json>, at: &str) -> Result<(), Refusal> {
        let bytes = metadata.map_or(0, |metadata| metadata.as_str().len());
        within(bytes, self.metadata, at, "content.metadata_bytes_max")
    }
    /// Checks the arguments of a call, which are kept as a message is.
    pub fn check_arguments(&self, arguments: &Json) -> Result<(), Refusal> {
        within(
            arguments.as_str().len(),
            self.message,
            "/arguments",
            "content.message_bytes_max",
        )
    }
    /// Checks a report of progress.
    pub fn check_progress(&self, progress: &Json) -> Result<(), Refusal> {
        within(
            progress.as_str().len(),
            self.progress,
            "/progress",
            "content.progress_bytes_max",
        )
    }
}

fn within(bytes: usize, max: usize, at: &str, setting: &str) -> Result<(), Refusal> {
    if bytes <= max {
        return Ok(());
    }
    let words = format!("has {bytes} bytes, at most {max} are allowed; see {setting}");
    let refusal = Refusal::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "CONTENT_TOO_LARGE",
        format!("{at} {words}"),
    );
    Err(refusal.errors(vec![Problem::new(at, words)]))
}
