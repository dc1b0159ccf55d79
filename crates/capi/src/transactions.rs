//! Transactional objects, and transactions, which their callers run again: the loops are in
//! `include/pmo/transaction.h`.

use crate::args::{array, bytes, room_for_bytes, text};
use crate::described::Described;
use crate::guard::{Failure, Result, guarded, status};
use crate::handles::{pmo_pool, pool};
use crate::types::Type;
use indelible::Class;
use indelible::raw::{self, transactions as running};
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Empty: a handle is a number, so that a finished or another thread's transaction is noticed.
#[allow(non_camel_case_types)]
pub struct pmo_tx(());

pub(crate) const ALIGN: usize = 16;

const HANDLES: usize = 1 << 24;
static NEXT: AtomicUsize = AtomicUsize::new(HANDLES);

thread_local! {
    /// 0 for none.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
    /// This thread's newest; 0 before the first.
    static LAST: Cell<usize> = const { Cell::new(0) };
}

fn next_handle() -> usize {
    let last = LAST.get();
    let next = if last.is_multiple_of(HANDLES) { NEXT.fetch_add(HANDLES, Ordering::Relaxed) } else { last };
    LAST.set(next + 1);
    next + 1
}

fn mine(tx: *mut pmo_tx) -> Result<()> {
    if !tx.is_null() && CURRENT.get() == tx.addr() && running::is_open() {
        return Ok(());
    }
    Err(Failure::argument("the transaction is NULL, is over, or is another thread's"))
}

pub(crate) fn class(durability: u32) -> Result<Class> {
    let known = Class::ALL.into_iter().find(|class| u32::from(class.byte()) == durability);
    known.ok_or_else(|| Failure::argument(format_args!("there is no durability {durability}")))
}

pub(crate) fn durability(class: Option<Class>) -> u32 {
    class.map_or(u32::MAX, |class| u32::from(class.byte()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_set_durability(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    durability: c_int,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(pool(handle)?.set_class(name, key, class(u32::try_from(durability).unwrap_or(u32::MAX))?)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_set_readable_outside(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    readable: c_int,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        match readable {
            0 | 1 => Ok(pool(handle)?.set_readable_outside(name, key, readable == 1)?),
            _ => {
                Err(Failure::argument("an object is readable outside of transactions (1), or it is not (0)"))
            }
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_attach_transactional(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(running::attach_transactional(&pool(handle)?, name, key)?.as_ptr().cast())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_attach_with_on_demand(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(running::attach_with_on_demand(&pool(handle)?, name, key)?.as_ptr().cast())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_tx_begin_with(object: *const c_void, size: usize) -> c_int {
    status(|| Ok(running::begin_with(object.cast(), size)?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_tx_begin(objects: *const *mut c_void, count: usize) -> *mut pmo_tx {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let objects = unsafe { array(objects, count, "list of objects") }?;
        let objects: Vec<*const u8> = objects.iter().map(|object| object.cast_const().cast()).collect();
        raw::begin_transaction(&objects)?;
        let handle = next_handle();
        CURRENT.set(handle);
        Ok(without_provenance_mut(handle))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_tx_again(tx: *mut pmo_tx) -> c_int {
    status(|| {
        mine(tx)?;
        Ok(running::again()?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_tx_read(
    tx: *mut pmo_tx,
    from: *const c_void,
    into: *mut c_void,
    size: usize,
) -> c_int {
    status(|| {
        mine(tx)?;
        // SAFETY: the caller's promise.
        let into = unsafe { room_for_bytes(into, size, "room for the bytes") }?;
        if into.is_empty() {
            return Ok(());
        }
        Ok(running::read(from.cast(), into)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_tx_write(
    tx: *mut pmo_tx,
    to: *mut c_void,
    from: *const c_void,
    size: usize,
) -> c_int {
    status(|| {
        mine(tx)?;
        // SAFETY: the caller's promise.
        let from = unsafe { bytes(from, size, "bytes to be stored") }?;
        if size == 0 {
            return Ok(());
        }
        Ok(running::write(to.cast(), from)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_tx_alloc(tx: *mut pmo_tx, object: *const c_void, size: usize) -> *mut c_void {
    guarded(null_mut(), || {
        mine(tx)?;
        Ok(running::alloc(object.cast(), size, ALIGN)?.as_ptr().cast())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_tx_free(tx: *mut pmo_tx, block: *mut c_void) -> c_int {
    status(|| {
        mine(tx)?;
        if block.is_null() {
            return Ok(());
        }
        Ok(running::free(block.cast_const().cast())?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_tx_root(
    tx: *mut pmo_tx,
    object: *const c_void,
    name: *const c_char,
    ty: *const Type,
) -> *mut c_void {
    guarded(null_mut(), || {
        mine(tx)?;
        // SAFETY: the caller's promise.
        let (name, ty) = unsafe { (text(name, "name")?, Described::of(ty)?) };
        let place = (ty.size, ty.align.max(ALIGN));
        Ok(running::root(object.cast(), name, place, &ty.info())?.as_ptr().cast())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_explain_faults() -> c_int {
    status(|| Ok(indelible::explain_faults()?))
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_tx_alone(tx: *mut pmo_tx) -> c_int {
    status(|| {
        mine(tx)?;
        Ok(running::alone()?)
    })
}

fn action(each: Option<extern "C" fn(*mut c_void)>, context: *mut c_void) -> Result<Box<dyn FnOnce()>> {
    let each = each.ok_or_else(|| Failure::argument("the function to be called is NULL"))?;
    Ok(Box::new(move || each(context)))
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_tx_on_commit(
    tx: *mut pmo_tx,
    each: Option<extern "C" fn(*mut c_void)>,
    context: *mut c_void,
) -> c_int {
    status(|| {
        mine(tx)?;
        Ok(running::on_commit(action(each, context)?)?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_tx_on_abort(
    tx: *mut pmo_tx,
    each: Option<extern "C" fn(*mut c_void)>,
    context: *mut c_void,
) -> c_int {
    status(|| {
        mine(tx)?;
        Ok(running::on_abort(action(each, context)?)?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_tx_commit(tx: *mut pmo_tx) -> c_int {
    guarded(-1, || {
        mine(tx)?;
        // Actions may begin another one.
        let handle = CURRENT.replace(0);
        if running::commit()? {
            return Ok(0);
        }
        CURRENT.set(handle);
        Ok(1)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_tx_abort(tx: *mut pmo_tx) -> c_int {
    status(|| {
        mine(tx)?;
        CURRENT.set(0);
        running::abort();
        Ok(())
    })
}
