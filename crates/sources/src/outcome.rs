//! The result of a call as an output: text as text, structured content as it is, pictures, sounds and other binary
//! content as files of the space.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolgate_engine::tools::CallContext;
use toolgate_engine::workspace::{NewFile, Only, Place, Workspace};
use toolgate_mcp::ToolResult;

/// Most files that one call may make.
const FILES_MAX: usize = 16;
/// Ends of file names by media type.
const EXTENSIONS: &[(&str, &str)] = &[
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/svg+xml", "svg"),
    ("audio/wav", "wav"),
    ("audio/mpeg", "mp3"),
    ("audio/ogg", "ogg"),
    ("video/mp4", "mp4"),
    ("application/pdf", "pdf"),
    ("application/json", "json"),
    ("text/plain", "txt"),
    ("text/html", "html"),
    ("text/csv", "csv"),
];

/// Whether a tool says what its structured content looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promise {
    /// It has an output schema, which the output has to match.
    Schema,
    /// It has none.
    None,
}

/// The output of a call that did not fail.
pub(crate) async fn output(
    result: ToolResult,
    promise: Promise,
    workspace: &Workspace,
    context: &CallContext,
) -> Value {
    let ToolResult {
        content, structured, ..
    } = result;
    let structured = match (structured, promise) {
        (Some(structured), Promise::Schema) => return structured,
        (structured, _) => structured,
    };
    let has_files = content.iter().any(|block| binary(block).is_some());
    if let Some(structured) = structured {
        return match has_files {
            false => structured,
            true => {
                let content = blocks(content, workspace, context).await;
                json!({ "structuredContent": structured, "content": content })
            }
        };
    }
    let mut blocks = blocks(content, workspace, context).await;
    match blocks.len() {
        1 => blocks.remove(0),
        _ => blocks.into(),
    }
}

async fn blocks(content: Vec<Value>, workspace: &Workspace, context: &CallContext) -> Vec<Value> {
    let (mut told, mut files) = (Vec::with_capacity(content.len()), 0);
    for mut block in content {
        told.push(match (block["type"].as_str(), binary(&block)) {
            (Some("text"), _) => block["text"].take(),
            (_, Some((data, mime))) => {
                files += 1;
                let kept = keep(data, mime, files, workspace, context).await;
                with_origin(kept, &block)
            }
            _ => block,
        });
    }
    told
}

/// The binary content of a block in base64, and its media type.
fn binary(block: &Value) -> Option<(&str, Option<&str>)> {
    let holder = match block["type"].as_str() {
        Some("image" | "audio") => block,
        Some("resource") => &block["resource"],
        _ => return None,
    };
    let data = holder["data"].as_str().or_else(|| holder["blob"].as_str())?;
    Some((data, holder["mimeType"].as_str()))
}

/// The address of an embedded resource is of use to the model.
fn with_origin(mut kept: Value, block: &Value) -> Value {
    if let Some(uri) = block["resource"]["uri"].as_str() {
        kept["uri"] = uri.into();
    }
    kept
}

/// Writes a file; what cannot be kept is told by its kind alone.
async fn keep(
    data: &str,
    mime: Option<&str>,
    number: usize,
    workspace: &Workspace,
    context: &CallContext,
) -> Value {
    let lost = |reason: String| json!({ "type": "file", "mediaType": mime, "note": format!("It was not kept: {reason}") });
    if number > FILES_MAX {
        return lost(format!("one call may make {FILES_MAX} files"));
    }
    let Ok(bytes) = STANDARD.decode(data) else {
        return lost("it is no base64".into());
    };
    let known = EXTENSIONS.iter().find(|(known, _)| Some(*known) == mime);
    let extension = known.map_or("bin", |(_, extension)| extension);
    let Ok(name) = format!("mcp/{}-{number}.{extension}", context.call).parse() else {
        return lost("it has no name".into());
    };
    let place = Place {
        project: context.project,
        space: context.space,
    };
    let file = NewFile {
        name,
        mime: mime.and_then(|mime| mime.parse().ok()),
        data: bytes,
        only: Only::Always,
    };
    match workspace.write(place, file, context.now).await {
        Ok(written) => json!({
            "type": "file",
            "path": written.file.path,
            "mediaType": written.file.mime_type,
            "bytes": written.file.bytes,
        }),
        Err(error) => lost(error.to_string()),
    }
}
