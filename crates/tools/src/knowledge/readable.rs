//! HTML as Markdown, for hostile input too: a page that would cost too much to read is refused before it is.

use std::collections::HashMap;

use dom_smoothie::Readability;

/// Largest page.
pub(crate) const HTML_BYTES_MAX: usize = 2 << 20;
/// Elements inside each other that are read. Converters walk them by recursion, and some in quadratic time.
const DEPTH_MAX: usize = 128;
/// Elements of a page.
const TAGS_MAX: usize = 100_000;
/// Elements that an unclosed `<b>` and its like are repeated in: each is made again there.
const REPEATS_MAX: usize = 500_000;
/// What is no text for readers.
const SKIPPED: &[&str] = &["script", "style", "noscript", "template", "svg", "iframe", "head"];

/// A page as text.
#[derive(Debug, PartialEq)]
pub(crate) struct Readable {
    /// What it calls itself.
    pub title: Option<String>,
    /// Its words, as Markdown.
    pub text: String,
}

/// Reads a page; an error says why it is refused. Takes its time: not for an async task.
pub(crate) fn read(html: &str) -> Result<Readable, String> {
    if html.len() > HTML_BYTES_MAX {
        return Err(format!("a page may have {HTML_BYTES_MAX} bytes at most"));
    }
    weigh(html)?;
    let page = Readability::from(html);
    let title = page.get_article_title().trim().to_owned();
    Ok(Readable {
        title: (!title.is_empty()).then_some(title),
        text: page.doc.md(Some(SKIPPED)).trim().to_owned(),
    })
}

/// Elements that end by themselves where the next of their kind begins: they nest only as deep as others do.
const SELF_ENDING: &[&str] = &[
    "p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "option", "optgroup", "colgroup",
    "rp", "rt", "html", "head", "body",
];
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
];
const FORMATTING: &[&str] = &[
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];

/// Refuses a page whose tree would be deeper or larger than it is worth. Counts each name by itself, so that an end
/// tag without a beginning takes nothing away; so it sees a page as no less deep than a browser does.
fn weigh(html: &str) -> Result<(), String> {
    let mut open: HashMap<String, usize> = HashMap::new();
    let (mut depth, mut formatting, mut tags, mut repeats) = (0_usize, 0_usize, 0_usize, 0_usize);
    for (ends, name) in tag_names(html) {
        let name = name.to_ascii_lowercase();
        let known = |list: &[&str]| list.contains(&name.as_str());
        if known(VOID) || known(SELF_ENDING) {
            (tags, repeats) = (tags + 1, repeats + formatting);
        } else if ends {
            if let Some(count) = open.get_mut(&name).filter(|count| **count > 0) {
                *count -= 1;
                depth -= 1;
                formatting -= usize::from(known(FORMATTING));
            }
        } else {
            (tags, repeats) = (tags + 1, repeats + formatting);
            formatting += usize::from(known(FORMATTING));
            depth += 1;
            *open.entry(name).or_default() += 1;
        }
        if depth > DEPTH_MAX {
            return Err(format!("the page nests more than {DEPTH_MAX} elements"));
        }
        if tags > TAGS_MAX || repeats > REPEATS_MAX {
            return Err("the page has too many elements".into());
        }
    }
    Ok(())
}

/// The names of all tags, with whether they end an element. What stands in comments and scripts is taken for tags
/// too: that errs on the safe side.
fn tag_names(html: &str) -> impl Iterator<Item = (bool, &str)> {
    html.split('<').skip(1).filter_map(|rest| {
        let (ends, rest) = match rest.strip_prefix('/') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let name = rest
            .split(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/'))
            .next()?;
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            .then_some((ends, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_markdown_without_what_is_not_text() {
        let page = "<html><head><title>Tea &amp; time</title><style>p{}</style></head><body><h1>Tea</h1>\
                    <script>alert('x')</script><p>Boil <b>water</b>.<p>Wait.<ul><li>one<li>two</ul></body></html>";
        let read = read(page).unwrap();
        assert_eq!(read.title.as_deref(), Some("Tea & time"));
        for wanted in ["# Tea", "**water**", "Wait.", "two"] {
            assert!(read.text.contains(wanted), "{}", read.text);
        }
        assert!(
            !read.text.contains("alert") && !read.text.contains("p{}"),
            "{}",
            read.text
        );
    }

    #[test]
    fn pages_that_would_cost_too_much_are_refused() {
        for hostile in [
            "<div>".repeat(5_000),
            "<div></span>".repeat(5_000),
            "<DIV\n>".repeat(5_000),
            "<b></i>".repeat(5_000),
            "<p><object>".repeat(5_000),
            format!("{}{}", "<b><i><u><s>".repeat(30), "<p>x".repeat(90_000)),
            "<br>".repeat(200_000),
            " ".repeat(HTML_BYTES_MAX + 1),
        ] {
            assert!(read(&hostile).is_err(), "{} was read", &hostile[..20]);
        }
    }

    #[test]
    fn sloppy_but_ordinary_pages_are_read() {
        let list = format!("<ul>{}</ul>", "<li>x<p>y".repeat(5_000));
        assert!(read(&list).is_ok());
        let table = format!("<table>{}</table>", "<tr><td>x<td>y".repeat(5_000));
        assert!(read(&table).is_ok());
    }
}
