//! Peers that are C libraries of the system, found when they are used: who lacks them builds and
//! runs the rest.

#![allow(unsafe_code)]

use libloading::{Library, Symbol};

/// The first library of these names that is there.
pub fn load(names: &[&str]) -> Option<Library> {
    // SAFETY: well-known libraries whose initialisers are made to run in any program.
    names.iter().find_map(|name| unsafe { Library::new(*name) }.ok())
}

/// A function of the library.
///
/// # Safety
/// `F` is its type, and the library stays loaded as long as it is called.
pub unsafe fn function<F: Copy>(library: &Library, name: &str) -> crate::Result<F> {
    // SAFETY: the caller's promise.
    let symbol: Symbol<'_, F> = unsafe { library.get(name.as_bytes()) }?;
    Ok(*symbol)
}
