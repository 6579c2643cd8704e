//! The door, from outside.

mod openapi;
