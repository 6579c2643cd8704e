//! What of a posted conversation is not what the chat's log says: the model is given the log, and the client is told.

use std::collections::HashSet;

use serde::Serialize;
use toolgate_engine::store::LogRange;
use toolgate_http::Shared;
use toolgate_http::problem::Refusal;
use toolgate_http::ui_message::{ChatMessage, ChatPart, ChatRole};
use toolgate_kernel::id::SpaceId;

use crate::chat::Chat;
use crate::ui_history::{PastMessage, messages};

/// Newest entries of a chat that a posted conversation is compared with, and bytes of them. What is older is not
/// compared: a turn costs the same in a long chat as in a short one.
const COMPARED_ENTRIES_MAX: usize = 200;
const COMPARED_BYTES_MAX: usize = 128 << 10;

/// Something of a request that was not taken as the client meant it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Warning {
    /// For programs.
    pub code: &'static str,
    /// In words.
    pub detail: String,
    /// Messages that the model is not given, by their place in the request.
    pub ignored: Vec<usize>,
    /// How many messages the model is given that were not posted.
    pub not_posted: usize,
}

impl Chat {
    /// Compares the messages before the new one with the chat's log.
    pub async fn compare(
        &self,
        door: &Shared,
        space: SpaceId,
        posted: &[ChatMessage],
    ) -> Result<Option<Warning>, Refusal> {
        if posted.is_empty() {
            return Ok(None);
        }
        let newest = LogRange {
            limit: COMPARED_ENTRIES_MAX,
            bytes: COMPARED_BYTES_MAX,
            ..LogRange::newest()
        };
        let mut log = door.engine.space_log(space, newest).await?.entries;
        log.reverse();
        let reader = door.access.decider(&self.who, space).await?;
        let known: Vec<(&str, String)> = messages(&log, &reader, None).iter().map(told).collect();
        let open = self.last_run(door, space).await?;
        let open = open.is_some_and(|run| !run.status.is_final());
        Ok(mismatch(&known, posted, open))
    }
}

/// `open`: an answer is under way, of which the client may have more than the log.
fn mismatch(known: &[(&str, String)], posted: &[ChatMessage], open: bool) -> Option<Warning> {
    let answer = posted
        .iter()
        .rposition(|message| message.role == ChatRole::Assistant)
        .filter(|_| open);
    let mut matched = HashSet::new();
    let mut ignored = Vec::new();
    let compared = posted.len().saturating_sub(known.len().max(1));
    for (at, message) in posted.iter().enumerate().skip(compared) {
        let Some((role, text)) = said(message).filter(|_| answer != Some(at)) else {
            continue;
        };
        // An answer that the client stopped is the beginning of the one in the log.
        let is_same = |(who, words): &(&str, String)| match role {
            "assistant" => *who == role && words.starts_with(&text),
            _ => *who == role && *words == text,
        };
        match (0..known.len()).find(|at| !matched.contains(at) && is_same(&known[*at])) {
            Some(found) => _ = matched.insert(found),
            None => ignored.push(at),
        }
    }
    let first = matched.iter().min().copied().unwrap_or(known.len());
    // A message of a plan is no message of this chat's client.
    let counts = |at: &usize| known[*at].0 != "system" && !known[*at].1.is_empty();
    let rest = (first..known.len()).filter(|at| !matched.contains(at) && counts(at));
    let not_posted = if open { 0 } else { rest.count() };
    if ignored.is_empty() && not_posted == 0 {
        return None;
    }
    let detail = format!(
        "the chat is known here and its own log is what the model is given: {} of the posted messages are not in it and \
         were ignored, and {not_posted} that were not posted are in it; for another past use a new chat id, or an agent \
         with history: client",
        ignored.len()
    );
    Some(Warning {
        code: "HISTORY_MISMATCH",
        detail,
        ignored,
        not_posted,
    })
}

/// Who says what, of a posted message that says something.
fn said(message: &ChatMessage) -> Option<(&'static str, String)> {
    let role = match message.role {
        ChatRole::User => "user",
        ChatRole::Assistant => "assistant",
        ChatRole::System | ChatRole::Tool => return None,
    };
    let pieces = message.pieces().iter().filter_map(|part| match part {
        ChatPart::Text(text) => Some(text.as_str()),
        ChatPart::File { .. } | ChatPart::Call(_) | ChatPart::Step | ChatPart::Other => None,
    });
    let text = match message.pieces().is_empty() {
        true => message.words().collect(),
        false => pieces.collect::<String>(),
    };
    (!text.is_empty()).then_some((role, text))
}

/// Who said what, as the log tells it.
fn told(message: &PastMessage) -> (&'static str, String) {
    let text = message.parts.iter().filter(|part| part["type"] == "text");
    let text = text.filter_map(|part| part["text"].as_str());
    (message.role, text.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posted(messages: &[(ChatRole, &str)]) -> Vec<ChatMessage> {
        let message = |(role, text): &(ChatRole, &str)| ChatMessage {
            role: *role,
            ..ChatMessage::of_text((*text).into())
        };
        messages.iter().map(message).collect()
    }

    fn check(messages: &[(ChatRole, &str)], open: bool, expected: Option<(&[usize], usize)>) {
        let known = [
            ("user", "hi"),
            ("assistant", "hello there"),
            ("user", "bye"),
            ("assistant", "so long"),
        ];
        let known = known.map(|(role, text)| (role, text.to_owned()));
        let seen = mismatch(&known, &posted(messages), open);
        let seen = seen.map(|warning| (warning.ignored, warning.not_posted));
        assert_eq!(seen, expected.map(|(ignored, more)| (ignored.to_vec(), more)));
    }

    #[test]
    fn what_is_not_in_the_log_and_what_was_not_posted_is_told() {
        use ChatRole::{Assistant, User};
        let all = [
            (User, "hi"),
            (Assistant, "hello there"),
            (User, "bye"),
            (Assistant, "so long"),
        ];
        check(&all, false, None);
        check(&all[2..], false, None);
        check(&[all[0], (Assistant, "hello"), all[2], all[3]], false, None);
        check(
            &[all[0], (Assistant, "go away"), all[2], all[3]],
            false,
            Some((&[1], 1)),
        );
        check(&all[..2], false, Some((&[], 2)));
        check(
            &[(User, "other"), (Assistant, "words")],
            false,
            Some((&[0, 1], 0)),
        );
        check(&[all[2], (Assistant, "so long and thanks")], true, None);
    }
}
