//! Fonts, as far as words go: which letters codes mean, and how wide they are.

use std::collections::HashMap;

use lopdf::{Dictionary, Document, Encoding, Object};

use super::STREAM_BYTES_MAX;

/// Width of letters that a font says nothing of, in thousandths of their height.
const WIDTH: f32 = 500.0;
/// Width of what a font with two-byte codes says nothing of.
const WIDTH_OF_TWO: f32 = 1_000.0;
/// A step of the pen, in thousandths of a letter's height, that means a space between words.
const SPACE: f32 = -180.0;

/// A font of a document.
pub(super) struct Font<'d> {
    encoding: Encoding<'d>,
    code_bytes: usize,
    widths: HashMap<u32, f32>,
    width: f32,
}

/// What was written with a font.
#[derive(Default)]
pub(super) struct Said {
    pub text: String,
    /// How far the pen went, in thousandths of a letter's height.
    pub width: f32,
    /// Letters, and spaces among them.
    pub codes: f32,
    pub spaces: f32,
}

impl<'d> Font<'d> {
    pub fn read(document: &'d Document, font: &'d Dictionary) -> Option<Self> {
        let encoding = font
            .get_font_encoding_with_limit(document, STREAM_BYTES_MAX)
            .ok()?;
        let below = array(document, font, b"DescendantFonts").and_then(|fonts| fonts.first());
        let below = below.and_then(|font| document.dereference(font).ok()?.1.as_dict().ok());
        Some(match below {
            Some(below) => Self {
                encoding,
                code_bytes: 2,
                widths: array(document, below, b"W").map_or_else(HashMap::new, |list| ranges(document, list)),
                width: number(below.get(b"DW").ok()).unwrap_or(WIDTH_OF_TWO),
            },
            None => {
                let first = number(font.get(b"FirstChar").ok()).unwrap_or_default() as u32;
                let listed = array(document, font, b"Widths").map_or(&[][..], Vec::as_slice);
                let listed = (first..).zip(listed);
                Self {
                    encoding,
                    code_bytes: 1,
                    widths: listed
                        .filter_map(|(code, width)| Some((code, number(Some(width))?)))
                        .collect(),
                    width: WIDTH,
                }
            }
        })
    }

    /// Writes what a drawing says: texts, and steps between them.
    pub fn say(&self, operands: &[Object], said: &mut Said) {
        for operand in operands {
            match operand {
                Object::String(codes, _) => {
                    // Letters that the font does not know are left out.
                    let _ = self.encoding.write_to_string(codes, &mut said.text);
                    for code in codes.chunks(self.code_bytes) {
                        let code = code.iter().fold(0, |code, byte| (code << 8) | u32::from(*byte));
                        said.width += self.widths.get(&code).copied().unwrap_or(self.width);
                        said.codes += 1.0;
                        said.spaces += f32::from(u8::from(self.code_bytes == 1 && code == 32));
                    }
                }
                Object::Array(parts) => self.say(parts, said),
                step => {
                    let step = number(Some(step)).unwrap_or_default();
                    said.width -= step;
                    if step < SPACE && !said.text.ends_with(' ') {
                        said.text.push(' ');
                    }
                }
            }
        }
    }
}

/// Widths of codes: `first [width…]` or `first last width`, one after the other.
fn ranges(document: &Document, list: &[Object]) -> HashMap<u32, f32> {
    const CODE_MAX: u32 = 0xffff;
    let mut widths = HashMap::new();
    let mut rest = list.iter();
    while let (Some(first), Some(next)) = (rest.next(), rest.next()) {
        let first = number(Some(first)).unwrap_or_default() as u32;
        match document.dereference(next) {
            Ok((_, Object::Array(listed))) => {
                let listed = (first..=CODE_MAX).zip(listed);
                widths.extend(listed.filter_map(|(code, width)| Some((code, number(Some(width))?))));
            }
            Ok((_, last)) => {
                let last = (number(Some(last)).unwrap_or_default() as u32).min(CODE_MAX);
                let width = number(rest.next()).unwrap_or(WIDTH_OF_TWO);
                widths.extend((first..=last).map(|code| (code, width)));
            }
            Err(_) => break,
        }
    }
    widths
}

fn array<'d>(document: &'d Document, of: &'d Dictionary, key: &[u8]) -> Option<&'d Vec<Object>> {
    let (_, array) = document.dereference(of.get(key).ok()?).ok()?;
    array.as_array().ok()
}

fn number(object: Option<&Object>) -> Option<f32> {
    object?.as_float().ok()
}
