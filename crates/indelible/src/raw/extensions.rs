//! Extensions of structs of C, by the address of their link (docs/decisions/0037-extensions.md).
//! The chain is in `heap/chain.rs`.

#![allow(unsafe_code)]

use super::heap::usable_size;
use super::place::{HeapAt, at};
use super::registry::find;
use crate::error::{Cause, Error, Result};
use crate::heap::{
    Bounds, Cursor, Growable, HeapError, RawHeap, Shape, Surroundings, chain_home, copy_chain, free_chain,
    link_extension, nested,
};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// An extension of a struct, as the program defines it.
#[derive(Clone, Copy, Debug)]
pub struct ExtensionOf<'a> {
    /// Name of the struct.
    pub of: &'a str,
    /// Its place in the chain, from 1.
    pub number: usize,
    /// Bytes of its fields.
    pub size: usize,
    /// Alignment of its fields, at most 16.
    pub align: usize,
    /// Half of the fingerprint of its description.
    pub identity: u64,
}

struct ByAddress;

struct Inside {
    heap: *const RawHeap,
    /// Not `Send`: the thread that entered must leave.
    thread: PhantomData<*const ()>,
}

impl Drop for Inside {
    fn drop(&mut self) {
        // SAFETY: the object stays attached while its extensions are used, as callers of this
        // module promise.
        unsafe { &*self.heap }.leave();
    }
}

/// Callers of this module promise that no thread detaches the object.
#[inline]
fn place(address: usize) -> Result<HeapAt<'static>> {
    // SAFETY: as above; borrows from it end with the call of this module.
    unsafe { at(std::ptr::without_provenance(address)) }
}

impl Surroundings for ByAddress {
    type Inside = Inside;

    fn bounds(address: usize) -> Bounds {
        match place(address) {
            Ok(place) => Bounds { base: place.attachment.start(), len: place.attachment.len() },
            Err(_) => Bounds::NONE,
        }
    }

    fn writable(address: usize) -> Result<()> {
        let place = place(address)?;
        match place.attachment.is_writable() {
            true => Ok(()),
            false => Err(place.error("extend a value in", HeapError::ReadOnly)),
        }
    }

    fn enter(address: usize) -> Result<Inside> {
        let heap = place(address)?.heap;
        heap.enter();
        Ok(Inside { heap, thread: PhantomData })
    }

    fn allocate(address: usize, size: usize, align: usize) -> Result<NonNull<u8>> {
        let place = place(address)?;
        let block = match align <= 16 {
            true => place.heap.malloc_in(place.attachment, size),
            false => place.heap.allocate_in(place.attachment, size, align, false),
        };
        block.map_err(|error| place.failed("allocate an extension in", error))
    }

    fn is_block(address: usize, size: usize) -> Result<bool> {
        Ok(place(address)?.heap.usable_size(address).is_ok_and(|room| room >= size))
    }

    unsafe fn free(block: u64) {
        if let Ok(place) = place(block as usize) {
            // SAFETY: the caller's promise. A damaged block stays; that is no failure here.
            let _ = unsafe { place.heap.free(block as usize) };
        }
    }

    unsafe fn stored(at: *const u8, len: usize) {
        if let Ok(place) = place(at.addr())
            && place.attachment.is_explicit()
        {
            place.attachment.stored(at.addr()..at.addr() + len);
        }
    }

    fn error(address: usize, error: HeapError) -> Error {
        const OPERATION: &str = "use an extension of a value in";
        match place(address) {
            Ok(place) => place.error(OPERATION, error),
            Err(_) => Error::new(OPERATION, Cause::Heap(error)),
        }
    }
}

impl ExtensionOf<'_> {
    fn shape(&self) -> Shape {
        let ExtensionOf { size, align, identity, .. } = *self;
        Shape { size, align, description: identity }
    }
}

/// The fields of an extension, if it exists. `lines` describe the program's type, for the error.
///
/// # Safety
/// `link` is that of a value: zero, or as this module made it. No thread detaches the object
/// meanwhile.
pub unsafe fn extension(
    link: *const u64,
    of: &ExtensionOf<'_>,
    lines: impl Fn() -> String,
) -> Result<Option<NonNull<u8>>> {
    // SAFETY: the caller's promise.
    let slot = unsafe { &*link.cast::<AtomicU64>() };
    found(&mut Cursor::new(slot), slot, of, lines)
}

fn found(
    cursor: &mut Cursor<'_, ByAddress>,
    slot: &AtomicU64,
    of: &ExtensionOf<'_>,
    lines: impl Fn() -> String,
) -> Result<Option<NonNull<u8>>> {
    let shape = of.shape();
    let differs = |size, found| HeapError::ExtensionType {
        of: of.of.to_owned(),
        number: of.number,
        size,
        found,
        own: shape.block() as u64,
        known: of.identity,
        lines: lines(),
    };
    let at = cursor.find(of.number);
    let fields = at.and_then(|at| at.map(|at| cursor.fields(at, shape, differs)).transpose());
    Ok(fields.map_err(|error| ByAddress::error(chain_home(slot), error))?.and_then(NonNull::new))
}

