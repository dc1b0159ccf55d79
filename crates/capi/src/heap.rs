use crate::args::{fill, flags};
use crate::guard::{Failure, Result, guarded, status};
use indelible::{HeapOptions, raw};
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

const DEBUG: c_uint = 1;
const GROW: c_uint = 2;

fn options(with: c_uint) -> Result<HeapOptions> {
    let [debug, grow] = flags(with, [DEBUG, GROW])?;
    Ok(HeapOptions::new().debug(debug).grow(grow))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_heap_format(object: *mut c_void, with: c_uint) -> c_int {
    // SAFETY: the caller's promise.
    status(|| Ok(unsafe { raw::format_heap(object.cast(), options(with)?) }?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_heap_open(object: *mut c_void, with: c_uint) -> c_int {
    // SAFETY: the caller's promise.
    status(|| Ok(unsafe { raw::open_heap(object.cast(), options(with)?) }?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_heap_open_or_format(object: *mut c_void, with: c_uint) -> c_int {
    // SAFETY: the caller's promise.
    status(|| Ok(unsafe { raw::open_or_format_heap(object.cast(), options(with)?) }?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_malloc(object: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    guarded(null_mut(), || Ok(unsafe { raw::malloc(object.cast(), size) }?.as_ptr().cast()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_calloc(object: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    guarded(null_mut(), || Ok(unsafe { raw::calloc(object.cast(), count, size) }?.as_ptr().cast()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_aligned_alloc(
    object: *mut c_void,
    alignment: usize,
    size: usize,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    guarded(null_mut(), || Ok(unsafe { raw::aligned(object.cast(), alignment, size) }?.as_ptr().cast()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_realloc(object: *mut c_void, block: *mut c_void, size: usize) -> *mut c_void {
    guarded(null_mut(), || {
        let new = if block.is_null() {
            // SAFETY: the caller's promise.
            unsafe { raw::malloc(object.cast(), size) }
        } else {
            // SAFETY: the caller's promise.
            unsafe { raw::realloc(block.cast(), size) }
        };
        Ok(new?.as_ptr().cast())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_free(block: *mut c_void) -> c_int {
    status(|| match block.is_null() {
        true => Ok(()),
        // SAFETY: the caller's promise.
        false => Ok(unsafe { raw::free(block.cast()) }?),
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_can_free(block: *const c_void) -> c_int {
    status(|| match block.is_null() {
        true => Ok(()),
        // SAFETY: the caller's promise.
        false => Ok(unsafe { raw::expect_free(block.cast()) }?),
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_usable_size(block: *const c_void) -> usize {
    // SAFETY: the caller's promise.
    guarded(0, || Ok(unsafe { raw::usable_size(block.cast()) }?))
}

/// `struct pmo_heap_stats`.
#[repr(C)]
#[allow(missing_docs)]
pub struct HeapStats {
    pub bytes: u64,
    pub blocks: u64,
    pub block_bytes: u64,
    pub free_bytes: u64,
    pub largest_free: u64,
    pub class_bytes: u64,
    pub overhead: u64,
    pub roots: u64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_heap_stats(object: *mut c_void, stats: *mut HeapStats) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let known = unsafe { raw::heap_stats(object.cast()) }?;
        let filled = HeapStats {
            bytes: known.bytes,
            blocks: known.blocks,
            block_bytes: known.block_bytes,
            free_bytes: known.free_bytes,
            largest_free: known.largest_free,
            class_bytes: known.class_bytes,
            overhead: known.overhead,
            roots: known.roots,
        };
        // SAFETY: the caller's promise.
        unsafe { fill(stats, filled) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_heap_check(
    object: *mut c_void,
    each: Option<extern "C" fn(u64, *const c_char, *mut c_void)>,
    context: *mut c_void,
) -> i64 {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let findings = unsafe { raw::check(object.cast()) }?;
        if let Some(each) = each {
            for finding in &findings {
                let what = CString::new(finding.what.as_str()).unwrap_or_default();
                each(finding.offset, what.as_ptr(), context);
            }
        }
        Ok(findings.len() as i64)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_heap_blocks(
    object: *mut c_void,
    each: Option<extern "C" fn(*mut c_void, usize, *mut c_void) -> c_int>,
    context: *mut c_void,
) -> c_int {
    guarded(-1, || {
        let each = each.ok_or_else(|| Failure::argument("the function to be called is NULL"))?;
        // SAFETY: the caller's promise.
        for block in unsafe { raw::blocks(object.cast()) }? {
            let start = std::ptr::with_exposed_provenance_mut(block.address);
            let result = each(start, block.size, context);
            if result != 0 {
                return Ok(result);
            }
        }
        Ok(0)
    })
}
