//! Signed plugin packages: verified with the keys of curators, executed in this process.
//!
//! The code runs in a realm of its own, with limits on memory and CPU time, and reaches the hosts that the package names.
//! That is no sandbox: many functions of the JavaScript engine never look at the clock, and a flaw in it is a flaw in this
//! process. Load what a curator you trust has signed. The gateway runs packages in confined processes.

mod realm_host;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_package::{Package, PackageTool, Verification, verify};
use toolgate_protocol::definition::duration;
use toolgate_protocol::problem::Problem;
use toolgate_protocol::time::Time;
use toolgate_script::{Limits, Realm, Script};

use crate::plugin::Plugin;
use crate::tool::{Definition, Tool, ToolCall, ToolError};
use realm_host::RealmHost;

pub use toolgate_package::{CuratorId, CuratorKey, CuratorKeys, KeyId, PublicKey, Rejection};

/// What one call may use.
const LIMITS: Limits = Limits {
    cpu: Duration::from_secs(5),
    memory_bytes: 64 << 20,
    output_bytes: 1 << 20,
};

/// Which packages are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Only those that a given key has signed as a whole.
    #[default]
    Production,
    /// Unsigned ones too. A signature that does not hold is refused all the same.
    Development,
}

/// Whose packages are loaded.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// Public keys of the curators.
    pub curators: CuratorKeys,
    /// Which packages are loaded.
    pub mode: Mode,
    /// Also load packages of which only the tools are signed, if they ask for no permissions.
    pub tools_only_signatures: bool,
}

/// Why a package was not loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackageError {
    /// It is no valid package.
    #[error("the package is not valid{}", listed(.0))]
    Invalid(Vec<Problem>),
    /// A hash or a signature does not hold, or nobody here trusts the signer.
    #[error("the package {id} is refused ({}): {rejection}", .rejection.code())]
    Rejected {
        /// The plugin's id.
        id: String,
        /// The claim of the package that does not hold.
        rejection: Rejection,
    },
    /// Nobody has signed it.
    #[error("the package {0} is not signed; only the mode Development loads it")]
    Unsigned(String),
    /// Only its tools are signed.
    #[error(
        "only the tools of the package {0} are signed, not its id, version and permissions; ask its curator to sign the whole of it"
    )]
    ToolsOnly(String),
    /// It asks for what there is not.
    #[error("the package {0} asks for storage, which this SDK does not have; install it on a gateway")]
    Storage(String),
}

fn listed(problems: &[Problem]) -> String {
    let line = |problem: &Problem| format!("\n  {}: {}", problem.pointer, problem.message);
    problems.iter().map(line).collect()
}

/// Reads a package, verifies its signatures by the keys that count at the time `now` (milliseconds since 1970), and gives a
/// plugin with its tools. The plugin's name is the package's id. Its `dependencies` and `engine` are not looked at.
pub fn plugin(document: &[u8], trust: &Trust, now: Time) -> Result<Plugin, PackageError> {
    let package = Package::parse(document).map_err(PackageError::Invalid)?;
    let id = || package.id().to_string();
    match (verify(&package, &trust.curators, now), trust.mode) {
        (Verification::Verified { .. }, _) => {}
        (Verification::Rejected(rejection), _) => return Err(PackageError::Rejected { id: id(), rejection }),
        (Verification::Unsigned | Verification::ToolsOnly { .. }, Mode::Development) => {}
        (Verification::Unsigned, Mode::Production) => return Err(PackageError::Unsigned(id())),
        (Verification::ToolsOnly { .. }, Mode::Production) => {
            if !trust.tools_only_signatures || !package.permissions().is_empty() {
                return Err(PackageError::ToolsOnly(id()));
            }
        }
    }
    if package.permissions().storage {
        return Err(PackageError::Storage(id()));
    }
    let package = Arc::new(package);
    let tools = package.tools().iter().map(|tool| runnable(&package, tool));
    Ok(Plugin::new(package.id().as_str(), package.version().to_string()).tools(tools))
}

fn runnable(package: &Arc<Package>, tool: &PackageTool) -> Tool {
    let (package, code) = (package.clone(), tool.executor_code.clone());
    Tool::new(definition(tool), move |call| {
        run(package.clone(), code.clone(), call)
    })
}

/// What the gateway takes of a definition from a client.
fn definition(tool: &PackageTool) -> Definition {
    let member = |name: &str| {
        tool.definition
            .get(name)
            .filter(|value| !value.is_null())
            .cloned()
    };
    let parameters = member("parameters").or_else(|| member("inputSchema"));
    Definition {
        name: tool.name.to_string(),
        description: member("description")
            .and_then(|text| text.as_str().map(str::to_owned))
            .unwrap_or_default(),
        parameters: parameters.unwrap_or_else(|| json!({ "type": "object" })),
        output_schema: member("outputSchema"),
        timeout: member("timeout").as_ref().and_then(duration),
        version: member("version").and_then(|text| text.as_str().map(str::to_owned)),
        deprecated: member("deprecated").and_then(|deprecated| serde_json::from_value(deprecated).ok()),
    }
}

/// Runs the code on a thread of its own.
async fn run(package: Arc<Package>, code: Arc<str>, call: ToolCall) -> Result<Value, ToolError> {
    let input = call.input.to_string();
    let mut host = RealmHost::new(package, call.cancelled.clone());
    let running = tokio::task::spawn_blocking(move || {
        let script = Script {
            code: &code,
            args: &input,
            limits: LIMITS,
        };
        Realm::new()?.run(script, &mut host)
    });
    let output = running.await??;
    Ok(serde_json::from_str(&output)?)
}
