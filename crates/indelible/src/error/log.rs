use super::ErrorKind;

#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    #[error("it holds no log: {0}")]
    NotALog(&'static str),
    #[error("the log is damaged at byte {at}: {why}")]
    Damaged { at: usize, why: &'static str },
    #[error("a record of {len} bytes is longer than 4 GiB")]
    TooLong { len: usize },
}

impl LogError {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            LogError::NotALog(_) => ErrorKind::RootType,
            LogError::Damaged { .. } => ErrorKind::Damaged,
            LogError::TooLong { .. } => ErrorKind::BadSize,
        }
    }

    pub(super) fn remedy(&self) -> &'static str {
        match self {
            LogError::NotALog(_) => "name another object; one that does not exist is created",
            LogError::Damaged { .. } => {
                "go back to a snapshot or a backup; records before the damage can be read"
            }
            LogError::TooLong { .. } => "append it in parts",
        }
    }
}
