//! Functions and their clones for blocks, registered by each loaded program and library.

use crate::blocks::{Thread, fatal};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{PoisonError, RwLock};

static TABLES: RwLock<BTreeMap<usize, BTreeMap<usize, usize>>> = RwLock::new(BTreeMap::new());

/// # Safety
/// `count` pairs of a function and its clone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ITM_registerTMCloneTable(table: *const [usize; 2], count: usize) {
    if table.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    let pairs = unsafe { std::slice::from_raw_parts(table, count) };
    let clones = pairs.iter().map(|[function, clone]| (*function, *clone)).collect();
    TABLES.write().unwrap_or_else(PoisonError::into_inner).insert(table.addr(), clones);
}

#[unsafe(no_mangle)]
pub extern "C" fn _ITM_deregisterTMCloneTable(table: *const c_void) {
    TABLES.write().unwrap_or_else(PoisonError::into_inner).remove(&table.addr());
}

fn clone_of(function: usize) -> Option<usize> {
    let tables = TABLES.read().unwrap_or_else(PoisonError::into_inner);
    tables.values().find_map(|clones| clones.get(&function).copied())
}

#[unsafe(no_mangle)]
pub extern "C" fn _ITM_getTMCloneSafe(function: usize) -> usize {
    clone_of(function).unwrap_or_else(|| fatal("a block calls a function that has no clone for blocks"))
}

#[unsafe(no_mangle)]
pub extern "C" fn _ITM_getTMCloneOrIrrevocable(function: usize) -> usize {
    if let Some(clone) = clone_of(function) {
        return clone;
    }
    Thread::go_irrevocable();
    function
}
