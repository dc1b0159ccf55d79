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

const TOLD: &str = "told that the change is durable";

impl AnchorError {
    pub(crate) fn read(source: io::Error) -> Cause {
        Cause::Anchor(AnchorError { what: "read", source })
    }

    pub(crate) fn written(source: io::Error) -> Cause {
        Cause::Anchor(AnchorError { what: "written", source })
    }

    /// The cause, of a change that happened all the same.
    pub(crate) fn after_a_change(cause: Cause) -> Cause {
        match cause {
            Cause::Anchor(AnchorError { source, .. }) => Cause::Anchor(AnchorError { what: TOLD, source }),
            cause => cause,
        }
    }

    pub(super) fn remedy(&self) -> &'static str {
        if self.what == TOLD {
            "the next attach for writing tells it, and until then the state before the change passes as well; if the anchor is gone for good, `pmo key anchor` sets another one"
        } else {
            "nothing of the object is lost: try again once the anchor can be reached; if it is gone for good, `pmo key anchor` sets another one"
        }
    }
}
