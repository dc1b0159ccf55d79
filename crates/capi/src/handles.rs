//! Handles of pools, and the default pool of calls that name none.

use crate::guard::{Failure, Result};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Empty: a handle is a number, so that closed ones are noticed.
#[allow(non_camel_case_types)]
pub struct pmo_pool(());

pub(crate) struct Pools {
    pub(crate) open: BTreeMap<usize, indelible::Pool>,
    pub(crate) last: usize,
    pub(crate) used: Option<indelible::Pool>,
}

static POOLS: Mutex<Pools> = Mutex::new(Pools { open: BTreeMap::new(), last: 0, used: None });

pub(crate) fn pools<R>(f: impl FnOnce(&mut Pools) -> R) -> R {
    f(&mut POOLS.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(crate) fn pool(handle: *mut pmo_pool) -> Result<indelible::Pool> {
    let (found, null) = (pools(|pools| pools.open.get(&handle.addr()).cloned()), handle.is_null());
    match found {
        Some(pool) => Ok(pool),
        None if null => used(),
        None => Err(Failure::argument("the pool is not open")),
    }
}

fn used() -> Result<indelible::Pool> {
    if let Some(pool) = pools(|pools| pools.used.clone()) {
        return Ok(pool);
    }
    let Some(path) = std::env::var_os("PMO_POOL") else {
        let why = "no pool is given (call pmo_use, or set PMO_POOL to the path of one)";
        return Err(Failure::argument(why));
    };
    let pool = indelible::Pool::open(path)?;
    Ok(pools(|pools| pools.used.get_or_insert(pool).clone()))
}
