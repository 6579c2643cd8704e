//! `toolgate plugin new`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::json;
use toolgate_kernel::name::NAME_CHARS_MAX;
use toolgate_package::PluginId;

use super::file::FILE;
use crate::output;

const CODE: &str =
    "// The body of an async function: `args` is the input, and what is returned is the output.
const name = args.name ?? 'world';
return { greeting: `Hello, ${name}!` };
";

#[derive(Debug, Args)]
pub struct New {
    /// Id of the plugin, and name of the folder that is made: a-z, 0-9 and -
    name: String,
}

impl New {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let id: PluginId = self.name.parse()?;
        let folder = PathBuf::from(id.as_str());
        if folder.exists() {
            bail!(
                "{} is there already; choose another name, or remove it first",
                folder.display()
            );
        }
        let tool = tool_name(&id);
        let document = json!({
            "$schema": "urn:toolgate:schema:plugin:1",
            "id": id,
            "name": id,
            "version": "0.1.0",
            "description": "Greets people.",
            "engine": ">=0.1",
            "permissions": [],
            "tools": [{
                "name": tool,
                "description": "Greets somebody by name. Use it when the user wants to be greeted.",
                "parameters": {
                    "type": "object",
                    "properties": { "name": { "type": "string", "description": "Who is greeted." } },
                    "additionalProperties": false,
                },
                "timeout": "5s",
                "retry": "safe",
                "executorFile": "hello.js",
            }],
        });
        std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        std::fs::write(
            folder.join(FILE),
            format!("{}\n", serde_json::to_string_pretty(&document)?),
        )?;
        std::fs::write(folder.join("hello.js"), CODE)?;
        output::print(&format!(
            "made {id}/{FILE} and {id}/hello.js\n\n\
             check it   toolgate plugin verify {id} --unsigned\n\
             try it     toolgate plugin run {id} {tool} '{{\"name\": \"Ada\"}}'\n\
             sign it    toolgate plugin keygen && toolgate plugin sign {id} --key curator.key.pem --curator YOUR-NAME\n"
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A tool's name that begins with the plugin's id, as far as there is room: tools of two plugins have different names.
fn tool_name(id: &PluginId) -> String {
    const ENDING: &str = "_hello";
    let room = NAME_CHARS_MAX - ENDING.len() - 1;
    let stem: String = id.as_str().replace('-', "_").chars().take(room).collect();
    // A name may not begin with a digit.
    let first = match stem.starts_with(|first: char| first.is_ascii_digit()) {
        true => "_",
        false => "",
    };
    format!("{first}{stem}{ENDING}")
}
