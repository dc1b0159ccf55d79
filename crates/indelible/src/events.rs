use crate::error::{Error, ErrorKind};

pub(crate) fn attached(object: &str, bytes: usize, recovered_bytes: u64) {
    #[cfg(feature = "tracing")]
    match recovered_bytes {
        0 => tracing::debug!(target: "indelible", object, bytes, "attached"),
        _ => tracing::info!(target: "indelible", object, bytes, recovered_bytes, "attached and recovered"),
    }
    let _ = (object, bytes, recovered_bytes);
}

pub(crate) fn psynced(object: &str, logged_bytes: impl FnOnce() -> u64) {
    #[cfg(feature = "tracing")]
    if tracing::enabled!(target: "indelible", tracing::Level::TRACE) {
        tracing::trace!(target: "indelible", object, logged_bytes = logged_bytes(), "psync");
        return;
    }
    let _ = (object, logged_bytes);
}

pub(crate) fn grown(object: &str, bytes: u64) {
    #[cfg(feature = "tracing")]
    tracing::debug!(target: "indelible", object, bytes, "grown");
    let _ = (object, bytes);
}

pub(crate) fn failed(error: &Error) {
    #[cfg(feature = "tracing")]
    match error.kind() {
        ErrorKind::Io | ErrorKind::Poisoned => tracing::error!(target: "indelible", %error, "failed"),
        _ => tracing::debug!(target: "indelible", %error, "failed"),
    }
    let _ = (error, ErrorKind::Io);
}
