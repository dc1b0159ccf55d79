use crate::args::{fill, text};
use crate::guard::{Failure, Result, guarded, status};
use crate::handles::{pmo_pool, pool, pools};
use crate::objects::Stat;
use crate::pool_options::{ALLOW_REMOTE, FORMAT, LATER, OPEN, PoolWith, flagged, medium_number, options};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::time::Duration;

fn opened(open: impl FnOnce() -> Result<indelible::Pool>) -> *mut pmo_pool {
    guarded(null_mut(), || {
        let pool = open()?;
        Ok(pools(|pools| {
            pools.last += 16;
            pools.open.insert(pools.last, pool);
            without_provenance_mut(pools.last)
        }))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_open(path: *const c_char, with: c_uint) -> *mut pmo_pool {
    // SAFETY: the caller's promise.
    opened(|| Ok(flagged(with, OPEN)?.open(unsafe { text(path, "path") }?)?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_open_with(path: *const c_char, with: *const PoolWith) -> *mut pmo_pool {
    // SAFETY: the caller's promise.
    opened(|| Ok(unsafe { options(with, OPEN | LATER) }?.open(unsafe { text(path, "path") }?)?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_format(path: *const c_char, size: u64, with: c_uint) -> *mut pmo_pool {
    // SAFETY: the caller's promise.
    opened(|| Ok(flagged(with, FORMAT)?.format(unsafe { text(path, "path") }?, size)?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_format_with(
    path: *const c_char,
    size: u64,
    with: *const PoolWith,
) -> *mut pmo_pool {
    // SAFETY: the caller's promise.
    opened(|| Ok(unsafe { options(with, FORMAT | LATER) }?.format(unsafe { text(path, "path") }?, size)?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_open_or_format(path: *const c_char, size: u64, with: c_uint) -> *mut pmo_pool {
    // SAFETY: the caller's promise.
    opened(|| Ok(flagged(with, ALLOW_REMOTE)?.open_or_format(unsafe { text(path, "path") }?, size)?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_open_or_format_with(
    path: *const c_char,
    size: u64,
    with: *const PoolWith,
) -> *mut pmo_pool {
    opened(|| {
        // SAFETY: the caller's promise.
        let (path, options) = unsafe { (text(path, "path")?, options(with, ALLOW_REMOTE | LATER)?) };
        Ok(options.open_or_format(path, size)?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_close(handle: *mut pmo_pool) -> c_int {
    status(|| {
        let closed = pools(|pools| pools.open.remove(&handle.addr()));
        closed.iter().for_each(indelible::raw::remove_pool);
        closed.map(drop).ok_or_else(|| Failure::argument("the pool is not open"))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_wait(handle: *mut pmo_pool, milliseconds: u64) -> c_int {
    status(|| {
        pool(handle)?.set_wait(Duration::from_millis(milliseconds));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_use(path: *const c_char) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let pool = indelible::Pool::open(unsafe { text(path, "path") }?)?;
        let before = pools(|pools| pools.used.replace(pool));
        drop(before);
        Ok(())
    })
}

/// `struct pmo_pool_info`.
#[repr(C)]
#[allow(missing_docs)]
pub struct PoolInfo {
    pub id: [u8; 16],
    pub length: u64,
    pub objects: u64,
    pub free: u64,
    pub largest_free: u64,
    pub version: u32,
    pub medium: u32,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_pool_grow(handle: *mut pmo_pool, length: u64) -> c_int {
    status(|| Ok(pool(handle)?.grow(length).map(drop)?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_pool_info(handle: *mut pmo_pool, info: *mut PoolInfo) -> c_int {
    status(|| {
        let pool = pool(handle)?;
        let known = pool.info()?;
        let filled = PoolInfo {
            id: known.id,
            length: known.length,
            objects: known.objects,
            free: known.free,
            largest_free: known.largest_free,
            version: known.version,
            medium: medium_number(pool.medium()),
        };
        // SAFETY: the caller's promise.
        unsafe { fill(info, filled) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_list(
    handle: *mut pmo_pool,
    each: Option<extern "C" fn(*const Stat, *mut c_void) -> c_int>,
    context: *mut c_void,
) -> c_int {
    guarded(-1, || {
        let each = each.ok_or_else(|| Failure::argument("the function to be called is NULL"))?;
        for stat in pool(handle)?.list() {
            let result = each(&Stat::of(&stat?), context);
            if result != 0 {
                return Ok(result);
            }
        }
        Ok(0)
    })
}
