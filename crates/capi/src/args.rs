use crate::guard::{Failure, Result};
use indelible::Rights;
use indelible::raw::Permission;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::slice;

/// A string that must not be NULL.
///
/// # Safety
/// NULL, or a zero-terminated string that outlives the result.
pub(crate) unsafe fn text<'a>(string: *const c_char, what: &str) -> Result<&'a str> {
    if string.is_null() {
        return Err(Failure::argument(format_args!("the {what} is NULL")));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(string) };
    bytes.to_str().map_err(|_| Failure::argument(format_args!("the {what} is not UTF-8")))
}

/// A value that must not be NULL.
///
/// # Safety
/// NULL, or a value that outlives the result.
pub(crate) unsafe fn borrow<'a, T>(value: *const T, what: &str) -> Result<&'a T> {
    if value.is_null() || !value.is_aligned() {
        return Err(Failure::argument(format_args!("the {what} is NULL or misaligned")));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { &*value })
}

/// A struct whose first field is its size in bytes, as a program of another version may have it:
/// shorter, and the rest is zero; or longer, with zeros behind the known fields.
///
/// # Safety
/// NULL, or a struct of the size that it says. A `T` of zeros is valid.
pub(crate) unsafe fn versioned<T: Copy>(value: *const T, what: &str) -> Result<T> {
    // SAFETY: the caller's promise.
    let size = *unsafe { borrow(value.cast::<usize>(), what) }?;
    if !value.is_aligned() || size <= size_of::<usize>() {
        return Err(Failure::argument(format_args!("the {what} has {size} bytes, by its field size")));
    }
    // SAFETY: the caller's promise.
    let all = unsafe { bytes(value.cast(), size, what) }?;
    let (known, beyond) = all.split_at(size.min(size_of::<T>()));
    if beyond.iter().any(|byte| *byte != 0) {
        return Err(Failure::argument(format_args!("the {what} has fields that this release does not know")));
    }
    let mut out = MaybeUninit::<T>::zeroed();
    // SAFETY: at most the bytes of a `T`, into room of its own.
    unsafe { out.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(known.as_ptr(), known.len()) };
    // SAFETY: zeros are valid by the caller's promise, as are the bytes of its struct.
    Ok(unsafe { out.assume_init() })
}

/// Values; none for a count of 0.
///
/// # Safety
/// NULL, or `count` values that outlive the result.
pub(crate) unsafe fn array<'a, T>(start: *const T, count: usize, what: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if count > isize::MAX as usize / size_of::<T>() {
        return Err(Failure::argument(format_args!("the {what} is longer than memory can be")));
    }
    // SAFETY: the caller's promise.
    unsafe { borrow(start, what)? };
    // SAFETY: the caller's promise.
    Ok(unsafe { slice::from_raw_parts(start, count) })
}

/// Strings; none for a count of 0.
///
/// # Safety
/// As for [`array`], and each as for [`text`].
pub(crate) unsafe fn texts<'a>(
    start: *const *const c_char,
    count: usize,
    what: &str,
) -> Result<Vec<&'a str>> {
    // SAFETY: the caller's promise.
    unsafe { array(start, count, what)?.iter().map(|string| text(*string, what)).collect() }
}

/// Bytes; none for a length of 0.
///
/// # Safety
/// As for [`array`].
pub(crate) unsafe fn bytes<'a>(start: *const c_void, len: usize, what: &str) -> Result<&'a [u8]> {
    // SAFETY: the caller's promise.
    unsafe { array(start.cast(), len, what) }
}

/// Room for bytes, maybe uninitialized; none for a length of 0.
///
/// # Safety
/// NULL, or `len` bytes that no other thread uses during the result's life.
pub(crate) unsafe fn room_for_bytes<'a>(start: *mut c_void, len: usize, what: &str) -> Result<&'a mut [u8]> {
    // SAFETY: the caller's promise.
    unsafe { bytes(start, len, what) }?;
    // SAFETY: the caller's promise.
    Ok(if len == 0 { &mut [] } else { unsafe { slice::from_raw_parts_mut(start.cast(), len) } })
}

/// Stores to the caller's struct.
///
/// # Safety
/// NULL, or room for a `T`.
pub(crate) unsafe fn fill<T>(out: *mut T, value: T) -> Result<()> {
    if out.is_null() || !out.is_aligned() {
        return Err(Failure::argument("the struct to be filled in is NULL or misaligned"));
    }
    // SAFETY: the caller's promise.
    unsafe { out.write(value) };
    Ok(())
}

pub(crate) struct Room<'a, T>(Option<&'a mut MaybeUninit<T>>);

impl<T> Room<'_, T> {
    pub(crate) fn fill(self, value: T) {
        self.0.map(|room| room.write(value));
    }
}

/// Checks the room before anything else happens.
///
/// # Safety
/// NULL, or room for a `T` that no other thread uses during the result's life.
pub(crate) unsafe fn room<'a, T>(out: *mut T) -> Result<Room<'a, T>> {
    if !out.is_aligned() {
        return Err(Failure::argument("the value to be filled in is misaligned"));
    }
    // SAFETY: the caller's promise; bytes of any kind are a MaybeUninit.
    Ok(Room(unsafe { out.cast::<MaybeUninit<T>>().as_mut() }))
}

/// # Safety
/// NULL, or room for `len` bytes.
pub(crate) unsafe fn zero(out: *mut c_void, len: usize) -> Result<()> {
    if out.is_null() {
        return Err(Failure::argument("the bytes to be filled in are NULL"));
    }
    // SAFETY: the caller's promise.
    unsafe { out.cast::<u8>().write_bytes(0, len) };
    Ok(())
}

/// # Safety
/// A zero-terminated string that outlives the result.
pub(crate) unsafe fn lossy<'a>(string: *const c_char) -> std::borrow::Cow<'a, str> {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(string) }.to_string_lossy()
}

/// Stores as much of a text as there is room for, and a zero byte.
///
/// # Safety
/// Room for `len` bytes.
pub(crate) unsafe fn fill_text(out: *mut c_char, len: usize, text: &str) {
    let Some(most) = len.checked_sub(1) else { return };
    let text = &text[..boundary(text, most)];
    // SAFETY: the caller's promise; `len` exceeds the text.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), out.cast(), text.len());
        out.add(text.len()).write(0);
    }
}

pub(crate) fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

pub(crate) fn rights(bits: c_uint) -> Result<Rights> {
    let rights = u8::try_from(bits).ok().and_then(Rights::from_bits);
    rights.ok_or_else(|| Failure::argument(format_args!("the rights are {bits}")))
}

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
        _ => Err(Failure::argument(format_args!(
            "the permission is {permission}, none of PMO_READ, PMO_WRITE and PMO_SNAPSHOT"
        ))),
    }
}

pub(crate) fn name(text: &str) -> [u8; 512] {
    let mut name = [0; 512];
    let len = boundary(text, 511);
    name[..len].copy_from_slice(&text.as_bytes()[..len]);
    name
}
