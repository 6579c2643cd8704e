//! The engine through its front door, with a scripted model, fake tools and real stores.

mod calls;
mod children;
mod families;
mod faults;
mod following;
mod leases;
mod messages;
mod world;
