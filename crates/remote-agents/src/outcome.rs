//! What a remote agent gave, as the output of a call: text as text, data as JSON, files as files of the space.

use serde_json::{Value, json};
use toolgate_a2a::message::{Message, Role};
use toolgate_a2a::number::repaired;
use toolgate_a2a::part::{Content, Part};
use toolgate_a2a::task::Task;
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_engine::workspace::{NewFile, Only, Place, Workspace};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::run::json_in;

use crate::config::{AgentConfig, Expects};

/// Most files that one call may make.
const FILES_MAX: usize = 16;
/// Longest name of a file that is kept.
const FILE_NAME_CHARS_MAX: usize = 80;
/// Ends of file names by media type, for files without a name.
const EXTENSIONS: &[(&str, &str)] = &[
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/svg+xml", "svg"),
    ("audio/wav", "wav"),
    ("audio/mpeg", "mp3"),
    ("video/mp4", "mp4"),
    ("application/pdf", "pdf"),
    ("application/json", "json"),
    ("text/plain", "txt"),
    ("text/html", "html"),
    ("text/csv", "csv"),
];

/// The parts of a task that has ended well: its artifacts, and what it said last. An agent that gives neither has
/// answered in its history.
pub(crate) fn parts_of(task: Task) -> Vec<Part> {
    let mut parts: Vec<Part> = task
        .artifacts
        .into_iter()
        .flat_map(|artifact| artifact.parts)
        .collect();
    let said = task
        .status
        .message
        .map(|message| message.parts)
        .unwrap_or_default();
    parts.extend(said.into_iter().filter(|part| !is_empty(part)));
    if parts.is_empty() {
        let of_agent = |message: &&Message| message.role == Role::Agent;
        let last = task.history.iter().rev().find(of_agent);
        parts = last.map(|message| message.parts.clone()).unwrap_or_default();
    }
    // Many agents say in their last status what their artifact holds.
    let mut told: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        let repeated = told.iter().any(|earlier| earlier.content == part.content);
        if !repeated {
            told.push(part);
        }
    }
    told
}

fn is_empty(part: &Part) -> bool {
    matches!(&part.content, Content::Text(text) if text.trim().is_empty())
}

/// The output that these parts are.
pub(crate) async fn output(
    parts: Vec<Part>,
    config: &AgentConfig,
    workspace: &Workspace,
    context: &CallContext,
) -> Result<Value, CallFailure> {
    match config.expects {
        Expects::Json => json(parts, config),
        Expects::Anything => Ok(anything(parts, workspace, context).await),
    }
}

/// The JSON of the agent's answer: its first data part, or the JSON in its text.
fn json(parts: Vec<Part>, config: &AgentConfig) -> Result<Value, CallFailure> {
    let misfit = |words: String| {
        let words = format!("the remote agent's answer does not match the result schema: {words}");
        CallFailure::new(ErrorCode::InvalidOutput, words)
    };
    let data = parts.iter().find_map(|part| match &part.content {
        Content::Data(data) => Some(repaired(data.clone())),
        _ => None,
    });
    let value = match data {
        Some(data) => data,
        None => json_in(&text(&parts)).map_err(misfit)?,
    };
    let problems = config
        .result
        .as_ref()
        .map(|result| result.validator.check(&value));
    let problems: Vec<String> = problems
        .into_iter()
        .flatten()
        .map(|problem| {
            format!("{} {}", problem.pointer, problem.message)
                .trim()
                .to_owned()
        })
        .collect();
    match problems.is_empty() {
        true => Ok(value),
        false => Err(misfit(problems.join("; "))),
    }
}

