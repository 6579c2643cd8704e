//! The binary `toolgate`: settings, wiring, commands, shutdown.

mod agents;
mod bus;
mod chat;
mod commands;
mod data;
mod doors;
mod exposed;
mod listen;
mod mcp_bridge;
mod output;
mod project;
mod projects;
mod serve;
mod settings;
mod storage;
mod telemetry;
mod telemetry_help;
mod welcome;

use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run(commands::Toolgate::of_process()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {}", format!("{error:#}").trim_end());
            ExitCode::FAILURE
        }
    }
}
