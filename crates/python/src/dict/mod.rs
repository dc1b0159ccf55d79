//! The dict: [`table`]s for Python.
//!
//! Each method that reads or changes the table is one `Attachment::quick`: it runs no Python code
//! while the lock is held, so that other threads, signal handlers and finalizers find it done or
//! not begun. Python code that makes or reads a value (`_values.py`) runs before, or after.

mod access;
mod attach;
mod given;
mod iterator;
mod places;
mod record;
mod table;
mod value;

pub(crate) use iterator::DictIterator;
pub(crate) use places::{Place, places};

use crate::attachment::Attachment;
use crate::block::{Block, Counts};
use crate::error::own;
use crate::held::Held;
use crate::keys::Keys;
use crate::options::choice;
use crate::pool::Pool;
use crate::seal_key::SealKey;
use attach::{Access, attach, version};
use given::text;
use indelible::ErrorKind;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use table::{PythonDict, ROOT, VERSION};
use value::{Found, LINE};

/// A dict in an object. `indelible.Dict` makes it a mapping.
#[pyclass(frozen, subclass, weakref, module = "indelible._indelible")]
pub(crate) struct Dict {
    pub(crate) attachment: Arc<Attachment>,
    counts: Arc<Counts>,
    pool: Py<Pool>,
    readonly: bool,
    /// Changes of the set of keys.
    changes: AtomicU64,
}

/// The module that converts values to and from Python.
fn values(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    MODULE.get_or_try_init(py, || Ok(py.import("indelible._values")?.unbind())).map(|module| module.bind(py))
}

#[pymethods]
impl Dict {
    #[new]
    #[pyo3(signature = (pool, name, mode, key, seal = None))]
    fn new(
        pool: &Bound<'_, Pool>,
        name: &str,
        mode: &str,
        key: Option<&[u8]>,
        seal: Option<&Bound<'_, SealKey>>,
    ) -> PyResult<Self> {
        let py = pool.py();
        let (access, keys) = (choice("mode", &Access::WORDS, mode)?, Keys::new(key, seal));
        let mut kept = match access {
            Access::Write => pool.get().kept(py, name, |held| matches!(held, Held::Heap(_)))?,
            Access::Beside | Access::Locked => None,
        };
        let (held, version) = pool.get().with(py, "attach", |pool| {
            if let Some(held) = kept.take() {
                return Ok((held, Some(VERSION)));
            }
            let mut held = attach(pool, name, access, keys)?;
            let version = version(&held)?;
            if let (Held::Heap(heap), Some(VERSION)) = (&mut held, version) {
                // No arrays of it exist yet.
                heap.root_mut::<PythonDict<'_>>(ROOT)?.purge(|_| false);
                // Without it an unchanged dict would warn of lost stores.
                heap.psync()?;
            }
            Ok((held, version))
        })?;
        if version != Some(VERSION) {
            py.detach(|| drop(held));
            let (kind, text) = match version {
                Some(version) => (
                    ErrorKind::Version,
                    format!(
                        "the dict in object {name:?} is of version {version}, this software knows version {VERSION} \
                         (use the version that wrote it)"
                    ),
                ),
                None => (ErrorKind::NotAHeap, format!("there is no dict in object {name:?}")),
            };
            return Err(own(py, kind, "attach", &text, name));
        }
        let attachment = Arc::new(Attachment::new(py, name, held));
        pool.get().kept.add(&attachment);
        Ok(Dict {
            attachment,
            counts: Arc::default(),
            pool: pool.clone().unbind(),
            readonly: access != Access::Write,
            changes: AtomicU64::new(0),
        })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.attachment.name
    }

    #[getter]
    fn pool(&self, py: Python<'_>) -> Py<Pool> {
        self.pool.clone_ref(py)
    }

    /// Whether it is attached for reading only.
    #[getter]
    fn readonly(&self) -> bool {
        self.readonly
    }

