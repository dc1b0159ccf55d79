use crate::args::{bytes, text, versioned};
use crate::attachment::{ANYWHERE, SNAPSHOT, attach};
use crate::guard::{Failure, guarded};
use crate::handles::{pmo_pool, pool};
use crate::pool_options::tracking;
use crate::seal_keys::{find, pmo_seal_key};
use indelible::AttachOptions;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::time::Duration;

/// `struct pmo_attach_options`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct AttachWith {
    pub size: usize,
    pub permission: c_int,
    pub tracking: u32,
    pub wait: u64,
    pub key: *const c_void,
    pub key_len: usize,
    pub seal: *const pmo_seal_key,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_attach_with(
    handle: *mut pmo_pool,
    name: *const c_char,
    options: *const AttachWith,
) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise; each field may be zero.
        let with = unsafe { versioned(options, "struct of options") }?;
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(with.key, with.key_len, "key")?) };
        let mut how = AttachOptions::new().key(key).tracking(tracking(with.tracking)?);
        if with.wait != 0 {
            how = how.wait(Duration::from_millis(with.wait));
        }
        if !with.seal.is_null() {
            how = how.seal(&find(with.seal)?);
        }
        if with.permission & !ANYWHERE == SNAPSHOT && (with.tracking, with.wait) != (0, 0) {
            return Err(Failure::argument("a snapshot has no tracking, and waits for no writer"));
        }
        attach(&pool(handle)?, name, with.permission, &how)
    })
}
