//! Why an object could not be attached, tracked or grown.

use std::io;
use std::sync::Arc;

use indelible_store::error::StoreError;
use indelible_store::medium::MediumError;

use crate::dirty::DirtyError;
use crate::fault::{LostWord, PageError};
use crate::mapping::MappingError;

/// Why an object could not be attached, tracked or grown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShadowError {
    /// The address range could not be mapped.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// Stores could not be tracked.
    #[error(transparent)]
    Dirty(#[from] DirtyError),
    /// A page could not be had from its source. If that was when it was touched, its object must be
    /// attached anew.
    #[error(transparent)]
    Page(Arc<PageError>),
    /// Faults could not be served.
    #[error("cannot fill pages on demand: {0}")]
    Serve(io::Error),
    /// The range could not be given its protection.
    #[error("cannot protect the object's memory: {0}")]
    Protect(io::Error),
}

impl From<PageError> for ShadowError {
    fn from(error: PageError) -> ShadowError {
        ShadowError::Page(Arc::new(error))
    }
}

impl ShadowError {
    /// The store's error, if it is what kept a page from being read.
    pub(crate) fn store(&self) -> Option<&StoreError> {
        match self {
            ShadowError::Page(error) => error.source.downcast_ref(),
            _ => None,
        }
    }

    /// Whether a word that is damaged beyond repair kept a page from being read.
    pub(crate) fn is_of_lost_word(&self) -> bool {
        matches!(self, ShadowError::Page(error) if error.source.is::<LostWord>())
    }

    /// The medium's error, if it is what kept a page from being read.
    pub(crate) fn medium(&self) -> Option<&MediumError> {
        match self {
            ShadowError::Page(error) => error.source.downcast_ref(),
            _ => None,
        }
    }
}
