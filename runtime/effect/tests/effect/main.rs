//! Executors against a real machine: processes, files, sockets and the sandbox.

mod commands;
mod host;
mod support;
