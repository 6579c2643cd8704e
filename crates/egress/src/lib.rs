//! Outbound network access: everything that the gateway sends to servers which are not its own goes through here.
//!
//! [`Egress`] owns the connections. [`Egress::client`] makes a [`Client`] that obeys a [`Policy`]; both are cheap, so a
//! policy can be resolved for each project and each call. [`Secrets`] fills in what an operator keeps from everybody,
//! and removes it from what comes back.
//!
//! Nothing here reads settings, retries, or knows what a tool is. Start with `policy`, then `client`; `guard` decides
//! which addresses a policy permits (SSRF protection).

mod client;
mod guard;
mod headers;
mod policy;
mod secrets;
mod transport;

pub use client::{BodyLimit, Client, EgressError, Hop, Request, Response};
pub use guard::{AllowList, BadHost};
pub use headers::{OWN_HEADERS, carries_credentials};
pub use policy::{Destinations, Policy, Proxy, REDIRECTS_MAX};
pub use secrets::{BadSecret, Secrets, USER_TOKEN, percent_encode};
pub use transport::Egress;
