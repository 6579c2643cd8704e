//! The wire types of A2A: version 1.0, and 0.3 as a second dialect of the same types.
//!
//! A type is read by `from_json` and written by `to_json`, both told which [`Dialect`] is spoken. Reading checks every
//! member and reports all problems at once, each with the path of its field; unknown members are ignored, as the
//! protocol asks. There is no IO here, no defaults that belong to a server, and no run: `door-a2a` serves these types,
//! `sources` speaks them to remote agents.
//!
//! Start with `task` and `message`; `json` is how members are read, `client_tools` the extension by which a client
//! brings its own tools.

pub mod card;
pub mod client_tools;
pub mod error;
pub mod extension;
mod json;
pub mod message;
pub mod method;
pub mod number;
pub mod part;
pub mod push;
pub mod request;
pub mod rpc;
pub mod stream;
pub mod task;

pub use json::{Invalid, Violation};

/// Version of the protocol that [`Dialect::V1`] speaks, as the header `A2A-Version` names it.
pub const VERSION: &str = "1.0";
/// Version that [`Dialect::V03`] speaks.
pub const VERSION_03: &str = "0.3";
/// Header, and query parameter, that names the version a client speaks.
pub const VERSION_HEADER: &str = "a2a-version";
/// Media type of REST bodies since 1.0.1; `application/json` is accepted too.
pub const MEDIA_TYPE: &str = "application/a2a+json";
/// Path of the agent card under the base URL of an agent.
pub const CARD_PATH: &str = "/.well-known/agent-card.json";

/// A free-form object: metadata and parameters of extensions.
pub type Metadata = serde_json::Map<String, serde_json::Value>;

/// Which form of the protocol is written on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// 1.0: ProtoJSON, unions by which member is present, enums by their names in the proto.
    V1,
    /// 0.3: unions by `kind`, enums in lower case, results without a wrapper.
    V03,
}
