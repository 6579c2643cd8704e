//! Character encoding: by the byte order mark, the declared charset, the page's `<meta>` element, or else
//! UTF-8.

use encoding_rs::{Encoding, UTF_8};

/// Bytes of a page in which its `<meta>` charset is looked for.
const META_BYTES: usize = 1_024;

/// The decoded text, and whether some characters could not be decoded.
pub(super) fn decode(bytes: &[u8], kind: &str) -> (String, bool) {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(META_BYTES)]).to_ascii_lowercase();
    let said = named(&kind.to_ascii_lowercase()).or_else(|| named(&start));
    let (text, _, damaged) = said.unwrap_or(UTF_8).decode(bytes);
    (text.into_owned(), damaged)
}

fn named(text: &str) -> Option<&'static Encoding> {
    let (_, label) = text.split_once("charset=")?;
    let label = label.trim_start_matches(['"', '\'']);
    let end = label.find(|c: char| c.is_whitespace() || "\"';/>".contains(c));
    Encoding::for_label(&label.as_bytes()[..end.unwrap_or(label.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_as_they_were_written() {
        let read = |bytes: &[u8], kind: &str| decode(bytes, kind).0;
        assert_eq!(read(b"\xe9tage", "text/html; charset=ISO-8859-1"), "étage");
        let page = b"<meta charset='windows-1252'>\x80";
        assert_eq!(read(page, "text/html"), "<meta charset='windows-1252'>€");
        assert_eq!(read(b"\xef\xbb\xbfx", "text/html; charset=latin1"), "x");
        assert_eq!(decode("é".as_bytes(), "text/plain"), ("é".into(), false));
        assert_eq!(decode(b"a\xff", "text/plain"), ("a\u{fffd}".into(), true));
    }
}
