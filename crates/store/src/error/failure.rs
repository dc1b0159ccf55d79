//! Failures of the medium, and their place in an operation.

use super::StoreError;
use crate::medium::MediumError;

/// The operation of the medium that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Read,
    Write,
}

impl StoreError {
    /// The medium's failure; `None`: the error is about bytes on the medium.
    pub(crate) fn failure(&self) -> Option<Failure> {
        match self {
            StoreError::Failed(_) | StoreError::NotApplied(_) | StoreError::NoSpace => Some(Failure::Write),
            StoreError::Medium(_) | StoreError::EntryRefused { cause: Some(_), .. } => Some(Failure::Read),
            StoreError::LaneRefused { cause, .. } => cause.failure(),
            _ => None,
        }
    }

    /// The error of a psync that is durable but not applied.
    pub(crate) fn behind_commit(self) -> Self {
        match self {
            StoreError::Medium(cause) | StoreError::Failed(cause) => StoreError::NotApplied(cause),
            StoreError::Poisoned => StoreError::NotApplied(MediumError::Faulted),
            other => other,
        }
    }

    /// The error of a psync within a larger operation.
    pub(crate) fn of_step(self) -> Self {
        match self {
            StoreError::NotApplied(cause) => StoreError::Failed(cause),
            other => other,
        }
    }
}
