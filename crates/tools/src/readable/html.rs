//! Pages as Markdown. One that would cost a converter too much is given as its words alone.

use std::collections::HashMap;

use dom_smoothie::{Config, Readability, TextMode};

use super::Wanted;

/// Elements inside each other that a converter is trusted with: it takes time and stack for each.
const DEPTH_MAX: usize = 128;
/// Elements of a page, and of one that articles are looked for in.
const TAGS_MAX: usize = 100_000;
const ARTICLE_TAGS_MAX: usize = 20_000;
/// Elements that an unclosed `<b>` and its like are repeated in: each is made again there.
const REPEATS_MAX: usize = 500_000;
/// An article that is shorter is taken as no article.
const ARTICLE_CHARS_MIN: usize = 140;
/// What is no text for readers.
const SKIPPED: &[&str] = &["script", "style", "noscript", "template", "svg", "iframe", "head"];

/// A page's title and text.
pub(super) fn read(page: &str, url: Option<&str>, wanted: Wanted) -> (Option<String>, String) {
    if is_costly(page) {
        let Outline { title, words } = Outline::of(page);
        return (title.filter(|title| !title.is_empty()), words);
    }
    let article = match wanted {
        Wanted::Article => article(page, url),
        Wanted::Everything => None,
    };
    let (title, text) = article.unwrap_or_else(|| everything(page));
    (Some(title).filter(|title| !title.is_empty()), text)
}

fn article(page: &str, url: Option<&str>) -> Option<(String, String)> {
    let config = Config {
        max_elements_to_parse: ARTICLE_TAGS_MAX,
        text_mode: TextMode::Markdown,
        ..Config::default()
    };
    let mut reader = Readability::new(page, url, Some(config)).ok()?;
    let article = reader.parse().ok()?;
    let text = article.text_content.trim();
    (text.len() >= ARTICLE_CHARS_MIN).then(|| (article.title.trim().to_owned(), text.to_owned()))
}

fn everything(page: &str) -> (String, String) {
    let page = Readability::from(page);
    let title = page.get_article_title().trim().to_owned();
    (title, page.doc.md(Some(SKIPPED)).trim().to_owned())
}

/// Elements that the next of their kind ends: they nest only as deep as others do.
const SELF_ENDING: &[&str] = &[
    "p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "option", "optgroup", "colgroup",
    "html", "head", "body",
];
/// Elements without content.
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
];
/// Elements that are made again in what they were not closed before.
const FORMATTING: &[&str] = &[
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];
/// Elements with rules of their own: nothing in them ends by itself, and what closes itself is closed.
const FOREIGN: &[&str] = &["svg", "math"];
/// What drawings have most of.
const STROKES: &[&str] = &[
    "circle", "ellipse", "line", "path", "polygon", "polyline", "rect", "stop", "use",
];

/// Whether a page's tree would be deeper or larger than it is worth. Counts each name by itself, so that an end tag
/// without a beginning takes nothing away; so it sees a page as no less deep than a browser does.
fn is_costly(page: &str) -> bool {
    let mut open: HashMap<String, usize> = HashMap::new();
    let (mut depth, mut formatting, mut foreign) = (0_usize, 0_usize, 0_usize);
    let (mut tags, mut repeats) = (0_usize, 0_usize);
    for Tag { name, ends, closed } in tags_of(page) {
        let name = name.to_ascii_lowercase();
        let known = |list: &[&str]| list.contains(&name.as_str());
        if !ends {
            (tags, repeats) = (tags + 1, repeats + formatting);
        }
        let ends_itself = match foreign {
            0 => known(VOID) || known(SELF_ENDING),
            _ => closed && known(STROKES),
        };
        if ends_itself {
            continue;
        }
        let (is_formatting, is_foreign) = (known(FORMATTING), known(FOREIGN));
        if !ends {
            depth += 1;
            formatting += usize::from(is_formatting);
            foreign += usize::from(is_foreign);
            *open.entry(name).or_default() += 1;
        } else if let Some(count) = open.get_mut(&name).filter(|count| **count > 0) {
            *count -= 1;
            depth -= 1;
            formatting -= usize::from(is_formatting);
            foreign -= usize::from(is_foreign);
        }
        if depth > DEPTH_MAX || tags > TAGS_MAX || repeats > REPEATS_MAX {
            return true;
        }
    }
    tags > TAGS_MAX || repeats > REPEATS_MAX
}

