//! A view in this process.

use super::object::SlotBytes;
use super::view::{Slot, slot};
use crate::error::exception;
use crate::handle::Handle;
use crate::options::choice;
use crate::pool::Pool;
use crate::rights::word;
use indelible::{SlotMemory, SlotState};
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

/// A view in this process. `indelible.AttachedView` has its slots as Python values, and arrays.
#[pyclass(frozen, subclass, weakref, module = "indelible._indelible")]
pub(crate) struct AttachedView {
    pub(super) handle: Handle<indelible::AttachedView>,
    pool: Py<Pool>,
    name: String,
    resumed: Option<Resumed>,
}

/// Why a program runs again: restarts; process and signal, if known; of each concerned object slot,
/// name, psyncs, whether it was in use, whether it is gone.
type Resumed = (u32, Option<u32>, Option<i32>, Vec<(usize, String, u64, bool, bool)>);

fn resumed(how: indelible::Resumed) -> Resumed {
    let objects = how.objects.into_iter();
    let objects = objects.map(|left| (left.slot, left.name, left.psyncs, left.in_use, left.gone));
    (how.restarts, how.process, how.signal, objects.collect())
}

/// A slot; the allowed rights; its object's name, address, bytes and memory; why it is not
/// attached.
type State = (Slot, Option<&'static str>, String, usize, usize, &'static str, Option<Py<PyBaseException>>);

fn state(py: Python<'_>, of: SlotState) -> State {
    let memory = match of.memory {
        SlotMemory::Reserved => "reserved",
        SlotMemory::Reading => "reading",
        SlotMemory::Writing => "writing",
        _ => "absent",
    };
    let refused = of.refused.map(|error| exception(py, &error).into_value(py));
    (slot(of.of), of.allowed.map(word), of.name, of.address, of.len, memory, refused)
}

#[pymethods]
impl AttachedView {
    /// Without a name: the view and contexts of `pmo run`, whose pool is `pool`.
    #[new]
    fn new(pool: &Bound<'_, Pool>, name: Option<&str>, contexts: Vec<String>) -> PyResult<Self> {
        let attach = |pool: &indelible::Pool| match name {
            Some(name) => Ok((indelible::AttachedView::attach_in(pool, name, &contexts)?, None)),
            None => match indelible::AttachedView::from_environment()? {
                Some(started) => Ok(started),
                // The variable is gone: no view has such a name.
                None => Ok((indelible::AttachedView::attach(pool, "")?, None)),
            },
        };
        let (view, how) = pool.get().with(pool.py(), "attach", attach)?;
        let name = view.name().to_owned();
        Ok(AttachedView {
            handle: Handle::new(format!("view {name:?}"), view),
            pool: pool.clone().unbind(),
            name,
            resumed: how.map(resumed),
        })
    }

    #[getter]
    fn _resumed(&self) -> Option<Resumed> {
        self.resumed.clone()
    }

    /// Name of the view.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The pool of the view and of its objects.
    #[getter]
    fn pool(&self, py: Python<'_>) -> Py<Pool> {
        self.pool.clone_ref(py)
    }

    /// Names of the security contexts at the attach.
    #[getter]
    fn contexts(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.handle.with(py, "inspect", |view| Ok(view.contexts()))
    }

    fn _slots(&self, py: Python<'_>) -> PyResult<Vec<State>> {
        let slots = self.handle.with(py, "inspect", |view| Ok(view.slots()))?;
        Ok(slots.into_iter().map(|slot| state(py, slot)).collect())
    }

    /// The bytes of the object in a slot, attached if need be: for loads ("r"), or also stores
    /// ("r+"); by default for the possible rights. Finds new slots of the view.
    ///
    /// Denied: no security context allows it. ReadOnly: the slot asks for loads, or the object
    /// allows only loads. NotFound: the slot is empty.
    #[pyo3(signature = (slot, mode = None))]
    fn buffer<'py>(
        slf: &Bound<'py, Self>,
        slot: usize,
        mode: Option<&str>,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let writable = mode.map(|mode| choice("mode", &[("r", false), ("r+", true)], mode)).transpose()?;
        let bytes = SlotBytes { view: slf.clone().unbind(), slot, writable };
        PyMemoryView::from(Bound::new(slf.py(), bytes)?.as_any())
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, slot: usize) -> PyResult<Bound<'py, PyMemoryView>> {
        AttachedView::buffer(slf, slot, None)
    }

    /// Attaches the object in a slot, if need be; returns its address.
    fn bring(&self, py: Python<'_>, slot: usize) -> PyResult<usize> {
        self.handle.with(py, "use a slot of", |view| Ok(view.bring(slot)?.addr().get()))
    }

    /// Attaches all objects, those for stores in one step of the pool; returns the number attached.
    /// `slots` has the errors of the others.
    fn bring_all(&self, py: Python<'_>) -> PyResult<usize> {
        self.handle.with(py, "use the slots of", |view| view.bring_all())
    }

    /// Adopts all changes of the view and its security contexts: objects of emptied slots, and
    /// slots with other objects or rights, are detached, and their unpsynced stores are lost.
    /// BufferError while arrays or memoryviews of any of its objects exist.
    fn adopt(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.unused(py, "adopt changes of", indelible::AttachedView::adopt)
    }

    /// Makes the stores to all objects durable, as one step, without the GIL. No thread may store
    /// to them meanwhile.
    fn psync(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with(py, "psync", indelible::AttachedView::psync)
    }

    /// Arrays and memoryviews of its objects in use.
    #[getter]
    fn views(&self) -> usize {
        self.handle.views()
    }

    /// Whether it was closed, or belongs to another process.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Detaches the view and its objects; unpsynced stores are lost. BufferError while arrays or
    /// memoryviews of them exist.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.end(py, self.pool.get().table())
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Psyncs and closes. After an exception it psyncs nothing, and is closed with the last of its
    /// arrays.
    fn __exit__(
        &self,
        py: Python<'_>,
        exception: Bound<'_, PyAny>,
        _value: Bound<'_, PyAny>,
        _traceback: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if !exception.is_none() {
            return self.handle.abandon(py);
        }
        if !self.closed() {
            self.psync(py)?;
        }
        self.close(py)
    }
}
