//! The `execution` of a remote agent: `{"url": address, "headers": {…}, "skill": id, "result_schema": {…}}`.

use http::HeaderName;
use serde_json::Value;
use toolgate_egress::{OWN_HEADERS, USER_TOKEN, carries_credentials};
use toolgate_engine::tools::CallFailure;
use toolgate_kernel::members::Members;
use toolgate_kernel::problem::{Problems, preview, shown};
use toolgate_kernel::tool::{ResultSchema, SourceTool};
use url::Url;

const MEMBERS: [&str; 6] = [
    "url",
    "headers",
    "skill",
    "result_schema",
    "resultSchema",
    "maxBytes",
];
const URL_CHARS_MAX: usize = 4_096;
const VALUE_CHARS_MAX: usize = 8_192;
const SKILL_CHARS_MAX: usize = 256;
const HEADERS_MAX: usize = 32;
const BYTES_MAX: usize = 32 << 20;
const BYTES: usize = 4 << 20;
/// Member of the pinned configuration that holds what [`Expects`] says. Not an author's to write.
const EXPECTS: &str = "expects";
/// Member of the pinned configuration that says whether a message may be sent again.
const REPEATS: &str = "repeats";

/// A remote agent as an author configured it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentConfig {
    /// Address of the agent, or of its card.
    pub url: Url,
    /// Sent with every request. Values may name secrets and the user's token.
    pub headers: Vec<(HeaderName, String)>,
    /// The skill of the card that the tool stands for.
    pub skill: Option<String>,
    /// What the answer must be.
    pub result: Option<ResultSchema>,
    /// Most bytes of one answer.
    pub bytes_max: usize,
    /// What the tool's output has to be.
    pub expects: Expects,
    /// Whether a message that may have arrived may be sent again.
    pub repeats: bool,
}

/// What the output of a tool has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expects {
    /// Text, JSON and files, as the agent gives them.
    Anything,
    /// JSON: the tool has a schema for it.
    Json,
}

impl AgentConfig {
    /// Reads what an author wrote, and notes all problems.
    pub fn read(tool: &Members<'_>) -> Option<Self> {
        let config = tool.section("execution", &MEMBERS)?;
        let url = address(&config);
        let headers = headers(&config);
        let result = result_schema(&config);
        let has_schema = result.is_some() || tool.get("outputSchema").is_some();
        Some(Self {
            headers,
            skill: config.text("skill", SKILL_CHARS_MAX).map(str::to_owned),
            bytes_max: config.whole("maxBytes", 1..=BYTES_MAX).unwrap_or(BYTES),
            expects: match has_schema {
                true => Expects::Json,
                false => Expects::Anything,
            },
            repeats: tool.get("retry").is_some_and(|retry| retry == "safe"),
            result,
            url: url?,
        })
    }

    /// What a run pins: the author's `execution`, with what else of the tool a call goes by.
    pub fn pinned(&self, execution: &Value) -> Value {
        let mut pinned = execution.clone();
        if self.expects == Expects::Json {
            pinned[EXPECTS] = "json".into();
        }
        if self.repeats {
            pinned[REPEATS] = true.into();
        }
        pinned
    }

    /// The configuration of a tool that a run has pinned.
    pub fn of(tool: &SourceTool) -> Result<Self, CallFailure> {
        let broken = || CallFailure::failed("the configuration of this remote agent cannot be read");
        let mut execution = tool.config.as_ref().ok_or_else(broken)?.to_value();
        let members = execution.as_object_mut().ok_or_else(broken)?;
        let expects = members.remove(EXPECTS).is_some();
        let repeats = members.remove(REPEATS).is_some();
        let whole = serde_json::json!({ "execution": execution });
        let problems = Problems::default();
        let read = Members::open(&whole, "", &["execution"], &problems).and_then(|tool| Self::read(&tool));
        let mut config = problems.or(read).map_err(|_| broken())?;
        config.repeats = repeats;
        if expects {
            config.expects = Expects::Json;
        }
        Ok(config)
    }

    /// Whether it passes the token of the user on.
    pub fn passes_user_token(&self) -> bool {
        self.headers.iter().any(|(_, value)| value.contains(USER_TOKEN))
    }
}

fn address(config: &Members<'_>) -> Option<Url> {
    let written = config.text("url", URL_CHARS_MAX)?;
    let url = Url::parse(written).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(url) = url else {
        let words =
            "expected the address of an agent or of its card, such as \"https://agents.example.com/weather\"";
        config.wrong("url", format!("{words}, got {}", preview(written)));
        return None;
    };
    if !url.username().is_empty() || url.password().is_some() {
        let words = "a user name in the address is not sent; use \"headers\" with ${secret.NAME}";
        config.wrong("url", words);
        return None;
    }
    if written.contains("${") || written.contains("{{") {
        let words = "the address of a remote agent is fixed: it has no places for secrets or for the input";
        config.wrong("url", words);
        return None;
    }
    Some(url)
}

fn headers(config: &Members<'_>) -> Vec<(HeaderName, String)> {
    let members = match config.get("headers") {
        None => return Vec::new(),
        Some(Value::Object(members)) if members.len() <= HEADERS_MAX => members,
        Some(Value::Object(members)) => {
            let words = format!("{} headers; at most {HEADERS_MAX} are allowed", members.len());
            config.wrong("headers", words);
            return Vec::new();
        }
        Some(other) => {
            config.wrong(
                "headers",
                format!("expected an object of texts, got {}", shown(other)),
            );
            return Vec::new();
        }
    };
    let read = members
        .iter()
        .filter_map(|(name, value)| header(config, name, value));
    read.collect()
}

fn header(config: &Members<'_>, name: &str, value: &Value) -> Option<(HeaderName, String)> {
    let Some(value) = value.as_str().filter(|text| text.len() <= VALUE_CHARS_MAX) else {
        let words = format!("expected a text of at most {VALUE_CHARS_MAX} bytes for {name:?}");
        config.wrong("headers", words);
        return None;
    };
    if OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
        config.wrong(
            "headers",
            format!("{name:?} is set by the gateway itself; leave it out"),
        );
        return None;
    }
    let is_literal = !value.trim().is_empty() && !value.contains("${secret.") && !value.contains(USER_TOKEN);
    if carries_credentials(name) && is_literal {
        let words = format!(
            "{name:?} holds a credential that everybody who reads this configuration can read; store it as a secret \
             and write \"${{secret.NAME}}\" in its place"
        );
        config.wrong_if_new("headers", words);
    }
    match name.parse() {
        Ok(name) => Some((name, value.to_owned())),
        Err(_) => {
            let words = format!(
                "{} is no name of a header; expected one like \"X-Api-Key\"",
                preview(name)
            );
            config.wrong("headers", words);
            None
        }
    }
}

fn result_schema(config: &Members<'_>) -> Option<ResultSchema> {
    let name = match config.get("result_schema") {
        Some(_) => "result_schema",
        None => "resultSchema",
    };
    let schema = config.get(name)?;
    match ResultSchema::compile(schema.into()) {
        Ok(schema) => Some(schema),
        Err(problems) => {
            for problem in problems {
                config
                    .problems
                    .add(format!("{}{}", config.at(name), problem.pointer), problem.message);
            }
            None
        }
    }
}
