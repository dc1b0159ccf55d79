//! Which roots of a heap may be used by type (docs/decisions/0024-trust.md).

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub(crate) struct Trusted(Mutex<Which>);

#[derive(Debug)]
enum Which {
    All,
    These(BTreeSet<String>),
    /// Anything may have stored the contents and the heap's own data: no root may be made.
    None,
}

impl Trusted {
    pub(super) fn new(all: bool) -> Trusted {
        Trusted(Mutex::new(if all { Which::All } else { Which::None }))
    }

    fn which(&self) -> MutexGuard<'_, Which> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn allows(&self, name: &str) -> bool {
        match &*self.which() {
            Which::All => true,
            Which::These(roots) => roots.contains(name),
            Which::None => false,
        }
    }

    pub(crate) fn allows_new(&self) -> bool {
        !matches!(*self.which(), Which::None)
    }

    pub(super) fn add(&self, name: &str) {
        if let Which::These(roots) = &mut *self.which() {
            roots.insert(name.to_owned());
        }
    }

    pub(super) fn remove(&self, name: &str) {
        if let Which::These(roots) = &mut *self.which() {
            roots.remove(name);
        }
    }

    pub(crate) fn all(&self) {
        *self.which() = Which::All;
    }

    pub(crate) fn these<'n>(&self, names: impl Iterator<Item = &'n str>) {
        let mut which = self.which();
        if let Which::None = &*which {
            *which = Which::These(BTreeSet::new());
        }
        if let Which::These(roots) = &mut *which {
            roots.extend(names.map(str::to_owned));
        }
    }
}
