//! Addresses in an object that mean nothing in the next run.

use crate::guard::{Failure, Result, guarded};
use indelible::raw::{self, Audit};
use std::ffi::{CString, c_char, c_int, c_void};

const AUDIT: c_int = 256;
const OBJECTS: c_int = 512;

pub(crate) fn flagged(wanted: c_int) -> Result<(Audit, c_int)> {
    let permission = wanted & !(AUDIT | OBJECTS);
    let audit = match (wanted & AUDIT != 0, wanted & OBJECTS != 0) {
        (_, true) => Audit::Everything,
        (true, false) => Audit::Process,
        (false, false) => Audit::Off,
    };
    if audit != Audit::Off && permission != c_int::from(b'w') {
        return Err(Failure::argument("only psyncs are audited: attach with PMO_WRITE"));
    }
    Ok((audit, permission))
}

/// `struct pmo_pointer`.
#[repr(C)]
#[allow(missing_docs)]
pub struct StrayPointer {
    pub offset: u64,
    pub target: u64,
    pub place: *const c_char,
    pub into: *const c_char,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_audit(
    object: *const c_void,
    each: Option<extern "C" fn(*const StrayPointer, *mut c_void)>,
    context: *mut c_void,
) -> i64 {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let all = unsafe { raw::stray_pointers(object.cast()) }?;
        let Some(each) = each else { return Ok(all.len() as i64) };
        for found in &all {
            let string = |text: &str| CString::new(text).unwrap_or_default();
            let (place, into) = (string(&found.place), string(&found.target_words()));
            let given = StrayPointer {
                offset: found.offset,
                target: found.target,
                place: place.as_ptr(),
                into: into.as_ptr(),
            };
            each(&given, context);
        }
        Ok(all.len() as i64)
    })
}
