use super::StoreError;

impl StoreError {
    /// The same error for another thread, if the pool refused the call before anything of it
    /// reached the medium: it may be repeated. `None`: any other error.
    #[must_use]
    pub fn refusal(&self) -> Option<StoreError> {
        Some(match *self {
            StoreError::NoSpace => StoreError::NoSpace,
            StoreError::NoRoom { needed, largest, free } => StoreError::NoRoom { needed, largest, free },
            StoreError::NoAddresses { needed, largest } => StoreError::NoAddresses { needed, largest },
            StoreError::BadSize { size, why } => StoreError::BadSize { size, why },
            StoreError::TableBusy { seconds, holder } => StoreError::TableBusy { seconds, holder },
            StoreError::HeldStill { lane, seconds, holder } => {
                StoreError::HeldStill { lane, seconds, holder }
            }
            _ => return None,
        })
    }

    /// Whether the pool refused the call before anything of it reached the medium.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.refusal().is_some()
    }
}
