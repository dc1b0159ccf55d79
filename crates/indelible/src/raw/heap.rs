#![allow(unsafe_code)]

use super::place::{How, at};
use super::registry::find;
use crate::error::Result;
use crate::heap::{Block, HeapFinding, HeapOptions, HeapStats, Root, TypeInfo};
use std::ptr::NonNull;

/// Makes a heap of the blank object at `address`.
///
/// # Safety
/// No other thread uses the object's heap meanwhile; from now on, stores to the object go to live
/// blocks.
pub unsafe fn format_heap(address: *const u8, options: HeapOptions) -> Result<()> {
    let found = find("use a heap", address.addr())?;
    found.open(options, How::Format, |_| false).map(drop)
}

/// Opens the heap of the object at `address`, again if it was open with other options.
///
/// # Safety
/// As for [`format_heap`].
pub unsafe fn open_heap(address: *const u8, options: HeapOptions) -> Result<()> {
    find("use a heap", address.addr())?.opened(Some(options)).map(drop)
}

/// Opens the heap, or makes one of a blank object.
///
/// # Safety
/// As for [`format_heap`].
pub unsafe fn open_or_format_heap(address: *const u8, options: HeapOptions) -> Result<()> {
    let found = find("use a heap", address.addr())?;
    found.open(options, How::Either, |heap| heap.options() == options).map(drop)
}

/// Allocates in the object at `address`: see [`Heap::malloc`](crate::Heap::malloc).
///
/// # Safety
/// No thread detaches the object meanwhile. Stores go only to live blocks of the heap.
#[inline]
pub unsafe fn malloc(address: *const u8, size: usize) -> Result<NonNull<u8>> {
    // SAFETY: the caller's promise.
    let place = unsafe { at(address)? };
    place.heap.malloc_in(place.attachment, size).map_err(|error| place.failed("allocate in", error))
}

/// Allocates `count` times `size` zeroed bytes.
///
/// # Safety
/// As for [`malloc`].
pub unsafe fn calloc(address: *const u8, count: usize, size: usize) -> Result<NonNull<u8>> {
    // SAFETY: the caller's promise.
    let place = unsafe { at(address)? };
    let result = place.heap.calloc_in(place.attachment, count, size);
    result.map_err(|error| place.failed("allocate in", error))
}

/// Allocates at a multiple of `align`, a power of two of at most 2 MiB.
///
/// # Safety
/// As for [`malloc`].
pub unsafe fn aligned(address: *const u8, align: usize, size: usize) -> Result<NonNull<u8>> {
    // SAFETY: the caller's promise.
    let place = unsafe { at(address)? };
    let result = place.heap.allocate_in(place.attachment, size, align, false);
    result.map_err(|error| place.failed("allocate in", error))
}

/// Frees a block of any heap.
///
/// # Errors
/// `NotAttached`, `NotABlock`, `DoubleFree`, `Overwritten` (in debug mode), `RootExists` for a
/// root's block: nothing was changed.
///
/// # Safety
/// As for [`malloc`]; the block is the caller's, and not used any more.
#[inline]
pub unsafe fn free(block: *mut u8) -> Result<()> {
    // SAFETY: the caller's promise.
    let place = unsafe { at(block)? };
    // SAFETY: the caller's promise.
    unsafe { place.heap.free(block.addr()) }.map_err(|error| place.failed("free a block of", error))
}

/// Checks what [`free`] would return, before a caller destroys the block's value.
///
/// # Safety
/// As for [`malloc`].
pub unsafe fn expect_free(block: *const u8) -> Result<()> {
    // SAFETY: the caller's promise.
    let place = unsafe { at(block)? };
    place.done("free a block of", place.heap.expect_free(block.addr()))
}

/// Resizes a block: see [`Heap::realloc`](crate::Heap::realloc).
///
/// # Errors
/// As for [`malloc`] and [`free`]: the block is unchanged.
///
/// # Safety
/// As for [`free`]: if the block moved, the old one is free.
pub unsafe fn realloc(block: *mut u8, size: usize) -> Result<NonNull<u8>> {
    // SAFETY: the caller's promise.
    let place = unsafe { at(block)? };
    // SAFETY: the caller's promise.
    let result = unsafe { place.heap.realloc_in(place.attachment, block, size) };
    result.map_err(|error| place.failed("reallocate a block of", error))
}

/// Usable bytes of a block, at least those requested.
///
/// # Safety
/// As for [`malloc`].
pub unsafe fn usable_size(block: *const u8) -> Result<usize> {
    // SAFETY: the caller's promise.
    let place = unsafe { at(block)? };
    place.done("inspect a block of", place.heap.usable_size(block.addr()))
}

/// The live blocks, by address.
///
/// # Safety
/// As for [`malloc`].
pub unsafe fn blocks(address: *const u8) -> Result<Vec<Block>> {
    // SAFETY: the caller's promise.
    let place = unsafe { at(address)? };
    place.heap.blocks().map(|block| place.done("walk the heap of", block)).collect()
}

/// All damage of the heap's metadata, and in debug mode all overwritten guard bytes.
///
/// # Safety
/// As for [`malloc`]; no other thread allocates or frees meanwhile.
pub unsafe fn check(address: *const u8) -> Result<Vec<HeapFinding>> {
    // SAFETY: the caller's promise.
    Ok(unsafe { at(address)? }.heap.check())
}

/// The heap's current statistics.
///
/// # Safety
/// As for [`malloc`].
pub unsafe fn heap_stats(address: *const u8) -> Result<HeapStats> {
    // SAFETY: the caller's promise.
    let place = unsafe { at(address)? };
    place.done("count the heap of", place.heap.stats())
}

/// Names `size` bytes at `block` in the heap of the object at `address`: see
/// [`Heap::create_root`](crate::Heap::create_root).
///
/// # Safety
/// As for [`malloc`].
pub unsafe fn create_root(
    address: *const u8,
    name: &str,
    block: *const u8,
    size: u64,
    ty: &TypeInfo<'_>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let place = unsafe { at(address)? };
    place.done("create a root in", place.heap.create_root(name, block.addr(), size, ty))
}

/// The root `name` of type `ty`.
///
/// # Safety
/// As for [`malloc`].
pub unsafe fn root(address: *const u8, name: &str, ty: &TypeInfo<'_>) -> Result<Root> {
    // SAFETY: the caller's promise.
    let place = unsafe { at(address)? };
    place.done("find a root in", place.heap.root(name, ty))
}

/// The root `name`, of any type.
///
/// # Safety
/// As for [`malloc`].
pub unsafe fn root_any(address: *const u8, name: &str) -> Result<Root> {
    // SAFETY: the caller's promise.
    let place = unsafe { at(address)? };
    place.done("find a root in", place.heap.root_any(name))
}

/// Removes a name; the block stays.
///
/// # Safety
/// As for [`malloc`].
pub unsafe fn remove_root(address: *const u8, name: &str) -> Result<Root> {
    // SAFETY: the caller's promise.
    let place = unsafe { at(address)? };
    place.done("remove a root of", place.heap.remove_root(name))
}

/// All roots, by name.
///
/// # Safety
/// As for [`malloc`].
pub unsafe fn roots(address: *const u8) -> Result<Vec<Root>> {
    // SAFETY: the caller's promise.
    let place = unsafe { at(address)? };
    place.done("list the roots of", place.heap.roots())
}
