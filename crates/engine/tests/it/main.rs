//! The engine through its front door, with a scripted model, fake tools and real stores.

mod bombs;
mod calls;
mod child_questions;
mod children;
mod context;
mod delegated;
mod dice;
mod draining;
mod editions;
mod fairness;
mod families;
mod faults;
mod following;
mod leases;
mod messages;
mod newer;
mod nodes;
mod past;
mod prerequisites;
mod requested_call;
mod shared_tools;
mod sources;
mod superseding;
mod tasks;
mod window;
mod world;
