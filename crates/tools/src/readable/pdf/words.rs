//! Follows the drawing of pages, and keeps the words.

use std::collections::HashMap;

use lopdf::content::{Content, Operation};
use lopdf::{DecompressError, Dictionary, Document, Error, Object, ObjectId};

use super::STREAM_BYTES_MAX;
use super::font::{Font, Said};
use crate::readable::TEXT_BYTES_MAX;

/// Drawing operations of a whole document.
const OPERATIONS_MAX: usize = 2_000_000;
/// Drawings inside of drawings.
const DEPTH_MAX: usize = 8;
/// States that a drawing keeps to come back to.
const STATES_MAX: usize = 256;
/// Nodes above a page.
const PARENTS_MAX: usize = 32;
/// A gap between words, in heights of a letter; and a step back that begins a new column.
const GAP: f32 = 0.15;
const BACK: f32 = -1.0;
/// How far down the pen goes for a new line and for a new paragraph, in heights of a letter.
const LINE: f32 = 0.4;
const PARAGRAPH: f32 = 1.75;

/// A document has more words than are read, or takes more work.
#[derive(Debug, PartialEq)]
pub(super) struct Full;

/// The words so far.
pub(super) struct Words<'d> {
    document: &'d Document,
    text: String,
    operations: usize,
    /// How fonts write letters, by where their dictionaries are.
    fonts: HashMap<*const Dictionary, Option<Font<'d>>>,
    /// Where the last words ended.
    last: Option<Place>,
}

/// A place on a page, and the height of letters there.
struct Place {
    right: f32,
    up: f32,
    letters: f32,
}

/// How the pen is held. Matrices are as PDF writes them.
#[derive(Clone)]
struct Pen {
    page: [f32; 6],
    font: Option<*const Dictionary>,
    size: f32,
    leading: f32,
    /// What is added behind each letter, and behind each space.
    spacing: f32,
    word_spacing: f32,
}

const UNMOVED: [f32; 6] = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

impl<'d> Words<'d> {
    pub fn new(document: &'d Document) -> Self {
        Self {
            document,
            text: String::new(),
            operations: 0,
            fonts: HashMap::new(),
            last: None,
        }
    }

    pub fn into_text(self) -> String {
        self.text.trim().to_owned()
    }

    /// Adds the words of a page. One that cannot be read has none.
    pub fn read_page(&mut self, page: ObjectId) -> Result<(), Full> {
        let resources = self.resources(page);
        self.paragraph();
        self.last = None;
        match self.document.get_page_content_with_limit(page, STREAM_BYTES_MAX) {
            Ok(drawing) => self.follow(&drawing, &resources, UNMOVED, 0),
            Err(Error::Decompress(DecompressError::MemoryLimitExceeded { .. })) => Err(Full),
            Err(_) => Ok(()),
        }
    }

