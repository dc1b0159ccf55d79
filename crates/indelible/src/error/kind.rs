/// Kind of an error's cause. The numbers are the codes of the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum ErrorKind {
    /// The operating system failed.
    Io = 1,
    /// There is no pool at that path.
    NoPool = 2,
    /// The file is not a pool.
    NotAPool = 3,
    /// The pool has a format or features this version does not know.
    Version = 4,
    /// The pool's file was truncated, deleted or replaced.
    Gone = 5,
    /// Bytes of the pool contradict themselves.
    Damaged = 6,
    /// There is a pool already.
    PoolExists = 7,
    /// The path, medium or file system cannot hold a pool, or something cannot be used as asked.
    Unsuitable = 8,
    /// The pool, its file or its file system is read-only.
    ReadOnly = 9,
    /// The medium or its file system is full.
    NoSpace = 10,
    /// The pool has no piece large enough.
    NoRoom = 11,
    /// The pool's address window has no range large enough.
    NoAddresses = 12,
    /// No such object.
    NotFound = 13,
    /// An object of that name exists.
    Exists = 14,
    /// The name cannot be used.
    BadName = 15,
    /// The size cannot be used.
    BadSize = 16,
    /// The key does not match.
    WrongKey = 17,
    /// Write access to a read-only object.
    ObjectReadOnly = 18,
    /// Another process or thread has the object attached.
    Held = 19,
    /// A process holds the table, all lanes are taken, or the device is in use.
    Busy = 20,
    /// The last writer died, and a read-only pool cannot recover.
    NeedsRecovery = 21,
    /// An earlier write to the medium failed.
    Poisoned = 22,
    /// The address is not that of an attached object.
    NotAttached = 23,
    /// Something else is mapped at the object's address.
    AddressTaken = 24,
    /// This process is a fork of the one that opened the pool.
    Forked = 25,
    /// The kernel lacks the requested feature.
    Unsupported = 26,
    /// The object holds no heap.
    NotAHeap = 27,
    /// The heap has no free piece large enough.
    HeapFull = 28,
    /// The address is not that of a block of the heap.
    NotABlock = 29,
    /// The block is free already.
    DoubleFree = 30,
    /// The alignment is impossible.
    BadAlignment = 31,
    /// Bytes that guard a block were overwritten.
    Overwritten = 32,
    /// No such root.
    RootMissing = 33,
    /// A root of that name exists.
    RootExists = 34,
    /// The root has another type, or its type another layout.
    RootType = 35,
    /// The object's bytes may come from other stores than typed code's.
    Untrusted = 36,
    /// The requested address window cannot be used.
    BadWindow = 37,
    /// Objects of different pools cannot change in one step.
    DifferentPools = 38,
    /// The object has addresses that mean nothing in the next run.
    StrayPointer = 39,
    /// The object is volatile, and the machine was restarted since its creation.
    VolatileGone = 40,
    /// The two objects would each outlive the other.
    TieCycle = 41,
    /// The object has the maximal number of ties.
    TooManyTies = 42,
    /// The object is sealed, and needs a seal key, or lacks the operation.
    Sealed = 43,
    /// A sealed object is in an older state than its anchor.
    PoolBehind = 44,
    /// A sealed object was changed without its anchor, or the anchor is an older one.
    AnchorBehind = 45,
    /// The object's durability class differs from the call's, or cannot be the requested one.
    ClassMismatch = 46,
    /// The call cannot be made in a transaction.
    InTransaction = 47,
    /// The transaction met another one: return this error from its closure.
    Conflict = 48,
    /// A far pointer leads to no object, or beyond it.
    Dangling = 49,
    /// No security context of the program allows the access.
    Denied = 50,
    /// A defect of this library.
    Internal = 1001,
}
