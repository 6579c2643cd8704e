//! What a remote agent wants to know, as a question to people; and their answer, as the agent reads it.

use serde_json::{Value, json};
use toolgate_a2a::client_tools::URI;
use toolgate_a2a::number::repaired;
use toolgate_a2a::part::{Content, Part};
use toolgate_a2a::task::TaskStatus;
use toolgate_kernel::json::Json;
use toolgate_kernel::question::{Action, Answer, Ask, Question};
use toolgate_kernel::schema::{Profile, Validator};

use crate::card::cut;

/// Longest question that is passed on, in characters.
const MESSAGE_CHARS_MAX: usize = 4_000;
/// Longest address that is passed on, in bytes.
const URL_BYTES_MAX: usize = 4_096;
/// Member of the form that a person fills in when the agent sends none.
const REPLY: &str = "reply";

/// The source's name for the question of a round.
pub(crate) fn key(round: u32) -> String {
    format!("ask-{round}")
}

/// The question in `input-required`: a decision or a page if the agent is a gateway like this one, its form if it sends
/// one, or else a text.
pub(crate) fn input(status: &TaskStatus, round: u32) -> Question {
    let tag = asked(status).map(|(_, tag)| tag);
    let page = tag
        .and_then(|tag| tag["toolQuestion"]["url"].as_str())
        .and_then(address);
    let ask = match (page, tag.is_some_and(|tag| tag.get("toolApproval").is_some())) {
        (Some(url), _) => Ask::Url { url },
        (None, true) => Ask::Form {
            schema: decision().into(),
        },
        (None, false) => {
            let form = data(status).find_map(form).unwrap_or_else(text_form);
            Ask::Form { schema: form.into() }
        }
    };
    Question {
        key: key(round),
        message: words(status, "The remote agent needs more input."),
        ask,
        timeout: None,
    }
}

fn text_form() -> Value {
    json!({
        "type": "object",
        "properties": {REPLY: {"type": "string", "description": "Your answer."}},
        "required": [REPLY],
    })
}

fn decision() -> Value {
    json!({
        "type": "object",
        "properties": {
            "approved": {"type": "boolean", "description": "Whether it may run."},
            "reason": {"type": "string", "description": "Why not."},
        },
        "required": ["approved"],
    })
}

/// The question in `auth-required`: to visit the page that the agent names. None when it names none.
pub(crate) fn sign_in(status: &TaskStatus, round: u32) -> Option<Question> {
    let text = words(status, "The remote agent asks you to sign in.");
    let named = data(status).find_map(|data| {
        let names = [
            "url",
            "authUrl",
            "authorizationUrl",
            "auth_url",
            "authorization_url",
        ];
        names
            .iter()
            .find_map(|name| data.get(*name)?.as_str().map(str::to_owned))
    });
    let written = || text.split_whitespace().find_map(address);
    let url = named.as_deref().and_then(address).or_else(written)?;
    Some(Question {
        key: key(round),
        message: text,
        ask: Ask::Url { url },
        timeout: None,
    })
}

/// What an agent says with its status.
pub(crate) fn words(status: &TaskStatus, otherwise: &str) -> String {
    let text = status.message.as_ref().map(|message| message.text());
    let text = text.filter(|text| !text.trim().is_empty());
    cut(text.as_deref().unwrap_or(otherwise), MESSAGE_CHARS_MAX)
}

/// What the agent is told of an answer to its question, which stands in `status`. A gateway like this one says how it
/// wants to be answered; all others are told in words, or in the form that they sent.
pub(crate) fn reply(status: &TaskStatus, answer: &Answer) -> Part {
    let content = answer.content.as_ref().map(Json::to_value);
    if let Some((_, tag)) = asked(status) {
        let data = content.clone().unwrap_or_else(|| json!({}));
        return Part::data(data).tagged(URI, tagged_answer(tag, answer.action, content.as_ref()));
    }
    if answer.action != Action::Accept {
        return Part::text("The person who was asked has declined to answer.");
    }
    let content = content.unwrap_or_default();
    match &content {
        Value::Object(members) if members.len() == 1 && members.get(REPLY).is_some_and(Value::is_string) => {
            Part::text(content[REPLY].as_str().unwrap_or_default())
        }
        _ => Part::data(content),
    }
}

/// The first approval or question of a gateway like this one, by its tag.
fn asked(status: &TaskStatus) -> Option<(&Part, &Value)> {
    let parts = status.message.iter().flat_map(|message| &message.parts);
    let mut tagged = parts.filter_map(|part| Some((part, part.tag(URI)?)));
    tagged.find(|(_, tag)| tag.get("toolApproval").is_some() || tag.get("toolQuestion").is_some())
}

fn tagged_answer(tag: &Value, action: Action, content: Option<&Value>) -> Value {
    let accepts = action == Action::Accept;
    if let Some(approval) = tag.get("toolApproval") {
        let approved = accepts && content.is_some_and(|content| content["approved"] == true);
        let reason = content.map_or(Value::Null, |content| content["reason"].clone());
        return json!({"toolApprovalResponse": {
            "approvalId": approval["approvalId"], "approved": approved, "reason": reason,
        }});
    }
    let action = if accepts { "accept" } else { "decline" };
    json!({"toolQuestionResponse": {"questionId": tag["toolQuestion"]["questionId"], "action": action}})
}

fn data(status: &TaskStatus) -> impl Iterator<Item = &Value> {
    let parts = status.message.iter().flat_map(|message| &message.parts);
    parts.filter_map(|part| match &part.content {
        Content::Data(data) => Some(data),
        _ => None,
    })
}

