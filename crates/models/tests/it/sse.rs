//! The decoder of server-sent events.

use proptest::prelude::*;
use toolgate_models::sse::{Decoder, EVENT_BYTES_MAX, TooLong};

/// The events of a stream that comes in these reads.
fn decode<'b>(reads: impl IntoIterator<Item = &'b [u8]>) -> Result<Vec<Vec<u8>>, TooLong> {
    let mut decoder = Decoder::default();
    let mut events = Vec::new();
    for read in reads {
        decoder.push(read);
        while let Some(data) = decoder.next_event()? {
            events.push(data.to_vec());
        }
    }
    Ok(events)
}

fn check(stream: &str, expected: &[&str]) {
    let expected: Vec<Vec<u8>> = expected.iter().map(|event| event.as_bytes().to_vec()).collect();
    let bytes = stream.as_bytes();
    assert_eq!(decode([bytes]).unwrap(), expected, "whole");
    assert_eq!(decode(bytes.chunks(1)).unwrap(), expected, "byte by byte");
    for split in 0..=bytes.len() {
        assert_eq!(
            decode([&bytes[..split], &bytes[split..]]).unwrap(),
            expected,
            "split at {split}"
        );
    }
}

#[test]
fn an_event_ends_at_a_blank_line() {
    check("data: one\n\ndata:two\n\ndata: three", &["one", "two"]);
}

#[test]
fn lines_may_end_in_any_of_the_three_ways() {
    check(
        "data: a\r\n\r\ndata: b\r\rdata: c\n\ndata: d\r\n\n",
        &["a", "b", "c", "d"],
    );
}

#[test]
fn several_data_lines_are_one_event() {
    check("data: a\ndata:\ndata: b\ndata\n\n", &["a\n\nb\n"]);
    check("data: a\r\nid: 7\r\ndata:  b\r\n\r\n", &["a\n b"]);
}

#[test]
fn names_ids_comments_and_empty_events_are_skipped() {
    check(
        ": hello\n\nevent: ping\nid: 1\nretry: 5\n\ndata\n\ndatabase: x\n\nevent: x\ndata: y\n\n",
        &["y"],
    );
}

#[test]
fn a_byte_order_mark_is_skipped_at_the_start_only() {
    check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["a"]);
}

#[test]
fn text_of_several_bytes_survives_any_split() {
    check("data: {\"t\":\"grüße 🎈\"}\n\n", &["{\"t\":\"grüße 🎈\"}"]);
}

#[test]
fn an_event_that_does_not_end_is_given_up() {
    let piece = vec![b'x'; 64 << 10];
    let reads =
        std::iter::once(&b"data: "[..]).chain(std::iter::repeat_n(&piece[..], EVENT_BYTES_MAX / piece.len()));
    assert_eq!(decode(reads), Err(TooLong));
    let lines = std::iter::repeat_n(
        &b"data: 0123456789abcdef0123456789abcdef\n"[..],
        EVENT_BYTES_MAX / 32,
    );
    assert_eq!(decode(lines), Err(TooLong));
}

#[test]
fn many_events_in_one_read_are_not_one_long_event() {
    let event = [b"data: ", &vec![b'x'; 1 << 20][..], b"\n\n"].concat();
    assert_eq!(decode([&event.repeat(8)[..]]).unwrap().len(), 8);
}

proptest! {
    #[test]
    fn any_bytes_in_any_split_give_the_same_events(
        bytes in proptest::collection::vec(
            prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(b' '), Just(b'd'), Just(b'a'), Just(b't'), any::<u8>()],
            0..400,
        ),
        cuts in proptest::collection::vec(0usize..400, 0..12),
    ) {
        prop_assert_eq!(decode([&bytes[..]]), decode(split(&bytes, &cuts)));
    }

    #[test]
    fn lines_in_any_split_give_the_same_events(
        lines in proptest::collection::vec("(data(: ?[a-z\u{e9}]{0,6})?|:[a-z]{0,4}|event: x|)(\n|\r|\r\n)", 0..40),
        cuts in proptest::collection::vec(0usize..400, 0..12),
    ) {
        let bytes = lines.concat().into_bytes();
        prop_assert_eq!(decode([&bytes[..]]), decode(split(&bytes, &cuts)));
    }
}

fn split<'b>(bytes: &'b [u8], cuts: &[usize]) -> Vec<&'b [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| *cut.min(&bytes.len())).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}
