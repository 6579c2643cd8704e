//! The run.
