//! What tests are made of: real parts where there are some, and scripted ones for the outside world.

pub mod fake_tools;
pub mod held_clock;
pub mod scripted_model;
