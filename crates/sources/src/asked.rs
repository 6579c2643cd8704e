//! What servers ask in the middle of a call, as questions to people; and their answers, as servers read them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolgate_kernel::id::CallId;
use toolgate_kernel::json::Json;
use toolgate_kernel::question::{Action, Answer, Ask, Question};

/// Most things that a server may ask for at once, whoever answers them.
const REQUESTS_MAX: usize = 16;
/// Longest name that a server may give to one of them.
const KEY_BYTES_MAX: usize = 256;

/// How a call that waits is found again. Stored with the run as an opaque text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub(crate) enum Task {
    /// The server's call is open on this node and waits for an answer. It does not survive a restart.
    Live {
        /// The call, which is how it is found on its node.
        call: CallId,
        /// The round of questions that it waits in.
        round: u32,
    },
    /// The call is to be made again, with the answers.
    #[serde(rename_all = "camelCase")]
    Again {
        /// What the server wants to see again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<String>,
        /// Responses that need nobody.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        given: Map<String, Value>,
        /// How often it was made so far.
        round: u32,
    },
    /// The server goes on by itself.
    Poll {
        /// The server's id for it.
        id: String,
        /// Responses that need nobody and were not sent yet.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        given: Map<String, Value>,
    },
}

impl Task {
    /// As the engine keeps it.
    pub fn text(&self) -> std::sync::Arc<str> {
        serde_json::to_string(self).expect("a task is JSON").into()
    }
    /// From what the engine kept.
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// What is asked, sorted by who answers.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Sorted {
    /// For people.
    pub questions: Vec<Question>,
    /// Answered already: no folder of the gateway is the server's business.
    pub given: Map<String, Value>,
    /// For a model: key and parameters.
    pub sampling: Vec<(String, Value)>,
}

/// Sorts what a server asks. The error is for the model.
pub(crate) fn sorted(requests: Vec<(String, Value)>) -> Result<Sorted, String> {
    let count = requests.len();
    if count > REQUESTS_MAX {
        return Err(format!(
            "the MCP server asks for {count} things at once, and at most {REQUESTS_MAX} are passed on"
        ));
    }
    if requests.iter().any(|(key, _)| key.len() > KEY_BYTES_MAX) {
        return Err(format!(
            "the MCP server asks for something under a name of more than {KEY_BYTES_MAX} bytes"
        ));
    }
    let mut sorted = Sorted::default();
    for (key, mut request) in requests {
        let params = request["params"].take();
        match request["method"].as_str() {
            Some("elicitation/create") => sorted.questions.push(question(key, params)?),
            Some("roots/list") => drop(sorted.given.insert(key, json!({ "roots": [] }))),
            Some("sampling/createMessage") => sorted.sampling.push((key, params)),
            _ => return Err("the MCP server asks for something that this gateway does not know".into()),
        }
    }
    Ok(sorted)
}

/// A question to people.
pub(crate) fn question(key: String, mut params: Value) -> Result<Question, String> {
    let message = match params["message"].take() {
        Value::String(message) => message,
        _ => String::new(),
    };
    let ask = match (params["url"].take(), params["requestedSchema"].take()) {
        (Value::String(url), _) => Ask::Url { url },
        (_, schema @ Value::Object(_)) => Ask::Form {
            schema: Json::from(schema),
        },
        _ => return Err("the MCP server asks a question without a form and without an address".into()),
    };
    Ok(Question {
        key,
        message,
        ask,
        timeout: None,
    })
}

/// The responses to a server's questions, by its keys.
pub(crate) fn responses(answers: &[Answer]) -> Map<String, Value> {
    answers
        .iter()
        .map(|answer| (answer.key.clone(), response(answer)))
        .collect()
}

/// The result of `elicitation/create`.
pub(crate) fn response(answer: &Answer) -> Value {
    let action = match answer.action {
        Action::Accept => "accept",
        Action::Decline => "decline",
        Action::Cancel => "cancel",
    };
    match &answer.content {
        Some(content) => json!({ "action": action, "content": content.to_value() }),
        None => json!({ "action": action }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_asks_is_sorted_by_who_answers() {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let asked = vec![
            (
                "who".to_owned(),
                json!({"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": schema}}),
            ),
            (
                "go".to_owned(),
                json!({"method": "elicitation/create", "params": {"mode": "url", "message": "Go.", "url": "https://a.test", "elicitationId": "1"}}),
            ),
            ("roots".to_owned(), json!({"method": "roots/list"})),
        ];
        let sorted = sorted(asked).unwrap();
        let keys: Vec<&str> = sorted
            .questions
            .iter()
            .map(|question| question.key.as_str())
            .collect();
        assert_eq!(keys, ["who", "go"]);
        assert_eq!(
            sorted.questions[1].ask,
            Ask::Url {
                url: "https://a.test".into()
            }
        );
        assert_eq!(sorted.given["roots"], json!({"roots": []}));
    }

    #[test]
    fn a_server_asks_for_few_things_at_once_and_by_short_names() {
        let roots = |key: String| (key, json!({"method": "roots/list"}));
        let many: Vec<_> = (0..=REQUESTS_MAX)
            .map(|number| roots(number.to_string()))
            .collect();
        assert!(sorted(many[1..].to_vec()).is_ok());
        assert!(sorted(many).unwrap_err().contains("17 things"));
        let long = sorted(vec![roots("k".repeat(KEY_BYTES_MAX + 1))]);
        assert!(long.unwrap_err().contains("256 bytes"));
    }

    #[test]
    fn an_answer_is_told_as_the_server_reads_it() {
        let answer = |action, content: Option<Value>| Answer {
            key: "k".into(),
            action,
            content: content.map(Json::from),
        };
        let accepted = response(&answer(Action::Accept, Some(json!({"name": "Ada"}))));
        assert_eq!(accepted, json!({"action": "accept", "content": {"name": "Ada"}}));
        assert_eq!(
            response(&answer(Action::Cancel, None)),
            json!({"action": "cancel"})
        );
    }

    #[test]
    fn a_task_is_read_back_as_it_was_written() {
        let task = Task::Again {
            state: Some("s".into()),
            given: Map::new(),
            round: 2,
        };
        assert_eq!(Task::read(&task.text()), Some(task));
    }
}
