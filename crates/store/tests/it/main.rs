//! Tests of the stores through their public API.

mod clocks;
mod conformance;
mod durability;
mod faulty;
mod model;
mod postgres_faults;
mod readers;
mod records;
mod retention;
mod scratch;
mod transfer;
mod unfinished_import;
mod versions;
