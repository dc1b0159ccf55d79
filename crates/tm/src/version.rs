//! Versions and errors of the library.

use crate::blocks::fatal;
use std::ffi::{CStr, c_char, c_int};

/// Version of the interface, times 100.
const VERSION: c_int = 90;

#[unsafe(no_mangle)]
pub extern "C" fn _ITM_versionCompatible(version: c_int) -> c_int {
    c_int::from(version == VERSION)
}

#[unsafe(no_mangle)]
pub extern "C" fn _ITM_libraryVersion() -> *const c_char {
    concat!("libpmo-tm ", env!("CARGO_PKG_VERSION"), ", interface 0.90\0").as_ptr().cast()
}

/// The place of an error in a program's source.
#[repr(C)]
pub struct Location {
    reserved: [i32; 4],
    source: *const c_char,
}

/// # Safety
/// NULL, or a location whose source is NULL or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ITM_error(location: *const Location, error: c_int) {
    // SAFETY: the caller's promise.
    let source = unsafe { location.as_ref() }.map_or(std::ptr::null(), |location| location.source);
    if source.is_null() {
        fatal(&format!("the program says that there is error {error}"));
    }
    // SAFETY: the caller's promise.
    let source = unsafe { CStr::from_ptr(source) }.to_string_lossy();
    fatal(&format!("the program says that there is error {error} at {source}"))
}
