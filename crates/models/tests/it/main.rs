//! What the models promise, seen from outside: recorded and scripted streams in, pieces of a reply out.

mod asking;
mod demo;
mod dialects;
mod limits;
mod prefix;
mod recorded;
mod requests;
mod sse;
mod stand_in;
mod too_long;
mod trace;
mod transport;
