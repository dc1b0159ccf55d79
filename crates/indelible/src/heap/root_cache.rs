//! Roots already compared with a type, by the hash of their names: a lookup compares only the name.
//!
//! Invariant: each is a root of the heap, as required by the type's description. Adding a root
//! here, and removing one from the heap (which forgets all), happen under the lock.

use super::roots::hash;
use std::any::TypeId;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
struct Cached {
    name: String,
    ty: TypeId,
    place: RootRange,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RootRange {
    pub(crate) address: usize,
    pub(crate) size: u64,
}

type ByHash = HashMap<u64, Vec<Cached>, BuildHasherDefault<Same>>;

#[derive(Debug, Default)]
pub(crate) struct RootCache(Mutex<ByHash>);

#[derive(Debug, Default)]
struct Same(u64);

impl Hasher for Same {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl RootCache {
    pub(crate) fn place<E>(
        &self,
        name: &str,
        ty: TypeId,
        find: impl FnOnce() -> Result<RootRange, E>,
    ) -> Result<RootRange, E> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.entry(hash(name)).or_default();
        let known = all.iter().find(|found| found.ty == ty && found.name == name);
        if let Some(found) = known {
            return Ok(found.place);
        }
        let place = find()?;
        all.push(Cached { name: name.to_owned(), ty, place });
        Ok(place)
    }

    pub(crate) fn forget<R>(&self, change: impl FnOnce() -> R) -> R {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.clear();
        change()
    }
}
