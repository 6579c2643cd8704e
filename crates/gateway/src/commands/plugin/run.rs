//! `toolgate plugin run`: tries a tool of a local package in the sandbox.

mod host;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;
use toolgate_fair::Share;
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::schema::{Profile, Validator};
use toolgate_package::{Package, PackageTool};
use toolgate_sandbox::{Job, JobLimits, Sandbox, SandboxOptions};

use super::file::Source;
use crate::output;
use host::LocalHost;

/// Largest input that is read from standard input.
const INPUT_BYTES_MAX: u64 = 1 << 20;
/// How often the files are looked at with `--watch`.
const WATCH_INTERVAL: Duration = Duration::from_millis(300);
/// The one who types is the only one.
const NOBODY: Share = Share {
    tenant: 0,
    user: None,
};

#[derive(Debug, Args)]
pub struct Run {
    /// Package file, or a folder with a plugin.json
    file: PathBuf,
    /// Name of the tool [default: the only one]
    tool: Option<String>,
    /// Input as a JSON object; `-` reads it from standard input [default: {}]
    input: Option<String>,
    /// Run it again whenever a file of the package changes
    #[arg(long)]
    watch: bool,
    /// Let fetch reach this host or address although it is not on the public internet; may be given several times
    #[arg(long, value_name = "HOST[:PORT]")]
    allow: Vec<String>,
}

impl Run {
    /// Prints the output; what the code logs goes to standard error. The exit code is 0 if there is an output.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(self.try_out())
    }

    async fn try_out(self) -> anyhow::Result<ExitCode> {
        let input = read_input(self.input.as_deref())?;
        let program = std::env::current_exe().context("the program does not know where it is")?;
        let sandbox = Sandbox::new(program, SandboxOptions::default());
        let host = Arc::new(LocalHost::new(&self.allow)?);
        loop {
            // Of before it is read: a change during the run is not missed.
            let seen = Seen::of(&self.file);
            let tried = self.once(&sandbox, &host, &input).await;
            if !self.watch {
                return tried.map(|()| ExitCode::SUCCESS);
            }
            if let Err(error) = tried {
                eprintln!("error: {error:#}");
            }
            eprintln!("waiting for changes; Ctrl-C ends");
            while seen == Seen::of(&self.file) {
                tokio::time::sleep(WATCH_INTERVAL).await;
            }
        }
    }

    async fn once(&self, sandbox: &Sandbox, host: &Arc<LocalHost>, input: &Value) -> anyhow::Result<()> {
        let package = Source::read(&self.file)?.package()?;
        let tool = chosen(&package, self.tool.as_deref())?;
        if let Some(schema) = tool.definition.get("parameters") {
            check(schema, input, "the input does not fit the parameters")?;
        }
        let wall = timeout(tool).unwrap_or(JobLimits::default().wall);
        let job = Job {
            share: NOBODY,
            owner: *package.hash().as_bytes(),
            code: tool.executor_code.clone(),
            args: input.into(),
            limits: JobLimits {
                wall,
                ..JobLimits::default()
            },
        };
        let started = std::time::Instant::now();
        let permitted = Arc::new(host.permit(package.permissions()));
        let output = sandbox.run(job, permitted).await?;
        let output = output.to_value();
        if let Some(schema) = tool.definition.get("outputSchema") {
            check(schema, &output, "the output does not fit the outputSchema")?;
        }
        eprintln!("{} gave this in {} ms", tool.name, started.elapsed().as_millis());
        output::print(&format!("{}\n", serde_json::to_string_pretty(&output)?))?;
        Ok(())
    }
}

/// The tool that is meant.
fn chosen<'p>(package: &'p Package, name: Option<&str>) -> anyhow::Result<&'p PackageTool> {
    let names = || {
        let names: Vec<&str> = package.tools().iter().map(|tool| tool.name.as_str()).collect();
        names.join(", ")
    };
    match (name, package.tools()) {
        (None, [only]) => Ok(only),
        (None, _) => bail!("say which tool to run; there are: {}", names()),
        (Some(name), tools) => tools
            .iter()
            .find(|tool| tool.name.as_str() == name)
            .with_context(|| format!("there is no tool {name:?}; there are: {}", names())),
    }
}

fn read_input(input: Option<&str>) -> anyhow::Result<Value> {
    let text = match input {
        None => "{}".to_owned(),
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().take(INPUT_BYTES_MAX).read_to_string(&mut text)?;
            text
        }
        Some(text) => text.to_owned(),
    };
    let value: Value = serde_json::from_str(&text).context("the input is not JSON")?;
    match value.is_object() {
        true => Ok(value),
        false => bail!("the input of a tool is an object such as {{\"name\": \"Ada\"}}"),
    }
}

fn check(schema: &Value, value: &Value, what: &str) -> anyhow::Result<()> {
    let told = |problems: Vec<Problem>| {
        let lines: Vec<String> = problems
            .iter()
            .map(|problem| format!("  {} {}", problem.pointer, problem.message))
            .collect();
        anyhow::anyhow!("{what}\n{}", lines.join("\n"))
    };
    let validator = Validator::compile(&Json::from(schema), Profile::Trusted, "").map_err(told)?;
    let problems = validator.check(value);
    match problems.is_empty() {
        true => Ok(()),
        false => Err(told(problems)),
    }
}

/// The time-out of a definition: seconds, or a text with a unit. It was checked when the package was read.
fn timeout(tool: &PackageTool) -> Option<Duration> {
    let written = tool.definition.get("timeout")?;
    if let Some(seconds) = written.as_f64() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let text = written.as_str()?;
    let (amount, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let factor = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(amount.trim().parse::<f64>().ok()? * factor).ok()
}

/// When the files of a package were changed.
#[derive(PartialEq)]
struct Seen(Vec<(PathBuf, Option<(SystemTime, u64)>)>);

impl Seen {
    fn of(file: &Path) -> Self {
        let mut files = vec![match file.is_dir() {
            true => file.join(super::file::FILE),
            false => file.to_owned(),
        }];
        // While the package cannot be read, its own file is what is going to change.
        files.extend(
            Source::read(file)
                .map(|source| source.code_files)
                .unwrap_or_default(),
        );
        let state = |path: &PathBuf| {
            let file = std::fs::metadata(path).ok()?;
            Some((file.modified().ok()?, file.len()))
        };
        Self(
            files
                .into_iter()
                .map(|path| {
                    let state = state(&path);
                    (path, state)
                })
                .collect(),
        )
    }
}
