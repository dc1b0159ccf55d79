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

/// A view in this process. `indelible.AttachedView` has its slots as values of Python, and arrays.
#[pyclass(frozen, subclass, weakref, module = "indelible._indelible")]
pub(crate) struct AttachedView {
    pub(super) handle: Handle<indelible::AttachedView>,
    pool: Py<Pool>,
    name: String,
    resumed: Option<Resumed>,
}

/// How a program comes to run again: restarts; process and signal, if they are known; of each
/// object that this concerns its slot, name, psyncs, whether it was in use, whether it is gone.
type Resumed = (u32, Option<u32>, Option<i32>, Vec<(usize, String, u64, bool, bool)>);

fn resumed(how: indelible::Resumed) -> Resumed {
    let objects = how.objects.into_iter();
    let objects = objects.map(|left| (left.slot, left.name, left.psyncs, left.in_use, left.gone));
    (how.restarts, how.process, how.signal, objects.collect())
}

/// A slot; the rights that are allowed; name, address, bytes and memory of its object; why it could
/// not be had.
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
    /// Without a name: the view that `pmo run` started the program in, in its contexts. `pool` is
    /// its pool.
    #[new]
    fn new(pool: &Bound<'_, Pool>, name: Option<&str>, contexts: Vec<String>) -> PyResult<Self> {
        let attach = |pool: &indelible::Pool| match name {
            Some(name) => Ok((indelible::AttachedView::attach_in(pool, name, &contexts)?, None)),
            None => match indelible::AttachedView::from_environment()? {
                Some(started) => Ok(started),
                // The variable was taken away since the caller looked: no view has such a name.
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

    /// Names of the security contexts, as they were when it was attached.
    #[getter]
    fn contexts(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.handle.with(py, "inspect", |view| Ok(view.contexts()))
    }

    fn _slots(&self, py: Python<'_>) -> PyResult<Vec<State>> {
        let slots = self.handle.with(py, "inspect", |view| Ok(view.slots()))?;
        Ok(slots.into_iter().map(|slot| state(py, slot)).collect())
    }

    /// The bytes of the object in a slot; attaches it if it is not yet: for loads ("r"), or for
    /// stores as well ("r+"); without a mode for the rights that it can have. Finds slots that are
    /// new in the view.
    ///
    /// Denied: no security context allows it. ReadOnly: the slot asks for loads, or the object can
    /// be had for those alone. NotFound: the slot is empty.
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

    /// Attaches the object in a slot, if it is not attached yet; returns its address.
    fn bring(&self, py: Python<'_>, slot: usize) -> PyResult<usize> {
        self.handle.with(py, "use a slot of", |view| Ok(view.bring(slot)?.addr().get()))
    }

    /// Attaches all objects that are not attached yet, those for stores in one step of the pool;
    /// returns how many are attached then. Those that cannot be had are no error: `slots` has
    /// theirs.
    fn bring_all(&self, py: Python<'_>) -> PyResult<usize> {
        self.handle.with(py, "use the slots of", |view| view.bring_all())
    }

    /// Takes over all changes of the view and of its security contexts: objects whose slots were
    /// emptied, or have other objects or rights, are detached, and their stores since their last
    /// psync are forgotten. BufferError while arrays or memoryviews of any of its objects exist.
    fn adopt(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.unused(py, "adopt changes of", indelible::AttachedView::adopt)
    }

    /// Makes the stores to all objects of the view durable, as one step, without the GIL. No thread
    /// may store to them meanwhile.
    fn psync(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with(py, "psync", indelible::AttachedView::psync)
    }

    /// Arrays and memoryviews of its objects that are in use.
    #[getter]
    fn views(&self) -> usize {
        self.handle.views()
    }

    /// Whether it was closed, or belongs to another process.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Detaches the view and all of its objects; stores that were not psynced are forgotten.
    /// BufferError while arrays or memoryviews of them exist.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.end(py, self.pool.get().table())
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Psyncs and closes. On an exception nothing is psynced, and arrays that its traceback keeps
    /// are no second error: it is closed with the last of them.
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
