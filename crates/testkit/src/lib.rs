//! Stand-ins and suites that several crates test with: a store that fails on purpose, and what every store
//! must promise. Holds no product code.

pub mod faulty_store;
pub mod store_conformance;
