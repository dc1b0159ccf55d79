//! Anchors that cannot be reached.

use super::Cause;
use std::io;

/// An anchor that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("its anchor cannot be {what}: {source}")]
pub(crate) struct AnchorError {
    what: &'static str,
    pub(crate) source: io::Error,
}

impl AnchorError {
    pub(crate) fn read(source: io::Error) -> Cause {
        Cause::Anchor(AnchorError { what: "read", source })
    }

    pub(crate) fn written(source: io::Error) -> Cause {
        Cause::Anchor(AnchorError { what: "written", source })
    }
}