    /// Whether it was closed, or belongs to another process.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.attachment.is_closed(py)
    }

    /// Bytes of log that the attach replayed after a writer's death.
    #[getter]
    fn recovered(&self, py: Python<'_>) -> PyResult<u64> {
        self.attachment.recovered(py)
    }

    /// The object's fixed address.
    #[getter]
    fn address(&self) -> usize {
        self.attachment.address()
    }

    /// Size of the object in bytes.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<usize> {
        self.attachment.with(py, "inspect", |held| Ok(held.len()))
    }

    /// Whether changes are not durable.
    fn _is_unsynced(&self, py: Python<'_>) -> PyResult<bool> {
        self.attachment.with(py, "inspect", |held| Ok(held.is_unsynced()))
    }

    /// Arrays of it in use.
    #[getter]
    fn views(&self) -> usize {
        self.attachment.views()
    }

    /// Makes all changes since the last psync durable, as one step: keys, values, elements of
    /// arrays.
    ///
    /// Other threads run meanwhile. They must not store to elements, unless `cut` asks for a
    /// consistent cut; other changes wait. Does nothing on a dict attached for reading.
    #[pyo3(signature = (*, cut = false))]
    fn psync(&self, py: Python<'_>, cut: bool) -> PyResult<()> {
        self.attachment.psync(py, cut)
    }

    /// Undoes all changes since the last psync: keys, values, elements of arrays. BufferError while
    /// arrays of it are in use. Does nothing on a dict attached for reading.
    fn revert(&self, py: Python<'_>) -> PyResult<()> {
        self.attachment.revert(py, true)?;
        self.changed(true);
        Ok(())
    }

    /// Goes to the newest psync of a dict opened with mode "r"; returns whether it was newer.
    /// BufferError while arrays of it are in use.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        let newer = self.attachment.refresh(py)?;
        self.changed(newer);
        Ok(newer)
    }

    /// Detaches; unpsynced changes are lost. BufferError while arrays of it are in use.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.attachment.close(py)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Psyncs and closes. After an exception it psyncs nothing, and detaches the object with the
    /// last of its arrays.
    fn __exit__(
        &self,
        py: Python<'_>,
        exception: Bound<'_, PyAny>,
        _value: Bound<'_, PyAny>,
        _traceback: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.attachment.leave(py, !exception.is_none())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.look(py, |table| table.len())
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        match text(key) {
            Ok(key) => self.look(py, |table| table.find(key).is_some()),
            Err(_) => self.look(py, |_| false),
        }
    }

    fn __getitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let found = match text(key) {
            Ok(key) => Dict::get_with(slf, key)?,
            Err(_) => slf.get().look(slf.py(), |_| None)?,
        };
        found.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    /// The value of a key, or `default`.
    #[pyo3(signature = (key, default = None, /))]
    fn get(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, default: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let found = match text(key) {
            Ok(key) => Dict::get_with(slf, key)?,
            Err(_) => slf.get().look(slf.py(), |_| None)?,
        };
        Ok(found.unwrap_or_else(|| default.unwrap_or_else(|| slf.py().None())))
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = text(key)?;
        match Dict::given(slf, key, value)? {
            Some(given) => slf.get().update_with(slf.py(), &[(name, given.as_new()?)]),
            None => Ok(()),
        }
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let gone = match text(key) {
            Ok(key) => self.take(py, Some(key), |_, _| ())?,
            Err(_) => self.look(py, |_| None)?,
        };
        gone.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    /// The value of a key; stores and returns `default` if the key is missing.
    #[pyo3(signature = (key, default = None, /))]
    fn setdefault(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        default: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let (py, name, dict) = (slf.py(), text(key)?, slf.get());
        if let Some(found) = Dict::get_with(slf, name)? {
            return Ok(found);
        }
        let default = default.unwrap_or_else(|| py.None().into_bound(py));
        let Some(given) = Dict::given(slf, key, &default)? else {
            return Err(PyValueError::new_err("the key was assigned meanwhile"));
        };
        let items = [(name, given.as_new()?)];
        let need = |table: &PythonDict<'_>| table.room_for(1).max(name.len() + items[0].1.size());
        let (new, held) = dict.change(py, need, |table, heap| {
            // Another thread may have added it.
            let new = table.find(name).is_none();
            if new {
                table.update(heap, &items, |address| dict.counts.has(address))?;
            }
            let at = table.find(name).unwrap_or_default();
            Ok((new, dict.hold(Found::of(py, table.value(at)))))
        })?;
        if new {
            dict.changed(true);
        }
        Dict::finish(slf, held)
    }

    /// Removes a key and returns its value, or `default`.
    #[pyo3(signature = (key, /, *default))]
    fn pop(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        default: &Bound<'_, PyTuple>,
    ) -> PyResult<Py<PyAny>> {
        let (py, dict) = (slf.py(), slf.get());
        if default.len() > 1 {
            return Err(PyTypeError::new_err("pop takes a key and at most one default"));
        }
        let taken = match text(key) {
            Ok(key) => dict.take(py, Some(key), |_, found| dict.hold(found))?,
            Err(_) => dict.look(py, |_| None)?,
        };
        match (taken, default.is_empty()) {
            (Some(value), _) => Dict::finish(slf, value),
            (None, false) => Ok(default.get_item(0)?.unbind()),
            (None, true) => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    /// Removes the key added last; returns it with its value.
    fn popitem(slf: &Bound<'_, Self>) -> PyResult<(Py<PyString>, Py<PyAny>)> {
        let (py, dict) = (slf.py(), slf.get());
        let keep = |key: &str, found| (PyString::new(py, key).unbind(), dict.hold(found));
        let (key, value) =
            dict.take(py, None, keep)?.ok_or_else(|| PyKeyError::new_err("the dict is empty"))?;
        Ok((key, Dict::finish(slf, value)?))
    }

    /// Removes everything.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |_| 4096, |table, _| table.clear(|address| self.counts.has(address)))?;
        self.changed(true);
        Ok(())
    }

    /// Assigns a list of pairs as one step: other threads, and a psync, find all of them or none.
    fn _update(slf: &Bound<'_, Self>, items: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>) -> PyResult<()> {
        let mut given = Vec::with_capacity(items.len());
        for (key, value) in &items {
            let name = text(key)?;
            if let Some(value) = Dict::given(slf, key, value)? {
                given.push((name, value));
            }
        }
        let new: Vec<_> =
            given.iter().map(|(name, value)| Ok((*name, value.as_new()?))).collect::<PyResult<_>>()?;
        if new.is_empty() { Ok(()) } else { slf.get().update_with(slf.py(), &new) }
    }

    fn _room(&self, py: Python<'_>, size: usize) -> PyResult<Block> {
        let lines = size.div_ceil(LINE);
        self.change(
            py,
            |_| size,
            |table, heap| {
                let extent = table.add_room(heap, lines)?;
                Ok(Block::new(&self.attachment, &self.counts, extent, true))
            },
        )
    }

    /// The bytes of a record, by its type's name and words; `first`: the bytes of a new one, if it
    /// may be made.
    fn _record(
        slf: &Bound<'_, Self>,
        name: &str,
        type_name: &str,
        words: &str,
        first: Option<&[u8]>,
    ) -> PyResult<Block> {
        Dict::record_block(slf, name, (type_name, words), first)
    }

    /// Converts a record to another type, if it still has the bytes `old`; types are pairs of a
    /// name and words.
    fn _convert_record(
        &self,
        py: Python<'_>,
        name: &str,
        before: (String, String),
        old: &[u8],
        after: (String, String),
        new: &[u8],
    ) -> PyResult<bool> {
        let (before, after) = ((&*before.0, &*before.1), (&*after.0, &*after.1));
        self.convert_block(py, name, (before, old), (after, new))
    }

    /// Replaces a root of any type by a record; returns the number of freed blocks, and their
    /// bytes.
    fn _reset_record(
        &self,
        py: Python<'_>,
        name: &str,
        type_name: &str,
        words: &str,
        first: &[u8],
    ) -> PyResult<(u64, u64)> {
        self.reset_block(py, name, (type_name, words), first)
    }

    fn __iter__(slf: Bound<'_, Self>) -> PyResult<DictIterator> {
        DictIterator::new(&slf, 0, false)
    }

    fn __reversed__(slf: Bound<'_, Self>) -> PyResult<DictIterator> {
        DictIterator::new(&slf, 0, true)
    }

    /// Iterates over keys (0), values (1) or pairs (2).
    fn _iterate(slf: Bound<'_, Self>, what: u8, back: bool) -> PyResult<DictIterator> {
        DictIterator::new(&slf, what, back)
    }

    /// Findings in the metadata of the object's heap.
    fn _check(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.attachment.with(py, "check the heap of", |held| {
            let findings = match held {
                Held::Heap(heap) => heap.check(),
                Held::ReadHeap(heap) => heap.check(),
                Held::Writer(_) | Held::Reader(_) => Vec::new(),
            };
            Ok(findings.iter().map(|finding| format!("{:#x}: {}", finding.offset, finding.what)).collect())
        })
    }

    /// Addresses of all blocks of the object's heap, and bytes of the object.
    fn _blocks(&self, py: Python<'_>) -> PyResult<(Vec<usize>, usize)> {
        self.attachment.with(py, "walk the heap of", |held| {
            let blocks: Result<Vec<_>, _> = match held {
                Held::Heap(heap) => heap.blocks().map(|block| Ok(block?.address)).collect(),
                Held::ReadHeap(heap) => heap.blocks().map(|block| Ok(block?.address)).collect(),
                Held::Writer(_) | Held::Reader(_) => Ok(Vec::new()),
            };
            Ok((blocks?, held.len()))
        })
    }
}
