//! Tests of the stores through their public API.

mod conformance;
mod durability;
mod faulty;
mod model;
mod records;
mod scratch;
mod versions;