    /// What a page and the nodes above it have, nearest first.
    fn resources(&self, page: ObjectId) -> Vec<&'d Dictionary> {
        let above = |node: &&'d Dictionary| {
            let parent = node.get(b"Parent").and_then(Object::as_reference).ok()?;
            self.document.get_dictionary(parent).ok()
        };
        let nodes = std::iter::successors(self.document.get_dictionary(page).ok(), above);
        let resources = nodes.take(PARENTS_MAX);
        resources
            .filter_map(|node| self.document.get_dict_in_dict(node, b"Resources").ok())
            .collect()
    }

    fn follow(
        &mut self,
        drawing: &[u8],
        resources: &[&'d Dictionary],
        page: [f32; 6],
        depth: usize,
    ) -> Result<(), Full> {
        let mut pen = Pen {
            page,
            font: None,
            size: 1.0,
            leading: 0.0,
            spacing: 0.0,
            word_spacing: 0.0,
        };
        let mut kept: Vec<Pen> = Vec::new();
        // Where the line began, and where the pen is.
        let (mut line, mut at) = (UNMOVED, UNMOVED);
        for operation in Content::decode_iter(drawing) {
            // What comes behind a fault cannot be told from noise.
            let Ok(Operation { operator, operands }) = operation else {
                return Ok(());
            };
            self.operations += 1;
            if self.operations > OPERATIONS_MAX || self.text.len() > TEXT_BYTES_MAX {
                return Err(Full);
            }
            let number = |index: usize| {
                let operand = operands.get(index);
                operand
                    .and_then(|operand| operand.as_float().ok())
                    .unwrap_or_default()
            };
            let matrix = || std::array::from_fn(number);
            match operator.as_str() {
                "q" if kept.len() < STATES_MAX => kept.push(pen.clone()),
                "Q" => pen = kept.pop().unwrap_or(pen),
                "cm" => pen.page = after(matrix(), pen.page),
                "BT" => (line, at) = (UNMOVED, UNMOVED),
                "Tf" => {
                    let name = operands.first().and_then(|name| name.as_name().ok());
                    pen.font = name.and_then(|name| self.font(name, resources));
                    pen.size = number(1);
                }
                "TL" => pen.leading = number(0),
                "Tc" => pen.spacing = number(0),
                "Tw" => pen.word_spacing = number(0),
                "Tm" => line = matrix(),
                "Td" => line = step(line, number(0), number(1)),
                "TD" => {
                    pen.leading = -number(1);
                    line = step(line, number(0), number(1));
                }
                "T*" => line = step(line, 0.0, -pen.leading),
                "Tj" | "TJ" => at = self.write(&operands, &pen, at),
                "'" | "\"" => {
                    line = step(line, 0.0, -pen.leading);
                    let text = operands.last().map(std::slice::from_ref).unwrap_or_default();
                    at = self.write(text, &pen, line);
                }
                "Do" if depth < DEPTH_MAX => self.drawing(&operands, resources, pen.page, depth)?,
                _ => {}
            }
            if matches!(operator.as_str(), "Tm" | "Td" | "TD" | "T*") {
                at = line;
            }
        }
        Ok(())
    }

    /// A drawing that is used in a drawing.
    fn drawing(
        &mut self,
        operands: &[Object],
        resources: &[&'d Dictionary],
        page: [f32; 6],
        depth: usize,
    ) -> Result<(), Full> {
        let name = operands.first().and_then(|name| name.as_name().ok());
        let Some(object) = name.and_then(|name| self.resource(b"XObject", name, resources)) else {
            return Ok(());
        };
        let Ok(stream) = object.as_stream() else {
            return Ok(());
        };
        if stream.dict.get(b"Subtype").and_then(Object::as_name).ok() != Some(b"Form") {
            return Ok(());
        }
        let own = self.document.get_dict_in_dict(&stream.dict, b"Resources").ok();
        let resources: Vec<&Dictionary> = own.into_iter().chain(resources.iter().copied()).collect();
        let placed = stream.dict.get(b"Matrix").and_then(Object::as_array).ok();
        let placed = placed.map_or(UNMOVED, |placed| {
            std::array::from_fn(|index| {
                placed
                    .get(index)
                    .and_then(|n| n.as_float().ok())
                    .unwrap_or_default()
            })
        });
        match stream.get_plain_content_with_limit(STREAM_BYTES_MAX) {
            Ok(drawing) => self.follow(&drawing, &resources, after(placed, page), depth + 1),
            Err(_) => Ok(()),
        }
    }

    /// Writes words where the pen is; gives where it is then.
    fn write(&mut self, operands: &[Object], pen: &Pen, at: [f32; 6]) -> [f32; 6] {
        let Some(Some(font)) = pen.font.and_then(|font| self.fonts.get(&font)) else {
            return at;
        };
        let mut said = Said::default();
        font.say(operands, &mut said);
        let width =
            said.width / 1_000.0 * pen.size + said.codes * pen.spacing + said.spaces * pen.word_spacing;
        let behind = step(at, width, 0.0);
        if said.text.is_empty() {
            return behind;
        }
        let (start, end) = (after(at, pen.page), after(behind, pen.page));
        let letters = (pen.size * start[2].hypot(start[3])).abs();
        self.part(start[4], start[5], letters);
        self.last = Some(Place {
            right: end[4],
            up: end[5],
            letters,
        });
        let blank = self.text.is_empty() || self.text.ends_with(char::is_whitespace);
        let text = if blank {
            said.text.trim_start_matches(' ')
        } else {
            &said.text
        };
        self.text.push_str(text);
        behind
    }

    /// Puts between the last words and those at this place what the eye sees there.
    fn part(&mut self, right: f32, up: f32, letters: f32) {
        let Some(last) = &self.last else {
            return self.paragraph();
        };
        let height = last.letters.max(letters).max(f32::MIN_POSITIVE);
        let (down, gap) = ((last.up - up).abs() / height, (right - last.right) / height);
        if down > PARAGRAPH {
            self.paragraph();
        } else if down > LINE {
            self.end_with("\n");
        } else if !(BACK..=GAP).contains(&gap) {
            self.space();
        }
    }

    fn space(&mut self) {
        if !self.text.ends_with(char::is_whitespace) && !self.text.is_empty() {
            self.text.push(' ');
        }
    }

    fn paragraph(&mut self) {
        if !self.text.is_empty() {
            self.end_with("\n\n");
        }
    }

    fn end_with(&mut self, end: &str) {
        self.text.truncate(self.text.trim_end().len());
        self.text.push_str(end);
    }

    /// Learns a font.
    fn font(&mut self, name: &[u8], resources: &[&'d Dictionary]) -> Option<*const Dictionary> {
        let font = self.resource(b"Font", name, resources)?.as_dict().ok()?;
        let learn = || Font::read(self.document, font);
        self.fonts.entry(std::ptr::from_ref(font)).or_insert_with(learn);
        Some(font)
    }

    fn resource(&self, kind: &[u8], name: &[u8], resources: &[&'d Dictionary]) -> Option<&'d Object> {
        resources.iter().find_map(|resources| {
            let named = self.document.get_dict_in_dict(resources, kind).ok()?;
            let (_, object) = self.document.dereference(named.get(name).ok()?).ok()?;
            Some(object)
        })
    }
}

/// Where `first` leads when it stands inside of `then`.
fn after(first: [f32; 6], then: [f32; 6]) -> [f32; 6] {
    let [a, b, c, d, e, f] = first;
    let [g, h, i, j, k, l] = then;
    [
        a * g + b * i,
        a * h + b * j,
        c * g + d * i,
        c * h + d * j,
        e * g + f * i + k,
        e * h + f * j + l,
    ]
}

fn step(line: [f32; 6], right: f32, up: f32) -> [f32; 6] {
    after([1.0, 0.0, 0.0, 1.0, right, up], line)
}
