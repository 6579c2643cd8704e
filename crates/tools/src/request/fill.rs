//! Puts the input and the secrets where a configuration wants them. Two rules hold everywhere: only the author's own
//! words can name a secret, and a value stays inside of the place it was given.

use serde_json::{Map, Value};
use toolgate_egress::{Secrets, percent_encode as encode};
use toolgate_kernel::template::{Piece, Template, plain};
use url::{Url, form_urlencoded};

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

/// What a configuration is filled with.
pub(super) struct Filling<'f> {
    pub input: &'f Value,
    pub secrets: &'f Secrets,
}

/// A body and the content type it has unless the author says another.
pub(super) type Body = (Vec<u8>, &'static str);

impl Filling<'_> {
    /// The address. Every value is one piece of the path or the query, however it is written.
    pub(super) fn url(&self, template: &Template, query: &[(String, Template)]) -> Result<Url, String> {
        let mut out = String::new();
        let mut pieces = template.pieces(self.input).peekable();
        while let Some(piece) = pieces.next() {
            match (piece, part(&out)) {
                (Piece::Text(text), _) => out.push_str(&self.secret(text, encode)?),
                (Piece::Open(place), _) => return Err(missing("the address", place)),
                (Piece::Value(value), UrlPart::Host) => {
                    let label = plain(value);
                    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
                    let fenced = matches!(pieces.peek(), Some(Piece::Text(after)) if after.starts_with('.'));
                    if label.is_empty() || !label.chars().all(fits) || !fenced {
                        return Err(
                            "a value in the host of an address can only be one name in front of a dot".into(),
                        );
                    }
                    out.push_str(&label);
                }
                (Piece::Value(value), UrlPart::Path) => out.push_str(&encode(&step(value)?)),
                (Piece::Value(value), UrlPart::Query) => out.push_str(&encode(&plain(value))),
            }
        }
        let path = out.split(['?', '#']).next().unwrap_or_default();
        let dots = |step: &str| matches!(step.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
        if path.split(['/', '\\']).skip(3).any(dots) {
            return Err("the path of the address would lead out of itself".into());
        }
        let mut url = Url::parse(&out).map_err(|error| format!("the address is not one: {error}"))?;
        for (name, template) in query {
            self.append(&mut url, name, template)?;
        }
        Ok(url)
    }

    /// A list becomes one parameter for each of its values.
    fn append(&self, url: &mut Url, name: &str, template: &Template) -> Result<(), String> {
        let mut pieces = template.pieces(self.input);
        if let (Some(Piece::Value(Value::Array(values))), None) = (pieces.next(), pieces.next()) {
            for value in values {
                url.query_pairs_mut().append_pair(name, &plain(value));
            }
        } else if let Some(text) = self.text(template)? {
            url.query_pairs_mut().append_pair(name, &text);
        }
        Ok(())
    }

    /// A text; none when it is one place alone and the input has nothing for it.
    pub(super) fn text(&self, template: &Template) -> Result<Option<String>, String> {
        let pieces: Vec<_> = template.pieces(self.input).collect();
        match pieces[..] {
            [Piece::Open(place)] if !is_context(place) => return Ok(None),
            [Piece::Value(Value::Null)] => return Ok(None),
            _ => {}
        }
        self.joined(&pieces, plain).map(Some)
    }

    /// The body, in the form that the content type says; JSON unless there is one. None when it is one place alone and the
    /// input has nothing for it.
    pub(super) fn body(&self, body: &Value, kind: Option<&str>) -> Result<Option<Body>, String> {
        let form = kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with(FORM));
        if let Value::String(text) = body {
            if is_json(text, kind) {
                // Filled as text, a value with a quote in it would write the rest of the document.
                let parsed: Value = serde_json::from_str(text)
                    .map_err(|_| "a body of JSON has to be written as JSON, not as a text".to_owned())?;
                let filled = self.value(&parsed)?;
                return Ok(filled.map(|filled| (filled.to_string().into(), JSON)));
            }
            let template = Template::new(text.as_str());
            let pieces: Vec<_> = template.pieces(self.input).collect();
            if !matches!(pieces[..], [Piece::Open(_) | Piece::Value(_)]) {
                let fixed = pieces.iter().all(|piece| matches!(piece, Piece::Text(_)));
                let text = self.joined(&pieces, if fixed { plain } else { fence(text, kind)? })?;
                return Ok(Some((text.into(), "text/plain; charset=utf-8")));
            }
        }
        let Some(filled) = self.value(body)? else {
            return Ok(None);
        };
        if let (true, Value::Object(members)) = (form, &filled) {
            let mut pairs = form_urlencoded::Serializer::new(String::new());
            pairs.extend_pairs(members.iter().map(|(name, value)| (name, plain(value))));
            return Ok(Some((pairs.finish().into(), FORM)));
        }
        Ok(Some((filled.to_string().into(), JSON)))
    }

    /// JSON with its texts filled; a text that is one place alone becomes the value, or goes when there is none.
    fn value(&self, value: &Value) -> Result<Option<Value>, String> {
        Ok(Some(match value {
            Value::String(text) => {
                let template = Template::new(text.as_str());
                let pieces: Vec<_> = template.pieces(self.input).collect();
                match pieces[..] {
                    [Piece::Open(place)] if !is_context(place) => return Ok(None),
                    [Piece::Value(value)] => value.clone(),
                    _ => self.joined(&pieces, plain)?.into(),
                }
            }
            Value::Array(items) => {
                let filled = items.iter().map(|item| self.value(item));
                filled.filter_map(Result::transpose).collect::<Result<_, _>>()?
            }
            Value::Object(members) => {
                let mut filled = Map::new();
                for (name, value) in members {
                    if let Some(value) = self.value(value)? {
                        filled.insert(name.clone(), value);
                    }
                }
                filled.into()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }))
    }

    fn joined(&self, pieces: &[Piece<'_>], write: impl Fn(&Value) -> String) -> Result<String, String> {
        let mut out = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => out.push_str(&self.secret(text, str::to_owned)?),
                Piece::Value(value) => out.push_str(&write(value)),
                Piece::Open(place) => return Err(missing("the request", place)),
            }
        }
        Ok(out)
    }

    fn secret(&self, text: &str, write: impl Fn(&str) -> String) -> Result<String, String> {
        let none = |name| format!("the gateway has no secret named {name:?}; its operator has to set one");
        self.secrets.fill(text, write).map_err(none)
    }
}

