//! What tools ask people in the middle of a call: `data-question` parts, which every version of the AI SDK keeps and shows
//! to the application. One part per question, told again with the same id when something becomes of it.

use serde_json::{Value, json};
use toolgate_kernel::id::{CallId, QuestionId};
use toolgate_kernel::question::Asked;

use super::UiStream;
use crate::chunk::Chunk;

impl UiStream {
    /// Tells a question as it stands.
    pub(super) fn write_question(&mut self, id: QuestionId, out: &mut Vec<u8>) {
        let is_closed = self.is_settled(id.call);
        let Some(data) = self.run.question(id).map(|asked| data(asked, is_closed)) else {
            return;
        };
        self.response.to(out).chunk(|out| {
            Chunk::new(out, "data-question")
                .with("id", id)
                .with("data", data)
                .end();
        });
    }

    /// Tells that the questions of a call are closed that nobody has answered: it has ended without them.
    pub(super) fn write_closed_questions(&mut self, call: CallId, out: &mut Vec<u8>) {
        let Some(call) = self.run.call(call) else { return };
        let open: Vec<QuestionId> = call.questions.open().map(|asked| asked.question_id).collect();
        for question in open {
            self.write_question(question, out);
        }
    }

    /// Once the last question of a child run's call is answered, nobody is asked about it any more.
    pub(super) fn close_when_answered(&mut self, call: CallId) {
        let is_open = |id| Some(self.run.call(id)?.questions.open().next().is_some());
        if !is_open(call).unwrap_or(false) {
            self.close_question(call);
        }
    }
}

/// A question with its `status`: `open`, what was done with it, or `closed` when its call ended before that.
fn data(asked: &Asked, is_closed: bool) -> Value {
    let question = &asked.question;
    let status = match &asked.response {
        Some(response) => json!(response.response.action),
        None if is_closed => json!("closed"),
        None => json!("open"),
    };
    let mut data = json!({
        "questionId": question.question_id, "toolCallId": question.tool_call_id, "toolName": question.tool_name,
        "message": question.message, "expiresAt": question.expires_at, "status": status,
    });
    if let Some(schema) = &question.schema {
        data["schema"] = schema.to_value();
    }
    if let Some(url) = &question.url {
        data["url"] = json!(url);
    }
    data
}
