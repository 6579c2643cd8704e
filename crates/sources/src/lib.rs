//! Tools from elsewhere: the MCP servers of a project, as a tool source.
//!
//! Start with [`McpServers`]: everything that is done with servers. `config` is what is said of a server, `index` what is
//! stored, `review` decides what becomes of a listing (pure), `supervisor` owns one connection, `pool` all of them.
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
mod index;
mod live;
pub mod oauth;
mod outcome;
mod pool;
mod review;
mod server_call;
mod servers;
mod settings;
mod snapshot;
mod source;
mod supervisor;

pub use config::{Approve, Reach, Review, ServerConfig, check_server_name};
pub use diff::Difference;
pub use error::ServerError;
pub use exposed::{ExposedServer, ReviewedTools};
pub use flags::Flag;
pub use index::{Catalog, State, StoredTool, Why};
pub use pool::{ProcessLimits, Spawning};
pub use servers::{Decision, McpServers, McpServersParts, Sampler, ServerView, ToolView};
pub use settings::{Commands, McpLimits, McpResolver, McpSettings};
pub use snapshot::{Origin, PinnedTool};
pub use source::{McpSource, SOURCE};
pub use supervisor::Status;
