//! The interface between libpmo, which has persistent objects, and libpmo-tm, which runs the blocks
//! of compiled code that change them. Each library has a copy of this file, as neither is linked
//! with the other; a test compares the two. Objects are named by their own addresses.

use std::ffi::{c_char, c_int};

/// The version of all that is in here.
pub const VERSION: u32 = 4;

/// A line, as it is after a commit.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Line {
    /// A multiple of 64; of 32 in an object with check words, of which each half of a line of words
    /// is a line with these.
    pub address: usize,
    /// The place of that for blocks.
    pub view: usize,
    /// Its bytes.
    pub bytes: [u8; 64],
}

/// The outcome of telling of a commit.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Telling {
    /// There is no room for so much of it, and nothing is told: make room, and run the block again.
    pub short: u64,
    /// 1: it is to be waited for.
    pub awaited: u32,
    /// Unused, 0.
    pub reserved: u32,
}

/// Words of objects, as the block that runs on this thread sees and changes them. All but `peek`
/// return 0, or 1 if the block has met another one.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Words {
    /// The word at an address, a multiple of 8.
    pub load: extern "C" fn(usize, *mut u64) -> c_int,
    /// Changes that word.
    pub store: extern "C" fn(usize, u64) -> c_int,
    /// Changes the byte at an address.
    pub store_byte: extern "C" fn(usize, u8) -> c_int,
    /// The word as it is just now, which nothing may rely on.
    pub peek: extern "C" fn(usize) -> u64,
}

/// The outcome of a step in the heap of an object.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Answer {
    /// One of those below.
    pub outcome: u32,
    /// Unused, 0.
    pub reserved: u32,
    /// An address; bytes that the heap has no room for.
    pub value: usize,
}

/// It is done: an address.
pub const DONE: u32 = 0;
/// The block has met another one, and is to be run again.
pub const CONFLICT: u32 = 1;
/// The heap has no room for so many bytes.
pub const FULL: u32 = 2;
/// libpmo has the error.
pub const FAILED: u32 = 3;

/// An object, with the functions of the library that attached it. Texts are NULL, or say why not.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Object {
    /// Its first byte.
    pub address: usize,
    /// The place of that for blocks.
    pub view: usize,
    /// 1: a check word follows each word there, which so is at twice its offset. Else 0.
    pub checked: usize,
    /// In bytes, of words alone.
    pub len: usize,
    /// 0: each commit is waited for, and durable then. Else it is on demand, and commits are told
    /// with this number, which all objects have that a block may change together.
    pub demand: usize,
    /// Has this thread, which runs a block that cannot be undone, load and store objects at their
    /// own addresses, as code that was not compiled for blocks does.
    pub expose: extern "C" fn(),
    /// Ends that: what was changed is stored to these words, or forgotten if they are NULL.
    pub close: extern "C" fn(*const Words) -> *const c_char,
    /// Bytes that the log is short of for lines at these addresses.
    pub shortage: extern "C" fn(*const usize, usize) -> u64,
    /// Gives the log room for so many.
    pub make_room: extern "C" fn(usize, u64) -> *const c_char,
    /// Tells of a commit on objects with this number, while the block owns its lines.
    pub tell: extern "C" fn(usize, *const Line, usize, *mut Telling) -> *const c_char,
    /// All lines are in memory of the commit on demand that this thread told.
    pub stored: extern "C" fn(),
    /// Returns when all that was told is durable.
    pub wait: extern "C" fn(usize) -> *const c_char,
    /// Allocates bytes in the heap of the object that has an address.
    pub allocate: extern "C" fn(*const Words, usize, usize) -> Answer,
    /// Frees what was allocated at an address.
    pub free: extern "C" fn(*const Words, usize) -> Answer,
    /// The root of a name and a `struct pmo_type`; a new one is zeros.
    pub root: extern "C" fn(*const Words, usize, *const c_char, usize) -> Answer,
    /// Has the object that has an address grow until its heap has room for so many bytes, while no
    /// block runs. Its bytes now, as before if it does not grow.
    pub grow: extern "C" fn(usize, usize) -> usize,
}

/// `struct pmo_tm_runtime`: what libpmo-tm has. 0, or -1 if a block runs on this thread, or there
/// are as many objects as there can be.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Runtime {
    /// Version of the interface.
    pub version: u32,
    /// Unused, 0.
    pub reserved: u32,
    /// Gives an object to blocks.
    pub add: extern "C" fn(*const Object) -> c_int,
    /// Takes it from them.
    pub remove: extern "C" fn(usize) -> c_int,
}
