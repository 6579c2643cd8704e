//! Why something was not done with a server.

use toolgate_engine::store::StoreError;
use toolgate_kernel::problem::Problem;

/// Why something was not done. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The configuration is wrong in these ways.
    #[error("the configuration of the server has {} problems", .0.len())]
    Invalid(Vec<Problem>),
    /// There is no such server or tool.
    #[error("there is no {0}")]
    Missing(String),
    /// The server stands in the settings file, which only the operator changes.
    #[error("the server {0:?} stands in the gateway's settings (mcp.servers), and is changed there")]
    Settings(String),
    /// A program of this name may not be started.
    #[error(
        "this key may not have the program {0:?} started on the gateway's machine; the setting `mcp.commands` permits \
         programs, and servers at an address (\"url\") need no permission"
    )]
    Command(String),
    /// There are too many.
    #[error("a project may have at most {0} MCP servers; the setting `mcp.servers_max` changes that")]
    TooMany(usize),
    /// The tool is no longer what the reviewer has seen.
    #[error("the definition of {0:?} has changed again; look at it once more")]
    Changed(String),
    /// Nobody signs in to the server.
    #[error(
        "nobody signs in to the server {0:?}: it is a program, or its configuration has another `auth`, or a header \
         `Authorization`"
    )]
    NoSignIn(String),
    /// A sign-in could not begin.
    #[error("{0}")]
    SignIn(String),
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}
