use super::Cause;
use std::io;

#[derive(Debug, thiserror::Error)]
#[error("its anchor cannot be {step}: {source}")]
pub(crate) struct AnchorError {
    step: Step,
    pub(crate) source: io::Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Step {
    #[error("read")]
    Read,
    #[error("written")]
    Written,
    #[error("told that the change is durable")]
    Told,
}

impl AnchorError {
    pub(crate) fn read(source: io::Error) -> Cause {
        Cause::Anchor(AnchorError { step: Step::Read, source })
    }

    pub(crate) fn written(source: io::Error) -> Cause {
        Cause::Anchor(AnchorError { step: Step::Written, source })
    }

    pub(crate) fn after_a_change(cause: Cause) -> Cause {
        match cause {
            Cause::Anchor(error) => Cause::Anchor(AnchorError { step: Step::Told, ..error }),
            cause => cause,
        }
    }

    pub(super) fn remedy(&self) -> &'static str {
        if self.step == Step::Told {
            "the next attach for writing tells it, and until then the state before the change passes as well; if the anchor is gone for good, `pmo key anchor` sets another one"
        } else {
            "nothing of the object is lost: try again once the anchor can be reached; if it is gone for good, `pmo key anchor` sets another one"
        }
    }
}
