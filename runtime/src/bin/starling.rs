//! The `starling` command: everything is in `runtime::cli`, where it can be called without a
//! process.

use std::io::{BufReader, BufWriter, stderr, stdin, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Started as the keeper of a tool's command, this process is that and nothing else.
    effect::keep_if_asked();
    // Or as the process that runs scripts.
    runtime::serve_scripts_if_asked();
    runtime::cli::trace();
    let input = Box::new(BufReader::new(stdin()));
    let mut out = BufWriter::with_capacity(64 << 10, stdout().lock());
    ExitCode::from(runtime::cli::run(std::env::args_os(), input, &mut out, &mut stderr()))
}
