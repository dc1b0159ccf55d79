//! Errors of the store, by cause. The layers above add operation and object.

mod class;
mod date;
mod failure;
mod length;
mod part;
mod refusal;
mod seal;

pub use class::ClassError;
pub use date::date_time;
pub(crate) use failure::Failure;
pub use length::LengthError;
pub use part::Part;
pub use seal::SealError;

use crate::medium::{Fatal, MediumError, Others, Process, ReserveError};

/// Cause of a failed operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages tell")]
pub enum StoreError {
    /// The medium could not be read, locked or inspected. Nothing happened.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// The medium or its file system is full. Nothing happened; the call may be repeated.
    #[error("no space left on the medium")]
    NoSpace,
    /// A write failed. The operation happened as a whole or not at all; the next attach tells.
    #[error("the medium failed: {0}; the operation took effect as a whole or not at all")]
    Failed(MediumError),
    /// The psync is durable, but applying it failed; the next attach applies it.
    #[error("the medium failed: {0}; the psync is durable, and the next attach applies it")]
    NotApplied(MediumError),
    #[error("this is not an Indelible pool (no superblock magic)")]
    NotAPool,
    #[error("the pool has format version {found}{}, this software uses version {known}", by(release))]
    Version {
        found: u32,
        known: u32,
        /// Release that wrote the pool, if known.
        release: String,
    },
    /// The pool cannot be upgraded as it is. Nothing changed, or the upgrade continues after a
    /// repair.
    #[error("the pool is not sound: {found}")]
    NotSound { found: String },
    #[error("an upgrade of the pool was cut short")]
    Upgrading,
    #[error("the object has {unknown}, which this release does not know")]
    ObjectFeature { unknown: crate::format::entry::Unknown },
    #[error("the batch at offset {offset} has a section of kind {kind}, which this release does not know")]
    SectionKind { offset: u64, kind: u16 },
    #[error("the pool{} uses features that this release does not know ({bits:#x})", by(release))]
    Features { bits: u32, release: String },
    #[error("both superblock slots are damaged, and no copy lies behind the pool")]
    NoSuperblock,
    #[error("the pool says it has {pool} bytes but the medium has only {medium}: it was truncated")]
    Truncated { pool: u64, medium: u64 },
    #[error("{len} bytes cannot hold a pool: at least {min} and at most {max} are needed")]
    BadLength { len: u64, min: u64, max: u64 },
    /// The pool cannot have this length.
    #[error(transparent)]
    Length(#[from] LengthError),
    #[error("there is a pool on this medium already")]
    AlreadyAPool,
    #[error("the {part} at offset {offset} is damaged")]
    Damaged { part: Part, offset: u64 },
    /// A dead writer's lane cannot be recovered as it is. Nothing of it is lost.
    #[error(
        "lane {lane}, which has psyncs of a writer that is gone, cannot be recovered: {cause}; nothing of it is lost, \
         `pmo check` and `pmo repair` say what can be done"
    )]
    LaneRefused { lane: u32, cause: Box<StoreError> },
    #[error("the table entry at {offset} {what}{}", because(.cause.as_ref()))]
    EntryRefused {
        offset: u64,
        /// Defect, as a predicate.
        what: &'static str,
        cause: Option<MediumError>,
    },
    #[error("its batch {sequence} at {offset} is damaged: {proof}")]
    BatchDamaged { sequence: u64, offset: u64, proof: String },
    #[error(
        "no room: {needed} bytes in one piece are needed, the largest free piece has {largest} ({free} bytes are free in all)"
    )]
    NoRoom { needed: u64, largest: u64, free: u64 },
    #[error("no room in the pool's address window for {needed} bytes (largest free range: {largest})")]
    NoAddresses { needed: u64, largest: u64 },
    #[error("the {len} bytes of addresses from {address:#x} are another object's, or none of this pool's")]
    AddressesTaken { address: u64, len: u64 },
    #[error("the address window of {len} bytes from {start:#x} cannot be used: {why}")]
    BadWindow { start: u64, len: u64, why: &'static str },
    #[error("there is no such object")]
    NotFound,
    #[error("{snapshot:?} is no snapshot of it: {why}")]
    NotItsSnapshot { snapshot: String, why: &'static str },
    #[error("an object of that name exists")]
    Exists,
    #[error("this is not a usable name: {why}")]
    BadName { why: &'static str },
    #[error("a label has at most 128 bytes, this one has {len}")]
    BadLabel { len: usize },
    #[error("{size} bytes are not a usable size: {why}")]
    BadSize { size: u64, why: &'static str },
    #[error("{of:?}, of which it was to get pages: {cause}")]
    Part {
        /// An object, as the caller named it.
        of: String,
        cause: Box<StoreError>,
    },
    #[error("{len} bytes of {of:?} from {from} on cannot become its bytes from {at} on: {why}")]
    BadRange {
        /// An object, as the caller named it.
        of: String,
        from: u64,
        len: u64,
        at: u64,
        why: &'static str,
    },
    #[error("the key does not match")]
    WrongKey,
    #[error("that one is to outlive it already, directly or through others: neither could ever go")]
    TieCycle,
    #[error("a snapshot outlives what is made from it, so that no object can be tied to it")]
    TieTarget,
    #[error("it is tied to {most} objects, as many as one can be")]
    TooManyTies { most: u64 },
    #[error("it would be volatile, and this system does not say when the machine was started anew")]
    BootUnknown,
    #[error("it is volatile, and the machine was started anew since it was made: what it held is gone")]
    VolatileGone,
    #[error("the object is read-only")]
    ObjectReadOnly,
    #[error("held by {holder}{others}")]
    Held {
        /// The holder if known; of several readers, one.
        holder: Holder,
        others: Others,
        /// Short work, such as a merge of bases, holds the lock.
        passing: bool,
    },
    #[error("the table has been locked by {holder} for {seconds} s")]
    TableBusy {
        seconds: f64,
        /// The holder, if known.
        holder: Holder,
    },
    #[error(
        "a process that is gone left commits of the object in memory {memory:016x}, which the pool lacks"
    )]
    MemoryLeft { memory: u64 },
    /// Another process holds the lane's objects still, to copy or move them. Nothing happened.
    #[error("{holder} has been holding the objects of lane {lane} still for {seconds} s")]
    HeldStill {
        lane: u32,
        seconds: f64,
        /// The holder, if known.
        holder: Holder,
    },
    #[error("{holder} has been changing the objects of lane {lane} for {seconds} s")]
    Changing {
        lane: u32,
        seconds: f64,
        /// The lane's process, if known.
        holder: Holder,
    },
    #[error("other processes kept changing the table while it was read, for {seconds} s")]
    TableInMotion { seconds: f64 },
    #[error("all {lanes} lanes are held by writing processes")]
    NoLane { lanes: u32 },
    #[error("the last writer died and the pool is opened read-only, so it cannot be recovered")]
    NeedsRecovery,
    #[error(
        "an earlier write to the medium failed; every psync that was acknowledged is safe, the one that failed \
        took effect as a whole or not at all"
    )]
    Poisoned,
    #[error("the objects are of different pools, which cannot change in one atomic step")]
    DifferentPools,
    #[error(
        "bytes up to {end} were to be written straight to the object's place without having been announced"
    )]
    NotAnnounced {
        /// End of the write, from the object's start.
        end: u64,
    },
    #[error("the object rests on a base: its pages cannot be written straight to their place")]
    HasBase,
    /// Error of a durability class.
    #[error(transparent)]
    Class(#[from] ClassError),
    /// Error of a sealed object.
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("more pages are needed for the new table than were counted")]
    OutOfTablePages,
}

