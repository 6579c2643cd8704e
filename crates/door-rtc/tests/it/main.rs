//! The data-channel door, from outside: over loopback, with peers of the same library that are no browsers.

mod access;
mod channel;
mod hostile;
mod many;
mod starts;
mod world;
