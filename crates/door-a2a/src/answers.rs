//! What a client says of what a task has asked: results of its tools, decisions on approvals, answers to questions.

use serde_json::{Value, json};
use toolgate_a2a::client_tools::{AG2_RESULT, ToolResult, URI};
use toolgate_a2a::error::Error;
use toolgate_a2a::number::repaired;
use toolgate_a2a::part::{Content, Part};
use toolgate_a2a::{Dialect, Invalid};
use toolgate_access::Principal;
use toolgate_engine::intake::{Decision, IntakeError, Submission};
use toolgate_http::Shared;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{ApprovalId, CallId, QuestionId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::question::{Action, Response};

use crate::problem::{not_taken, refused};

/// What is taken of the words of a tool that failed.
const ERROR_CHARS_MAX: usize = 10_000;
/// Most things that one request may answer.
const ANSWERS_MAX: usize = 256;

/// One thing that the client answers, and where it stands in the request.
#[derive(Debug)]
pub(crate) struct Answer {
    at: String,
    says: Says,
}

#[derive(Debug)]
enum Says {
    Result(CallId, Submission),
    Decision(ApprovalId, Decision),
    Response(QuestionId, Response),
}

/// What was stored.
pub(crate) struct Taken {
    /// Place of the newest answer in the log of the run itself; none when only runs below it were answered.
    pub newest: Option<Seq>,
}

/// The parts of a message: answers, and those that are none, by their index.
pub(crate) type Sorted<'p> = (Vec<Answer>, Vec<(usize, &'p Part)>);

/// Tells the answers in the parts of a message from its content.
pub(crate) fn of_parts(parts: &[Part]) -> Result<Sorted<'_>, Error> {
    let mut results: Vec<(CallId, Result<Vec<Value>, String>, String)> = Vec::new();
    let (mut answers, mut others) = (Vec::new(), Vec::new());
    for (index, part) in parts.iter().enumerate() {
        let at = format!("message.parts[{index}]");
        let tag = |name: &str| part.tag(URI).and_then(|tag| tag.get(name));
        if tag("toolResult").is_some() {
            let tagged = format!("{at}.metadata[{URI}].toolResult.callId");
            let result = ToolResult::of_part(part).ok_or_else(|| Invalid::one(&tagged, "is required"))?;
            let call = id::<CallId>(&result.call_id, &tagged)?;
            let value = value_of(part, &at)?;
            match results.iter_mut().find(|(known, ..)| *known == call) {
                Some((_, Ok(values), _)) if !result.is_error => values.push(value),
                Some((_, Err(words), _)) if result.is_error => {
                    words.push('\n');
                    words.push_str(&words_of(&value));
                }
                Some(_) => return Err(Invalid::one(at, "contradicts another part of the same result").into()),
                None if result.is_error => results.push((call, Err(words_of(&value)), at)),
                None => results.push((call, Ok(vec![value]), at)),
            }
        } else if let Some(response) = tag("toolApprovalResponse") {
            answers.push(decision(
                response,
                format!("{at}.metadata[{URI}].toolApprovalResponse"),
            )?);
        } else if let Some(response) = tag("toolQuestionResponse") {
            let at = format!("{at}.metadata[{URI}].toolQuestionResponse");
            answers.push(question_response(response, &part.content, at)?);
        } else if part.media_type.as_deref() == Some(AG2_RESULT) {
            answers.extend(ag2_results(&part.content, &at)?);
        } else {
            others.push((index, part));
        }
    }
    answers.extend(results.into_iter().map(|(call, result, at)| {
        let submission = match result {
            Ok(values) => Submission::Output(one_value(values).into()),
            Err(words) => failure(words),
        };
        Answer {
            at,
            says: Says::Result(call, submission),
        }
    }));
    if answers.len() > ANSWERS_MAX {
        let words = format!(
            "answers {} things, at most {ANSWERS_MAX} are allowed",
            answers.len()
        );
        return Err(Invalid::one("message.parts", words).into());
    }
    Ok((answers, others))
}

/// The results of `tasks/resume`: `{toolCallId, toolName, success, result, error}` each.
pub(crate) fn of_tool_results(results: Value) -> Result<Vec<Answer>, Error> {
    let Value::Array(results) = results else {
        return Err(Invalid::one("toolResults", "must be a list of results").into());
    };
    if results.is_empty() || results.len() > ANSWERS_MAX {
        let words = format!("must have 1 to {ANSWERS_MAX} results");
        return Err(Invalid::one("toolResults", words).into());
    }
    let results = results.into_iter().enumerate();
    results
        .map(|(index, result)| {
            let at = format!("toolResults[{index}]");
            let named = format!("{at}.toolCallId");
            let call = result.get("toolCallId").and_then(Value::as_str);
            let call = call.ok_or_else(|| Invalid::one(&named, "is required, and must be a string"))?;
            let call = id::<CallId>(call, &named)?;
            let error = result.get("error").filter(|error| !error.is_null());
            let failed = result.get("success") == Some(&Value::Bool(false)) || error.is_some();
            let value = result.get("result").filter(|value| !value.is_null());
            let submission = match failed {
                true => failure(error.or(value).map_or("the tool failed".into(), words_of)),
                false => Submission::Output(repaired(value.cloned().unwrap_or_default()).into()),
            };
            Ok(Answer {
                at,
                says: Says::Result(call, submission),
            })
        })
        .collect()
}

