use crate::args::{array, borrow, bytes, room, text};
use crate::guard::{Failure, guarded, status};
use crate::handles::{pmo_pool, pool};
use crate::objects::{CreateOptions, POSITION_INDEPENDENT, READ_ONLY, SPARSE, VOLATILE};
use indelible::{AttachOptions, BadKeep, Keep, PageRange, raw};
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null_mut;

/// `struct pmo_snapshot`.
#[repr(C)]
#[allow(missing_docs)]
pub struct SnapshotOf {
    pub name: *const c_char,
    pub snapshot: *const c_char,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_snapshot(
    handle: *mut pmo_pool,
    name: *const c_char,
    snapshot: *const c_char,
    key: *const c_void,
    key_len: usize,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        // SAFETY: the caller's promise.
        Ok(pool(handle)?.snapshot(name, unsafe { text(snapshot, "name of the snapshot") }?, key)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_snapshot_all(
    handle: *mut pmo_pool,
    snapshots: *const SnapshotOf,
    count: usize,
    key: *const c_void,
    key_len: usize,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (snapshots, key) =
            unsafe { (array(snapshots, count, "list of snapshots")?, bytes(key, key_len, "key")?) };
        let names = |of: &SnapshotOf| {
            // SAFETY: the caller's promise.
            unsafe { Ok((text(of.name, "name")?, text(of.snapshot, "name of the snapshot")?)) }
        };
        let names = snapshots.iter().map(names).collect::<Result<Vec<_>, Failure>>()?;
        Ok(pool(handle)?.snapshot_all(&names, key)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_create_from(
    handle: *mut pmo_pool,
    name: *const c_char,
    copy: *const c_char,
    key: *const c_void,
    key_len: usize,
    options: *const CreateOptions,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, copy, key) =
            unsafe { (text(name, "name")?, text(copy, "name of the copy")?, bytes(key, key_len, "key")?) };
        let mut with = indelible::CreateOptions::new(0);
        if !options.is_null() {
            // SAFETY: the caller's promise.
            let options = unsafe { borrow(options, "struct of options") }?;
            if (options.size, options.reach) != (0, 0) {
                return Err(Failure::argument(
                    "a copy has the size and the reach of its object: both are 0 in the options",
                ));
            }
            // SAFETY: the caller's promise.
            with = unsafe { options.read(READ_ONLY | VOLATILE) }?;
        }
        Ok(pool(handle)?.create_from(name, copy, key, &with)?)
    })
}

/// `struct pmo_page_range`.
#[repr(C)]
#[allow(missing_docs)]
pub struct PageRangeOf {
    pub object: *const c_char,
    pub from: u64,
    pub len: u64,
    pub at: u64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_create_from_ranges(
    handle: *mut pmo_pool,
    name: *const c_char,
    ranges: *const PageRangeOf,
    count: usize,
    key: *const c_void,
    key_len: usize,
    options: *const CreateOptions,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        // SAFETY: the caller's promise.
        let ranges = unsafe { array(ranges, count, "list of ranges") }?;
        let range = |of: &PageRangeOf| {
            let end = of.from.checked_add(of.len);
            let end = end.ok_or_else(|| Failure::argument("a range ends beyond 2^64 bytes"))?;
            // SAFETY: the caller's promise.
            let object = unsafe { text(of.object, "name of the object of a range") }?;
            Ok(PageRange { object, bytes: of.from..end, at: of.at })
        };
        let ranges = ranges.iter().map(range).collect::<Result<Vec<_>, Failure>>()?;
        // SAFETY: the caller's promise.
        let options = unsafe { borrow(options, "struct of options") }?;
        // SAFETY: the caller's promise.
        let with = unsafe { options.read(READ_ONLY | SPARSE | VOLATILE | POSITION_INDEPENDENT) }?;
        Ok(pool(handle)?.create_from_ranges(name, &ranges, key, &with)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_attach_snapshot(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(raw::attach_snapshot_with(&pool(handle)?, name, &AttachOptions::new().key(key))?.as_ptr().cast())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_refresh(object: *mut c_void, newer: *mut c_int) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let newer = unsafe { room(newer) }?;
        // SAFETY: the caller's promise.
        let refreshed = unsafe { raw::refresh(object.cast()) }?;
        let was_newer = refreshed.ok_or_else(|| {
            Failure::argument("only an object that pmo_attach_snapshot attached goes to a newer psync: detach it, and attach it so")
        })?;
        newer.fill(c_int::from(was_newer));
        Ok(())
    })
}

/// `struct pmo_collected`.
#[repr(C)]
#[allow(missing_docs)]
pub struct Collected {
    pub removed: u64,
    pub copied: u64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_collect(
    handle: *mut pmo_pool,
    each: Option<extern "C" fn(u64, u64, *mut c_void)>,
    context: *mut c_void,
    collected: *mut Collected,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let collected = unsafe { room(collected) }?;
        let mut told = |done, all| each.iter().for_each(|each| each(done, all, context));
        let done = pool(handle)?.collect(&mut told)?;
        collected.fill(Collected { removed: done.removed, copied: done.copied });
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_rollback(
    handle: *mut pmo_pool,
    name: *const c_char,
    snapshot: *const c_char,
    key: *const c_void,
    key_len: usize,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        // SAFETY: the caller's promise.
        Ok(pool(handle)?.rollback(name, unsafe { text(snapshot, "name of the snapshot") }?, key)?)
    })
}

/// `struct pmo_difference`.
#[repr(C)]
#[allow(missing_docs)]
pub struct Difference {
    pub pages: u64,
    pub older_size: u64,
    pub newer_size: u64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_diff(
    handle: *mut pmo_pool,
    older: *const c_char,
    newer: *const c_char,
    key: *const c_void,
    key_len: usize,
    each: Option<extern "C" fn(u64, u64, *mut c_void)>,
    context: *mut c_void,
    difference: *mut Difference,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (older, newer) =
            unsafe { (text(older, "name of the older one")?, text(newer, "name of the newer one")?) };
        // SAFETY: the caller's promise.
        let (key, difference) = unsafe { (bytes(key, key_len, "key")?, room(difference)?) };
        let found = pool(handle)?.diff(older, newer, key)?;
        for pages in &found.pages {
            each.iter().for_each(|each| each(pages.start, pages.end - pages.start, context));
        }
        let pages = found.pages.iter().map(|pages| pages.end - pages.start).sum();
        difference.fill(Difference { pages, older_size: found.older_size, newer_size: found.newer_size });
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_thin(
    handle: *mut pmo_pool,
    name: *const c_char,
    keep: *const c_char,
    key: *const c_void,
    key_len: usize,
    each: Option<extern "C" fn(*const c_char, *mut c_void)>,
    context: *mut c_void,
) -> i64 {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let (name, keep, key) =
            unsafe { (text(name, "name")?, text(keep, "policy")?, bytes(key, key_len, "key")?) };
        let keep: Keep = keep.parse().map_err(|why: BadKeep| Failure::argument(why))?;
        let gone = pool(handle)?.thin(name, &keep, key)?;
        for snapshot in &gone {
            let snapshot = CString::new(snapshot.as_str()).unwrap_or_default();
            each.iter().for_each(|each| each(snapshot.as_ptr(), context));
        }
        Ok(gone.len() as i64)
    })
}
