//! The interface between libpmo and libpmo-tm: the code of `crates/tm/src/tm_interface.rs`, without
//! its comments.

use std::ffi::{c_char, c_int};

pub const VERSION: u32 = 4;

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Line {
    pub address: usize,
    pub view: usize,
    pub bytes: [u8; 64],
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Telling {
    pub short: u64,
    pub awaited: u32,
    pub reserved: u32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Words {
    pub load: extern "C" fn(usize, *mut u64) -> c_int,
    pub store: extern "C" fn(usize, u64) -> c_int,
    pub store_byte: extern "C" fn(usize, u8) -> c_int,
    pub peek: extern "C" fn(usize) -> u64,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Answer {
    pub outcome: u32,
    pub reserved: u32,
    pub value: usize,
}

pub const DONE: u32 = 0;
pub const CONFLICT: u32 = 1;
pub const FULL: u32 = 2;
pub const FAILED: u32 = 3;

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Object {
    pub address: usize,
    pub view: usize,
    pub checked: usize,
    pub len: usize,
    pub demand: usize,
    pub expose: extern "C" fn(),
    pub close: extern "C" fn(*const Words) -> *const c_char,
    pub shortage: extern "C" fn(*const usize, usize) -> u64,
    pub make_room: extern "C" fn(usize, u64) -> *const c_char,
    pub tell: extern "C" fn(usize, *const Line, usize, *mut Telling) -> *const c_char,
    pub stored: extern "C" fn(),
    pub wait: extern "C" fn(usize) -> *const c_char,
    pub allocate: extern "C" fn(*const Words, usize, usize) -> Answer,
    pub free: extern "C" fn(*const Words, usize) -> Answer,
    pub root: extern "C" fn(*const Words, usize, *const c_char, usize) -> Answer,
    pub grow: extern "C" fn(usize, usize) -> usize,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Runtime {
    pub version: u32,
    pub reserved: u32,
    pub add: extern "C" fn(*const Object) -> c_int,
    pub remove: extern "C" fn(usize) -> c_int,
}
