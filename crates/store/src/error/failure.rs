use super::StoreError;
use crate::medium::MediumError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Read,
    Write,
}

impl StoreError {
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

    pub(crate) fn of_step(self) -> Self {
        match self {
            StoreError::NotApplied(cause) => StoreError::Failed(cause),
            other => other,
        }
    }
}