/// A form in a data part: a JSON Schema of an object, alone or as a member with a name that says so. One that cannot be
/// used is passed over.
fn form(data: &Value) -> Option<Value> {
    let candidates = [Some(data), data.get("requestedSchema"), data.get("schema")];
    let is_form = |schema: &&Value| schema["type"] == "object" && schema["properties"].is_object();
    let schema = candidates.into_iter().flatten().find(is_form)?;
    let schema = repaired(schema.clone());
    let compiled = Validator::compile(&Json::from(&schema), Profile::Client, "");
    compiled.is_ok().then_some(schema)
}

fn address(word: &str) -> Option<String> {
    let word = word.trim_matches(|c: char| "()[]<>\"'.,;".contains(c));
    let url = url::Url::parse(word).ok()?;
    let fits = matches!(url.scheme(), "http" | "https") && word.len() <= URL_BYTES_MAX;
    fits.then(|| url.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_a2a::message::{Message, Role};
    use toolgate_a2a::task::TaskState;
    use toolgate_kernel::question::Action;

    fn status(parts: Vec<Part>) -> TaskStatus {
        TaskStatus {
            message: Some(Message::new("m", Role::Agent, parts)),
            ..TaskStatus::of(TaskState::InputRequired)
        }
    }

    #[test]
    fn a_question_is_the_agents_form_or_a_text() {
        let plain = input(&status(vec![Part::text("Which city?")]), 2);
        assert_eq!(
            (plain.key.as_str(), plain.message.as_str()),
            ("ask-2", "Which city?")
        );
        let Ask::Form { schema } = plain.ask else { panic!() };
        assert!(schema.as_str().contains("reply"));
        let schema = json!({"type": "object", "properties": {"city": {"type": "string", "maxLength": 3.0}}});
        for data in [
            schema.clone(),
            json!({"requestedSchema": schema}),
            json!({"schema": schema}),
        ] {
            let Ask::Form { schema } = input(&status(vec![Part::data(data)]), 0).ask else {
                panic!()
            };
            assert!(
                schema.as_str().contains("\"maxLength\":3}"),
                "{}",
                schema.as_str()
            );
        }
        let unusable = json!({"type": "object", "properties": {"a": {"$ref": "https://evil.test/"}}});
        let Ask::Form { schema } = input(&status(vec![Part::data(unusable)]), 0).ask else {
            panic!()
        };
        assert!(schema.as_str().contains("reply"));
    }

    #[test]
    fn a_page_to_sign_in_at_is_found_in_data_and_in_text() {
        let url = |parts| match sign_in(&status(parts), 0)?.ask {
            Ask::Url { url } => Some(url),
            Ask::Form { .. } => None,
        };
        let found = Some("https://a.test/in?x=1".to_owned());
        assert_eq!(url(vec![Part::text("Go to (https://a.test/in?x=1).")]), found);
        assert_eq!(
            url(vec![Part::data(json!({"authUrl": "https://a.test/in?x=1"}))]),
            found
        );
        assert_eq!(url(vec![Part::data(json!({"url": "javascript:alert(1)"}))]), None);
        assert_eq!(url(vec![Part::text("Sign in.")]), None);
    }

    fn answer(action: Action, content: Option<Value>) -> Answer {
        Answer {
            key: key(0),
            action,
            content: content.map(Into::into),
        }
    }

    #[test]
    fn an_answer_is_text_unless_the_agent_sent_a_form() {
        let asked = status(vec![Part::text("Where?")]);
        let accepts = |content| reply(&asked, &answer(Action::Accept, Some(content)));
        assert_eq!(accepts(json!({"reply": "Oslo"})), Part::text("Oslo"));
        assert_eq!(
            accepts(json!({"city": "Oslo"})),
            Part::data(json!({"city": "Oslo"}))
        );
        let declined = reply(&asked, &answer(Action::Decline, None));
        assert!(matches!(declined.content, Content::Text(text) if text.contains("declined")));
    }

    #[test]
    fn a_gateway_like_this_one_is_answered_as_it_asks() {
        let approval = json!({"toolApproval": {"approvalId": "appr_1", "name": "send"}});
        let asked = status(vec![
            Part::text("May it?"),
            Part::data(json!({"to": "bob"})).tagged(URI, approval),
        ]);
        let Ask::Form { schema } = input(&asked, 0).ask else {
            panic!()
        };
        assert!(schema.as_str().contains("approved"));
        let yes = reply(&asked, &answer(Action::Accept, Some(json!({"approved": true}))));
        let told = &yes.tag(URI).unwrap()["toolApprovalResponse"];
        assert_eq!(
            (&told["approvalId"], &told["approved"]),
            (&json!("appr_1"), &json!(true))
        );
        let no = reply(&asked, &answer(Action::Decline, None));
        assert_eq!(no.tag(URI).unwrap()["toolApprovalResponse"]["approved"], false);

        let form = json!({"type": "object", "properties": {"seat": {"type": "string"}}});
        let question = json!({"toolQuestion": {"questionId": "q_1", "url": null}});
        let asked = status(vec![Part::data(form).tagged(URI, question)]);
        let given = reply(&asked, &answer(Action::Accept, Some(json!({"seat": "1A"}))));
        assert_eq!(given.content, Content::Data(json!({"seat": "1A"})));
        assert_eq!(
            given.tag(URI).unwrap()["toolQuestionResponse"]["questionId"],
            "q_1"
        );
    }
}
