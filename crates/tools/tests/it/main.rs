//! The gateway's own tools, each through a real run of an agent whose model follows a script.

mod apart;
mod goals;
mod knowledge;
mod meaning;
mod memory;
mod notify;
mod space;
mod vfs;
mod wire;
mod world;
