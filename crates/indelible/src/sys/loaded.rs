//! The loaded segments of the program and its libraries.
//!
//! /proc/self/maps does not tell where the zeros behind a file's data end: other memory may be
//! mapped right behind them.

#![allow(unsafe_code)]

use std::ops::Range;

pub(crate) fn segments() -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if !cfg!(miri) {
        // SAFETY: `note` gets the vector, which no other code has meanwhile.
        unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut found).cast()) };
    }
    found
}

unsafe extern "C" fn note(
    object: *mut libc::dl_phdr_info,
    _: libc::size_t,
    found: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the loader's, which keeps it until this returns; the vector of `segments`.
    let (object, found) = unsafe { (&*object, &mut *found.cast::<Vec<Range<usize>>>()) };
    if object.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: so many headers are there, as long as the object is loaded.
    let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD) {
        let start = (object.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
        found.push(start..start.saturating_add(header.p_memsz as usize));
    }
    0
}

#[cfg(test)]
mod tests {
    #[test]
    fn static_variables_lie_in_a_segment() {
        static ZEROS: [std::sync::atomic::AtomicU8; 100_000] =
            [const { std::sync::atomic::AtomicU8::new(0) }; 100_000];
        let (first, local) = (&raw const ZEROS, Box::new(0));
        let segments = super::segments();
        let within = |address: usize| segments.iter().any(|segment| segment.contains(&address));
        assert!(within(first.addr()) && within(first.addr() + 99_999));
        assert!(within((static_variables_lie_in_a_segment as fn()) as usize));
        assert!(!within((&raw const *local).addr()));
    }
}
