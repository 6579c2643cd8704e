//! `toolgate chat` as a person and as a script use it.

mod piped;
mod pty;
mod terminal;

use std::process::Command;

use crate::harness::{Gateway, SECRET_KEY, binary};

/// `toolgate chat worker` with the key, as a process that knows nothing else of this one.
fn chat(gateway: &Gateway) -> Command {
    let mut command = binary();
    command
        .args(["chat", "worker", "--url", &gateway.url()])
        .env("TOOLGATE_SECRET_KEY", SECRET_KEY)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}
