//! The interface between libpmo and libpmo-tm. libpmo has a copy of this file without comments; a
//! test compares them. Objects are named by their own addresses.

use std::ffi::{c_char, c_int};

/// Version of the interface.
pub const VERSION: u32 = 4;

/// A line after a commit.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Line {
    /// A multiple of 64; in an object with check words of 32.
    pub address: usize,
    /// Its address for blocks.
    pub view: usize,
    /// Its bytes.
    pub bytes: [u8; 64],
}

/// The answer about a commit.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Telling {
    /// Bytes that the log lacks; nothing is told: make room, and run the block again.
    pub short: u64,
    /// 1: it must be waited for.
    pub awaited: u32,
    /// Unused, 0.
    pub reserved: u32,
}

/// Words of objects, as this thread's block sees them. All but `peek` return 0, or 1 after a
/// conflict.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Words {
    /// The word at an address, a multiple of 8.
    pub load: extern "C" fn(usize, *mut u64) -> c_int,
    /// Changes a word.
    pub store: extern "C" fn(usize, u64) -> c_int,
    /// Changes the byte at an address.
    pub store_byte: extern "C" fn(usize, u8) -> c_int,
    /// The present word, maybe inconsistent.
    pub peek: extern "C" fn(usize) -> u64,
}

/// The outcome of a step in an object's heap.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Answer {
    /// `DONE`, `CONFLICT`, `FULL` or `FAILED`.
    pub outcome: u32,
    /// Unused, 0.
    pub reserved: u32,
    /// An address, or the bytes that do not fit.
    pub value: usize,
}

/// Done: an address.
pub const DONE: u32 = 0;
/// A conflict: the block runs again.
pub const CONFLICT: u32 = 1;
/// So many bytes do not fit.
pub const FULL: u32 = 2;
/// libpmo has the error.
pub const FAILED: u32 = 3;

/// An object, with functions of the library that attached it. Texts are NULL, or an error.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Object {
    /// Its first byte.
    pub address: usize,
    /// Its address for blocks.
    pub view: usize,
    /// 1: a check word follows each word, which is at twice its offset. Else 0.
    pub checked: usize,
    /// In bytes, of words alone.
    pub len: usize,
    /// 0: a commit waits until it is durable. Else the object is on demand; commits are told with
    /// this number, common to objects that one block may change.
    pub demand: usize,
    /// Lets this thread, in a block that cannot be undone, use objects at their own addresses, as
    /// other code does.
    pub expose: extern "C" fn(),
    /// Ends that: stores the changes to these words, or drops them for NULL.
    pub close: extern "C" fn(*const Words) -> *const c_char,
    /// Bytes that the log lacks for lines at these addresses.
    pub shortage: extern "C" fn(*const usize, usize) -> u64,
    /// Makes so much room in the log.
    pub make_room: extern "C" fn(usize, u64) -> *const c_char,
    /// Tells of a commit on objects with this number, while the block owns its lines.
    pub tell: extern "C" fn(usize, *const Line, usize, *mut Telling) -> *const c_char,
    /// This thread's told commit on demand is in memory.
    pub stored: extern "C" fn(),
    /// Waits until all told commits are durable.
    pub wait: extern "C" fn(usize) -> *const c_char,
    /// Allocates bytes in the heap of the object that contains an address.
    pub allocate: extern "C" fn(*const Words, usize, usize) -> Answer,
    /// Frees a block.
    pub free: extern "C" fn(*const Words, usize) -> Answer,
    /// The root of a name and a `struct pmo_type`; a new one is zeros.
    pub root: extern "C" fn(*const Words, usize, *const c_char, usize) -> Answer,
    /// Grows the object that contains an address until its heap has room for so many bytes, while
    /// no block runs. Returns its bytes, unchanged if it does not grow.
    pub grow: extern "C" fn(usize, usize) -> usize,
}

/// `struct pmo_tm_runtime`: functions of libpmo-tm. They return 0, or -1 if a block runs on this
/// thread or there are too many objects.
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
