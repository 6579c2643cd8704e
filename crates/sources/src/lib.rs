//! Tools from elsewhere: the MCP servers of a project, as a tool source.
//!
//! Start with [`McpServers`]: everything that is done with servers. `config` is what is said of a server, `index` what is
//! stored and `stored` how it changes, `review` decides what becomes of a listing (pure), `reaching` says how a server is
//! reached, `supervisor` owns one connection, `pool` all of them, `server_log` keeps what
//! programs write to their standard error.
//! [`McpSource`] offers the tools to agents and runs their calls; `outcome` makes outputs of results, `asked` questions
//! to people of what servers ask.
//!
//! A catalog is stored when a server lists its tools and served from the store, so an agent has its tools before the
//! server is up. Nothing here speaks the protocol (`toolgate-mcp`) or decides what may be reached (`toolgate-egress`).

mod asked;
mod config;
mod diff;
mod error;
mod exposed;
mod flags;
mod given_values;
mod index;
mod live;
pub mod oauth;
mod outcome;
mod pool;
mod progress_pace;
mod reaching;
mod review;
mod rounds;
mod sampling;
mod server_call;
mod server_log;
mod server_task;
mod server_view;
mod servers;
mod settings;
mod snapshot;
mod source;
mod stored;
mod supervisor;

pub use config::{Approve, Reach, Review, ServerConfig, check_server_name};
pub use diff::Difference;
pub use error::ServerError;
pub use exposed::{ExposedServer, HideInJson, ReviewedTools};
pub use flags::Flag;
pub use index::{Catalog, State, StoredTool, Why};
pub use pool::{ProcessLimits, Spawning};
pub use server_log::LogLine;
pub use server_view::{ServerView, ToolView};
pub use servers::{Decision, McpServers, McpServersParts};
pub use settings::{Commands, McpLimits, McpResolver, McpSettings};
pub use snapshot::{Origin, PinnedTool};
pub use source::{McpSource, SOURCE};
pub use supervisor::Status;
