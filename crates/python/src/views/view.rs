//! A view opened for changes.

use super::open_or_make;
use crate::handle::Handle;
use crate::kept::Dropped;
use crate::pool::Pool;
use crate::rights::{named, rights, word};
use crate::unsynced::Unsynced;
use indelible::ViewSlot;
use pyo3::prelude::*;

/// A view. `indelible.View` has its slots as Python values.
#[pyclass(frozen, subclass, weakref, module = "indelible._indelible")]
pub(crate) struct View {
    handle: Handle<indelible::View>,
    unsynced: Unsynced,
    pool: Py<Pool>,
    name: String,
    slots: usize,
}

/// Slot, name of the object, rights, whether it is attached at once.
pub(super) type Slot = (usize, String, &'static str, bool);

pub(super) fn slot(of: ViewSlot) -> Slot {
    (of.slot, named(of.target), word(of.rights), of.at_once)
}

/// See `Pool.view_slots`.
#[pyfunction]
pub(crate) fn _read_view(pool: &Bound<'_, Pool>, name: &str) -> PyResult<Vec<Slot>> {
    let slots = pool.get().with(pool.py(), "read", |pool| indelible::View::read(pool, name))?;
    Ok(slots.into_iter().map(slot).collect())
}

#[pymethods]
impl View {
    #[new]
    fn new(pool: &Bound<'_, Pool>, name: &str, slots: Option<usize>) -> PyResult<Self> {
        let view = pool.get().with(pool.py(), "open", |pool| {
            let make = slots.map(|slots| move || indelible::View::create(pool, name, slots));
            open_or_make(|| indelible::View::open(pool, name), make)
        })?;
        let what = format!("view {name:?}");
        Ok(View {
            unsynced: Unsynced::new(pool.py(), &what, &pool.get().kept),
            slots: view.slots(),
            handle: Handle::new(what, view),
            pool: pool.clone().unbind(),
            name: name.to_owned(),
        })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn pool(&self, py: Python<'_>) -> Py<Pool> {
        self.pool.clone_ref(py)
    }

    /// Number of slots.
    #[getter]
    fn slots(&self) -> usize {
        self.slots
    }

    /// Puts an object of the pool into a slot, in place of any other. It is attached for the
    /// `rights` "r" or "rw" on first use, or with the view if `at_once`. Rights are requests,
    /// granted or refused then. An object is in one slot at most.
    #[pyo3(signature = (slot, target, rights = "rw", *, at_once = false))]
    fn set(&self, py: Python<'_>, slot: usize, target: &str, rights: &str, at_once: bool) -> PyResult<()> {
        let rights = self::rights(rights)?;
        self.handle.with(py, "change", |view| {
            match at_once {
                true => view.set_at_once(slot, target, rights)?,
                false => view.set(slot, target, rights)?,
            }
            self.unsynced.set(true);
            Ok(())
        })
    }

    /// Empties a slot; returns whether it was set.
    fn clear(&self, py: Python<'_>, slot: usize) -> PyResult<bool> {
        self.handle.with(py, "change", |view| {
            let was = view.clear(slot)?;
            self.unsynced.set(true);
            Ok(was)
        })
    }

    fn _list(&self, py: Python<'_>) -> PyResult<Vec<Slot>> {
        let slots = self.handle.with(py, "inspect", |view| view.list())?;
        Ok(slots.into_iter().map(slot).collect())
    }

    /// Makes the changes durable as one step; processes with the view attached find them then.
    fn psync(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with(py, "psync", |view| {
            view.psync()?;
            self.unsynced.set(false);
            Ok(())
        })
    }

    /// Whether it was closed, or belongs to another process.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Closes it; unpsynced changes are lost.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.end(py, self.pool.get().table())?;
        self.unsynced.lost(py)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Psyncs and closes; on an exception nothing is psynced.
    fn __exit__(
        &self,
        py: Python<'_>,
        exception: Bound<'_, PyAny>,
        _value: Bound<'_, PyAny>,
        _traceback: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        match exception.is_none() {
            true if !self.closed() => self.psync(py)?,
            true => {}
            false => self.unsynced.set(false),
        }
        self.close(py)
    }
}

impl Dropped for indelible::View {
    fn psync(&mut self) -> indelible::Result<()> {
        indelible::View::psync(self)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let handle = &self.handle;
        self.unsynced.dropped(|| handle.take());
    }
}
