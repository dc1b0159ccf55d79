//! A root's type: its name, its description and its fingerprint.

use crate::args::{borrow, boundary, fill, fill_text, text};
use crate::describe::describe;
use crate::guard::{Result, status};
use crate::types::Type;
use indelible::TypeInfo;
use std::ffi::{c_char, c_int};

pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) layout: String,
    pub(crate) fingerprint: u128,
    pub(crate) size: usize,
    pub(crate) align: usize,
}

const NAME: usize = 255;

impl Described {
    /// # Safety
    /// NULL, or a valid, lasting type of C.
    pub(crate) unsafe fn of(ty: *const Type) -> Result<Described> {
        // SAFETY: the caller's promise.
        let layout = unsafe { describe(ty) }?;
        // SAFETY: the caller's promise.
        let this = unsafe { borrow(ty, "type") }?;
        // SAFETY: the caller's promise.
        let mut name = unsafe { text(this.name, "name of the type") }?.to_owned();
        if name.len() > NAME {
            name.truncate(boundary(&name, NAME - '…'.len_utf8()));
            name.push('…');
        }
        let fingerprint = TypeInfo::described(&name, &layout).fingerprint;
        Ok(Described { name, layout, fingerprint, size: this.size, align: this.align })
    }

    pub(crate) fn info(&self) -> TypeInfo<'_> {
        TypeInfo { name: &self.name, fingerprint: self.fingerprint, layout: &self.layout }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_type_describe(
    ty: *const Type,
    out: *mut c_char,
    len: usize,
    fingerprint: *mut u64,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let described = unsafe { Described::of(ty) }?;
        if !fingerprint.is_null() {
            let halves = [described.fingerprint as u64, (described.fingerprint >> 64) as u64];
            // SAFETY: room for two numbers, by the caller's promise.
            unsafe { fill(fingerprint.cast::<[u64; 2]>(), halves) }?;
        }
        if !out.is_null() {
            // SAFETY: the caller's promise.
            unsafe { fill_text(out, len, described.info().lines().trim_end()) };
        }
        Ok(())
    })
}