/// Holder of a lock, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A process.
    Process {
        /// The process.
        process: Process,
        /// Whether it writes.
        writer: bool,
    },
    /// A process of another pid namespace.
    Elsewhere {
        /// Its ID in that namespace.
        pid: u32,
        /// Whether it writes.
        writer: bool,
    },
    /// This process.
    Own {
        /// Whether it writes.
        writer: bool,
    },
    /// The process left no record, or is invisible from here.
    Unknown,
}

impl Holder {
    /// Whether this process is the holder.
    #[must_use]
    pub fn is_this_process(&self) -> bool {
        match self {
            Holder::Own { .. } => true,
            Holder::Process { process, .. } => process.pid == std::process::id(),
            Holder::Elsewhere { .. } | Holder::Unknown => false,
        }
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let role = |writer| if writer { "writer" } else { "reader" };
        match *self {
            Holder::Process { writer, .. } if self.is_this_process() => {
                write!(f, "this process as {}", role(writer))
            }
            Holder::Process { process, writer } => {
                write!(f, "process {} as {}", process.pid, role(writer))?;
                let name = process.name().map_or(String::new(), |name| format!(" ({name})"));
                let stopped = if process.stopped { ", which is stopped (SIGCONT lets it go on)" } else { "" };
                write!(f, "{name}{stopped}")
            }
            Holder::Elsewhere { pid, writer } => {
                write!(f, "a process of another pid namespace, {pid} there, as {}", role(writer))
            }
            Holder::Own { writer } => write!(f, "this process as {}", role(writer)),
            Holder::Unknown => f.write_str("another process"),
        }
    }
}

impl From<Fatal> for StoreError {
    fn from(Fatal(error): Fatal) -> Self {
        match error {
            MediumError::Faulted => StoreError::Poisoned,
            error => StoreError::Failed(error),
        }
    }
}

impl From<ReserveError> for StoreError {
    fn from(error: ReserveError) -> Self {
        match error {
            ReserveError::NoSpace => StoreError::NoSpace,
            ReserveError::Fatal(fatal) => fatal.into(),
        }
    }
}

fn because(cause: Option<&MediumError>) -> String {
    cause.map(|cause| format!(": {cause}")).unwrap_or_default()
}

impl StoreError {
    pub(crate) fn damaged(part: Part, offset: u64) -> Self {
        StoreError::Damaged { part, offset }
    }
}

/// Result of the store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

fn by(release: &str) -> String {
    if release.is_empty() { String::new() } else { format!(" (of release {release})") }
}
