use std::io;
use std::sync::Arc;

use indelible_store::error::StoreError;
use indelible_store::medium::MediumError;

use crate::dirty::DirtyError;
use crate::fault::{LostWord, PageError};
use crate::mapping::MappingError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ShadowError {
    #[error(transparent)]
    Mapping(#[from] MappingError),
    #[error(transparent)]
    Dirty(#[from] DirtyError),
    /// A source lacks a page. If a touch met that, the object must be attached anew.
    #[error(transparent)]
    Page(Arc<PageError>),
    #[error("cannot fill pages on demand: {0}")]
    Serve(io::Error),
    #[error(
        "the memory of sealed objects is limited only with userfaultfd (Linux 6.6), which this process does not have"
    )]
    Unlimited,
    #[error("cannot protect the object's memory: {0}")]
    Protect(io::Error),
}

impl From<PageError> for ShadowError {
    fn from(error: PageError) -> ShadowError {
        ShadowError::Page(Arc::new(error))
    }
}

impl ShadowError {
    pub(crate) fn store(&self) -> Option<&StoreError> {
        match self {
            ShadowError::Page(error) => error.source.downcast_ref(),
            _ => None,
        }
    }

    pub(crate) fn is_of_lost_word(&self) -> bool {
        matches!(self, ShadowError::Page(error) if error.source.is::<LostWord>())
    }

    pub(crate) fn medium(&self) -> Option<&MediumError> {
        match self {
            ShadowError::Page(error) => error.source.downcast_ref(),
            _ => None,
        }
    }
}
