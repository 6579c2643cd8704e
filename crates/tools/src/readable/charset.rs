//! Character encoding, decided as browsers do: the byte order mark, the declared charset, the page's `<meta>` element or
//! XML declaration, or else what the bytes look like.

use chardetng::EncodingDetector;
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// Bytes of a page in which it may name its charset.
const PRESCAN_BYTES: usize = 1_024;

/// Whether an encoding that nobody names may be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unnamed<'a> {
    /// It is guessed; the top-level domain of the page is a hint.
    Guess(Option<&'a str>),
    /// It is UTF-8.
    Utf8,
}

/// The decoded text, and whether some characters could not be decoded.
pub(super) fn decode(bytes: &[u8], kind: &str, unnamed: Unnamed<'_>) -> (String, bool) {
    let declared = kind
        .to_ascii_lowercase()
        .split_once("charset=")
        .and_then(|(_, label)| labelled(label.trim_start_matches(['"', '\'']).as_bytes()));
    let encoding = declared
        .or_else(|| prescan(&bytes[..bytes.len().min(PRESCAN_BYTES)]))
        .unwrap_or_else(|| guess(bytes, unnamed));
    // A byte order mark comes before all of these.
    let (text, _, damaged) = encoding.decode(bytes);
    (text.into_owned(), damaged)
}

fn guess(bytes: &[u8], unnamed: Unnamed<'_>) -> &'static Encoding {
    let Unnamed::Guess(domain) = unnamed else {
        return UTF_8;
    };
    match std::str::from_utf8(bytes) {
        Ok(_) => UTF_8,
        // The last character was cut with the download.
        Err(error) if error.error_len().is_none() => UTF_8,
        Err(_) => {
            let mut detector = EncodingDetector::new();
            detector.feed(bytes, true);
            let domain = domain.map(str::to_ascii_lowercase);
            // The detector takes a label in lower-case ASCII, without dots.
            let is_label = |label: &&str| {
                label
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            };
            let domain = domain.as_deref().filter(is_label).map(str::as_bytes);
            detector.guess(domain, true)
        }
    }
}

/// The encoding that the beginning of a page names: an XML declaration, or the first `<meta>` that names one. Comments
/// are skipped.
fn prescan(start: &[u8]) -> Option<&'static Encoding> {
    let text = String::from_utf8_lossy(start).to_ascii_lowercase();
    if text.starts_with("<?xml") {
        let declaration = text.split_once("?>").map_or("", |(declaration, _)| declaration);
        let named = declaration
            .split_once("encoding")
            .and_then(|(_, rest)| value(rest));
        if let Some(encoding) = named.and_then(|label| of_page(label.as_bytes())) {
            return Some(encoding);
        }
    }
    let mut rest = text.as_str();
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.split_once("-->")?.1;
            continue;
        }
        let is_meta = rest.strip_prefix("<meta").is_some_and(|after| {
            let next = after.chars().next();
            next.is_some_and(|c| c.is_ascii_whitespace() || c == '/')
        });
        if is_meta {
            let element = rest.split_once('>').map_or(rest, |(element, _)| element);
            // `charset="…"` of its own, or inside of `content="text/html; charset=…"`.
            let label = element.split_once("charset").and_then(|(_, rest)| value(rest));
            if let Some(encoding) = label.and_then(|label| of_page(label.as_bytes())) {
                return Some(encoding);
            }
        }
        rest = &rest[1..];
    }
    None
}

/// What stands behind a name: `= "value"`.
fn value(rest: &str) -> Option<&str> {
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    Some(rest.trim_start_matches(['"', '\'']))
}

/// The encoding of a label at the beginning of `text`.
fn labelled(text: &[u8]) -> Option<&'static Encoding> {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"\"';/>?,".contains(byte);
    let end = text.iter().position(is_end).unwrap_or(text.len());
    Encoding::for_label(&text[..end])
}

/// The same for a label in the page itself: a page that could be read so far is not UTF-16.
fn of_page(text: &[u8]) -> Option<&'static Encoding> {
    labelled(text).map(|encoding| {
        if encoding == UTF_16BE || encoding == UTF_16LE {
            UTF_8
        } else if encoding == X_USER_DEFINED {
            WINDOWS_1252
        } else {
            encoding
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], kind: &str) -> String {
        decode(bytes, kind, Unnamed::Guess(None)).0
    }

    #[test]
    fn a_byte_order_mark_comes_before_the_header_and_that_before_the_page() {
        assert_eq!(read(b"\xef\xbb\xbfx", "text/html; charset=latin1"), "x");
        assert_eq!(read(b"\xff\xfea\x00b\x00", "text/html; charset=utf-8"), "ab");
        assert_eq!(read(b"\xe9tage", "text/html; charset=ISO-8859-1"), "étage");
        let page = b"<meta charset=utf-8>\xe9";
        assert_eq!(
            read(page, "text/html; charset=\"latin1\""),
            "<meta charset=utf-8>é"
        );
    }

    #[test]
    fn a_page_names_its_charset_where_browsers_look() {
        let last = |page: &[u8]| read(page, "text/html").chars().next_back().unwrap();
        assert_eq!(last(b"<meta charset='windows-1252'>\x80"), '€');
        let old = b"<META HTTP-EQUIV=\"Content-Type\" CONTENT=\"text/html; charset=windows-1251\">\xdf";
        assert_eq!(last(old), 'Я');
        assert_eq!(last(b"<?xml version='1.0' encoding='iso-8859-2'?>\xb1"), 'ą');
        // Not in a comment, not in other elements or words; and never UTF-16.
        let commented = b"<!-- <meta charset=windows-1251> --><meta charset = \"windows-1252\" />\xdf";
        assert_eq!(last(commented), 'ß');
        assert_eq!(
            last(b"<p data-charset=\"x\">charset=windows-1251</p><meta charset=windows-1252>\xdf"),
            'ß'
        );
        assert_eq!(last("<meta charset=utf-16>é".as_bytes()), 'é');
    }

    #[test]
    fn an_encoding_that_nobody_names_is_guessed_for_pages_and_utf_8_for_documents() {
        let russian = "Съешь же ещё этих мягких французских булок, да выпей чаю.";
        let japanese = "いろはにほへと ちりぬるを わかよたれそ つねならむ 日本語の文章です。";
        for (text, encoding, domain) in [
            (russian, encoding_rs::WINDOWS_1251, "com"),
            (russian, encoding_rs::KOI8_R, "ru"),
            (japanese, encoding_rs::SHIFT_JIS, "jp"),
            (japanese, encoding_rs::EUC_JP, "JP"),
            (japanese, UTF_8, "127"),
        ] {
            let (bytes, _, _) = encoding.encode(text);
            let read = decode(&bytes, "text/html", Unnamed::Guess(Some(domain)));
            assert_eq!(read, (text.to_owned(), false), "{}", encoding.name());
        }
        assert_eq!(
            decode(b"a\xff", "text/plain", Unnamed::Utf8),
            ("a\u{fffd}".into(), true)
        );
        assert_eq!(
            decode("é".as_bytes(), "text/plain", Unnamed::Utf8),
            ("é".into(), false)
        );
        // A character that was cut at the end does not make it another encoding.
        assert!(read(&"größer é".as_bytes()[.."größer é".len() - 1], "text/html").starts_with("größer "));
    }
}
