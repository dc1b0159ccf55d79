#![allow(unsafe_code)]

use crate::plain::{Plain, frozen};
use std::mem::MaybeUninit;

pub(super) fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    const { frozen::<T>() };
    // SAFETY: without padding, and unchanged while it is borrowed (`Plain`, `frozen`).
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

pub(super) fn value_of<T: Plain>(bytes: &[u8]) -> Option<T> {
    const { frozen::<T>() };
    if bytes.len() != size_of::<T>() {
        return None;
    }
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: as many bytes as a `T` has, each pattern of which is one (`Plain`).
    Some(unsafe {
        value.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        value.assume_init()
    })
}
