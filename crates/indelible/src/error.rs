//! Errors, with operation, object, pool, reason and remedy.

mod anchor;
mod command;
mod far;
mod heap;
mod key_source;
mod kind;
mod kinds;
mod log;
mod security;
mod shared;
mod system;
mod transaction;
mod view;

pub(crate) use anchor::AnchorError;
pub(crate) use command::CommandError;
pub(crate) use far::FarError;
pub(crate) use heap::{HeapError, Limit};
pub(crate) use key_source::{CREDENTIALS, KeySourceError};
pub use kind::ErrorKind;
pub(crate) use log::LogError;
pub(crate) use security::SecurityError;
pub(crate) use shared::{QueueMisfit, SharedError};
pub(crate) use transaction::TransactionError;
pub(crate) use view::ViewError;

use crate::dirty::DirtyError;
use crate::mapping::MappingError;
use crate::media::MediaError;
use crate::memory::MemoryError;
use crate::shadow::ShadowError;
use indelible_store::error::{LengthError, StoreError};
use indelible_store::medium::{FORMATTED, MediumError};
use kinds::{dirty_kind, mapping_kind, media_kind, memory_kind, shadow_kind, store_kind};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Media(#[from] MediaError),
    #[error(transparent)]
    Mapping(#[from] MappingError),
    #[error(transparent)]
    Dirty(#[from] DirtyError),
    #[error(transparent)]
    Shadow(#[from] ShadowError),
    #[error("no attached object is at {0:#x}")]
    NotAttached(usize),
    #[error("the attachment is no longer in force")]
    Detached,
    #[error("only a snapshot is attached at addresses that the kernel chooses")]
    Anywhere,
    #[error("a snapshot at addresses that the kernel chose stays at its psync")]
    StaysAtItsPsync,
    #[error("another object, at other addresses, has its name now")]
    Replaced,
    #[error("the pool was opened by another process, of which this one is a fork")]
    Forked,
    #[error("the object is attached for reading")]
    ForReading,
    #[error("it is a copy of pool {}, which this process has open: both have the same ID and addresses", .0.display())]
    Copy(PathBuf),
    #[error("the root needs {needed} bytes and the object has {size}")]
    RootTooLarge { needed: usize, size: usize },
    #[error("addresses in it mean nothing in the next run: {0}")]
    Stray(String),
    #[error("{0}")]
    Unsupported(String),
    #[error(transparent)]
    Anchor(#[from] AnchorError),
    #[error(transparent)]
    Heap(#[from] HeapError),
    #[error(transparent)]
    KeySource(#[from] KeySourceError),
    #[error(transparent)]
    Transaction(#[from] TransactionError),
    #[error(transparent)]
    Far(#[from] FarError),
    #[error(transparent)]
    View(#[from] ViewError),
    #[error(transparent)]
    Security(#[from] SecurityError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Shared(#[from] SharedError),
    #[error(transparent)]
    Log(#[from] LogError),
}

impl Cause {
    fn kind(&self) -> ErrorKind {
        match self {
            Cause::Store(error) => store_kind(error),
            Cause::Media(error) => media_kind(error),
            Cause::Mapping(error) => mapping_kind(error),
            Cause::Dirty(error) => dirty_kind(error),
            Cause::Shadow(error) => shadow_kind(error),
            Cause::NotAttached(_) | Cause::Detached => ErrorKind::NotAttached,
            Cause::Replaced => ErrorKind::NotFound,
            Cause::Forked => ErrorKind::Forked,
            Cause::ForReading => ErrorKind::ReadOnly,
            Cause::Copy(_) | Cause::Anywhere | Cause::StaysAtItsPsync => ErrorKind::Unsuitable,
            Cause::RootTooLarge { .. } => ErrorKind::BadSize,
            Cause::Stray(_) => ErrorKind::StrayPointer,
            Cause::Unsupported(_) => ErrorKind::Unsupported,
            Cause::Anchor(_) => ErrorKind::Io,
            Cause::Heap(error) => error.kind(),
            Cause::Transaction(error) => error.kind(),
            Cause::Far(error) => error.kind(),
            Cause::View(error) => error.kind(),
            Cause::Security(error) => error.kind(),
            Cause::Memory(error) => memory_kind(error),
            Cause::Shared(error) => error.kind(),
            Cause::Log(error) => error.kind(),
            Cause::KeySource(KeySourceError::File { .. }) => ErrorKind::Io,
            Cause::KeySource(_) => ErrorKind::Sealed,
        }
    }
}

impl From<&Cause> for Limit {
    fn from(cause: &Cause) -> Self {
        match cause {
            Cause::Store(StoreError::NoAddresses { .. }) => Limit::Reach,
            Cause::Store(StoreError::NoRoom { .. }) => Limit::Room,
            Cause::Store(StoreError::NoSpace) => Limit::Space,
            Cause::Memory(MemoryError::Backing(error))
                if kinds::backing_kind(error) == ErrorKind::NoSpace =>
            {
                Limit::Space
            }
            other if other.kind() == ErrorKind::Poisoned => Limit::Poisoned(other.to_string()),
            other => Limit::Other(other.to_string()),
        }
    }
}

impl From<&Error> for Limit {
    fn from(error: &Error) -> Self {
        Limit::from(&*error.0.cause)
    }
}

/// A failed operation. It did not happen, unless the kind is [`Io`](ErrorKind::Io) or
/// [`Poisoned`](ErrorKind::Poisoned): then it happened as a whole or not at all, which the next
/// attach determines.
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    operation: &'static str,
    pool: Option<PathBuf>,
    object: Option<String>,
    cause: Arc<Cause>,
}

impl Error {
    pub(crate) fn new(operation: &'static str, cause: impl Into<Cause>) -> Self {
        Error(Box::new(Inner { operation, pool: None, object: None, cause: Arc::new(cause.into()) }))
    }

    pub(crate) fn pool(mut self, path: &Path) -> Self {
        self.0.pool = Some(path.to_owned());
        self
    }

    pub(crate) fn object(mut self, name: &str) -> Self {
        self.0.object = Some(name.to_owned());
        self
    }

    /// The operation that failed: "attach", "psync", …
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// The object's name.
    #[must_use]
    pub fn object_name(&self) -> Option<&str> {
        self.0.object.as_deref()
    }

    /// The pool's path.
    #[must_use]
    pub fn pool_path(&self) -> Option<&Path> {
        self.0.pool.as_deref()
    }

    /// The kind of the cause.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.cause.kind()
    }

    /// The operating system's error number, if that is the cause, such as 28 for `ENOSPC`.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.0.cause.system().and_then(io::Error::raw_os_error)
    }

    /// Advice to the user, one sentence without a full stop.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        if let Cause::Heap(error) = &*self.0.cause
            && let Some(remedy) = error.remedy()
        {
            return remedy;
        }
        match &*self.0.cause {
            Cause::ForReading => return "attach for writing",
            Cause::Anchor(error) => return error.remedy(),
            Cause::KeySource(error) => return error.remedy(),
            Cause::Transaction(error) => return error.remedy(),
            Cause::Far(error) => return error.remedy(),
            Cause::View(error) => return error.remedy(),
            Cause::Security(error) => return error.remedy(),
            Cause::Memory(error) if kinds::memory_remedy(error).is_some() => {
                return kinds::memory_remedy(error).unwrap_or_default();
            }
            Cause::Log(error) => return error.remedy(),
            Cause::Shared(error) if error.remedy().is_some() => return error.remedy().unwrap_or_default(),
            Cause::Store(StoreError::Held { holder, .. }) if holder.is_this_process() => {
                return "detach it first: a process attaches an object once for writing, or any number of times for reading";
            }
            Cause::Anywhere => return "attach a snapshot, or at the object's own addresses",
            Cause::StaysAtItsPsync => return "attach another one, and detach this one",
            Cause::Replaced => return "detach this one, and attach the other",
            Cause::Store(StoreError::TieTarget) => return "tie it to the object that the snapshot is of",
            Cause::Store(StoreError::BadLabel { .. }) => return "give a shorter label",
            Cause::Store(StoreError::BadLength { .. }) => return "ask for a size between 1 MiB and 32 TiB",
            Cause::Store(StoreError::Length(LengthError::NotLonger { .. })) => {
                return "format a smaller pool, and bring its objects there (`pmo cp`)";
            }
            Cause::Store(StoreError::Length(LengthError::TooLong { .. })) => {
                return "ask for less, or format a longer pool, and bring its objects there (`pmo cp`)";
            }
            Cause::Store(StoreError::Version { found, known, .. }) if found < known => {
                return "`pmo upgrade` converts it in place";
            }
            Cause::Store(StoreError::NotSound { .. }) => {
                return "repair it with `pmo` of release 0.1, or restore it from a backup";
            }
            Cause::Store(StoreError::NoSuperblock) => return "restore the pool from a backup",
            Cause::Store(StoreError::Truncated { .. }) => {
                return "`pmo check` says what was cut off, and how to bring back the rest";
            }
            Cause::Store(StoreError::NotApplied(_)) => {
                return "the psync is kept: detach what this process has attached of the pool, and attach again";
            }
            Cause::Store(StoreError::Upgrading) => return "`pmo upgrade` ends it; nothing is lost until then",
            Cause::Store(StoreError::Medium(MediumError::Gone { what: FORMATTED })) => {
                return "open the pool again; the objects that it had are gone";
            }
            Cause::Media(error) if error.permission().is_some() => {
                return error.permission().unwrap_or_default();
            }
            Cause::Copy(_) => {
                return "use one of them at a time, or each in a process of its own; `pmo clone` copies a pool to one with an ID of its own";
            }
            _ => {}
        }
        if let Some(remedy) = kinds::seal_remedy(&self.0.cause) {
            return remedy;
        }
        let of_device = self.0.cause.is_of_device();
        if let Cause::Store(StoreError::Failed(_)) = &*self.0.cause {
            return match of_device {
                true => {
                    "detach and attach again, which recovers every psync that was acknowledged; the kernel log (dmesg) \
                     has the device's errors"
                }
                false if self.raw_os_error() == Some(libc::ENOSPC) => {
                    "free space on the file system, which may need it for each store; then detach and attach again, which recovers \
                     every psync that was acknowledged; a pool that is opened for reading only needs no space"
                }
                false => "detach and attach again, which recovers every psync that was acknowledged",
            };
        }
        if let Some(remedy) = self.0.cause.limit() {
            return remedy;
        }
        match self.kind() {
            ErrorKind::Io if of_device => "look for the device's errors in the kernel log (dmesg)",
            ErrorKind::Io => {
                "the system's own error says what it refused; `pmo doctor PATH` says what is possible"
            }
            ErrorKind::NoPool if self.0.operation == "format" => {
                "make the folder first, or choose another path"
            }
            ErrorKind::NoPool => "create it with `pmo format` or Pool::format",
            ErrorKind::NotAPool if matches!(self.0.operation, "check" | "repair") => {
                "check the path; if it was a pool, restore it from a backup: no copy of its superblock lies at its end"
            }
            ErrorKind::NotAPool => {
                "check the path; `pmo doctor PATH` says what can be done with it; if the beginning of a pool was overwritten, `pmo repair` \
                 brings it back from the copy at its end"
            }
            ErrorKind::Version => "use the version of Indelible that wrote the pool, or a newer one",
            ErrorKind::Gone if self.0.object.is_some() => {
                "restore the file, then attach again; unsynced changes are still in memory until you detach"
            }
            ErrorKind::Gone => "bring the file back, or restore it from a backup, and open it again",
            ErrorKind::Damaged => "run `pmo check`, then `pmo repair`",
            ErrorKind::PoolExists => {
                "choose another path, or format with force, which destroys the pool's objects"
            }
            ErrorKind::Unsuitable => "choose another path or medium; `pmo doctor PATH` says what is possible",
            ErrorKind::ReadOnly if self.0.operation == "open" => {
                "get write access to the file, or open the pool read-only"
            }
            ErrorKind::ReadOnly => {
                "open the pool for writing, which takes write access to its file; reading needs neither"
            }
            ErrorKind::NoSpace => "free space on the file system and try again; nothing psynced is lost",
            ErrorKind::NoRoom => "destroy objects, or make the pool longer (`pmo grow`, Pool::grow)",
            ErrorKind::NoAddresses => "destroy objects, or create the object anew with a larger reach",
            ErrorKind::NotFound => "`pmo ls` lists the pool's objects",
            ErrorKind::Exists => "choose another name, or destroy the object first",
            ErrorKind::BadName => {
                "a name is 1 to 511 bytes of UTF-8 without control characters or surrounding blanks"
            }
            ErrorKind::BadSize => "ask for a size between 1 byte and what the pool can hold",
            ErrorKind::WrongKey => "give the key the object was created with",
            ErrorKind::ObjectReadOnly => "attach for reading",
            ErrorKind::Held => "wait until the holder detaches or ends; `pmo ls` shows who it is",
            ErrorKind::Busy => "try again, or wait longer (`PoolOptions::wait`, `pmo --wait`)",
            ErrorKind::NeedsRecovery => "open the pool writable once, then the object is recovered",
            ErrorKind::Poisoned => {
                "detach what this process has attached of the pool and attach again: that recovers every psync \
                 that was acknowledged"
            }
            ErrorKind::NotAttached => "attach the object first; an attachment ends with its detach",
            ErrorKind::AddressTaken => {
                "attach before other libraries map memory there, or in another process"
            }
            ErrorKind::Forked => "open the pool again in this process",
            ErrorKind::Unsupported => "`pmo doctor` says what this machine offers",
            ErrorKind::NotAHeap => "check the name; `Heap::format` makes a heap of a new object",
            ErrorKind::HeapFull => {
                "free blocks, grow the object, or let the heap do so (`HeapOptions::grow`, `PMO_HEAP_GROW`)"
            }
            ErrorKind::NotABlock => "give the address that the allocation returned, to the heap it came from",
            ErrorKind::DoubleFree => "free each block once; the debug mode of the heap helps to find out",
            ErrorKind::BadAlignment => "ask for a power of two of at most 2 MiB",
            ErrorKind::Overwritten => "look for stores beyond the end of the block, or after it was freed",
            ErrorKind::RootMissing => "`Heap::roots` lists the roots there are",
            ErrorKind::RootExists => "choose another name, or remove the root first",
            ErrorKind::BadWindow => "give a first address and a length that fit, or none: one is chosen then",
            ErrorKind::RootType => "use the type the root was made with, or convert the data",
            ErrorKind::DifferentPools => "psync the objects of each pool by themselves",
            ErrorKind::StrayPointer => "keep addresses within the object; nothing of this psync is durable",
            ErrorKind::VolatileGone => "create it anew under the same name, or remove it with `pmo rm`",
            ErrorKind::TieCycle => "`pmo stat` shows the ties of an object, `pmo untie` takes one back",
            ErrorKind::TooManyTies => "tie it to one object that is tied to the others",
            ErrorKind::Sealed => {
                "`pmo stat` says whether an object is sealed, `pmo key list` which keys open it"
            }
            ErrorKind::PoolBehind => "put the newest state back; if this one is meant, `pmo key anchor`",
            ErrorKind::AnchorBehind => {
                "put the newest anchor back; if the object is known to be right, `pmo key anchor`"
            }
            ErrorKind::ClassMismatch => {
                "`pmo stat` shows its class, `pmo set --class` changes it while the object is detached"
            }
            ErrorKind::InTransaction => "make the call before the transaction, or after it",
            ErrorKind::Conflict => "return it from the transaction's closure, which is run again",
            ErrorKind::Dangling => {
                "`pmo check --references` lists such pointers; name the pool that has the object, or change the entry (`Heap::retarget`)"
            }
            ErrorKind::Denied => "have a security context of the program allow it (`pmo context allow`)",
            ErrorKind::Internal => "report it, with the version and what was done",
            ErrorKind::Untrusted => "verify the heap with `Heap::verify`, or attach the object for reading",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { operation, pool, object, cause } = &*self.0;
        // Errors of the medium name the path themselves, and some of them the operation.
        if matches!(&**cause, Cause::Media(MediaError::Io { action, .. }) if action == operation) {
            return write!(f, "{cause} ({})", self.remedy());
        }
        write!(f, "cannot {operation}")?;
        let pool = pool.as_ref().filter(|_| !matches!(**cause, Cause::Media(_)));
        if let Some(object) = object {
            write!(f, " object {object:?}")?;
        }
        if let Some(pool) = pool {
            write!(f, "{} pool {}", if object.is_some() { " of" } else { "" }, pool.display())?;
        }
        write!(f, ": {cause} ({})", self.remedy())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause.system().map(|error| error as _)
    }
}
