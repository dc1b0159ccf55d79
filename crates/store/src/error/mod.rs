//! Errors of the store, by cause. The layers above add operation and object.

mod class;
mod date;
mod failure;
mod length;
mod part;
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
    /// The medium holds no pool.
    #[error("this is not an Indelible pool (no superblock magic)")]
    NotAPool,
    /// The pool has another format version.
    #[error("the pool has format version {found}{}, this software uses version {known}", by(release))]
    Version {
        /// Version found.
        found: u32,
        /// Version this code uses.
        known: u32,
        /// Release that wrote the pool, if known.
        release: String,
    },
    /// The pool cannot be upgraded as it is. Nothing changed, or the upgrade continues after a
    /// repair.
    #[error("the pool is not sound: {found}")]
    NotSound {
        /// First error that check found.
        found: String,
    },
    /// An upgrade of the pool is unfinished.
    #[error("an upgrade of the pool was cut short")]
    Upgrading,
    /// The object needs a feature that this code does not know.
    #[error("the object has {unknown}, which this release does not know")]
    ObjectFeature {
        /// The feature.
        unknown: crate::format::entry::Unknown,
    },
    /// A lane's batch has a mandatory section of an unknown kind.
    #[error("the batch at offset {offset} has a section of kind {kind}, which this release does not know")]
    SectionKind {
        /// Offset of the batch.
        offset: u64,
        /// Kind of the section.
        kind: u16,
    },
    /// The pool uses unknown features.
    #[error("the pool{} uses features that this release does not know ({bits:#x})", by(release))]
    Features {
        /// Feature bits.
        bits: u32,
        /// Release that wrote the pool.
        release: String,
    },
    /// Both superblock slots are unusable, and so is the copy.
    #[error("both superblock slots are damaged, and no copy lies behind the pool")]
    NoSuperblock,
    /// The medium is shorter than the pool.
    #[error("the pool says it has {pool} bytes but the medium has only {medium}: it was truncated")]
    Truncated {
        /// Length in the superblock.
        pool: u64,
        /// Length of the medium.
        medium: u64,
    },
    /// The medium's length does not suit a pool.
    #[error("{len} bytes cannot hold a pool: at least {min} and at most {max} are needed")]
    BadLength {
        /// Requested length.
        len: u64,
        /// Smallest length.
        min: u64,
        /// Largest length.
        max: u64,
    },
    /// The pool cannot have this length.
    #[error(transparent)]
    Length(#[from] LengthError),
    /// The medium has a pool already.
    #[error("there is a pool on this medium already")]
    AlreadyAPool,
    /// Bytes on the medium are inconsistent.
    #[error("the {part} at offset {offset} is damaged")]
    Damaged {
        /// Damaged structure.
        part: Part,
        /// Its offset in the pool.
        offset: u64,
    },
    /// A dead writer's lane cannot be recovered as it is. Nothing of it is lost.
    #[error(
        "lane {lane}, which has psyncs of a writer that is gone, cannot be recovered: {cause}; nothing of it is lost, \
         `pmo check` and `pmo repair` say what can be done"
    )]
    LaneRefused {
        /// Number of the lane.
        lane: u32,
        /// Cause.
        cause: Box<StoreError>,
    },
    /// The table entry of an object with psyncs in a lane is damaged or unreadable.
    #[error("the table entry at {offset} {what}{}", because(.cause.as_ref()))]
    EntryRefused {
        /// Offset of the slot in the pool.
        offset: u64,
        /// Defect, as a predicate.
        what: &'static str,
        /// Failure of the read.
        cause: Option<MediumError>,
    },
    /// A lane ends before a batch that was durable.
    #[error("its batch {sequence} at {offset} is damaged: {proof}")]
    BatchDamaged {
        /// Number of the batch.
        sequence: u64,
        /// Offset in the pool of its beginning.
        offset: u64,
        /// Evidence that it was durable.
        proof: String,
    },
    /// No free extent is large enough.
    #[error(
        "no room: {needed} bytes in one piece are needed, the largest free piece has {largest} ({free} bytes are free in all)"
    )]
    NoRoom {
        /// Bytes needed.
        needed: u64,
        /// Largest free extent.
        largest: u64,
        /// Free bytes in all.
        free: u64,
    },
    /// No free address range is large enough.
    #[error("no room in the pool's address window for {needed} bytes (largest free range: {largest})")]
    NoAddresses {
        /// Bytes needed.
        needed: u64,
        /// Largest free range.
        largest: u64,
    },
    /// The object's former addresses are taken.
    #[error("the {len} bytes of addresses from {address:#x} are another object's, or none of this pool's")]
    AddressesTaken {
        /// First address.
        address: u64,
        /// Bytes.
        len: u64,
    },
    /// A format cannot use the requested address window.
    #[error("the address window of {len} bytes from {start:#x} cannot be used: {why}")]
    BadWindow {
        /// First address.
        start: u64,
        /// Bytes.
        len: u64,
        /// Reason.
        why: &'static str,
    },
    /// No object has that name or ID.
    #[error("there is no such object")]
    NotFound,
    /// The object cannot roll back to this snapshot.
    #[error("{snapshot:?} is no snapshot of it: {why}")]
    NotItsSnapshot {
        /// Name of the snapshot.
        snapshot: String,
        /// Reason.
        why: &'static str,
    },
    /// The name is taken.
    #[error("an object of that name exists")]
    Exists,
    /// One rename would exceed the table's log.
    #[error(
        "{objects} objects cannot get other names in one step: it takes {needed} bytes of the table's log, which has {most}"
    )]
    TooManyAtOnce {
        /// Objects to rename.
        objects: u64,
        /// Bytes of log needed, at least.
        needed: u64,
        /// Bytes of log available.
        most: u64,
    },
    /// Invalid name.
    #[error("this is not a usable name: {why}")]
    BadName {
        /// Reason.
        why: &'static str,
    },
    /// The pool's label is too long.
    #[error("a label has at most 128 bytes, this one has {len}")]
    BadLabel {
        /// Length in bytes.
        len: usize,
    },
    /// Invalid size.
    #[error("{size} bytes are not a usable size: {why}")]
    BadSize {
        /// Requested size.
        size: u64,
        /// Reason.
        why: &'static str,
    },
    /// The key does not match.
    #[error("the key does not match")]
    WrongKey,
    /// The tie would close a cycle.
    #[error("that one is to outlive it already, directly or through others: neither could ever go")]
    TieCycle,
    /// A snapshot cannot be the target of a tie.
    #[error("a snapshot outlives what is made from it, so that no object can be tied to it")]
    TieTarget,
    /// The object has too many ties.
    #[error("it is tied to {most} objects, as many as one can be")]
    TooManyTies {
        /// Limit.
        most: u64,
    },
    /// The system does not identify its boot, which a volatile object needs.
    #[error("it would be volatile, and this system does not say when the machine was started anew")]
    BootUnknown,
    /// The volatile object is of an earlier boot.
    #[error("it is volatile, and the machine was started anew since it was made: what it held is gone")]
    VolatileGone,
    /// Write access to a read-only object.
    #[error("the object is read-only")]
    ObjectReadOnly,
    /// Another process, or another attachment in this one, holds the object.
    #[error("held by {holder}{others}")]
    Held {
        /// The holder if known; of several readers, one.
        holder: Holder,
        /// Other readers.
        others: Others,
        /// Short work, such as a merge of bases, holds the lock.
        passing: bool,
    },
    /// The table's lock was not free in time.
    #[error("the table has been locked by {holder} for {seconds} s")]
    TableBusy {
        /// Seconds waited.
        seconds: f64,
        /// The holder, if known.
        holder: Holder,
    },
    /// A dead process left commits in memory that recovery must bring to the pool first. Nothing
    /// happened.
    #[error(
        "a process that is gone left commits of the object in memory {memory:016x}, which the pool lacks"
    )]
    MemoryLeft {
        /// Number of the memory.
        memory: u64,
    },
    /// Another process holds the lane's objects still, to copy or move them. Nothing happened.
    #[error("{holder} has been holding the objects of lane {lane} still for {seconds} s")]
    HeldStill {
        /// The lane.
        lane: u32,
        /// Seconds waited.
        seconds: f64,
        /// The holder, if known.
        holder: Holder,
    },
    /// The lane's process does not finish a change of its objects, so they cannot be held still.
    #[error("{holder} has been changing the objects of lane {lane} for {seconds} s")]
    Changing {
        /// The lane.
        lane: u32,
        /// Seconds waited.
        seconds: f64,
        /// The lane's process, if known.
        holder: Holder,
    },
    /// A reader without locks found the table changed at each attempt.
    #[error("other processes kept changing the table while it was read, for {seconds} s")]
    TableInMotion {
        /// Seconds of attempts.
        seconds: f64,
    },
    /// Every lane is in use.
    #[error("all {lanes} lanes are held by writing processes")]
    NoLane {
        /// Lanes in the pool.
        lanes: u32,
    },
    /// The last writer died, and recovery needs write access to the pool.
    #[error("the last writer died and the pool is opened read-only, so it cannot be recovered")]
    NeedsRecovery,
    /// An earlier write failed; its durability is unknown until recovery.
    #[error(
        "an earlier write to the medium failed; every psync that was acknowledged is safe, the one that failed \
        took effect as a whole or not at all"
    )]
    Poisoned,
    /// One psync covers objects of different pools.
    #[error("the objects are of different pools, which cannot change in one atomic step")]
    DifferentPools,
    /// A direct write exceeds its announced range.
    #[error(
        "bytes up to {end} were to be written straight to the object's place without having been announced"
    )]
    NotAnnounced {
        /// End of the write, from the object's start.
        end: u64,
    },
    /// Objects with a base allow no direct writes: first changes of their pages are logged.
    #[error("the object rests on a base: its pages cannot be written straight to their place")]
    HasBase,
    /// Error of a durability class.
    #[error(transparent)]
    Class(#[from] ClassError),
    /// Error of a sealed object.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// A rebuilt table needs more pages than were counted.
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
