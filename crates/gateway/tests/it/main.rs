//! The real binary, started as a process and asked over HTTP: what it promises holds through crashes, cuts,
//! hostile requests and a full disk.

mod access;
mod agent_files;
mod attack_connections;
mod attack_memory;
mod bombs;
mod chat;
mod deadline;
mod documents;
mod drain;
mod every_tool;
mod examples;
mod families;
mod faults;
mod formats;
mod harness;
mod hostile;
mod injection;
mod intake;
mod kill;
mod mail;
mod openapi;
mod outside;
mod parallel;
mod plans;
mod projects;
mod redaction;
mod remembering;
mod sdk;
mod start;
mod stream;
mod telemetry;
mod tool_check;
mod usage;
mod waiting;
