//! Carries live events and wake-ups between nodes. Every bus passes the same conformance suite
//! (`toolgate_testkit::bus_conformance`). Start with [`InProcessBus`].

mod in_process;

pub use in_process::InProcessBus;
