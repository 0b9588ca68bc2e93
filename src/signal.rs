//! The signals that end a process in order.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancels `stop` at SIGTERM or SIGINT.
pub async fn cancel_on_signal(stop: CancellationToken) {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return stop.cancel();
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    tracing::info!("asked to stop: finishing what is under way");
    stop.cancel();
}
