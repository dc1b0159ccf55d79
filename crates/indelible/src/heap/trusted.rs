//! Which roots of a heap may be used by type (docs/decisions/0024-trust.md).

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `None`: all, as typed code alone stored what is in the object. Else those that were verified, and those that were made since.
#[derive(Debug)]
pub(crate) struct Trusted(Mutex<Option<BTreeSet<String>>>);

impl Trusted {
    pub(super) fn new(all: bool) -> Trusted {
        Trusted(Mutex::new((!all).then(BTreeSet::new)))
    }

    fn roots(&self) -> MutexGuard<'_, Option<BTreeSet<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn allows(&self, name: &str) -> bool {
        self.roots().as_ref().is_none_or(|roots| roots.contains(name))
    }

    pub(crate) fn add(&self, name: &str) {
        if let Some(roots) = &mut *self.roots() {
            roots.insert(name.to_owned());
        }
    }

    pub(super) fn remove(&self, name: &str) {
        if let Some(roots) = &mut *self.roots() {
            roots.remove(name);
        }
    }

    pub(crate) fn all(&self) {
        *self.roots() = None;
    }
}
