//! What people and models are shown of a call: how far it is and what came of it, without the secrets that the agent was
//! given and may repeat.

use serde_json::{Value, json};
use toolgate_a2a::part::{Content, Part};
use toolgate_a2a::stream::StreamResponse;
use toolgate_a2a::task::TaskStatus;
use toolgate_engine::tools::{CallFailure, Called};
use toolgate_kernel::question::Ask;

use super::RemoteCall;
use crate::card::cut;
use crate::outcome;

/// Longest piece of progress, in characters.
const PROGRESS_CHARS_MAX: usize = 4_000;

impl RemoteCall<'_> {
    /// Shows an event to people who wait.
    pub(super) fn tell(&self, event: &StreamResponse) {
        match event {
            StreamResponse::Task(task) => self.tell_status(&task.status),
            StreamResponse::StatusUpdate(update) => self.tell_status(&update.status),
            StreamResponse::ArtifactUpdate(update) => {
                let text = outcome::text(&update.artifact.parts);
                let name = update
                    .artifact
                    .name
                    .as_deref()
                    .unwrap_or(&update.artifact.artifact_id);
                let told = json!({
                    "artifact": cut(&self.secrets.hide(name), PROGRESS_CHARS_MAX),
                    "text": cut(&self.secrets.hide(&text), PROGRESS_CHARS_MAX),
                });
                self.progress(told);
            }
            StreamResponse::Message(_) => {}
        }
    }

    pub(super) fn tell_status(&self, status: &TaskStatus) {
        let text = status.message.as_ref().map(|message| message.text());
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            // Hidden before it is cut: half of a secret is not found.
            self.progress(json!({ "status": cut(&self.secrets.hide(&text), PROGRESS_CHARS_MAX) }));
        }
    }

    fn progress(&self, told: Value) {
        (self.context.progress)(self.secrets.hide_in(told).into());
    }

    /// A part whose file, if it is text, has no secret that the agent was given.
    pub(super) fn without_secrets(&self, part: Part) -> Part {
        let content = match part.content {
            Content::Raw(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Content::Raw(self.secrets.hide(&text).into_bytes()),
                Err(binary) => Content::Raw(binary.into_bytes()),
            },
            other => other,
        };
        Part { content, ..part }
    }

    /// What came of it, without the secrets that the agent was given and may repeat to people and models.
    pub(super) fn hidden(&self, came: Result<Called, CallFailure>) -> Result<Called, CallFailure> {
        match came {
            Ok(Called::Output(output)) => Ok(Called::Output(self.secrets.hide_in(output.to_value()).into())),
            Ok(Called::Delegated(mut delegation)) => {
                for question in &mut delegation.questions {
                    question.message = self.secrets.hide(&question.message);
                    match &mut question.ask {
                        Ask::Form { schema } => *schema = self.secrets.hide_in(schema.to_value()).into(),
                        // A page behind a changed address is another page.
                        Ask::Url { url } if self.secrets.hide(url) != *url => {
                            return Err(CallFailure::failed(
                                "the remote agent asks to visit a page whose address holds a secret of this project",
                            ));
                        }
                        Ask::Url { .. } => {}
                    }
                }
                Ok(Called::Delegated(delegation))
            }
            Err(failure) => Err(CallFailure::new(
                failure.code,
                self.secrets.hide(&failure.message),
            )),
        }
    }
}
