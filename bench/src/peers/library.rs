//! C libraries of the system, loaded on use: the program builds and runs without them.

#![allow(unsafe_code)]

use libloading::{Library, Symbol};

pub fn load(names: &[&str]) -> Option<Library> {
    // SAFETY: well-known libraries whose initialisers are made to run in any program.
    names.iter().find_map(|name| unsafe { Library::new(*name) }.ok())
}

/// # Safety
/// `F` is its type, and the library outlives the calls.
pub unsafe fn function<F: Copy>(library: &Library, name: &str) -> crate::Result<F> {
    // SAFETY: the caller's promise.
    let symbol: Symbol<'_, F> = unsafe { library.get(name.as_bytes()) }?;
    Ok(*symbol)
}
