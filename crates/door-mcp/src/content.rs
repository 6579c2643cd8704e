//! Files that a tool's output names, as MCP clients show them: images and sounds by their bytes, everything else as a link to
//! the resource. Tools of MCP servers give such outputs, and so does the image generator.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde_json::Value;
use toolgate_access::Principal;
use toolgate_engine::workspace::{FileInfo, FileName};
use toolgate_kernel::id::SpaceId;

use crate::Mcp;
use crate::answer::Form;
use crate::following::Look;
use crate::resources::{FileUri, place, stat};

/// Most bytes of files that stand in one result. A file beyond that is a link.
const INLINE_BYTES_MAX: u64 = 2 << 20;
/// Most parts of an output that become content blocks of their own; a longer output is text.
const PARTS_MAX: usize = 64;
/// A picture that is a document: clients that show images do not show it.
const DRAWING: &str = "image/svg+xml";

impl Look {
    /// The result of a run that has ended, with the files of its output; none while it has not.
    pub async fn result_with_files(&self, mcp: &Mcp, who: &Principal, form: Form) -> Option<CallToolResult> {
        let mut result = self.result(form)?;
        if let Some(output) = self.output()
            && let Some(blocks) = blocks(mcp, who, self.record.space, &output.to_value()).await
        {
            result.content = blocks;
        }
        Some(result)
    }
}

/// The parts of an output that names files, as content; none for one that names none.
async fn blocks(mcp: &Mcp, who: &Principal, space: SpaceId, output: &Value) -> Option<Vec<ContentBlock>> {
    let parts = parts(output);
    if parts.len() > PARTS_MAX || !parts.iter().any(|part| named(part).is_some()) {
        return None;
    }
    let mut blocks = Vec::with_capacity(parts.len());
    let mut room = INLINE_BYTES_MAX;
    for part in parts {
        let found = match named(part) {
            None => None,
            Some(name) => found(mcp, who, FileUri { space, name }).await,
        };
        let Some((uri, info)) = found else {
            blocks.push(text(part));
            continue;
        };
        if part["type"] != "file" {
            // There is more in it than the file, such as its address.
            blocks.push(text(part));
        }
        let inline = match info.bytes <= room {
            true => inline(mcp, who, &uri, &info).await,
            false => None,
        };
        if inline.is_some() {
            room -= info.bytes;
        }
        blocks.push(inline.unwrap_or_else(|| link(&uri, &info)));
    }
    Some(blocks)
}

/// What an output is made of: the blocks of an MCP server's result stand in an array, beside structured content in `content`.
fn parts(output: &Value) -> Vec<&Value> {
    match (output, &output["structuredContent"], &output["content"]) {
        (Value::Array(parts), ..) => parts.iter().collect(),
        (_, structured, Value::Array(content)) if !structured.is_null() => {
            std::iter::once(structured).chain(content).collect()
        }
        _ => vec![output],
    }
}

/// The file that a part of an output is about.
fn named(part: &Value) -> Option<FileName> {
    let is_file = part["mediaType"].is_string();
    part["path"].as_str().filter(|_| is_file)?.parse().ok()
}

/// The file, if the caller may read it: an output may name any.
async fn found(mcp: &Mcp, who: &Principal, uri: FileUri) -> Option<(FileUri, FileInfo)> {
    let info = stat(mcp, who, &uri).await.ok().flatten()?;
    Some((uri, info))
}

/// An image or a sound by its bytes.
async fn inline(mcp: &Mcp, who: &Principal, uri: &FileUri, info: &FileInfo) -> Option<ContentBlock> {
    let mime = info.mime_type.as_str();
    let make: fn(String, String) -> ContentBlock = match mime.split_once('/')?.0 {
        "image" if mime != DRAWING => ContentBlock::image,
        "audio" => ContentBlock::audio,
        _ => return None,
    };
    let file = mcp.workspace.read(place(who, uri.space), &uri.name, None).await;
    // It may have been replaced by a larger one since it was looked at.
    let file = file.ok().filter(|file| file.data.len() as u64 <= info.bytes)?;
    Some(make(STANDARD.encode(file.data), mime.to_owned()))
}

fn link(uri: &FileUri, info: &FileInfo) -> ContentBlock {
    let resource = Resource::new(uri.to_string(), uri.name.as_str()).with_mime_type(info.mime_type.as_str());
    ContentBlock::resource_link(resource)
}

fn text(part: &Value) -> ContentBlock {
    match part {
        Value::String(text) => ContentBlock::text(text.clone()),
        other => ContentBlock::text(other.to_string()),
    }
}
