//! Questions that a tool asks people while a call of it is under way, and their answers.

use std::sync::Arc;
use std::time::Duration;

use crate::event::{Seq, ToolQuestion, ToolQuestionResponse};
use crate::id::{EntityId, QuestionId};
use crate::json::Json;
use crate::schema::{Profile, Validator};
use crate::time::Time;

pub use toolgate_protocol::question::Action;

/// What a tool wants to know from a person before its call goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The source's own name for it; unique among the questions that are asked together, and shown to nobody else.
    pub key: String,
    /// What the person is asked, in words.
    pub message: String,
    /// What the person is asked to do.
    pub ask: Ask,
    /// How long it stays open; [`QUESTION_EXPIRY`] if nothing is said.
    pub timeout: Option<Duration>,
}

/// What a person is asked to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// To fill in a form.
    Form {
        /// JSON Schema that the content of an accepting answer matches.
        schema: Json,
    },
    /// To visit a page, which learns what is to be known by itself; the answer says only that the person did.
    Url {
        /// Address of the page.
        url: String,
    },
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The source's own name for the question.
    pub key: String,
    /// What the person did. A question that nobody answers in time is cancelled.
    pub action: Action,
    /// What the person filled in, matching the question's schema; none unless a form was accepted.
    pub content: Option<Json>,
}

/// How long a question stays open unless its source says otherwise.
pub const QUESTION_EXPIRY: Duration = Duration::from_secs(24 * 3600);
/// Most questions that a call asks at once.
pub const QUESTIONS_MAX: usize = 16;
/// Longest key, message and address of a question, in bytes.
const KEY_BYTES_MAX: usize = 256;
const MESSAGE_BYTES_MAX: usize = 16 * 1024;
const URL_BYTES_MAX: usize = 4 * 1024;

/// Why questions cannot be asked, in words; none when they can. Their schemas are checked as those of a request are:
/// whoever answers is not made to wait for one that takes long.
pub fn problem_of(questions: &[Question]) -> Option<String> {
    let count = questions.len();
    if count > QUESTIONS_MAX {
        return Some(format!(
            "the tool asks {count} questions at once, and at most {QUESTIONS_MAX} are passed on"
        ));
    }
    let repeated = |(index, question): (usize, &Question)| {
        questions[..index]
            .iter()
            .any(|earlier| earlier.key == question.key)
    };
    if questions.iter().enumerate().any(repeated) {
        return Some("the tool asks two questions under one key".to_owned());
    }
    questions.iter().find_map(Question::problem)
}

impl Question {
    fn problem(&self) -> Option<String> {
        let mut texts = vec![
            ("key", self.key.len(), KEY_BYTES_MAX),
            ("message", self.message.len(), MESSAGE_BYTES_MAX),
        ];
        if let Ask::Url { url } = &self.ask {
            texts.push(("address", url.len(), URL_BYTES_MAX));
        }
        if let Some((what, seen, max)) = texts.into_iter().find(|(_, seen, max)| seen > max) {
            return Some(format!(
                "the tool asks a question whose {what} has {seen} bytes, and at most {max} are passed on"
            ));
        }
        match &self.ask {
            Ask::Form { schema } => {
                let problems = Validator::compile(schema, Profile::Client, "").err()?;
                let words = problems.into_iter().next()?.message;
                Some(format!(
                    "the tool asks a question whose schema cannot be used: {words}"
                ))
            }
            Ask::Url { url } if is_web_address(url) => None,
            Ask::Url { .. } => Some(
                "the tool asks to visit an address that begins with neither https:// nor http://".to_owned(),
            ),
        }
    }
}

/// Whether an address is one of the web. Others may run a program on the device of whoever follows them.
fn is_web_address(url: &str) -> bool {
    let begins = |scheme: &str| {
        url.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    begins("https://") || begins("http://")
}

/// What a person says to a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// What the person does with it.
    pub action: Action,
    /// What the person filled in.
    pub content: Option<Json>,
}

/// A question that was asked, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The question, as far as the reader may see it.
    pub question: Arc<ToolQuestion>,
    /// The answer that holds; none while nobody has answered.
    pub response: Option<ResponseRecord>,
}

/// An answer to a question, kept for whoever sends it again.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseRecord {
    /// The answer, as far as the reader may see it.
    pub response: Response,
    /// Whether a person answered, or nobody did in time.
    pub answered: bool,
    /// Who answered, where it was an entity.
    pub by: Option<EntityId>,
    /// Place of the event that holds it; 0 until it is stored.
    pub seq: Seq,
    /// When it was stored.
    pub time: Time,
}

/// The questions of one call, oldest first. A call may ask, go on with the answers, and ask again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Questions {
    asked: Vec<Asked>,
    /// Index of the first that the call waits for now.
    first: usize,
}

impl Questions {
    /// Every question that was asked.
    pub fn asked(&self) -> &[Asked] {
        &self.asked
    }
    /// One by its id.
    pub fn get(&self, id: QuestionId) -> Option<&Asked> {
        self.asked.iter().find(|asked| asked.question.question_id == id)
    }
    /// Those that nobody has answered. Once the call has settled they are closed all the same.
    pub fn open(&self) -> impl Iterator<Item = &ToolQuestion> {
        let unanswered = self.asked.iter().filter(|asked| asked.response.is_none());
        unanswered.map(|asked| &*asked.question)
    }
    /// The answers that the call goes on with, each under the source's own name.
    pub fn answers(&self) -> Vec<Answer> {
        let answered = self.asked[self.first..].iter().filter_map(|asked| {
            let Response { action, content } = asked.response.as_ref()?.response.clone();
            let key = asked.question.key.clone().unwrap_or_default();
            Some(Answer { key, action, content })
        });
        answered.collect()
    }
    /// Whether the call waits for an answer under this name, or has it.
    pub(crate) fn has(&self, key: &str) -> bool {
        let mut keys = self.asked[self.first..].iter().map(|asked| &asked.question.key);
        keys.any(|known| known.as_deref() == Some(key))
    }
    /// From here on the call waits for other questions.
    pub(crate) fn go_on(&mut self) {
        self.first = self.asked.len();
    }
    pub(crate) fn ask(&mut self, question: &ToolQuestion) {
        self.asked.push(Asked {
            question: Arc::new(question.clone()),
            response: None,
        });
    }
    pub(crate) fn respond(&mut self, e: &ToolQuestionResponse, seq: Seq, time: Time) {
        let asked = self
            .asked
            .iter_mut()
            .find(|asked| asked.question.question_id == e.question_id);
        if let Some(asked) = asked {
            asked.response = Some(ResponseRecord {
                response: Response {
                    action: e.action,
                    content: e.content.clone(),
                },
                answered: !e.expired,
                by: e.by,
                seq,
                time,
            });
        }
    }
    /// Notes where the answer to a question is stored.
    pub(crate) fn note_place(&mut self, id: QuestionId, place: Seq) {
        let asked = self
            .asked
            .iter_mut()
            .find(|asked| asked.question.question_id == id);
        if let Some(response) = asked.and_then(|asked| asked.response.as_mut()) {
            response.seq = place;
        }
    }
}
