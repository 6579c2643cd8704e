//! Tests of the wire types.

mod hostile;
mod official;
mod properties;
mod samples;
mod values;
