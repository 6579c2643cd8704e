//! Reads the members of a document.

use std::collections::BTreeMap;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use semver::{Version, VersionReq};
use serde_json::Value;
use toolgate_kernel::agent::{Catalog, Defaults, Missing, ModelName, ModelSpec, Provider};
use toolgate_kernel::members::Members;
use toolgate_kernel::name::ToolName;
use toolgate_kernel::problem::{Problem, Problems, shown};
use toolgate_kernel::tool::{Rules, check};
use url::Url;

use super::{CODE_BYTES_MAX, Claims, DEPENDENCIES_MAX, Package, PackageTool, TOOLS_MAX};
use crate::id::PluginId;
use crate::permission::{PERMISSION_CHARS_MAX, PERMISSIONS_MAX, Permissions};

/// Longest name for people.
const NAME_CHARS_MAX: usize = 128;
/// Longest description of a package.
const DESCRIPTION_CHARS_MAX: usize = 1_024;
/// Longest version or version range.
const VERSION_CHARS_MAX: usize = 128;
/// Longest id, hash or address of a document; a shorter limit is in the rule of each.
const WORD_CHARS_MAX: usize = 2_048;
/// Longest signature in base64: of an RSA key of 8192 bits.
const SIGNATURE_CHARS_MAX: usize = 1_368;

const MEMBERS: [&str; 17] = [
    "$schema",
    "id",
    "name",
    "version",
    "description",
    "tools",
    "permissions",
    "dependencies",
    "engine",
    "contentHash",
    "signature",
    "packageHash",
    "packageSignature",
    "curatorId",
    "keyId",
    "sourceUrl",
    "installedAt",
];

/// The `$id` of the schema that this crate reads.
pub(crate) const SCHEMA_ID: &str = "urn:toolgate:schema:plugin:1";

pub(super) fn package(mut document: Value) -> Result<Package, Vec<Problem>> {
    if let Value::Object(members) = &mut document {
        // Whoever has stored a copy may have noted when; it is nothing of the package.
        members.shift_remove("installedAt");
    }
    let problems = Problems::default();
    let read = read(&document, &problems);
    let mut package = problems.or(read)?;
    package.document = document;
    Ok(package)
}

fn read(document: &Value, problems: &Problems) -> Option<Package> {
    let top = Members::open(document, "", &MEMBERS, problems)?;
    refuse_nulls(document, &top);
    let schema = top.text("$schema", WORD_CHARS_MAX);
    if let Some(other) = schema.filter(|schema| *schema != SCHEMA_ID) {
        top.wrong("$schema", format!("expected {SCHEMA_ID:?}, got {other:?}"));
    }
    let id = parsed(&top, "id", Need::Always);
    let name = required_text(&top, "name", NAME_CHARS_MAX);
    let version = version(&top);
    let description = top.text("description", DESCRIPTION_CHARS_MAX);
    let tools = tools(&top);
    let permissions = permissions(&top);
    let dependencies = dependencies(&top, id.as_ref());
    let engine = top
        .text("engine", VERSION_CHARS_MAX)
        .and_then(|written| range(written, &top.at("engine"), problems));
    let source_url = source_url(&top);
    let claims = claims(&top);
    // Numbers were checked when the document was parsed, so what is there can be hashed.
    let content_hash = super::content_hash(top.written("tools")?);
    let hash = super::package_hash(document.as_object()?);
    Some(Package {
        id: id?,
        name: name?.to_owned(),
        version: version?,
        description: description.map(str::to_owned),
        tools: tools?,
        permissions,
        dependencies,
        engine,
        source_url,
        claims,
        content_hash,
        hash,
        document: Value::Null,
    })
}

