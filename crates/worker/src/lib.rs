//! Child processes of the same binary, with limits: for work on what strangers have written, such as documents and
//! plugins. A request that brings its worker down brings down nothing else.
//!
//! [`Workers`] is the gateway's side: it queues requests fairly, keeps processes started ahead, and kills what runs over
//! its limits. [`serve`] is the side of the child, which sets the limits on itself before it reads a byte. Both are given
//! the same [`Kind`].
//!
//! [`keep`] is for programs that are not ours: a process of the binary that ends them to the last descendant.
//!
//! A process never works for two owners, has no environment, and ends with its process group. It seals itself off from
//! files, network and other processes (`seal`). Start with `kind`, then `workers`.

mod confined_files;
mod frame;
mod keeper;
mod kind;
mod process;
mod seal;
mod serve;
mod workers;

pub use confined_files::ConfinedFiles;
pub use keeper::{KEEP_SERVER, KeptLimits, keep};
pub use kind::{Kind, Limits, Seals};
pub use seal::{Protection, Seal, keep_descriptors_from_workers};
pub use serve::{Talk, serve, serve_with};
pub use workers::{Exchange, Owner, WorkerError, Workers};
