//! Calls on a pool beside changes that its `with` block keeps, and the end of the block.

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

/// Looks at a pool's table once it is free.
pub(crate) fn look(pool: &indelible::Pool) -> indelible::Result<()> {
    pool.stat("-").map(drop)
}

impl Pool {
    /// Works on the pool without the GIL; again if kept changes of its block were in the way.
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

    pub(crate) fn handle(&self) -> Option<indelible::Pool> {
        // Held while copying.
        self.open().clone()
    }

    /// Takes the pool out of the handle once its table is free: ties to this process end with its
    /// last handle, and objects kept by them are removed.
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

    /// Waits for the pool's table, which an end needs, while this handle is open.
    pub(crate) fn table(&self) -> impl Fn() -> indelible::Result<()> + Send + Sync + use<> {
        let pool = self.handle();
        move || pool.as_ref().map_or(Ok(()), look)
    }

    /// The object `name`, if the block keeps changes of it, and it `fits`.
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

/// Lets the end of a pool's block psync an object or dict that this process opened by another
/// handle.
#[pyfunction]
pub(crate) fn _adopt(pool: &Bound<'_, Pool>, object: &Bound<'_, PyAny>) {
    if let Some(attachment) = attachment_of(object) {
        pool.get().kept.add(attachment);
    }
}

/// Makes all changes of a pool's handle durable, those of objects as one step, also without
/// references; returns the names of changed things.
#[pyfunction]
pub(crate) fn _psync_kept(py: Python<'_>, pool: &Bound<'_, Pool>) -> PyResult<Vec<String>> {
    pool.get().kept.psync(py)
}
