//! Where scripts run: in a process of their own that can be ended, or in this one.
//!
//! A program that calls `serve_scripts_if_asked` may run scripts in another process of itself,
//! which `starling` does by default. Who trusts a flock may have its scripts run here: the log is
//! the same, only quicker, and a script that tears its process apart tears this one.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use behaviors::{Loaded, ReactError};
use script::{Limits, ScriptHost};
use worker::Worker;

/// Whether this program can be the process that runs scripts.
static CAN_SERVE: AtomicBool = AtomicBool::new(false);

/// The process that runs scripts, once it was decided whether there is one.
static WORKER: OnceLock<Option<Arc<Worker>>> = OnceLock::new();

/// If this process was started to run scripts, it does that and ends. Otherwise commands may start
/// such a process from now on.
///
/// To be called first of all in `main`.
pub fn serve_scripts_if_asked() {
    worker::serve_if_asked();
    CAN_SERVE.store(true, Ordering::Relaxed);
}

/// From now on scripts run in a process of their own, if this program can be one. What was decided
/// first holds.
///
/// # Errors
/// The process cannot be started or shut in.
pub(crate) fn run_elsewhere() -> io::Result<()> {
    if CAN_SERVE.load(Ordering::Relaxed) && WORKER.get().is_none() {
        let worker = Worker::start(std::env::current_exe()?)?;
        // Who else decided meanwhile was first.
        let _ = WORKER.set(Some(worker));
    }
    Ok(())
}

/// Loads a script where scripts run.
pub(crate) fn load(path: &str, text: &str) -> Result<Vec<Loaded>, ReactError> {
    static HERE: LazyLock<ScriptHost> = LazyLock::new(|| ScriptHost::new(Limits::default()));
    match WORKER.get_or_init(|| None) {
        Some(worker) => worker.load(path, text),
        None => HERE.load(path, text).map_err(ReactError::from),
    }
}
