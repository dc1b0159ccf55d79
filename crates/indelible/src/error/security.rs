use super::{Error, ErrorKind};
use crate::entries::Misfit;
use crate::protection::ProtectionError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SecurityError {
    #[error("the object holds no security context")]
    NotAContext,
    #[error("the security context has version {found}, and this release knows version {known}")]
    Version { found: u32, known: u32 },
    #[error("the security context is damaged: {0}")]
    Damaged(String),
    #[error("a security context has {most} entries at most, not {entries}")]
    TooLarge { entries: usize, most: usize },
    #[error("all {0} entries of the security context are taken")]
    Full(usize),
    #[error("{0} is no right of an object: it can be loaded from, or loaded from and stored to, or neither")]
    Rights(String),
    #[error("security contexts are delegated to each other in a circle")]
    Circle,
    #[error("more than {0} security contexts are delegated to the ones that were asked for")]
    TooMany(usize),
    #[error("security context {:?}: {}", .0.object_name().unwrap_or_default(), .0.0.cause)]
    Unreadable(Error),
    #[error("no security context allows {what}: {contexts}")]
    Denied { what: &'static str, contexts: String },
    #[error("{0:?} is none of the view's security contexts")]
    NotAContextOf(String),
    #[error("no security context was named, and no thread could have anything of the view's objects")]
    NoContexts,
    #[error("the object came, or its rights changed, after the view was adopted last")]
    NoClass,
    #[error(transparent)]
    Pages(#[from] ProtectionError),
}

impl From<Misfit> for SecurityError {
    fn from(misfit: Misfit) -> Self {
        match misfit {
            Misfit::Other => SecurityError::NotAContext,
            Misfit::Version { found, known } => SecurityError::Version { found, known },
            Misfit::Damaged(how) => SecurityError::Damaged(how),
        }
    }
}

impl SecurityError {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            SecurityError::NotAContext
            | SecurityError::Rights(_)
            | SecurityError::Circle
            | SecurityError::NoContexts => ErrorKind::Unsuitable,
            SecurityError::Version { .. } => ErrorKind::Version,
            SecurityError::Damaged(_) => ErrorKind::Damaged,
            SecurityError::TooLarge { .. } | SecurityError::Full(_) | SecurityError::TooMany(_) => {
                ErrorKind::BadSize
            }
            SecurityError::Unreadable(error) => error.kind(),
            SecurityError::Denied { .. } => ErrorKind::Denied,
            SecurityError::NotAContextOf(_) => ErrorKind::NotFound,
            SecurityError::NoClass => ErrorKind::Busy,
            SecurityError::Pages(error) => match error {
                ProtectionError::NoKeys { .. } => ErrorKind::NoRoom,
                ProtectionError::Lacking(_) => ErrorKind::Unsupported,
                ProtectionError::Forked => ErrorKind::Forked,
                ProtectionError::Open(_) | ProtectionError::Io { .. } | ProtectionError::Refused(_) => {
                    ErrorKind::Io
                }
            },
        }
    }

    pub(super) fn remedy(&self) -> &'static str {
        match self {
            SecurityError::NotAContext => "check the name: `SecurityContext::create` makes them",
            SecurityError::Version { .. } => "use the release that made the security context, or a newer one",
            SecurityError::Damaged(_) => {
                "make a new one (`pmo context create`), or take an older one back (`pmo rollback`)"
            }
            SecurityError::TooLarge { .. } => "ask for fewer, and delegate from several contexts",
            SecurityError::Full(_) => {
                "clear entries that are not needed, or make a context with more room, and delegate from this one"
            }
            SecurityError::Rights(_) => "give loads, or loads and stores, or nothing",
            SecurityError::Circle => "clear one of the delegations (`pmo context list` shows them)",
            SecurityError::TooMany(_) => "delegate from fewer contexts",
            SecurityError::Unreadable(error) => error.remedy(),
            SecurityError::Denied { .. } => {
                "have a context of the program allow it (`pmo context allow`), then adopt the view again"
            }
            SecurityError::NotAContextOf(_) => "attach the view in it, too",
            SecurityError::NoContexts => "name those that its threads are to be within",
            SecurityError::NoClass => "adopt the view",
            SecurityError::Pages(ProtectionError::NoKeys { .. }) => {
                "give objects the same rights in each of the contexts, or attach the view in fewer of them"
            }
            SecurityError::Pages(_) => {
                "attach the view without contexts of threads (`AttachedView::attach_in`)"
            }
        }
    }
}
