//! What is said of a server: how to reach it, and how far it is trusted. Read in one way from the settings file, from a
//! request and from an agent's configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use toolgate_kernel::agent::{Access, GROUP_CHARS_MAX};
use toolgate_kernel::members::Members;
use toolgate_kernel::problem::{Problem, Problems};
use toolgate_worker::ConfinedFiles;
use url::Url;

use crate::oauth::{Auth, SECRETS};

/// Longest name of a server.
pub(crate) const NAME_CHARS_MAX: usize = 32;
/// Stands for the values of headers and variables wherever a server is shown.
const MASK: &str = "***";
const TEXT_CHARS_MAX: usize = 4_096;
const ARGUMENTS_MAX: usize = 100;
const VARIABLES_MAX: usize = 100;
const HEADERS_MAX: usize = 50;
const TOOLS_MAX: usize = 500;
const TIMEOUT_SECONDS_MAX: u64 = 24 * 3600;
const TIMEOUT_SECONDS: u64 = 60;
const QUESTION_SECONDS_MAX: u64 = 30 * 24 * 3600;
const CALLS_MAX: usize = 64;
const CALLS: usize = 8;
const GROUPS_MAX: usize = 50;
const PATHS_MAX: usize = 50;
const MEMBERS: [&str; 20] = [
    "url",
    "headers",
    "auth",
    "command",
    "args",
    "env",
    "cwd",
    "limits",
    "review",
    "approve",
    "trustAnnotations",
    "sampling",
    "tools",
    "timeout",
    "questionTimeout",
    "sandbox",
    "calls",
    "expose",
    "access",
    "type",
];

/// A server as somebody configured it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    /// How it is reached.
    pub reach: Reach,
    /// Which definitions wait for a person's yes.
    pub review: Review,
    /// Which calls wait for a person's yes.
    pub approve: Approve,
    /// What the server claims of the effects of its tools counts: read-only and idempotent ones may run again.
    pub trust_annotations: bool,
    /// The server may have a model asked.
    pub sampling: bool,
    /// The tools that are offered, by the server's names; all where nothing is said.
    pub tools: Option<BTreeSet<String>>,
    /// How long a call may take.
    pub timeout: Duration,
    /// How long people have to answer a question of the server; the engine's limit where nothing is said.
    pub question_timeout: Option<Duration>,
    /// Calls at the same time.
    pub calls: usize,
    /// Users that may reach the server as it is; none where it is not exposed.
    pub expose: Option<Access>,
}

/// How a server is reached. Values of headers and variables may name secrets: `${secret.NAME}`.
#[derive(Debug, Clone, PartialEq)]
pub enum Reach {
    /// At an address (streamable HTTP).
    Http {
        /// The address.
        url: Url,
        /// Sent with every request.
        headers: BTreeMap<String, String>,
        /// How the gateway signs in.
        auth: Auth,
    },
    /// As a child process that speaks on its standard streams.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Its variables, besides those that every program needs.
        environment: BTreeMap<String, String>,
        /// Directory that it starts in.
        directory: Option<String>,
        /// Address space of each of its processes, in bytes.
        memory_bytes: Option<u64>,
        /// CPU time of each of its processes, in seconds.
        cpu_seconds: Option<u64>,
        /// Open files of each of its processes.
        files: Option<u64>,
        /// Files that it may reach; all that the gateway's user may where nothing is said.
        sandbox: Option<ConfinedFiles>,
    },
}

/// Which definitions wait for a person's yes. A changed one always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Review {
    /// Only changed ones.
    Never,
    /// Those that try to instruct the model, too.
    #[default]
    Flagged,
    /// Every one.
    Always,
}

/// Which calls wait for a person's yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approve {
    /// No call.
    #[default]
    None,
    /// Those of tools whose server does not say that they are read-only or harmless.
    Destructive,
    /// Every call of the server's tools.
    All,
}

impl ServerConfig {
    /// Reads a configuration; gives all its problems.
    pub fn read(value: &Value, pointer: &str) -> Result<Self, Vec<Problem>> {
        let problems = Problems::default();
        let read = read(value, pointer, &problems);
        problems.or(read)
    }

