//! What the tests of HTTP doors are made of: a gateway without a socket, clients that ask it, and a contract that
//! holds every answer against the OpenAPI document; and a peer for data channels. A crate of its own because `testkit` must not need HTTP.

pub mod client;
pub mod contract;
pub mod rtc_peer;
pub mod world;