/// Whether a text is meant as a JSON document: one place alone is not.
fn is_json(text: &str, kind: Option<&str>) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    match kind {
        None => text.starts_with(['{', '[']) && !text.starts_with("{{"),
        Some(kind) => kind.to_ascii_lowercase().contains("json") && !text.starts_with("{{"),
    }
}

/// How a value stands among the words of a body, so that it cannot write the rest of it.
fn fence(text: &str, kind: Option<&str>) -> Result<fn(&Value) -> String, String> {
    let is_markup = text.trim_start_matches('\u{feff}').trim_start().starts_with('<');
    let guess = if is_markup { "text/xml" } else { "text/plain" };
    let kind = kind.unwrap_or(guess).to_ascii_lowercase();
    let media = kind.split(';').next().unwrap_or_default().trim();
    match media {
        "text/plain" => Ok(plain),
        FORM => Ok(|value| encode(&plain(value))),
        _ if media.ends_with("xml") || media == "text/html" => Ok(|value| escaped(&plain(value))),
        _ => Err(format!(
            "a value among the words of a body of {media} could write the rest of it; send JSON, a form, XML or plain text"
        )),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// Where in an address a value is about to stand.
enum UrlPart {
    Host,
    Path,
    Query,
}

fn part(so_far: &str) -> UrlPart {
    let rest = so_far.split_once("://").map_or("", |(_, rest)| rest);
    if rest.contains(['?', '#']) {
        UrlPart::Query
    } else if rest.contains(['/', '\\']) {
        UrlPart::Path
    } else {
        UrlPart::Host
    }
}

/// One step of a path. Some servers read an encoded slash as a slash, so the way up is closed in both spellings; and an
/// empty step would make one thing's address that of the whole collection.
fn step(value: &Value) -> Result<String, String> {
    let text = plain(value);
    if text.is_empty() || value.is_null() {
        return Err("a value in the path of an address is empty".into());
    }
    if text.split(['/', '\\']).any(|step| step == "..") {
        return Err("the path of the address would lead out of itself".into());
    }
    Ok(text)
}

/// Whether a place is the gateway's to fill. Without a value it is an error, never left out: a server may take a request
/// without a user for one of its own.
fn is_context(place: &str) -> bool {
    let path = place.trim_start_matches('{').trim_start();
    ["context.user.", "context.space."]
        .iter()
        .any(|own| path.starts_with(own))
}

fn missing(whole: &str, place: &str) -> String {
    if is_context(place) {
        return format!(
            "{whole} needs {place}, and the person whom this run works for has none, or it works for nobody"
        );
    }
    format!("{whole} needs a value for {place}, and the input has none")
}
