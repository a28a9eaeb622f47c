//! Notices that somebody wants a run to end: Ctrl-C, or a signal to terminate. It then stops
//! between two firings, what is out is told to end, and nothing is lost.

use tokio::sync::watch;

/// Whether the run is to end.
#[derive(Clone, Debug)]
pub(super) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// From now on the signals are noticed.
    pub(super) fn on_signals() -> Stop {
        let (sender, receiver) = watch::channel(false);
        let waiting = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(waiting) = waiting {
            // Where a signal cannot be caught it ends the process by itself, which loses nothing
            // either.
            std::thread::spawn(move || {
                waiting.block_on(signalled());
                sender.send_replace(true);
            });
        }
        Stop(receiver)
    }

    /// Whether it was signalled.
    pub(super) fn is_wanted(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is.
    pub(super) async fn wanted(&mut self) {
        if self.0.wait_for(|wanted| *wanted).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn signalled() {
    use tokio::signal::unix::{SignalKind, signal};
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => terminate.recv().await.is_some(),
            Err(_) => std::future::pending().await,
        }
    };
    let interrupted = async {
        match tokio::signal::ctrl_c().await {
            Ok(()) => true,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = terminated => {}
        _ = interrupted => {}
    }
}
