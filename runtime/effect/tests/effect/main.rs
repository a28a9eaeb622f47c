//! Executors against a real machine: processes, files, sockets and the sandbox.

mod answers;
mod commands;
mod escapes;
mod files;
mod host;
mod programs;
mod servers;
mod support;
