//! What the stores promise, through their front door.

mod conformance;
mod durability;
mod faulty;
mod model;
mod scratch;
mod shelves;
mod versions;