/// Makes a missing extension; `initial` writes to its zeroed fields. Earlier extensions exist. Of
/// concurrent callers, one makes it.
///
/// # Safety
/// As for [`extension`].
pub unsafe fn extend<E: From<Error>>(
    link: *const u64,
    of: &ExtensionOf<'_>,
    lines: impl Fn() -> String,
    initial: impl FnOnce(*mut u8) -> Result<(), E>,
) -> Result<NonNull<u8>, E> {
    // SAFETY: the caller's promise.
    let slot = unsafe { &*link.cast::<AtomicU64>() };
    let mut cursor = Cursor::new(slot);
    if let Some(fields) = found(&mut cursor, slot, of, &lines)? {
        return Ok(fields);
    }
    let home = chain_home(slot);
    if cursor.passed + 1 != of.number {
        return Err(ByAddress::error(home, cursor.missing()).into());
    }
    ByAddress::writable(home)?;
    // Sixteen bytes are the largest alignment of fields.
    let mut values = vec![0_u128; of.size.div_ceil(size_of::<u128>())];
    initial(values.as_mut_ptr().cast())?;
    let write = |at: *mut u8| {
        // SAFETY: as many bytes in the new block, which no other code knows of yet.
        unsafe { at.copy_from_nonoverlapping(values.as_ptr().cast(), of.size) }
    };
    link_extension::<ByAddress>(cursor.slot, home, of.shape(), write)?;
    match found(&mut Cursor::new(slot), slot, of, lines)? {
        Some(fields) => Ok(fields),
        None => Err(ByAddress::error(home, cursor.missing()).into()),
    }
}

/// Computes initial values, which may need others; `None`: an endless recursion.
pub fn initial_values<T>(compute: impl FnOnce() -> T) -> Option<T> {
    nested(compute).ok()
}

/// # Safety
/// `links` are offsets of links in the value at `value`, as for [`extension`].
unsafe fn links<'a>(value: *const u8, links: &[usize]) -> impl Iterator<Item = &'a AtomicU64> {
    // SAFETY: the caller's promise.
    links.iter().map(move |link| unsafe { &*value.add(*link).cast::<AtomicU64>() })
}

/// Copies a value of `size` bytes with links at the offsets `at` and all their extensions, unknown
/// ones included. Frees earlier extensions of `to`.
///
/// # Errors
/// As for [`extend`]: `to` is unchanged.
///
/// # Safety
/// As for [`extension`], for all links of both; no other code uses `to` meanwhile.
pub unsafe fn copy_extended(to: *mut u8, from: *const u8, size: usize, at: &[usize]) -> Result<()> {
    if to.cast_const() == from {
        return Ok(());
    }
    let lies = find("copy a value to", to.addr()).is_ok();
    // A cut has the copy's extensions and the links to them, or neither.
    let _inside = if lies { Some(ByAddress::enter(to.addr())?) } else { None };
    let made: Vec<AtomicU64> = at.iter().map(|_| AtomicU64::new(0)).collect();
    // SAFETY: the caller's promise.
    let mut from_links = unsafe { links(from, at) }.zip(&made);
    let copied = from_links.try_for_each(|(from, made)| copy_chain::<ByAddress>(from, to.addr(), made));
    if let Err(error) = copied {
        // SAFETY: no other code knows of them.
        made.iter().for_each(|made| drop(unsafe { free_chain::<ByAddress>(made) }));
        return Err(error);
    }
    // SAFETY: the caller's promise.
    let old: Vec<AtomicU64> =
        unsafe { links(to, at) }.map(|link| AtomicU64::new(link.load(Acquire))).collect();
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy(from, to, size) };
    // SAFETY: the caller's promise.
    unsafe { links(to, at) }.zip(&made).for_each(|(link, made)| link.store(made.load(Relaxed), Relaxed));
    // SAFETY: the value's former extensions.
    old.iter().for_each(|old| drop(unsafe { free_chain::<ByAddress>(old) }));
    if lies {
        // SAFETY: the caller's promise.
        unsafe { ByAddress::stored(to, size) };
    }
    Ok(())
}

/// Frees a block of `count` values of `size` bytes, with links at the offsets `at`, and all their
/// extensions.
///
/// # Errors
/// `NotAttached`, `NotABlock`, `DoubleFree`, `RootExists` for a root's block; `BadSize`: the block
/// is smaller. Nothing was changed. `Damaged`: some extensions were freed, and the block was not.
///
/// # Safety
/// As for [`extension`], for all links; the values are the caller's, and not used any more.
pub unsafe fn free_extended(block: *mut u8, count: usize, size: usize, at: &[usize]) -> Result<()> {
    // SAFETY: the caller's promise.
    let room = unsafe { usable_size(block) }?;
    if count.checked_mul(size).is_none_or(|bytes| bytes > room) {
        let error = HeapError::Overflow { count, size };
        return Err(ByAddress::error(block.addr(), error));
    }
    // SAFETY: the caller's promise.
    unsafe { super::heap::expect_free(block) }?;
    // A cut has the value with its extensions, or nothing of them.
    let inside = ByAddress::enter(block.addr())?;
    for number in 0..count {
        // SAFETY: within the block; the caller's promise.
        for link in unsafe { links(block.add(number * size), at) } {
            // SAFETY: the caller's promise.
            unsafe { free_chain::<ByAddress>(link) }
                .map_err(|error| ByAddress::error(block.addr(), error))?;
            // An extension is freed once, also if a later one is damaged.
            link.store(0, Relaxed);
        }
    }
    drop(inside);
    // SAFETY: the caller's promise.
    unsafe { super::heap::free(block) }
}
