//! Attached memory of this process: address ranges and their objects.

use crate::mapping::strays::{Access, Named};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

static ATTACHED: RwLock<BTreeMap<u64, (u64, String)>> = RwLock::new(BTreeMap::new());

pub(super) struct Listed {
    base: u64,
    named: Named,
}

impl Listed {
    pub(super) fn new(base: usize, len: usize, name: &str, writable: bool) -> Listed {
        let named = Named::new(base, len, name, if writable { Access::All } else { Access::Loads });
        let (base, end) = (base as u64, (base + len) as u64);
        let mut all = ATTACHED.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(base, (end, name.to_owned()));
        Listed { base, named }
    }

    pub(super) fn resize(&self, len: usize) {
        self.named.resize(len);
        let mut all = ATTACHED.write().unwrap_or_else(PoisonError::into_inner);
        if let Some((end, _)) = all.get_mut(&self.base) {
            *end = self.base + len as u64;
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        ATTACHED.write().unwrap_or_else(PoisonError::into_inner).remove(&self.base);
    }
}

pub(crate) fn attached() -> Vec<(Range<u64>, String)> {
    let all = ATTACHED.read().unwrap_or_else(PoisonError::into_inner);
    all.iter().map(|(start, (end, name))| (*start..*end, name.clone())).collect()
}
