//! Walks over a dict. Items are fetched some at a time, under one lock, so that a walk's memory is
//! bounded.

use super::Dict;
use super::access::Fetched;
use super::table::PythonDict;
use super::value::Found;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::atomic::Ordering;

/// Items fetched at once, and bytes of their values.
const ITEMS: usize = 128;
const BYTES: usize = 64 << 10;

#[pyclass(module = "indelible._indelible")]
pub(crate) struct DictIterator {
    dict: Option<Py<Dict>>,
    what: u8,
    back: bool,
    changes: u64,
    /// Position of the next item to fetch; `None` at the end.
    at: Option<usize>,
    /// Fetched items, the next one last.
    fetched: Vec<(Option<Py<PyString>>, Option<Fetched>)>,
}

impl DictIterator {
    pub(super) fn new(dict: &Bound<'_, Dict>, what: u8, back: bool) -> PyResult<Self> {
        let owner = dict.get();
        let at = owner.look(dict.py(), |table| if back { table.last() } else { Some(0) })?;
        Ok(DictIterator {
            dict: Some(dict.clone().unbind()),
            what,
            back,
            changes: owner.changes.load(Ordering::Relaxed),
            at,
            fetched: Vec::new(),
        })
    }

    fn fetch(&mut self, py: Python<'_>, dict: &Dict) -> PyResult<()> {
        let (what, back) = (self.what, self.back);
        let Some(begin) = self.at else { return Ok(()) };
        let fetched = &mut self.fetched;
        self.at = dict.look(py, |table: &PythonDict<'_>| {
            let (mut at, mut bytes) = (begin, 0);
            while fetched.len() < ITEMS && bytes < BYTES {
                let (found, key, value) = table.next(at, back)?;
                let key = (what != 1).then(|| PyString::new(py, key).unbind());
                let value = (what != 0).then(|| dict.hold(Found::of(py, value)));
                if what != 0 {
                    bytes += Found::weight(table.value(found));
                }
                fetched.push((key, value));
                at = if back { found.checked_sub(1)? } else { found + 1 };
            }
            Some(at)
        })?;
        fetched.reverse();
        Ok(())
    }
}

#[pymethods]
impl DictIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let Some(owner) = &self.dict else { return Ok(None) };
        let owner = owner.clone_ref(py);
        let dict = owner.get();
        if dict.changes.load(Ordering::Relaxed) != self.changes {
            self.dict = None;
            return Err(PyRuntimeError::new_err("dictionary changed size during iteration"));
        }
        if self.fetched.is_empty() {
            self.fetch(py, dict)?;
        }
        let Some((key, value)) = self.fetched.pop() else {
            self.dict = None;
            return Ok(None);
        };
        let value = value.map(|value| Dict::finish(owner.bind(py), value)).transpose()?;
        Ok(Some(match (key, value) {
            (Some(key), Some(value)) => (key, value).into_pyobject(py)?.into_any().unbind(),
            (Some(key), None) => key.into_any(),
            (None, value) => value.unwrap_or_else(|| py.None()),
        }))
    }
}
