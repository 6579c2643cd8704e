//! The words of a PDF, in the order in which they are drawn: page after page, a line for each line.

mod font;
mod words;

use lopdf::{DecompressError, Document, Error, LoadOptions, Object};

use super::{Readable, Unreadable};
use words::{Full, Words};

/// Pages that are read.
const PAGES_MAX: usize = 2_000;
/// What a single compressed stream may become.
const STREAM_BYTES_MAX: usize = 32 << 20;

pub(super) fn read(data: &[u8]) -> Result<Readable, Unreadable> {
    let options = LoadOptions::with_max_decompressed_size(STREAM_BYTES_MAX);
    let mut document = Document::load_mem_with_options(data, options).map_err(unfit)?;
    if document.is_encrypted() {
        return Err(locked());
    }
    trust_unicode(&mut document);
    let mut words = Words::new(&document);
    let mut cut = false;
    for (number, page) in document.page_iter().enumerate() {
        if number == PAGES_MAX || words.read_page(page) == Err(Full) {
            cut = true;
            break;
        }
    }
    let text = words.into_text();
    if text.is_empty() {
        let words = match cut {
            true => "the PDF holds more than can be read here",
            false => "the PDF has no text; its pages may be pictures",
        };
        return Err(Unreadable::Unfit(words.into()));
    }
    Ok(Readable {
        title: title(&document),
        text,
        cut,
        damaged: false,
    })
}

/// What a font says of the letters that its codes mean counts more than how it names them.
fn trust_unicode(document: &mut Document) {
    for object in document.objects.values_mut() {
        if let Object::Dictionary(font) = object
            && font.has_type(b"Font")
            && font.has(b"ToUnicode")
        {
            font.remove(b"Encoding");
        }
    }
}

fn title(document: &Document) -> Option<String> {
    let info = document.get_dict_in_dict(&document.trailer, b"Info").ok()?;
    let (_, title) = document.dereference(info.get(b"Title").ok()?).ok()?;
    let title = lopdf::decode_text_string(title).ok()?;
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    (!title.is_empty()).then_some(title)
}

fn locked() -> Unreadable {
    Unreadable::Unfit("the PDF is locked with a password".into())
}

fn unfit(error: Error) -> Unreadable {
    match error {
        Error::InvalidPassword | Error::Decryption(_) => locked(),
        Error::Decompress(DecompressError::MemoryLimitExceeded { .. }) => Unreadable::Unfit(format!(
            "the PDF has a part that would become larger than {STREAM_BYTES_MAX} bytes"
        )),
        _ => Unreadable::Unfit("the PDF is broken".into()),
    }
}

#[cfg(test)]
mod tests;
