//! Attached memory of this process: address ranges and their objects.

use crate::mapping::strays::{Access, Named};
use crate::sys::fork;
use crate::sys::per_process::PerProcess;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

static ATTACHED: PerProcess<RwLock<BTreeMap<u64, (u64, String)>>> = PerProcess::new();

pub(super) struct Listed {
    base: u64,
    named: Named,
    generation: u32,
}

impl Listed {
    pub(super) fn new(base: usize, len: usize, name: &str, writable: bool) -> Listed {
        let named = Named::new(base, len, name, if writable { Access::All } else { Access::Loads });
        let (base, end) = (base as u64, (base + len) as u64);
        let mut all = ATTACHED.get().write().unwrap_or_else(PoisonError::into_inner);
        all.insert(base, (end, name.to_owned()));
        Listed { base, named, generation: fork::generation() }
    }

    pub(super) fn resize(&self, len: usize) {
        self.named.resize(len);
        let mut all = ATTACHED.get().write().unwrap_or_else(PoisonError::into_inner);
        if let Some((end, _)) = all.get_mut(&self.base) {
            *end = self.base + len as u64;
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        // A child may have attached the same object.
        if !fork::is_stale(self.generation) {
            ATTACHED.get().write().unwrap_or_else(PoisonError::into_inner).remove(&self.base);
        }
    }
}

pub(crate) fn attached() -> Vec<(Range<u64>, String)> {
    let all = ATTACHED.get().read().unwrap_or_else(PoisonError::into_inner);
    all.iter().map(|(start, (end, name))| (*start..*end, name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Pool;
    use crate::sys::fork::is_so_in_a_child;

    #[test]
    fn a_child_that_is_forked_while_an_object_is_attached_attaches_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pool.pmo");
        let own = || -> crate::Result<()> {
            Pool::open_or_format(&path, 16 << 20)?.create_attached("a", 5000)?.detach()
        };
        let held = ATTACHED.get().write().unwrap_or_else(PoisonError::into_inner);
        let is_so = is_so_in_a_child(|| own().is_ok());
        drop(held);
        assert!(is_so);
    }
}
