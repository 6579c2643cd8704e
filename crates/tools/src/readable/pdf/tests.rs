//! PDFs as they come: by hand, by a browser, broken, locked, hostile.

use super::*;

macro_rules! pdf {
    ($name:literal) => {
        include_bytes!(concat!("../../../tests/fixtures/pdf/", $name, ".pdf"))
    };
}

fn refused(data: &[u8]) -> String {
    read(data).expect_err("it cannot be read").to_string()
}

const LIGHTHOUSE: &str = "The lighthouse\nIt was lit in 1811.\nIts tower is 35 m tall.";

#[test]
fn pages_lines_and_words_stay_apart() {
    let read = read(pdf!("two-pages")).unwrap();
    assert_eq!(read.text, format!("{LIGHTHOUSE}\n\nCafé on the second page"));
    assert_eq!(read.title.as_deref(), Some("Notes on a lighthouse"));
    assert!(!read.cut);
}

#[test]
fn compressed_pages_read_the_same() {
    let read = read(pdf!("compressed")).unwrap();
    assert_eq!(read.text, format!("{LIGHTHOUSE}\n\nCafé on the second page"));
    assert_eq!(read.title.as_deref(), Some("Licht 💡"));
}

#[test]
fn what_a_browser_prints_is_read() {
    let read = read(pdf!("printed")).unwrap();
    assert_eq!(read.title.as_deref(), Some("Tea & time"));
    for wanted in [
        "Überschrift — tea\n",
        "First paragraph with bold words and ligatures: office, flow.",
        "one two",
        "Second paragraph.",
    ] {
        assert!(read.text.contains(wanted), "{:?}", read.text);
    }
}

#[test]
fn a_lock_without_a_key_is_no_lock() {
    assert_eq!(read(pdf!("open-locked")).unwrap().text, LIGHTHOUSE);
    assert_eq!(refused(pdf!("locked")), "the PDF is locked with a password");
}

#[test]
fn what_has_no_words_says_so() {
    assert_eq!(
        refused(pdf!("picture")),
        "the PDF has no text; its pages may be pictures"
    );
    assert_eq!(refused(b"%PDF-1.7 and nothing more"), "the PDF is broken");
    assert_eq!(refused(b""), "the PDF is broken");
}

#[test]
fn a_stream_that_grows_without_end_is_left() {
    assert_eq!(refused(pdf!("bomb")), "the PDF holds more than can be read here");
}

#[test]
fn drawings_that_use_drawings_end() {
    assert_eq!(refused(pdf!("fan")), "the PDF holds more than can be read here");
}

#[test]
fn a_broken_file_brings_nothing_down() {
    let whole = pdf!("printed");
    // Nothing is promised of what is read; only that it ends, and by an answer.
    for at in (0..whole.len()).step_by(97) {
        let _ = read(&whole[..at]);
        let mut damaged = whole.to_vec();
        damaged[at] ^= 0x55;
        let _ = read(&damaged);
    }
}
