//! Failures of the medium, and their place in an operation.

use super::StoreError;
use crate::medium::MediumError;

/// How a medium failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Read,
    Write,
}

impl StoreError {
    /// The failure of the medium behind it; `None`: the error is about the bytes that the medium
    /// holds.
    pub(crate) fn failure(&self) -> Option<Failure> {
        match self {
            StoreError::Failed(_) | StoreError::NotApplied(_) | StoreError::NoSpace => Some(Failure::Write),
            StoreError::Medium(_) | StoreError::EntryRefused { cause: Some(_), .. } => Some(Failure::Read),
            StoreError::LaneRefused { cause, .. } => cause.failure(),
            _ => None,
        }
    }

    /// The error for the medium's failure behind the commit of a psync: it did not undo that.
    pub(crate) fn behind_commit(self) -> Self {
        match self {
            StoreError::Medium(cause) | StoreError::Failed(cause) => StoreError::NotApplied(cause),
            StoreError::Poisoned => StoreError::NotApplied(MediumError::Faulted),
            other => other,
        }
    }

    /// The error of a psync that is one step of an operation: that the step is durable says nothing
    /// of the rest.
    pub(crate) fn of_step(self) -> Self {
        match self {
            StoreError::NotApplied(cause) => StoreError::Failed(cause),
            other => other,
        }
    }
}
