//! Roots whose types change (docs/decisions/0035-retention.md), by address.

#![allow(unsafe_code)]

use super::place::at;
use crate::error::Result;
use crate::heap::{HeapError, TypeInfo};
use std::slice;

/// Makes the root `name`, of any type, refer to `size` bytes at `block` of type `ty`. Its old block
/// stays. The next psync makes the change durable.
///
/// # Errors
/// `NotAttached`, `RootMissing`, `HeapFull`; `NotABlock`: the bytes are not in the object. The root
/// is unchanged.
///
/// # Safety
/// As for [`malloc`](super::malloc); no other thread uses the root meanwhile.
pub unsafe fn replace_root(
    address: *const u8,
    name: &str,
    block: *const u8,
    size: u64,
    ty: &TypeInfo<'_>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let place = unsafe { at(address)? };
    place.done("replace a root of", place.heap.replace_root(name, block.addr(), size, ty))
}

/// The blocks of a root's value, its own included, found by its type's description.
///
/// # Errors
/// `NotAttached`, `RootMissing`; `RootType`: the value's own blocks cannot be told; `Damaged`: the
/// value is.
///
/// # Safety
/// As for [`malloc`](super::malloc); no other thread uses the object meanwhile.
pub unsafe fn value_blocks(address: *const u8, name: &str) -> Result<Vec<*mut u8>> {
    // SAFETY: the caller's promise.
    let place = unsafe { at(address)? };
    let (start, len) = (place.attachment.start(), place.attachment.len());
    // SAFETY: the attached object, to which no thread stores meanwhile.
    let bytes = unsafe { slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(start), len) };
    // Values of C programs: nothing is taken for the work of typed code.
    let found = place.heap.reclaimed(bytes, name, true);
    let found = found.and_then(|found| match found.into_blocks() {
        (blocks, shared) if shared.is_empty() => Ok(blocks),
        _ => Err(HeapError::Irreclaimable {
            name: name.to_owned(),
            why: "it owns values (PRc) that others own as well: a Rust program can reset it".to_owned(),
        }),
    });
    let blocks = place.done("reset a root of", found)?;
    Ok(blocks.into_iter().map(|block| std::ptr::with_exposed_provenance_mut(block as usize)).collect())
}
