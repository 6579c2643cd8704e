//! The gateway's own tools, each through a real run of an agent whose model follows a script.

mod apart;
mod goals;
mod memory;
mod space;
mod vfs;
mod world;
