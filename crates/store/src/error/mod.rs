//! Errors of the store, by cause. The layers above add the operation and the object.

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

/// Causes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The medium could not be read, locked or looked at. Nothing happened.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// The medium, or the file system under it, has no room. Nothing happened; the call may be made
    /// again.
    #[error("no space left on the medium")]
    NoSpace,
    /// A change of the medium failed. The operation happened as a whole or not at all; the next
    /// attach tells.
    #[error("the medium failed: {0}; the operation took effect as a whole or not at all")]
    Failed(MediumError),
    /// A psync is durable, but the medium failed while it was applied; the next attach applies it.
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
        /// Release that wrote the pool, if the pool says it.
        release: String,
    },
    /// The pool cannot be upgraded as it is. Nothing has changed, or the upgrade goes on when it is
    /// repaired.
    #[error("the pool is not sound: {found}")]
    NotSound {
        /// The first error that a check found.
        found: String,
    },
    /// An upgrade of the pool was begun, and did not end.
    #[error("an upgrade of the pool was cut short")]
    Upgrading,
    /// The object needs something this code does not know.
    #[error("the object has {unknown}, which this release does not know")]
    ObjectFeature {
        /// What.
        unknown: crate::format::entry::Unknown,
    },
    /// A batch in a lane has a section that this code does not know, and must know to redo it.
    #[error("the batch at offset {offset} has a section of kind {kind}, which this release does not know")]
    SectionKind {
        /// Where.
        offset: u64,
        /// The kind.
        kind: u16,
    },
    /// The pool uses features this code does not know.
    #[error("the pool{} uses features that this release does not know ({bits:#x})", by(release))]
    Features {
        /// Feature bits.
        bits: u32,
        /// Release that wrote the pool.
        release: String,
    },
    /// Neither superblock slot can be used, and no copy of them is there.
    #[error("both superblock slots are damaged, and no copy lies behind the pool")]
    NoSuperblock,
    /// The medium is shorter than the pool on it.
    #[error("the pool says it has {pool} bytes but the medium has only {medium}: it was truncated")]
    Truncated {
        /// Length the superblock states.
        pool: u64,
        /// Length of the medium.
        medium: u64,
    },
    /// The medium is too small, or too large, for a pool.
    #[error("{len} bytes cannot hold a pool: at least {min} and at most {max} are needed")]
    BadLength {
        /// Length asked for.
        len: u64,
        /// Smallest length.
        min: u64,
        /// Largest length.
        max: u64,
    },
    /// The pool cannot be given this length.
    #[error(transparent)]
    Length(#[from] LengthError),
    /// There is a pool already.
    #[error("there is a pool on this medium already")]
    AlreadyAPool,
    /// Bytes on the medium contradict themselves.
    #[error("the {part} at offset {offset} is damaged")]
    Damaged {
        /// The damaged structure.
        part: Part,
        /// Its offset in the pool, in bytes.
        offset: u64,
    },
    /// The lane of a writer that died cannot be recovered as it is. Nothing of it was given up.
    #[error(
        "lane {lane}, which has psyncs of a writer that is gone, cannot be recovered: {cause}; nothing of it is lost, \
         `pmo check` and `pmo repair` say what can be done"
    )]
    LaneRefused {
        /// Which.
        lane: u32,
        /// Why.
        cause: Box<StoreError>,
    },
    /// The table entry of an object that a lane has psyncs of is damaged, or cannot be read.
    #[error("the table entry at {offset} {what}{}", because(.cause.as_ref()))]
    EntryRefused {
        /// Offset of the slot in the pool, in bytes.
        offset: u64,
        /// Defect of the slot, as the predicate of a sentence.
        what: &'static str,
        /// Why it cannot be read.
        cause: Option<MediumError>,
    },
    /// A lane ends before a batch that is known to have been durable.
    #[error("its batch {sequence} at {offset} is damaged: {proof}")]
    BatchDamaged {
        /// Number of the batch.
        sequence: u64,
        /// Offset in the pool, in bytes, at which it should begin.
        offset: u64,
        /// How that is known.
        proof: String,
    },
    /// No free extent of this size.
    #[error(
        "no room: {needed} bytes in one piece are needed, the largest free piece has {largest} ({free} bytes are free in all)"
    )]
    NoRoom {
        /// Bytes asked for.
        needed: u64,
        /// Largest free extent.
        largest: u64,
        /// All free bytes.
        free: u64,
    },
    /// No free address range of this size.
    #[error("no room in the pool's address window for {needed} bytes (largest free range: {largest})")]
    NoAddresses {
        /// Bytes asked for.
        needed: u64,
        /// Largest free range.
        largest: u64,
    },
    /// An object cannot have the addresses that it had.
    #[error("the {len} bytes of addresses from {address:#x} are another object's, or none of this pool's")]
    AddressesTaken {
        /// First address.
        address: u64,
        /// Bytes.
        len: u64,
    },
    /// The address window that a format asked for cannot be used.
    #[error("the address window of {len} bytes from {start:#x} cannot be used: {why}")]
    BadWindow {
        /// First address.
        start: u64,
        /// Bytes.
        len: u64,
        /// Reason.
        why: &'static str,
    },
    /// No object of that name or ID.
    #[error("there is no such object")]
    NotFound,
    /// An object cannot go back to the contents of this other one.
    #[error("{snapshot:?} is no snapshot of it: {why}")]
    NotItsSnapshot {
        /// Name of the other one.
        snapshot: String,
        /// Reason.
        why: &'static str,
    },
    /// The name is taken.
    #[error("an object of that name exists")]
    Exists,
    /// One step would change too much of the table.
    #[error(
        "{objects} objects cannot get other names in one step: it takes {needed} bytes of the table's log, which has {most}"
    )]
    TooManyAtOnce {
        /// Objects of the rename.
        objects: u64,
        /// Bytes of the log that this takes, at least.
        needed: u64,
        /// Bytes that it has.
        most: u64,
    },
    /// The name cannot be used.
    #[error("this is not a usable name: {why}")]
    BadName {
        /// Reason.
        why: &'static str,
    },
    /// The label of a pool cannot be used.
    #[error("a label has at most 128 bytes, this one has {len}")]
    BadLabel {
        /// Length asked for, in bytes.
        len: usize,
    },
    /// The size cannot be used.
    #[error("{size} bytes are not a usable size: {why}")]
    BadSize {
        /// Size asked for.
        size: u64,
        /// Reason.
        why: &'static str,
    },
    /// The key does not match.
    #[error("the key does not match")]
    WrongKey,
    /// A tie would be part of a cycle.
    #[error("that one is to outlive it already, directly or through others: neither could ever go")]
    TieCycle,
    /// A tie to a snapshot.
    #[error("a snapshot outlives what is made from it, so that no object can be tied to it")]
    TieTarget,
    /// One tie too many.
    #[error("it is tied to {most} objects, as many as one can be")]
    TooManyTies {
        /// As many.
        most: u64,
    },
    /// The system does not name its boot, which a volatile object must know.
    #[error("it would be volatile, and this system does not say when the machine was started anew")]
    BootUnknown,
    /// The object was volatile.
    #[error("it is volatile, and the machine was started anew since it was made: what it held is gone")]
    VolatileGone,
    /// Write access to a read-only object.
    #[error("the object is read-only")]
    ObjectReadOnly,
    /// Another process, or another attachment of this one, is in the way.
    #[error("held by {holder}{others}")]
    Held {
        /// The holder, as far as it is known; of several readers one.
        holder: Holder,
        /// The other readers.
        others: Others,
        /// No process has it attached: short work locks it, such as merging its bases.
        passing: bool,
    },
    /// The lock on the table could not be had in time.
    #[error("the table has been locked by {holder} for {seconds} s")]
    TableBusy {
        /// How long was waited.
        seconds: f64,
        /// The holder, as far as this process can see it.
        holder: Holder,
    },
    /// A dead process left commits of the object in memory, which must be brought to the pool
    /// first: nothing happened.
    #[error(
        "a process that is gone left commits of the object in memory {memory:016x}, which the pool lacks"
    )]
    MemoryLeft {
        /// Number of the memory.
        memory: u64,
    },
    /// Another process holds the objects of the lane still, to copy or to move them: nothing
    /// happened.
    #[error("{holder} has been holding the objects of lane {lane} still for {seconds} s")]
    HeldStill {
        /// The lane.
        lane: u32,
        /// How long was waited.
        seconds: f64,
        /// The holder, as far as this process can see it.
        holder: Holder,
    },
    /// The process that has the lane does not end a change of its objects, so that they cannot be
    /// held still.
    #[error("{holder} has been changing the objects of lane {lane} for {seconds} s")]
    Changing {
        /// The lane.
        lane: u32,
        /// How long was waited.
        seconds: f64,
        /// The process that has the lane, as far as this one can see it.
        holder: Holder,
    },
    /// The table changed whenever it was read. Only where it is read without a lock.
    #[error("other processes kept changing the table while it was read, for {seconds} s")]
    TableInMotion {
        /// How long it was tried.
        seconds: f64,
    },
    /// Every lane is in use.
    #[error("all {lanes} lanes are held by writing processes")]
    NoLane {
        /// Lanes in the pool.
        lanes: u32,
    },
    /// The last writer died and the pool cannot be written to, so it cannot be recovered.
    #[error("the last writer died and the pool is opened read-only, so it cannot be recovered")]
    NeedsRecovery,
    /// A change of the medium failed before; what of that is durable is unknown until recovery.
    #[error(
        "an earlier write to the medium failed; every psync that was acknowledged is safe, the one that failed \
        took effect as a whole or not at all"
    )]
    Poisoned,
    /// A psync of several objects has objects of several pools.
    #[error("the objects are of different pools, which cannot change in one atomic step")]
    DifferentPools,
    /// A direct write outside of the range that was announced.
    #[error(
        "bytes up to {end} were to be written straight to the object's place without having been announced"
    )]
    NotAnnounced {
        /// End of the write, in bytes from the object's start.
        end: u64,
    },
    /// A direct write to an object with a base: its pages must be logged when they first change.
    #[error("the object rests on a base: its pages cannot be written straight to their place")]
    HasBase,
    /// It concerns the durability class of an object.
    #[error(transparent)]
    Class(#[from] ClassError),
    /// It concerns the sealing of an object.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// A new table needs more pages than were counted for it.
    #[error("more pages are needed for the new table than were counted")]
    OutOfTablePages,
}

/// The holder of a lock, as shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A process.
    Process {
        /// Which.
        process: Process,
        /// Whether it writes.
        writer: bool,
    },
    /// A process of another pid namespace: another container.
    Elsewhere {
        /// Its ID there. Here it may be that of another process, or of none.
        pid: u32,
        /// Whether it writes.
        writer: bool,
    },
    /// This process.
    Own {
        /// Whether it writes.
        writer: bool,
    },
    /// A process that left no record, or that is not to be seen from here.
    Unknown,
}

impl Holder {
    /// Whether it is the process that asks.
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

/// A cause, if there is one, behind what it caused.
fn because(cause: Option<&MediumError>) -> String {
    cause.map(|cause| format!(": {cause}")).unwrap_or_default()
}

impl StoreError {
    /// Damage of `part` at `offset`.
    pub(crate) fn damaged(part: Part, offset: u64) -> Self {
        StoreError::Damaged { part, offset }
    }
}

/// Result of the store half.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

fn by(release: &str) -> String {
    if release.is_empty() { String::new() } else { format!(" (of release {release})") }
}
