//! Arguments as they come from C.

use crate::guard::{Failure, Result};
use indelible::raw::Permission;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::slice;

/// A string that has to be there.
///
/// # Safety
/// NULL, or a string that ends, and that stays as long as the result is used.
pub(crate) unsafe fn text<'a>(string: *const c_char, what: &str) -> Result<&'a str> {
    if string.is_null() {
        return Err(Failure::argument(format_args!("the {what} is NULL")));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(string) };
    bytes.to_str().map_err(|_| Failure::argument(format_args!("the {what} is not UTF-8")))
}

/// Bytes, of which there may be none.
///
/// # Safety
/// NULL, or `len` readable bytes that stay as long as the result is used.
pub(crate) unsafe fn bytes<'a>(start: *const c_void, len: usize, what: &str) -> Result<&'a [u8]> {
    if len == 0 {
        return Ok(&[]);
    }
    if start.is_null() || len > isize::MAX as usize {
        return Err(Failure::argument(format_args!("the {what} is NULL, or longer than memory")));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { slice::from_raw_parts(start.cast(), len) })
}

/// Fills in what the caller gave room for.
///
/// # Safety
/// NULL, or room for a `T`.
pub(crate) unsafe fn fill<T>(out: *mut T, value: T) -> Result<()> {
    if out.is_null() {
        return Err(Failure::argument("the struct to be filled in is NULL"));
    }
    // SAFETY: the caller's promise.
    unsafe { out.write(value) };
    Ok(())
}

/// Which of `known` are set.
pub(crate) fn flags<const N: usize>(flags: c_uint, known: [c_uint; N]) -> Result<[bool; N]> {
    let rest = flags & !known.iter().fold(0, |all, flag| all | flag);
    if rest != 0 {
        return Err(Failure::argument(format_args!("this function does not know the flags {rest:#x}")));
    }
    Ok(known.map(|flag| flags & flag != 0))
}

pub(crate) fn permission(permission: c_int) -> Result<Permission> {
    match u8::try_from(permission) {
        Ok(b'r') => Ok(Permission::Read),
        Ok(b'w') => Ok(Permission::Write),
        _ => Err(Failure::argument(format_args!("the permission is {permission}, neither 'r' nor 'w'"))),
    }
}

/// A name in a struct; zeros behind it.
pub(crate) fn name(text: &str) -> [u8; 512] {
    let mut name = [0; 512];
    let len = text.len().min(511);
    name[..len].copy_from_slice(&text.as_bytes()[..len]);
    name
}
