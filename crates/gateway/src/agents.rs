//! Agents as files: JSON as the HTTP API accepts it, or Markdown with front matter.
//!
//! `agent_file` reads a file, `markdown` the Markdown form, `lines` maps JSON pointers to lines, and `folder`
//! keeps the project's agents in step with the files of a folder.

mod agent_file;
mod folder;
mod lines;
mod markdown;

pub use agent_file::{AgentFile, FILE_BYTES_MAX, Fault};
pub use folder::{Folder, agent_files, is_folder_readme, text};