struct Tag<'p> {
    name: &'p str,
    /// It ends an element.
    ends: bool,
    /// It looks like `<name/>`.
    closed: bool,
}

/// All tags. What stands in comments and scripts is taken for tags too: that errs on the safe side.
fn tags_of(page: &str) -> impl Iterator<Item = Tag<'_>> {
    page.split('<').skip(1).filter_map(|rest| {
        let ends = rest.starts_with('/');
        let inside = rest.split('>').next()?;
        let bare = inside.strip_prefix('/').unwrap_or(inside);
        let name = bare.split(|c: char| c.is_ascii_whitespace() || c == '/').next()?;
        let closed = inside.ends_with('/');
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            .then_some(Tag { name, ends, closed })
    })
}

/// What one pass over a page tells, whatever it holds.
#[derive(Default)]
struct Outline {
    title: Option<String>,
    words: String,
}

/// Elements whose content is no markup.
const RAW: [&str; 5] = ["script", "style", "textarea", "noscript", "title"];
/// Elements in the middle of a line.
const INLINE: [&str; 14] = [
    "a", "abbr", "b", "code", "em", "font", "i", "mark", "s", "small", "span", "strong", "sub", "sup",
];

impl Outline {
    fn of(source: &str) -> Self {
        let mut outline = Self::default();
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
    fn a_page_becomes_markdown_without_what_is_not_text() {
        let page = "<html><head><title>Tea &amp; time</title><style>p{}</style></head><body><h1>Tea</h1>\
                    <script>alert('x')</script><p>Boil <b>water</b>.<p>Wait.<ul><li>one<li>two</ul></body></html>";
        let (title, text) = read(page, None, Wanted::Everything);
        assert_eq!(title.as_deref(), Some("Tea & time"));
        for wanted in ["# Tea", "**water**", "Wait.", "two"] {
            assert!(text.contains(wanted), "{text}");
        }
        assert!(!text.contains("alert") && !text.contains("p{}"), "{text}");
    }

    #[test]
    fn no_converter_sees_a_page_that_would_cost_too_much() {
        for hostile in [
            "<div>".repeat(5_000),
            "<div></span>".repeat(5_000),
            "<DIV\n>".repeat(5_000),
            "<div/>".repeat(5_000),
            "<!--><div>".repeat(5_000),
            "<b></i>".repeat(5_000),
            "<p><object>".repeat(5_000),
            "<rt>".repeat(5_000),
            format!("<svg>{}", "<tr>".repeat(5_000)),
            format!("<math>{}", "<input>".repeat(5_000)),
            format!("{}{}", "<b><i><u><s>".repeat(30), "<p>x".repeat(90_000)),
            "<br>".repeat(200_000),
        ] {
            assert!(is_costly(&hostile), "{} was not", &hostile[..20]);
        }
    }

    #[test]
    fn sloppy_but_ordinary_pages_are_converted() {
        for page in [
            format!("<ul>{}</ul>", "<li>x<p>y".repeat(5_000)),
            format!("<table>{}</table>", "<tr><td>x<td>y".repeat(5_000)),
            "<p><svg><path d='M0'/><path/><path/></svg><br><img>".repeat(500),
            "<b>x</B>".repeat(5_000),
        ] {
            assert!(!is_costly(&page), "{} was", &page[..20]);
        }
    }

    #[test]
    fn words_are_left_when_nothing_else_can_be_read() {
        let page = "<title>A &amp; B</title><style>x{}</style><div>one <b>two</b> 1 < 2<p>three&nbsp;&lt;</div><script>no";
        let outline = Outline::of(page);
        assert_eq!(outline.title.as_deref(), Some("A & B"));
        assert_eq!(outline.words, "one two 1 < 2\nthree <");
    }
}
