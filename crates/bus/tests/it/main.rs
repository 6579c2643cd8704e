//! The promises of a bus.

mod in_process;
