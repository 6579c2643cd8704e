//! Tests of plugin packages, through the front door.

mod audit;
mod canonical;
mod document;
mod examples;
mod keys;
mod sample;
mod schema;
mod signatures;
mod vectors;
