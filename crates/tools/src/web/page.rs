//! Makes readable text of what a server sent.

use dom_smoothie::{Config, Readability, TextMode};
use encoding_rs::{Encoding, UTF_8};
use http::header;
use toolgate_engine::tools::CallFailure;

use crate::outside::Answer;

/// Elements inside of elements that the reader is trusted with; it takes time and stack for each.
const DEPTH_MAX: usize = 256;
const ELEMENTS_MAX: usize = 20_000;
/// Where a page says how it is written, if it says so itself.
const META_BYTES: usize = 1_024;
/// An article that is shorter is taken as no article.
const ARTICLE_CHARS_MIN: usize = 140;

/// What a person would read.
pub(super) struct Page {
    pub title: Option<String>,
    pub text: String,
}

/// The readable text of an answer.
pub(super) fn read(answer: &Answer) -> Result<Page, CallFailure> {
    let kind = answer.headers.get(header::CONTENT_TYPE);
    let kind = kind
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default()
        .to_ascii_lowercase();
    let media = kind.split(';').next().unwrap_or_default().trim();
    let text = decode(&answer.body, &kind);
    match media {
        "text/html" | "application/xhtml+xml" => Ok(html(&text, answer.url.as_str())),
        "" if text.trim_start().starts_with('<') => Ok(html(&text, answer.url.as_str())),
        "" | "application/json" | "application/xml" | "application/javascript" | "application/yaml" => {
            Ok(plain(text))
        }
        _ if media.starts_with("text/") || media.ends_with("+json") || media.ends_with("+xml") => {
            Ok(plain(text))
        }
        _ => Err(CallFailure::failed(format!(
            "the page is {media}, which has no text to read"
        ))),
    }
}

/// By the mark at its beginning, by what the server says, by what the page says, or as UTF-8.
fn decode(bytes: &[u8], kind: &str) -> String {
    let named = |text: &str| {
        let (_, label) = text.split_once("charset=")?;
        let label = label.trim_start_matches(['"', '\'']);
        let end = label
            .find(|c: char| c.is_whitespace() || "\"';/>".contains(c))
            .unwrap_or(label.len());
        Encoding::for_label(&label.as_bytes()[..end])
    };
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(META_BYTES)]).to_ascii_lowercase();
    let encoding = named(kind).or_else(|| named(&start)).unwrap_or(UTF_8);
    encoding.decode(bytes).0.into_owned()
}

fn plain(text: String) -> Page {
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    Page {
        title: heading.map(|heading| heading.trim().to_owned()),
        text,
    }
}

/// The article of a page as Markdown; all of its words when there is none, or when its elements are too many for a reader.
fn html(source: &str, url: &str) -> Page {
    let outline = Outline::of(source);
    let article = (outline.depth <= DEPTH_MAX)
        .then(|| article(source, url))
        .flatten();
    let title = outline.title.filter(|title| !title.is_empty());
    match article {
        Some((named, text)) => Page {
            title: Some(named).filter(|named| !named.is_empty()).or(title),
            text,
        },
        None => Page {
            title,
            text: outline.words,
        },
    }
}

fn article(source: &str, url: &str) -> Option<(String, String)> {
    let config = Config {
        max_elements_to_parse: ELEMENTS_MAX,
        text_mode: TextMode::Markdown,
        ..Config::default()
    };
    let article = Readability::new(source, Some(url), Some(config))
        .ok()?
        .parse()
        .ok()?;
    let text = article.text_content.trim();
    (text.len() >= ARTICLE_CHARS_MIN).then(|| (article.title.trim().to_owned(), text.to_owned()))
}

/// What one pass over a page tells, whatever it holds.
#[derive(Default)]
struct Outline {
    /// Elements inside of elements, at most; never less than a parser would find, but for those that end by themselves.
    depth: usize,
    title: Option<String>,
    words: String,
}

/// Elements without content.
const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
];
/// Elements that the next of their kind ends.
const ENDED: [&str; 14] = [
    "p", "li", "dt", "dd", "option", "optgroup", "tr", "td", "th", "thead", "tbody", "tfoot", "rt", "rp",
];
/// Elements whose content is no markup.
const RAW: [&str; 5] = ["script", "style", "textarea", "noscript", "title"];
/// Elements in the middle of a line.
const INLINE: [&str; 14] = [
    "a", "abbr", "b", "code", "em", "font", "i", "mark", "s", "small", "span", "strong", "sub", "sup",
];

