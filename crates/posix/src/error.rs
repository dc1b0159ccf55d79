//! Errors, by the numbers of POSIX.

use indelible::ErrorKind;
use std::fmt;
use std::path::Path;

/// Result of an operation on a volume.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed operation. Nothing was changed, unless [`Volume::failure`](crate::Volume::failure)
/// reports damage.
#[derive(Clone, Debug)]
pub struct Error {
    errno: i32,
    what: &'static str,
    about: Option<Box<str>>,
    cause: Option<indelible::Error>,
    outside: bool,
}

impl Error {
    pub(crate) const fn new(errno: i32, what: &'static str) -> Error {
        Error { errno, what, about: None, cause: None, outside: false }
    }

    /// An error of a file outside of the volume.
    pub(crate) fn outside(errno: i32, what: &'static str, path: &Path) -> Error {
        Error { outside: true, ..Error::new(errno, what).about(path.display().to_string()) }
    }

    pub(crate) fn about(mut self, about: impl Into<Box<str>>) -> Error {
        self.about = Some(about.into());
        self
    }

    /// The number in `errno.h`, such as `ENOENT`.
    #[must_use]
    pub const fn errno(&self) -> i32 {
        self.errno
    }

    /// Whether a file of the system failed, to or from which a copy went, and not the volume.
    #[must_use]
    pub const fn is_outside(&self) -> bool {
        self.outside
    }
}

impl From<indelible::Error> for Error {
    fn from(cause: indelible::Error) -> Error {
        let (errno, what) = match cause.kind() {
            ErrorKind::HeapFull | ErrorKind::NoRoom | ErrorKind::NoSpace | ErrorKind::NoAddresses => {
                (libc::ENOSPC, "no room in the pool")
            }
            ErrorKind::ReadOnly | ErrorKind::ObjectReadOnly => (libc::EROFS, "the volume is read-only"),
            ErrorKind::Held | ErrorKind::Busy => (libc::EBUSY, "the volume is in use"),
            ErrorKind::NotFound => (libc::ENOENT, "no such volume"),
            ErrorKind::WrongKey | ErrorKind::Denied => (libc::EACCES, "the volume needs a key"),
            ErrorKind::RootMissing | ErrorKind::RootType | ErrorKind::NotAHeap => {
                (libc::EINVAL, "the object is no volume")
            }
            _ => (libc::EIO, "the volume failed"),
        };
        Error { cause: Some(cause), ..Error::new(errno, what) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(about) = &self.about {
            write!(f, "{about}: ")?;
        }
        f.write_str(self.what)?;
        self.cause.iter().try_for_each(|cause| write!(f, ": {cause}"))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}