    /// As people may see it: without secrets, and without the values of headers and variables.
    pub fn shown(written: &Value) -> Value {
        let mut shown = written.clone();
        for section in ["headers", "env"] {
            if let Some(Value::Object(members)) = shown.get_mut(section) {
                members.values_mut().for_each(|value| *value = MASK.into());
            }
        }
        for secret in SECRETS {
            if let Some(value) = shown.get_mut("auth").and_then(|auth| auth.get_mut(secret)) {
                *value = MASK.into();
            }
        }
        shown
    }

    /// What tells servers apart: a catalog belongs to one of these. Headers and variables may change.
    pub fn fingerprint(&self) -> String {
        let identity = match &self.reach {
            Reach::Http { url, .. } => json!({ "url": url.as_str() }),
            Reach::Command {
                program, arguments, ..
            } => json!({ "command": program, "args": arguments }),
        };
        let digest = Sha256::digest(identity.to_string());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Checks the name of a server. It is a part of the names of its tools and of addresses. The error is in words.
pub fn check_server_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(plain) {
        true => Ok(()),
        false => Err(format!(
            "{:?} is no name of a server; expected 1 to {NAME_CHARS_MAX} letters, digits, hyphens and underscores",
            name.chars().take(NAME_CHARS_MAX * 2).collect::<String>()
        )),
    }
}

fn read(value: &Value, pointer: &str, problems: &Problems) -> Option<ServerConfig> {
    let server = Members::open(value, pointer, &MEMBERS, problems)?;
    // What other programs' files say besides, and what follows from the rest.
    server.choice(
        "type",
        &[
            ("stdio", ()),
            ("http", ()),
            ("streamable-http", ()),
            ("streamableHttp", ()),
        ],
    );
    let reach = match (server.get("url"), server.get("command")) {
        (Some(_), None) => http(&server),
        (None, Some(_)) => command(&server),
        (None, None) | (Some(_), Some(_)) => {
            server.lacks(
                "expected \"url\" for a server at an address, or \"command\" for a program, one of them",
            );
            None
        }
    };
    let review = server.choice(
        "review",
        &[
            ("never", Review::Never),
            ("flagged", Review::Flagged),
            ("always", Review::Always),
        ],
    );
    let approve = server.choice(
        "approve",
        &[
            ("none", Approve::None),
            ("destructive", Approve::Destructive),
            ("all", Approve::All),
        ],
    );
    let tools = server.get("tools").map(|_| {
        let names = server.texts("tools", TOOLS_MAX, TEXT_CHARS_MAX);
        names.into_iter().collect()
    });
    let timeout = server.whole("timeout", 1..=TIMEOUT_SECONDS_MAX);
    let question_timeout = server.whole("questionTimeout", 1..=QUESTION_SECONDS_MAX);
    Some(ServerConfig {
        review: review.unwrap_or_default(),
        approve: approve.unwrap_or_default(),
        trust_annotations: server.choice_of_bool("trustAnnotations").unwrap_or_default(),
        sampling: server.choice_of_bool("sampling").unwrap_or_default(),
        tools,
        timeout: Duration::from_secs(timeout.unwrap_or(TIMEOUT_SECONDS)),
        question_timeout: question_timeout.map(Duration::from_secs),
        calls: server.whole("calls", 1..=CALLS_MAX).unwrap_or(CALLS),
        expose: expose(&server),
        reach: reach?,
    })
}

/// Whether the server is exposed as it is, and to whom besides backends.
fn expose(server: &Members<'_>) -> Option<Access> {
    let is_exposed = server.choice("expose", &[("through", ())]).is_some();
    let access = match server.get("access") {
        None => Access::Backend,
        Some(_) if !is_exposed => {
            server.wrong("access", "only a server with \"expose\": \"through\" has this");
            return None;
        }
        Some(Value::String(_)) => {
            let choices = [("backend", Access::Backend), ("public", Access::Public)];
            let chosen = server.choice("access", &[("backend", 0), ("public", 1)]);
            chosen.map_or(Access::Backend, |chosen: usize| choices[chosen].1.clone())
        }
        Some(_) => {
            let groups = server.section("access", &["groups"]);
            let groups = groups.map(|section| section.texts("groups", GROUPS_MAX, GROUP_CHARS_MAX));
            Access::Groups(groups.unwrap_or_default())
        }
    };
    is_exposed.then_some(access)
}

fn http(server: &Members<'_>) -> Option<Reach> {
    for member in ["args", "env", "cwd", "limits", "sandbox"] {
        if server.get(member).is_some() {
            server.wrong(member, "only a server with \"command\" has this");
        }
    }
    let url = server.text("url", TEXT_CHARS_MAX)?;
    let parsed = Url::parse(url).ok();
    let parsed = parsed.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if parsed.is_none() {
        server.wrong(
            "url",
            "expected an address such as \"https://mcp.example.com/mcp\"",
        );
    }
    let named = parsed
        .as_ref()
        .is_some_and(|url| !url.username().is_empty() || url.password().is_some());
    if named {
        let words =
            "an address must not hold a name or a password; send them by \"headers\" with ${secret.NAME}";
        server.wrong("url", words);
    }
    let headers = texts(server, "headers", HEADERS_MAX);
    for name in headers.keys() {
        if name.parse::<http::HeaderName>().is_err() {
            server.wrong("headers", format!("{name:?} is no name of a header"));
        }
    }
    let has_header = headers
        .keys()
        .any(|name| name.eq_ignore_ascii_case("authorization"));
    Some(Reach::Http {
        auth: Auth::read(server, has_header),
        url: parsed?,
        headers,
    })
}

fn command(server: &Members<'_>) -> Option<Reach> {
    for member in ["headers", "auth"] {
        if server.get(member).is_some() {
            server.wrong(member, "only a server with \"url\" has this");
        }
    }
    let program = server.text("command", TEXT_CHARS_MAX)?.to_owned();
    let limits = server.section("limits", &["memoryBytes", "cpuSeconds", "files"]);
    let limit = |name| {
        limits
            .as_ref()
            .and_then(|limits| limits.whole(name, 1..=u64::MAX))
    };
    let mut arguments = Vec::new();
    for (index, argument) in server.list("args", ARGUMENTS_MAX).iter().enumerate() {
        match argument.as_str() {
            Some(text) if text.len() <= TEXT_CHARS_MAX => arguments.push(text.to_owned()),
            _ => server.wrong(
                "args",
                format!("argument {index} is no text of at most {TEXT_CHARS_MAX} bytes"),
            ),
        }
    }
    Some(Reach::Command {
        program,
        arguments,
        environment: texts(server, "env", VARIABLES_MAX),
        directory: server.text("cwd", TEXT_CHARS_MAX).map(str::to_owned),
        memory_bytes: limit("memoryBytes"),
        cpu_seconds: limit("cpuSeconds"),
        files: limit("files"),
        sandbox: sandbox(server),
    })
}

/// Files that a program may reach: `{"write": [directories], "read": [directories]}`.
fn sandbox(server: &Members<'_>) -> Option<ConfinedFiles> {
    let section = server.section("sandbox", &["read", "write"])?;
    let paths = |name| -> Vec<PathBuf> {
        let paths = section.texts(name, PATHS_MAX, TEXT_CHARS_MAX);
        for path in paths.iter().filter(|path| !path.starts_with('/')) {
            section.wrong(
                name,
                format!("{path:?} is no path from the root, as in \"/srv/files\""),
            );
        }
        paths.into_iter().map(PathBuf::from).collect()
    };
    Some(ConfinedFiles {
        read: paths("read"),
        write: paths("write"),
    })
}

/// A member that is an object of texts.
fn texts(server: &Members<'_>, name: &str, most: usize) -> BTreeMap<String, String> {
    let empty = Map::new();
    let members = match server.get(name) {
        None => &empty,
        Some(Value::Object(members)) => members,
        Some(_) => {
            server.wrong(name, "expected an object of texts");
            &empty
        }
    };
    if members.len() > most {
        server.wrong(
            name,
            format!("{} members; at most {most} are allowed", members.len()),
        );
    }
    let mut texts = BTreeMap::new();
    for (key, value) in members.iter().take(most) {
        match value.as_str().filter(|text| text.len() <= TEXT_CHARS_MAX) {
            // A configuration that was shown and is put back would lose its values without a word.
            Some(MASK) => server.wrong(
                name,
                format!("{key:?} has the mask of a value; give the value itself"),
            ),
            Some(text) => drop(texts.insert(key.clone(), text.to_owned())),
            None => server.wrong(
                name,
                format!("{key:?} is no text of at most {TEXT_CHARS_MAX} bytes"),
            ),
        }
    }
    texts
}
