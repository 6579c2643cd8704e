//! What a tool asks in the middle of a call, asked at the terminal.

use serde_json::{Map, Value, json};
use toolgate_client::QuestionAnswer;
use toolgate_client::events::ToolQuestion;
use toolgate_kernel::json::Json;

use super::Turn;
use crate::chat::screen::clean;
use crate::chat::terminal::edit;

impl Turn<'_> {
    /// Asks the person until the gateway has accepted an answer.
    pub(super) async fn answer_question(&mut self, asked: &ToolQuestion) {
        let words = clean(&asked.message);
        self.screen
            .line(format_args!("{} asks: {words}", asked.tool_name));
        if let Some(url) = &asked.url {
            self.screen.line(format_args!("Visit {}", clean(url)));
        }
        let question = match &asked.schema {
            Some(_) => "[a]nswer in your editor, [d]ecline, [c]ancel: ",
            None => "[a]ccept once you have visited it, [d]ecline, [c]ancel: ",
        };
        while !self.stopping {
            let answer = match self.choose(question, &["a", "d", "c"]).await.as_deref() {
                Some("a") => match asked.schema.as_ref().map(|schema| edit(&blank(schema))) {
                    None => QuestionAnswer::visited(),
                    Some(Ok(content)) => QuestionAnswer::accept(content),
                    Some(Err(error)) => {
                        self.screen.error(format_args!("{error:#}"));
                        continue;
                    }
                },
                Some("d") => QuestionAnswer::decline(),
                Some(_) => QuestionAnswer::cancel(),
                None => return,
            };
            match self.client.questions().answer(asked.question_id, &answer).await {
                Ok(_) => return,
                Err(error) => {
                    self.screen.error(&error);
                    // Answered by somebody else, or closed: there is nothing left to answer.
                    if matches!(error.status(), Some(404 | 409 | 410)) {
                        return;
                    }
                }
            }
        }
    }
}

/// A form to fill in: every property of the schema, with its default or as a sign of what belongs there.
fn blank(schema: &Json) -> Value {
    let schema = schema.to_value();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let fields = properties.map(|(name, field)| {
        let value = field.get("default").cloned();
        let value = value.unwrap_or_else(|| match field["type"].as_str() {
            Some("boolean") => json!(false),
            Some("integer" | "number") => json!(0),
            Some("array") => json!([]),
            _ => json!(""),
        });
        (name.clone(), value)
    });
    Value::Object(Map::from_iter(fields))
}