/// `null` is not the same as absent in a text that is hashed.
fn refuse_nulls(document: &Value, top: &Members<'_>) {
    for (name, value) in document.as_object().into_iter().flatten() {
        if value.is_null() && MEMBERS.contains(&name.as_str()) {
            top.wrong(name, "leave it out instead of writing null");
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Need {
    Always,
    IfWritten,
}

/// A member that is the text form of something.
fn parsed<T>(top: &Members<'_>, name: &str, need: Need) -> Option<T>
where
    T: FromStr<Err: std::fmt::Display>,
{
    let text = match need {
        Need::Always => required_text(top, name, WORD_CHARS_MAX),
        Need::IfWritten => top.text(name, WORD_CHARS_MAX),
    };
    text?
        .parse()
        .map_err(|bad: T::Err| top.wrong(name, bad.to_string()))
        .ok()
}

fn required_text<'v>(top: &Members<'v>, name: &str, chars_max: usize) -> Option<&'v str> {
    if top.written(name).is_none() {
        top.lacks(format!("a package needs a member {name:?}"));
    }
    top.text(name, chars_max)
}

fn version(top: &Members<'_>) -> Option<Version> {
    let written = required_text(top, "version", VERSION_CHARS_MAX)?;
    Version::parse(written)
        .map_err(|error| {
            let words = format!("{written:?} is no version ({error}); expected one like \"1.2.0\"");
            top.wrong("version", words);
        })
        .ok()
}

fn range(written: &str, pointer: &str, problems: &Problems) -> Option<VersionReq> {
    VersionReq::parse(written)
        .map_err(|error| {
            let words = format!(
                "{written:?} is no version range ({error}); expected one like \"^1.2\", \">=0.1\" or \">=1.2, <3\""
            );
            problems.add(pointer, words);
        })
        .ok()
}

fn tools(top: &Members<'_>) -> Option<Vec<PackageTool>> {
    let items = top.list("tools", TOOLS_MAX);
    if items.is_empty() && !top.problems.has(&top.at("tools")) {
        match top.written("tools") {
            None => top.lacks("a package needs a member \"tools\""),
            Some(_) => top.wrong("tools", "a package needs at least one tool"),
        }
    }
    let mut definitions = Vec::new();
    let mut codes = Vec::new();
    let mut no_tools = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let pointer = format!("{}/{index}", top.at("tools"));
        let Value::Object(members) = item else {
            let words = format!("expected a tool, an object, got {}", shown(item));
            top.problems.add(&pointer, words);
            no_tools.push(pointer);
            // The others keep their places.
            definitions.push(Value::Object(serde_json::Map::new()));
            continue;
        };
        let mut members = members.clone();
        for name in ["executionType", "execution"] {
            if members.shift_remove(name).is_some() {
                let words = "the tool of a package is run by its executorCode; leave this out";
                top.problems.add(format!("{pointer}/{name}"), words);
            }
        }
        let code = members.shift_remove("executorCode");
        codes.push(executor_code(code.as_ref(), &pointer, top.problems));
        definitions.push(Value::Object(members));
    }
    let names = names(&definitions, &no_tools, top.problems);
    let named = names?.into_iter().zip(definitions).zip(codes);
    named
        .map(|((name, definition), code)| {
            Some(PackageTool {
                name,
                definition,
                executor_code: code?.into(),
            })
        })
        .collect()
}

/// Checks the definitions by the kernel's rules for trusted authors; gives their names, in order.
fn names(definitions: &[Value], no_tools: &[String], problems: &Problems) -> Option<Vec<ToolName>> {
    // The code runs the tool, not a source: without any, the rest of the definition is what is checked.
    let catalog = Catalog::default();
    let defaults = Defaults {
        model: ModelSpec {
            name: ModelName {
                provider: Provider::Demo,
                name: "demo".into(),
            },
            base_url: None,
            api_key: None,
            temperature: None,
            top_p: None,
            max_output_tokens: None,
            reasoning_tokens: None,
        },
        catalog: &catalog,
        missing: Missing::Refused,
    };
    let list = Value::Array(definitions.to_vec());
    let checked = check(&list, "/tools", &Rules::Trusted(&defaults));
    for problem in checked.errors {
        // One that is no object has its problem already.
        if !no_tools.contains(&problem.pointer) {
            problems.add(problem.pointer, problem.message);
        }
    }
    (checked.tools.len() == definitions.len())
        .then(|| checked.tools.iter().map(|tool| tool.name.clone()).collect())
}

fn executor_code(code: Option<&Value>, pointer: &str, problems: &Problems) -> Option<String> {
    let member = format!("{pointer}/executorCode");
    match code {
        None | Some(Value::Null) => {
            let words = "a tool of a package needs executorCode, the body of the function that runs it";
            problems.add(pointer, words);
            None
        }
        Some(Value::String(code)) if code.trim().is_empty() => {
            problems.add(member, "expected the body of a function, got a blank text");
            None
        }
        Some(Value::String(code)) if code.len() > CODE_BYTES_MAX => {
            let words = format!(
                "the code has {} bytes; at most {CODE_BYTES_MAX} are allowed",
                code.len()
            );
            problems.add(member, words);
            None
        }
        Some(Value::String(code)) => Some(code.clone()),
        Some(other) => {
            let words = format!("expected the body of a function as a text, got {}", shown(other));
            problems.add(member, words);
            None
        }
    }
}

fn permissions(top: &Members<'_>) -> Permissions {
    let mut permissions = Permissions::default();
    let written = top.list("permissions", PERMISSIONS_MAX).iter().enumerate();
    for (index, item) in written {
        let pointer = format!("{}/{index}", top.at("permissions"));
        match item.as_str() {
            Some(text) if text.chars().count() <= PERMISSION_CHARS_MAX => {
                if let Err(words) = permissions.add(text) {
                    top.problems.add(pointer, words);
                }
            }
            Some(_) | None => {
                let words = format!("expected a permission such as \"storage\", got {}", shown(item));
                top.problems.add(pointer, words);
            }
        }
    }
    permissions
}

fn dependencies(top: &Members<'_>, own: Option<&PluginId>) -> BTreeMap<PluginId, VersionReq> {
    let mut dependencies = BTreeMap::new();
    let Some(written) = top.own("dependencies") else {
        return dependencies;
    };
    let Value::Object(members) = written else {
        let words = format!(
            "expected an object such as {{\"units\": \"^1.0\"}}, got {}",
            shown(written)
        );
        top.wrong("dependencies", words);
        return dependencies;
    };
    if members.len() > DEPENDENCIES_MAX {
        let words = format!(
            "{} dependencies; at most {DEPENDENCIES_MAX} are allowed",
            members.len()
        );
        top.wrong("dependencies", words);
    }
    for (name, value) in members.iter().take(DEPENDENCIES_MAX) {
        let pointer = toolgate_kernel::problem::member(&top.at("dependencies"), name);
        let id = name
            .parse::<PluginId>()
            .map_err(|bad| top.problems.add(&pointer, bad.to_string()))
            .ok();
        if id.as_ref().is_some_and(|id| Some(id) == own) {
            top.problems.add(&pointer, "a package cannot depend on itself");
        }
        let range = match value.as_str() {
            Some(text) if text.len() <= VERSION_CHARS_MAX => range(text, &pointer, top.problems),
            Some(_) | None => {
                let words = format!("expected a version range such as \"^1.0\", got {}", shown(value));
                top.problems.add(&pointer, words);
                None
            }
        };
        if let (Some(id), Some(range)) = (id, range) {
            dependencies.insert(id, range);
        }
    }
    dependencies
}

fn source_url(top: &Members<'_>) -> Option<String> {
    let written = top.text("sourceUrl", WORD_CHARS_MAX)?;
    let address = Url::parse(written).ok().filter(|url| {
        matches!(url.scheme(), "https" | "http") && url.username().is_empty() && url.password().is_none()
    });
    if address.is_none() {
        let words =
            "expected an address such as \"https://plugins.example.com/time.json\", without credentials";
        top.wrong("sourceUrl", words);
    }
    address.map(|_| written.to_owned())
}

fn claims(top: &Members<'_>) -> Claims {
    let claims = Claims {
        content_hash: parsed(top, "contentHash", Need::IfWritten),
        package_hash: parsed(top, "packageHash", Need::IfWritten),
        signature: signature(top, "signature"),
        package_signature: signature(top, "packageSignature"),
        curator: parsed(top, "curatorId", Need::IfWritten),
        key: parsed(top, "keyId", Need::IfWritten),
    };
    let needs = |member: &str, others: &[&str]| {
        let missing = others.iter().filter(|other| top.written(other).is_none());
        let missing: Vec<_> = missing.map(|other| format!("{other:?}")).collect();
        if top.written(member).is_some() && !missing.is_empty() {
            let words = format!("a document with {member:?} needs {} too", missing.join(", "));
            top.wrong(member, words);
        }
    };
    needs("signature", &["contentHash", "curatorId"]);
    needs(
        "packageSignature",
        &["packageHash", "signature", "contentHash", "curatorId"],
    );
    claims
}

fn signature(top: &Members<'_>, name: &str) -> Option<Vec<u8>> {
    let written = top.text(name, SIGNATURE_CHARS_MAX)?;
    STANDARD
        .decode(written)
        .map_err(|_| top.wrong(name, "expected a signature in base64, with its padding"))
        .ok()
}
