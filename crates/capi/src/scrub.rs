use crate::args::{bytes, room, text};
use crate::guard::status;
use crate::handles::{pmo_pool, pool};
use std::ffi::{c_char, c_int, c_void};

/// `struct pmo_scrubbed`.
#[repr(C)]
#[allow(missing_docs)]
pub struct Scrubbed {
    pub words: u64,
    pub repaired: u64,
    pub lost: u64,
    pub first_lost: u64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_scrub(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    each: Option<extern "C" fn(u64, u64, *mut c_void)>,
    context: *mut c_void,
    scrubbed: *mut Scrubbed,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        // SAFETY: the caller's promise.
        let scrubbed = unsafe { room(scrubbed) }?;
        let mut told = |done, all| each.iter().for_each(|each| each(done, all, context));
        let found = pool(handle)?.scrub(name, key, &mut told)?;
        scrubbed.fill(Scrubbed {
            words: found.words,
            repaired: found.repaired,
            lost: found.lost.len() as u64,
            first_lost: found.lost.first().copied().unwrap_or(0),
        });
        Ok(())
    })
}
