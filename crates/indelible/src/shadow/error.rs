//! Why an object could not be attached, tracked or grown.

use std::io;

use indelible_store::medium::MediumError;

use crate::dirty::DirtyError;
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
    /// The object's bytes could not be read.
    #[error("cannot read the object: {0}")]
    Read(#[from] MediumError),
    /// A page could not be read when it was touched; its object must be attached anew.
    #[error("cannot read page {page} of the object: {why}")]
    Unreadable { page: usize, why: String },
    /// Faults could not be served.
    #[error("cannot fill pages on demand: {0}")]
    Serve(io::Error),
    /// The range could not be given its protection.
    #[error("cannot protect the object's memory: {0}")]
    Protect(io::Error),
}