impl Outline {
    fn of(source: &str) -> Self {
        let mut outline = Self::default();
        let mut open: std::collections::HashMap<String, usize> = Default::default();
        let mut depth = 0;
        let mut rest = source;
        while let Some((text, markup)) = rest.split_once('<') {
            outline.say(text);
            if let Some(comment) = markup.strip_prefix("!--") {
                rest = comment.split_once("-->").map_or("", |(_, after)| after);
                continue;
            }
            let closing = markup.starts_with('/');
            let tag = markup.strip_prefix('/').unwrap_or(markup);
            let end = tag
                .find(|c: char| c.is_whitespace() || c == '>' || c == '/')
                .unwrap_or(tag.len());
            if !tag.starts_with(|c: char| c.is_ascii_alphabetic() || c == '!' || c == '?') {
                outline.say("<");
                rest = markup;
                continue;
            }
            // Names are as long as their author likes; ours are short.
            let name = tag[..end].to_ascii_lowercase();
            rest = tag[end..].split_once('>').map_or("", |(_, after)| after);
            if !INLINE.contains(&name.as_str()) {
                outline.words.push('\n');
            }
            if RAW.contains(&name.as_str()) && !closing {
                let content = until_end(&mut rest, &name);
                if name == "title" && outline.title.is_none() {
                    outline.title = Some(squeezed(&entities(content)));
                }
            } else if VOID.contains(&name.as_str())
                || ENDED.contains(&name.as_str())
                || name.starts_with(['!', '?'])
            {
                // Of no depth.
            } else if closing {
                if let Some(count) = open.get_mut(&name).filter(|count| **count > 0) {
                    *count -= 1;
                    depth -= 1;
                }
            } else {
                *open.entry(name).or_default() += 1;
                depth += 1;
                outline.depth = outline.depth.max(depth);
            }
        }
        outline.say(rest);
        let lines = outline
            .words
            .lines()
            .map(squeezed)
            .filter(|line| !line.is_empty());
        outline.words = lines.collect::<Vec<_>>().join("\n");
        outline
    }

    fn say(&mut self, text: &str) {
        self.words.push_str(&entities(text));
    }
}

/// What stands before the end tag of a raw element; `rest` goes on behind it.
fn until_end<'s>(rest: &mut &'s str, name: &str) -> &'s str {
    let from = *rest;
    let mut at = 0;
    while let Some(found) = from[at..].find("</") {
        let start = at + found;
        let tail = &from.as_bytes()[start + 2..];
        if tail.len() >= name.len() && tail[..name.len()].eq_ignore_ascii_case(name.as_bytes()) {
            *rest = from[start..].split_once('>').map_or("", |(_, after)| after);
            return &from[..start];
        }
        at = start + 2;
    }
    *rest = "";
    from
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The few names that every page uses.
fn entities(text: &str) -> String {
    const NAMES: [(&str, &str); 7] = [
        ("&nbsp;", " "),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ];
    if !text.contains('&') {
        return text.to_owned();
    }
    NAMES.iter().fold(text.to_owned(), |text, (name, meaning)| {
        text.replace(name, meaning)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_never_less_than_a_parser_would_find() {
        let deep = |open: &str| Outline::of(&open.repeat(1_000)).depth;
        assert_eq!(deep("<div>"), 1_000);
        assert_eq!(deep("<div></b>"), 1_000);
        assert_eq!(deep("<div ><!-- </div> -->"), 1_000);
        assert_eq!(deep("<div/>"), 1_000);
        assert_eq!(deep("<b></B>"), 1);
        assert_eq!(deep("<p>text<br><li>"), 0);
        assert_eq!(deep("<script>'<div>'</script>"), 0);
    }

    #[test]
    fn words_are_left_when_nothing_else_can_be_read() {
        let page = "<title>A &amp; B</title><style>x{}</style><div>one <b>two</b> 1 < 2<p>three&nbsp;&lt;</div><script>no";
        let outline = Outline::of(page);
        assert_eq!(outline.title.as_deref(), Some("A & B"));
        assert_eq!(outline.words, "one two 1 < 2\nthree <");
    }

    #[test]
    fn letters_are_read_as_they_were_written() {
        assert_eq!(decode(b"\xe9tage", "text/html; charset=iso-8859-1"), "étage");
        assert_eq!(
            decode(b"<meta charset='windows-1252'>\x80", "text/html"),
            "<meta charset='windows-1252'>€"
        );
        assert_eq!(decode(b"\xef\xbb\xbfx", "text/html; charset=latin1"), "x");
        assert_eq!(decode("é".as_bytes(), "text/plain"), "é");
    }
}
