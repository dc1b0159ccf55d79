use super::ErrorKind;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeapError {
    #[error("the object holds no heap")]
    NotAHeap,
    #[error("the object holds no heap, and an allocation makes none")]
    NotMade,
    #[error("the object was attached as a value of {size} bytes, and becomes no heap")]
    IsValue { size: usize },
    #[error("the object holds data: formatting a heap would overwrite it")]
    NotBlank,
    #[error("the heap has version {version} and features {features:#x}; this is version {known}")]
    Version { version: u32, features: u32, known: u32 },
    #[error("the object has {pages} pages; a heap has between 3 and 2^32")]
    Size { pages: u64 },
    #[error("damaged at offset {offset:#x}: {what}")]
    Damaged { offset: u64, what: &'static str },
    #[error("no room for {needed} bytes; the largest free piece has {largest}")]
    Full { needed: usize, largest: u64 },
    #[error(
        "no room for {needed} bytes; the largest free piece has {largest}, and the object does not grow: {limit}"
    )]
    Stuck { needed: usize, largest: u64, limit: Limit },
    #[error("{count} times {size} bytes are more than memory can have")]
    Overflow { count: usize, size: usize },
    #[error("blocks cannot be aligned to {align}: {why}")]
    Alignment { align: usize, why: &'static str },
    #[error("{address:#x} is not an address in this heap that was allocated")]
    Foreign { address: usize },
    #[error("{address:#x} lies inside the block at {block:#x}, not at its start")]
    Interior { address: usize, block: usize },
    #[error("{size} bytes of a root in a block that has {room} from there on")]
    Beyond { size: u64, room: u64 },
    #[error("the block at {address:#x} is free already")]
    DoubleFree { address: usize },
    #[error("the block at {address:#x} is that of root {name:?}")]
    RootBlock { address: usize, name: String },
    #[error("{what} of the block at {address:#x} was overwritten")]
    Overwritten { address: usize, what: &'static str },
    #[error("the object is attached for reading")]
    ReadOnly,
    #[error("an empty container outside any object has no heap to allocate in")]
    Nowhere,
    #[error("this thread has a lock of the object")]
    Inside,
    #[error("a thread has had a lock of the object for {waited:?}, or forgot the guard of one")]
    Locked { waited: std::time::Duration },
    #[error("there is no root {name:?}")]
    RootMissing { name: String },
    #[error("there is a root {name:?} already")]
    RootExists { name: String },
    #[error("root {name:?} is of another type; {difference}")]
    RootType { name: String, difference: String },
    #[error("root {name:?} cannot be a record: {why}")]
    Record { name: String, why: String },
    #[error("not all of its pointers can be changed: {why}")]
    Pinned { why: String },
    #[error("root {name:?} cannot be reset: {why}")]
    Irreclaimable { name: String, why: String },
    #[error("root {name:?}: converting {step} failed: {why}")]
    Conversion { name: String, step: String, why: String },
    #[error(
        "extension {number} of {of} in the heap has {size} bytes and type {found:016x}, but this program's has {own} bytes and type {known:016x}:\n{lines}"
    )]
    ExtensionType { of: String, number: usize, size: u64, found: u64, own: u64, known: u64, lines: String },
    #[error("root {name:?}: the object's bytes may have been stored by other means than typed code")]
    Untrusted { name: String },
    #[error("the object's bytes may have been stored by other means than typed code")]
    ForeignBytes,
    #[error("root {name:?} was asked for twice")]
    OneRoot { name: String },
    #[error("at offset {offset:#x}: {what}; {more} more findings")]
    Findings { offset: u64, what: String, more: usize },
    #[error("a {ty} has atomics: a reader's pages cannot be stored to")]
    Atomics { ty: String },
    #[error("the object is position-independent, and values of type {ty} have addresses in them: {part}")]
    Fixed { ty: String, part: String },
    #[error("its table of other objects has no entry {index}")]
    FarMissing { index: u32 },
    #[error("its table of other objects has all of its 16,777,215 entries in use")]
    FarFull,
    #[error("its {what} needs {least} bytes")]
    Needs { what: &'static str, least: u64 },
    #[error("{what} of {len} bytes; {least} to {most} bytes of UTF-8 can be kept")]
    RootText { what: &'static str, len: usize, least: usize, most: usize },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Limit {
    #[error("its address range ends there")]
    Reach,
    #[error("the pool has no free piece that is large enough")]
    Room,
    #[error("there is no space for more of it")]
    Space,
    #[error("{0}")]
    Poisoned(String),
    #[error("{0}")]
    Other(String),
}

impl Limit {
    /// After other failures the object may be lost to this attachment.
    pub(crate) fn is_of_size(&self) -> bool {
        !matches!(self, Limit::Poisoned(_) | Limit::Other(_))
    }
}

impl HeapError {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            HeapError::NotAHeap | HeapError::NotMade | HeapError::IsValue { .. } => ErrorKind::NotAHeap,
            HeapError::NotBlank => ErrorKind::Exists,
            HeapError::Version { .. } => ErrorKind::Version,
            HeapError::Needs { .. }
            | HeapError::Size { .. }
            | HeapError::Overflow { .. }
            | HeapError::Beyond { .. } => ErrorKind::BadSize,
            HeapError::Damaged { .. } => ErrorKind::Damaged,
            HeapError::Stuck { limit: Limit::Poisoned(_), .. } => ErrorKind::Poisoned,
            HeapError::Full { .. } | HeapError::Stuck { .. } => ErrorKind::HeapFull,
            HeapError::Alignment { .. } => ErrorKind::BadAlignment,
            HeapError::Foreign { .. } | HeapError::Interior { .. } => ErrorKind::NotABlock,
            HeapError::DoubleFree { .. } => ErrorKind::DoubleFree,
            HeapError::Overwritten { .. } => ErrorKind::Overwritten,
            HeapError::ReadOnly => ErrorKind::ReadOnly,
            HeapError::Nowhere => ErrorKind::NotAttached,
            HeapError::Inside | HeapError::Locked { .. } => ErrorKind::Busy,
            HeapError::RootMissing { .. } => ErrorKind::RootMissing,
            HeapError::RootExists { .. } | HeapError::RootBlock { .. } => ErrorKind::RootExists,
            HeapError::RootType { .. }
            | HeapError::Record { .. }
            | HeapError::Irreclaimable { .. }
            | HeapError::Conversion { .. }
            | HeapError::ExtensionType { .. } => ErrorKind::RootType,
            HeapError::RootText { .. } | HeapError::OneRoot { .. } => ErrorKind::BadName,
            HeapError::Untrusted { .. } | HeapError::ForeignBytes => ErrorKind::Untrusted,
            HeapError::Findings { .. } => ErrorKind::Damaged,
            HeapError::Atomics { .. } => ErrorKind::ReadOnly,
            HeapError::Pinned { .. } | HeapError::Fixed { .. } => ErrorKind::Unsuitable,
            HeapError::FarMissing { .. } => ErrorKind::Dangling,
            HeapError::FarFull => ErrorKind::HeapFull,
        }
    }

    pub(crate) fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            HeapError::Needs { what: "sealed heap", .. } => {
                "ask for at least that: the heap of a sealed object does not become shorter"
            }
            HeapError::Needs { .. } => {
                "ask for at least that; a heap gives what is free at its end, so free blocks first"
            }
            HeapError::NotMade => {
                "make a root first (pmo_tx_root, pmo_tm_root): that makes a heap of a blank object; a value at the object's first byte belongs in a root, too"
            }
            HeapError::IsValue { .. } => {
                "allocate in an object that was attached as a heap, and keep the value there, as a root"
            }
            HeapError::NotBlank => "use a new object, or fill its first page with zeros",
            HeapError::Version { .. } => "use the version of Indelible that wrote the heap, or a newer one",
            HeapError::Size { .. } => "create or resize the object accordingly",
            HeapError::Overflow { .. } => "ask for less",
            HeapError::Beyond { .. } => {
                "give the size of the root's own data, or make the block larger first"
            }
            HeapError::Damaged { .. } | HeapError::Findings { .. } => {
                "`Heap::check` lists all that is wrong; go back to a copy of the object"
            }
            HeapError::Stuck { limit: Limit::Reach, .. } => {
                "free blocks, or detach the object and give it a larger reach (`Pool::set_reach`, `pmo set --reach`); if another object's addresses are behind it, copy it by `pmo cp --rebase`"
            }
            HeapError::Stuck { limit: Limit::Room, .. } => {
                "free blocks, remove other objects, or make the pool longer (`pmo grow`)"
            }
            HeapError::RootBlock { .. } => {
                "remove the root first (`Heap::remove_root`, `Heap::drop_root` with its value), then free its block"
            }
            HeapError::ReadOnly | HeapError::Atomics { .. } => "attach for writing",
            HeapError::Inside => "give the lock back first",
            HeapError::Locked { .. } => {
                "drop the guard, then try again; one that was forgotten (`mem::forget`) ends with the attachment, and `psync` needs none"
            }
            HeapError::Nowhere => "store it in the object first, or make it with `new_in`",
            HeapError::RootText { .. } => "shorten it",
            HeapError::Record { .. } => "describe a type that owns nothing and has no pointers",
            HeapError::ExtensionType { .. } => {
                "leave extensions as they were released, and add further ones behind them"
            }
            HeapError::Pinned { .. } => {
                "leave the object the addresses that it has, or describe all that its roots lead to"
            }
            HeapError::Irreclaimable { .. } => {
                "convert it, or have the program that made it remove it with all that it leads to"
            }
            HeapError::Conversion { .. } => {
                "correct the converter, or the data with the program that made them"
            }
            HeapError::OneRoot { .. } => "give two names",
            HeapError::Fixed { .. } => {
                "use `Far` or `Relative` for its pointers, or an object that is not position-independent"
            }
            HeapError::FarFull => "`Heap::compact_far` frees entries that no pointer needs any more",
            _ => return None,
        })
    }
}
