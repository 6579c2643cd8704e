//! What the stores promise, through their front door.

mod conformance;
mod durability;
mod faulty;
mod model;
mod records;
mod scratch;
mod versions;
