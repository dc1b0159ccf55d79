//! Calls of a pool's library, beside changes that its `with` block keeps, and the end of the block.

use crate::held::Held;
use crate::patience;
use crate::pool::Pool;
use crate::psync::attachment_of;
use indelible::ErrorKind;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whether an error may come from an object that this process has attached.
fn in_the_way(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Held | ErrorKind::AddressTaken)
}

/// Looks at a pool's table, when that is free. Any look will do, such as for an object that is not
/// there.
pub(crate) fn look(pool: &indelible::Pool) -> indelible::Result<()> {
    pool.stat("-").map(drop)
}

impl Pool {
    /// Does something with the pool, without the GIL; once more if changes that its block keeps
    /// were in the way.
    pub(crate) fn with<T: Send>(
        &self,
        py: Python<'_>,
        operation: &str,
        mut f: impl FnMut(&indelible::Pool) -> indelible::Result<T> + Send,
    ) -> PyResult<T> {
        let pool = self.get(py, operation)?;
        patience::in_slices(py, || match f(&pool) {
            Err(error) if in_the_way(error.kind()) && self.kept.has_any() => {
                self.kept.settle()?;
                f(&pool)
            }
            done => done,
        })
    }

    fn open(&self) -> MutexGuard<'_, Option<indelible::Pool>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pool, if it is open.
    pub(crate) fn handle(&self) -> Option<indelible::Pool> {
        // Held for the length of a copy.
        self.open().clone()
    }

    /// Takes the pool out of the handle, once its table is free: ties to this process end with its
    /// last handle, and the objects that only they kept are removed.
    pub(crate) fn end(&self, py: Python<'_>) -> PyResult<()> {
        let (table, none) = (self.table(), Mutex::new(()));
        patience::once_ready(
            py,
            &none,
            |()| table(),
            |()| {
                let pool = self.open().take();
                drop(pool);
            },
        )
    }

    /// Waits for the pool's table, as long as this handle of it is open: an end needs the table.
    pub(crate) fn table(&self) -> impl Fn() -> indelible::Result<()> + Send + Sync + use<> {
        let pool = self.handle();
        move || pool.as_ref().map_or(Ok(()), look)
    }

    /// The object of that name, if the pool's block keeps changes of it, and it `fits`.
    pub(crate) fn kept(
        &self,
        py: Python<'_>,
        name: &str,
        fits: impl Fn(&Held) -> bool,
    ) -> PyResult<Option<Held>> {
        if !self.kept.has_any() {
            return Ok(None);
        }
        let address = self.with(py, "attach", |pool| Ok(pool.stat(name)?.address))?;
        Ok(self.kept.take(address as usize, fits))
    }
}

/// Lets the end of a pool's `with` block psync an array's object, or a dict, that this process had
/// already, by another handle of the pool.
#[pyfunction]
pub(crate) fn _adopt(pool: &Bound<'_, Pool>, object: &Bound<'_, PyAny>) {
    if let Some(attachment) = attachment_of(object) {
        pool.get().kept.add(attachment);
    }
}

/// Makes the changes of all things that a pool's handle opened durable, those of objects as one
/// step, also without references to them; returns the names of the changed things.
#[pyfunction]
pub(crate) fn _psync_kept(py: Python<'_>, pool: &Bound<'_, Pool>) -> PyResult<Vec<String>> {
    pool.get().kept.psync(py)
}
