//! Push notifications of A2A: posts the changes of tasks to the webhooks that clients have named.
//!
//! Nothing is queued: the log of a run is what has to be delivered, and each configuration counts how far it came. A
//! change is counted after the receiver has accepted it, so a crash loses none and repeats at most the one under way,
//! under the same `webhook-id`. Changes of a task reach a receiver in their order. A configuration is claimed in the store
//! while it is worked on, and is in nobody's hands while its run does not change.
//!
//! Start with `pusher` (which configurations are worked on), then `delivery` (one configuration) and `notification` (one
//! request).

mod delivery;
mod notification;
mod pusher;

pub use pusher::{PushParts, Pusher};
