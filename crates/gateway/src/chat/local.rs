//! The local tools of a chat.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context as _;
use toolgate_client::plugins::fs::Access;
use toolgate_client::plugins::mcp::McpServer;
use toolgate_client::plugins::package::{self, CuratorKeys, Mode, Trust};
use toolgate_client::plugins::{fs, sqlite, time};
use toolgate_client::{Client, Plugin};
use toolgate_engine::clock::{Clock as _, SystemClock};

/// The value of `--plugin`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginFlag {
    /// Files below a directory.
    Fs(PathBuf, Access),
    /// A database, read-only.
    Sqlite(PathBuf),
    /// The time of day.
    Time,
    /// A plugin package. It need not be signed, because a person has named the file; a signature that it has must hold.
    Package(PathBuf),
}

impl FromStr for PluginFlag {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("fs", path)) if !path.is_empty() => Ok(Self::Fs(path.into(), Access::Write)),
            Some(("fs-read", path)) if !path.is_empty() => Ok(Self::Fs(path.into(), Access::Read)),
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            Some(("package", path)) if !path.is_empty() => Ok(Self::Package(path.into())),
            None if text == "time" => Ok(Self::Time),
            _ => Err("expected fs:DIR, fs-read:DIR, sqlite:FILE, package:FILE or time".into()),
        }
    }
}

impl PluginFlag {
    fn plugin(&self, curators: &CuratorKeys) -> anyhow::Result<Plugin> {
        match self {
            Self::Fs(root, access) => fs::plugin(root, *access)
                .with_context(|| format!("cannot share the directory {}", root.display())),
            Self::Sqlite(file) => {
                sqlite::plugin(file).with_context(|| format!("cannot read the database {}", file.display()))
            }
            Self::Time => Ok(time::plugin()),
            Self::Package(path) => {
                let failed = || format!("cannot load the package {}", path.display());
                let document = std::fs::read(path).with_context(failed)?;
                let trust = Trust {
                    curators: curators.clone(),
                    mode: Mode::Development,
                    ..Trust::default()
                };
                package::plugin(&document, &trust, SystemClock.now()).with_context(failed)
            }
        }
    }
}

/// The value of `--mcp`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpFlag {
    /// A program and its arguments.
    Command(String, Vec<String>),
    /// A URL.
    Url(String),
}

impl FromStr for McpFlag {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("http://") || text.starts_with("https://") {
            return Ok(Self::Url(text.into()));
        }
        let mut words = shlex::split(text).ok_or("a quote is not closed")?.into_iter();
        let program = words.next().ok_or("expected a command or a URL")?;
        Ok(Self::Command(program, words.collect()))
    }
}

impl McpFlag {
    fn server(&self) -> McpServer {
        match self {
            Self::Command(program, arguments) => McpServer::command(self.name(), program, arguments),
            Self::Url(url) => McpServer::http(self.name(), url),
        }
    }

    /// The server's name in tool names: the program without its usual prefixes, or the host.
    fn name(&self) -> String {
        match self {
            Self::Command(program, _) => {
                let file = program.rsplit('/').next().unwrap_or(program);
                file.trim_start_matches("mcp-server-").to_owned()
            }
            Self::Url(url) => {
                let host = url.split("://").nth(1).unwrap_or(url);
                host.split(['/', ':', '?']).next().unwrap_or(host).to_owned()
            }
        }
    }
}

/// Registers the local tools, restricted to `--tools`; returns warnings.
pub async fn register_local_tools(
    client: &Client,
    (plugins, servers): (&[PluginFlag], &[McpFlag]),
    only: &[String],
    curators: &CuratorKeys,
) -> anyhow::Result<Vec<String>> {
    let mut brought = plugins
        .iter()
        .map(|flag| flag.plugin(curators))
        .collect::<anyhow::Result<Vec<Plugin>>>()?;
    let mut warnings = Vec::new();
    for flag in servers {
        let bridge = flag.server().connect().await?;
        warnings.extend(
            bridge
                .warnings
                .into_iter()
                .map(|warning| format!("{}: {warning}", flag.name())),
        );
        brought.push(bridge.plugin);
    }
    let known: Vec<&str> = brought
        .iter()
        .flat_map(Plugin::definitions)
        .map(|tool| tool.name.as_str())
        .collect();
    if let Some(unknown) = only.iter().find(|name| !known.contains(&name.as_str())) {
        anyhow::bail!(
            "--tools names {unknown:?}, which is not a local tool, expected some of: {}",
            known.join(", ")
        );
    }
    for plugin in brought {
        let chosen = |name: &str| only.is_empty() || only.iter().any(|chosen| chosen == name);
        client.use_plugin(plugin.only(chosen)).await?;
    }
    Ok(warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_read_and_what_is_none_is_refused() {
        assert_eq!("fs:a:b".parse(), Ok(PluginFlag::Fs("a:b".into(), Access::Write)));
        assert_eq!("fs-read:.".parse(), Ok(PluginFlag::Fs(".".into(), Access::Read)));
        assert_eq!("time".parse(), Ok(PluginFlag::Time));
        assert_eq!("package:a.json".parse(), Ok(PluginFlag::Package("a.json".into())));
        for wrong in ["", "fs", "fs:", "sqlite:", "time:now", "shell:/"] {
            assert!(wrong.parse::<PluginFlag>().is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn tools_that_were_not_chosen_do_not_run_here_either() {
        let directory = tempfile::tempdir().unwrap();
        let client = Client::builder("http://127.0.0.1:9").build().unwrap();
        let flags = [PluginFlag::Fs(directory.path().into(), Access::Write)];
        let only = ["read_file".to_owned()];
        let nobody = CuratorKeys::default();
        register_local_tools(&client, (&flags, &[]), &only, &nobody)
            .await
            .unwrap();
        assert!(client.has_tool("read_file") && !client.has_tool("write_file"));
        let other = Client::builder("http://127.0.0.1:9").build().unwrap();
        let unknown = register_local_tools(&other, (&flags, &[]), &["fly".to_owned()], &nobody)
            .await
            .unwrap_err();
        assert!(unknown.to_string().contains("write_file"), "{unknown}");
    }

    #[test]
    fn servers_are_split_like_a_shell_does_and_named_after_their_program() {
        let server: McpFlag = "/opt/mcp-server-git --repository 'my dir'".parse().unwrap();
        assert_eq!(
            server,
            McpFlag::Command(
                "/opt/mcp-server-git".into(),
                vec!["--repository".into(), "my dir".into()]
            )
        );
        assert_eq!(server.name(), "git");
        let url: McpFlag = "https://tools.example.com:8080/mcp".parse().unwrap();
        assert_eq!(url.name(), "tools.example.com");
        for wrong in ["", "'open"] {
            assert!(wrong.parse::<McpFlag>().is_err(), "{wrong}");
        }
    }
}
