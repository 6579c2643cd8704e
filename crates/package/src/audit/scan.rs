//! Finds words in JavaScript without parsing it: comments and texts are looked at like code, because a text may become
//! code.

use super::{Construct, LINE_CHARS_MAX};

/// Most hosts of one piece of code that are listed.
const HOSTS_MAX: usize = 100;

/// The constructs, and why each is listed.
const CONSTRUCTS: [(&str, &str); 25] = [
    ("eval", "runs a text as code"),
    ("Function", "runs a text as code"),
    ("AsyncFunction", "runs a text as code"),
    ("GeneratorFunction", "runs a text as code"),
    ("constructor", "leads from any function to Function"),
    ("import", "loads other code; the sandbox has no modules"),
    ("require", "loads other code; the sandbox has no modules"),
    ("fetch", "sends requests, to the hosts that the package asks for"),
    ("XMLHttpRequest", "sends requests; the sandbox does not have it"),
    ("WebSocket", "opens connections; the sandbox does not have it"),
    ("storage", "keeps values between calls"),
    ("localStorage", "keeps values; the sandbox does not have it"),
    (
        "document",
        "changes the page, if it is loaded by a client in a browser",
    ),
    (
        "window",
        "reaches the page, if it is loaded by a client in a browser",
    ),
    (
        "process",
        "reaches the Node process, if it is loaded by a client in Node",
    ),
    ("globalThis", "reaches every global by name"),
    ("__proto__", "changes what all objects share"),
    ("prototype", "may change what all objects share"),
    ("Proxy", "changes what reading a member does"),
    ("Reflect", "calls and reads indirectly"),
    (
        "WebAssembly",
        "runs code that is not in the text; the sandbox does not have it",
    ),
    ("SharedArrayBuffer", "measures time finely"),
    ("atob", "decodes what may be hidden in a text"),
    ("fromCharCode", "makes texts that a search does not find"),
    ("unescape", "decodes what may be hidden in a text"),
];

/// What was found in one piece of code.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub constructs: Vec<Construct>,
    pub hosts: Vec<String>,
    /// The first line that is too long to be read.
    pub long_line: Option<usize>,
    /// The first line with characters that cannot be seen.
    pub hidden_line: Option<usize>,
}

pub(super) fn scan(code: &str) -> Found {
    let mut found = Found::default();
    for (line, text) in (1..).zip(code.lines()) {
        for word in words(text) {
            note(word, line, &mut found.constructs);
        }
        note_hosts(text, &mut found.hosts);
        if found.long_line.is_none() && text.chars().nth(LINE_CHARS_MAX).is_some() {
            found.long_line = Some(line);
        }
        if found.hidden_line.is_none() && text.chars().any(is_hidden) {
            found.hidden_line = Some(line);
        }
    }
    found
}

/// Runs of characters that a JavaScript name may have.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$')
        .filter(|word| !word.is_empty())
}

fn note(word: &str, line: usize, constructs: &mut Vec<Construct>) {
    let Some((name, reason)) = CONSTRUCTS.into_iter().find(|(name, _)| *name == word) else {
        return;
    };
    match constructs.iter_mut().find(|construct| construct.name == name) {
        Some(construct) => construct.count += 1,
        None => constructs.push(Construct {
            name,
            line,
            count: 1,
            reason,
        }),
    }
}

fn note_hosts(text: &str, hosts: &mut Vec<String>) {
    for scheme in ["https://", "http://", "wss://", "ws://"] {
        for (at, _) in text.match_indices(scheme) {
            let rest = &text[at + scheme.len()..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '-');
            let host = rest[..end.unwrap_or(rest.len())]
                .trim_matches('.')
                .to_ascii_lowercase();
            if !host.is_empty() && hosts.len() < HOSTS_MAX && !hosts.contains(&host) {
                hosts.push(host);
            }
        }
    }
}

/// Characters that cannot be seen or that change the order of what is shown.
pub(super) fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{feff}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}'
        | '\u{e0000}'..='\u{e007f}'
        | '\u{0000}'..='\u{0008}' | '\u{000b}' | '\u{000e}'..='\u{001f}' | '\u{007f}')
}