/// Gives the answers to the task `run`. Each must be for the run or for one below it: what is for another is refused
/// before anything is stored.
pub(crate) async fn take(
    door: &Shared,
    who: &Principal,
    run: RunId,
    answers: Vec<Answer>,
) -> Result<Taken, Error> {
    for answer in &answers {
        let unknown = || Error::from(Invalid::one(&answer.at, "names nothing that this task has asked"));
        let top = door.access.reach_top(who, answer.says.asking(), "call").await;
        if top.map_err(|_| unknown())?.run != run {
            return Err(unknown());
        }
    }
    let record = door
        .access
        .run(who, run)
        .await
        .map_err(|error| refused(error, ""))?;
    let by = door.access.decider(who, record.space).await;
    let by = by.map_err(|error| refused(error, ""))?;
    let mut newest = None;
    for Answer { at, says } in answers {
        let asking = says.asking();
        let stored: Result<Seq, IntakeError> = match says {
            Says::Result(call, submission) => {
                let receipt = door.engine.submit(call, submission, who.entity()).await;
                receipt.map(|receipt| receipt.seq)
            }
            Says::Decision(approval, decision) => {
                let decided = door.engine.decide(approval, decision, by.clone()).await;
                decided.map(|decided| decided.seq)
            }
            Says::Response(question, response) => {
                let responded = door.engine.respond(question, response, by.clone()).await;
                responded.map(|responded| responded.seq)
            }
        };
        let seq = stored.map_err(|error| not_taken(error, &at))?;
        if asking == run {
            newest = newest.max(Some(seq));
        }
    }
    Ok(Taken { newest })
}

impl Says {
    /// The run that asked.
    fn asking(&self) -> RunId {
        match self {
            Self::Result(call, _) => call.run,
            Self::Decision(approval, _) => approval.run,
            Self::Response(question, _) => question.call.run,
        }
    }
}

fn decision(response: &Value, at: String) -> Result<Answer, Error> {
    let text = |name: &str| response.get(name).and_then(Value::as_str);
    let approval =
        text("approvalId").ok_or_else(|| Invalid::one(format!("{at}.approvalId"), "is required"))?;
    let approval = id::<ApprovalId>(approval, &format!("{at}.approvalId"))?;
    let decision = match response.get("approved") {
        Some(Value::Bool(true)) => {
            let changed = response.get("arguments").filter(|changed| !changed.is_null());
            Decision::Approve(changed.map(|changed| repaired(changed.clone()).into()))
        }
        Some(Value::Bool(false)) => Decision::Deny(text("reason").map(str::to_owned)),
        _ => return Err(Invalid::one(format!("{at}.approved"), "must be true or false").into()),
    };
    Ok(Answer {
        at,
        says: Says::Decision(approval, decision),
    })
}

fn question_response(response: &Value, content: &Content, at: String) -> Result<Answer, Error> {
    let text = |name: &str| response.get(name).and_then(Value::as_str);
    let question =
        text("questionId").ok_or_else(|| Invalid::one(format!("{at}.questionId"), "is required"))?;
    let question = id::<QuestionId>(question, &format!("{at}.questionId"))?;
    let action = match text("action") {
        Some("accept") => Action::Accept,
        Some("decline") => Action::Decline,
        Some("cancel") => Action::Cancel,
        _ => return Err(Invalid::one(format!("{at}.action"), "must be accept, decline or cancel").into()),
    };
    let content = match (action, content) {
        (Action::Accept, Content::Data(data)) => Some(Json::from(repaired(data.clone()))),
        _ => None,
    };
    Ok(Answer {
        at,
        says: Says::Response(question, Response { action, content }),
    })
}

/// `{results: [{id, name, content, error}]}`.
fn ag2_results(content: &Content, at: &str) -> Result<Vec<Answer>, Error> {
    let results = match content {
        Content::Data(data) => data.get("results").and_then(Value::as_array),
        Content::Text(_) | Content::Raw(_) | Content::Url(_) => None,
    };
    let results = results.ok_or_else(|| Invalid::one(format!("{at}.data.results"), "must be a list"))?;
    let results = results.iter().enumerate();
    results
        .map(|(index, result)| {
            let at = format!("{at}.data.results[{index}]");
            let call = result.get("id").and_then(Value::as_str);
            let call = id::<CallId>(call.unwrap_or_default(), &format!("{at}.id"))?;
            let error = result
                .get("error")
                .filter(|error| !error.is_null() && **error != "");
            let submission = match error {
                Some(error) => failure(words_of(error)),
                None => Submission::Output(ag2_content(result.get("content")).into()),
            };
            Ok(Answer {
                at,
                says: Says::Result(call, submission),
            })
        })
        .collect()
}

/// AG2 sends results as text, JSON included.
fn ag2_content(content: Option<&Value>) -> Value {
    match content {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        other => other.cloned().unwrap_or_default(),
    }
}

/// What a part holds, as the value that a model is given.
fn value_of(part: &Part, at: &str) -> Result<Value, Error> {
    let is_json = part.media_type.as_deref() == Some("application/json");
    match &part.content {
        Content::Data(data) => Ok(repaired(data.clone())),
        // Exact, where data went through protobuf.
        Content::Text(text) if is_json => serde_json::from_str(text)
            .map_err(|error| Invalid::one(format!("{at}.text"), format!("is not JSON: {error}")).into()),
        Content::Text(text) => Ok(json!(text)),
        Content::Raw(_) | Content::Url(_) => {
            let mut value = part.to_json(Dialect::V1);
            if let Some(members) = value.as_object_mut() {
                members.remove("metadata");
            }
            Ok(value)
        }
    }
}

fn one_value(mut values: Vec<Value>) -> Value {
    match values.len() {
        1 => values.remove(0),
        _ => Value::Array(values),
    }
}

fn words_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn failure(words: String) -> Submission {
    Submission::Error(words.chars().take(ERROR_CHARS_MAX).collect())
}

fn id<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str, at: &str) -> Result<T, Error> {
    text.parse()
        .map_err(|error| Invalid::one(at, format!("names nothing that this task has asked: {error}")).into())
}