/// The text parts, each on lines of its own.
pub(crate) fn text(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match &part.content {
        Content::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

async fn anything(parts: Vec<Part>, workspace: &Workspace, context: &CallContext) -> Value {
    if parts.iter().all(|part| matches!(part.content, Content::Text(_))) {
        return text(&parts).into();
    }
    let (mut told, mut files) = (Vec::with_capacity(parts.len()), 0);
    for part in parts {
        told.push(match part.content {
            Content::Text(text) => text.into(),
            Content::Data(data) => repaired(data),
            // Left where it is: whoever needs it fetches it as any other address.
            Content::Url(url) => json!({
                "type": "file", "url": url, "mediaType": part.media_type, "name": part.filename,
            }),
            Content::Raw(bytes) => {
                files += 1;
                let file = File {
                    bytes,
                    name: part.filename,
                    mime: part.media_type,
                    number: files,
                };
                file.kept(workspace, context).await
            }
        });
    }
    match told.len() {
        1 => told.remove(0),
        _ => told.into(),
    }
}

/// A file in a part.
struct File {
    bytes: Vec<u8>,
    name: Option<String>,
    mime: Option<String>,
    number: usize,
}

impl File {
    /// Writes it to the space; what cannot be kept is told by its kind alone.
    async fn kept(self, workspace: &Workspace, context: &CallContext) -> Value {
        let mime = self.mime.clone();
        let lost = |reason: String| json!({ "type": "file", "mediaType": mime, "note": format!("It was not kept: {reason}") });
        if self.number > FILES_MAX {
            return lost(format!("one call may make {FILES_MAX} files"));
        }
        let Ok(name) = format!("a2a/{}-{}", context.call, self.file_name()).parse() else {
            return lost("it has no name".into());
        };
        let place = Place {
            project: context.project,
            space: context.space,
        };
        let file = NewFile {
            name,
            mime: self.mime.and_then(|mime| mime.parse().ok()),
            data: self.bytes,
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

    /// The agent's name for it without anything that could lead elsewhere, or one by its number and media type.
    fn file_name(&self) -> String {
        let given = self
            .name
            .as_deref()
            .and_then(|name| name.rsplit(['/', '\\']).next());
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let clean: String = given
            .unwrap_or_default()
            .chars()
            .map(|c| if fits(c) { c } else { '_' })
            .take(FILE_NAME_CHARS_MAX)
            .collect();
        let clean = clean.trim_start_matches('.');
        if !clean.is_empty() {
            return format!("{}-{clean}", self.number);
        }
        let known = EXTENSIONS
            .iter()
            .find(|(mime, _)| Some(*mime) == self.mime.as_deref());
        let extension = known.map_or("bin", |(_, extension)| extension);
        format!("{}.{extension}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_a2a::task::{Artifact, TaskState, TaskStatus};

    #[test]
    fn the_answer_is_what_the_task_made_and_said_last_each_once() {
        let said = |text: &str| Some(Message::new("m", Role::Agent, vec![Part::text(text)]));
        let task = |artifact: &str, last: &str| Task {
            id: "t".into(),
            context_id: String::new(),
            status: TaskStatus {
                message: said(last),
                ..TaskStatus::of(TaskState::Completed)
            },
            artifacts: vec![Artifact::new("a", vec![Part::text(artifact)])],
            history: Vec::new(),
            metadata: None,
        };
        assert_eq!(text(&parts_of(task("Rain.", "Done."))), "Rain.\nDone.");
        assert_eq!(text(&parts_of(task("Rain.", "Rain."))), "Rain.");
        let silent = Task {
            artifacts: Vec::new(),
            status: TaskStatus::of(TaskState::Completed),
            history: vec![said("Earlier.").unwrap(), said("Sun.").unwrap()],
            ..task("", "")
        };
        assert_eq!(text(&parts_of(silent)), "Sun.");
    }

    #[test]
    fn a_file_keeps_its_name_and_nothing_that_leads_elsewhere() {
        let name = |name: Option<&str>, mime: &str| {
            let file = File {
                bytes: Vec::new(),
                name: name.map(str::to_owned),
                mime: Some(mime.into()),
                number: 2,
            };
            file.file_name()
        };
        assert_eq!(name(Some("a b.txt"), ""), "2-a_b.txt");
        assert_eq!(name(Some("../../etc/.passwd"), ""), "2-passwd");
        assert_eq!(name(Some("..."), "text/csv"), "2.csv");
        assert_eq!(name(None, "x/y"), "2.bin");
    }
}
