//! An output that is too large for a conversation becomes a file of the workspace.

use serde_json::json;
use toolgate_kernel::json::Json;

use crate::tools::CallContext;
use crate::workspace::{FileInfo, Place, Workspace};

/// Largest output that is given as it is.
pub const OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// Characters of a larger one that are given with its name.
const PREVIEW_CHARS: usize = 2000;

/// The output itself, or where it is and how it begins. One that no file can hold is given only in part.
pub(crate) async fn bounded(output: Json, workspace: &Workspace, context: &CallContext) -> Json {
    let bytes = output.as_str().len();
    if bytes <= OUTPUT_BYTES_MAX {
        return output;
    }
    // A text is kept as people read it, anything else as JSON.
    let (data, ending) = match output.read::<String>() {
        Ok(text) => (text, "txt"),
        Err(_) => (output.as_str().to_owned(), "json"),
    };
    let preview: String = data.chars().take(PREVIEW_CHARS).collect();
    let told = |file: &FileInfo| {
        json!({
            "truncated": true,
            "file": file,
            "preview": preview,
            "note": "The output is too large to be given here. It is a file of the workspace: read it in pieces with vfs_read.",
        })
    };
    let receipt = |file: &FileInfo| context.receipt(told(file).into());
    let output = (ending, data.into_bytes());
    let place = Place {
        project: context.project,
        space: context.space,
    };
    let kept = workspace.keep_output(place, context.call, output, context.now, receipt);
    match kept.await {
        Ok(file) => told(&file),
        Err(error) => {
            tracing::warn!(%error, call = %context.call, bytes, "a large output could not be kept");
            json!({
                "truncated": true,
                "bytes": bytes,
                "preview": preview,
                "note": "The output is too large to be given here, and there was no room to keep it in the workspace.",
            })
        }
    }
    .into()
}
