//! What tests are made of: real parts where there are some, and scripted ones for the outside world.

pub mod model_script;
pub mod model_server;
