//! Agents as files: JSON as the HTTP door takes it, or Markdown with front matter.
//!
//! `written` reads a file, `markdown` what is particular to Markdown, `place` finds the lines of problems, and
//! `folder` keeps the agents of a folder as its files say.

mod folder;
mod markdown;
mod place;
mod written;

pub use folder::{Folder, is_about_the_folder, text};
pub use written::{FILE_BYTES_MAX, Fault, Written};
