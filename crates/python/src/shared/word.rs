//! Words of shared objects: changed as a whole, and waited for.

use crate::error::{exception, forked};
use crate::patience::{self, timeout};
use crate::process;
use indelible::SharedObject;
use pyo3::prelude::*;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

/// Four bytes of a shared object: a number from 0 to 4,294,967,295 that any process may change, as
/// a whole, and wait for. Made by `Shared.word`.
///
/// A change wakes no waiter by itself: change it, then `wake`.
#[pyclass(frozen, module = "indelible")]
pub(crate) struct Word {
    object: SharedObject,
    offset: usize,
    process: u32,
}

impl Word {
    pub(super) fn new(object: SharedObject, offset: usize) -> Self {
        Word { object, offset, process: process::generation() }
    }

    fn expect_ours(&self, py: Python<'_>, operation: &str) -> PyResult<()> {
        match self.process == process::generation() {
            true => Ok(()),
            false => Err(forked(py, operation, &format!("shared object {:?}", self.object.name()))),
        }
    }

    /// Works on the word, without waiting. A lost page is zeros, and an error here.
    fn with<R>(&self, py: Python<'_>, operation: &str, f: impl FnOnce(&AtomicU32) -> R) -> PyResult<R> {
        self.expect_ours(py, operation)?;
        let done = self.object.word(self.offset).map(|word| f(&word));
        let checked = done.and_then(|done| self.object.check().map(|()| done));
        checked.map_err(|error| exception(py, &error))
    }
}

#[pymethods]
impl Word {
    #[getter]
    fn offset(&self) -> usize {
        self.offset
    }

    /// Its value.
    fn load(&self, py: Python<'_>) -> PyResult<u32> {
        self.with(py, "read a word of", |word| word.load(SeqCst))
    }

    /// Stores a value.
    fn store(&self, py: Python<'_>, value: u32) -> PyResult<()> {
        self.with(py, "change a word of", |word| word.store(value, SeqCst))
    }

    /// Stores a value; returns the former one.
    fn exchange(&self, py: Python<'_>, value: u32) -> PyResult<u32> {
        self.with(py, "change a word of", |word| word.swap(value, SeqCst))
    }

    /// Stores `new` if it has `expected`, as one step; returns whether it had.
    fn compare_exchange(&self, py: Python<'_>, expected: u32, new: u32) -> PyResult<bool> {
        self.with(py, "change a word of", |word| word.compare_exchange(expected, new, SeqCst, SeqCst).is_ok())
    }

    /// Adds `amount`, perhaps negative, modulo 2**32, as one step; returns the former value.
    #[pyo3(signature = (amount = 1))]
    fn add(&self, py: Python<'_>, amount: i64) -> PyResult<u32> {
        // The low half of a negative amount is the number to add modulo 2**32.
        self.with(py, "change a word of", |word| word.fetch_add(amount as u32, SeqCst))
    }

    /// Sleeps while it is `expected`, up to `timeout` seconds, by default without limit; returns
    /// whether it changed. Give a timeout if the process that changes it may die, or wait for its
    /// end (`Shared.wait_end`).
    #[pyo3(signature = (expected, timeout = None))]
    fn wait(&self, py: Python<'_>, expected: u32, timeout: Option<f64>) -> PyResult<bool> {
        Ok(wait_for(py, &[(self, expected)], timeout)?.is_some())
    }

    /// Wakes up to `most` sleepers on it, by default all, in any process; returns their number.
    #[pyo3(signature = (most = None))]
    fn wake(&self, py: Python<'_>, most: Option<u32>) -> PyResult<usize> {
        self.expect_ours(py, "wake those who wait for")?;
        // The kernel's number is signed.
        let most = most.unwrap_or(i32::MAX as u32);
        let woken = self.object.word(self.offset).and_then(|word| word.wake(most));
        woken.map_err(|error| exception(py, &error))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (name, offset) = (self.object.name(), self.offset);
        match self.load(py) {
            Ok(value) => format!("<indelible.Word {value} at {offset} of {name:?}>"),
            Err(_) => format!("<indelible.Word at {offset} of {name:?}>"),
        }
    }
}

/// Sleeps until one of the words, of any shared objects, differs from its expected number, up to
/// `timeout` seconds, by default without limit. Returns the position of the first changed one, or
/// None. `words` are up to 128 pairs of a word and a number.
#[pyfunction]
#[pyo3(signature = (words, timeout = None))]
pub(crate) fn wait_any(
    py: Python<'_>,
    words: Vec<(Bound<'_, Word>, u32)>,
    timeout: Option<f64>,
) -> PyResult<Option<usize>> {
    let words: Vec<(&Word, u32)> = words.iter().map(|(word, expected)| (word.get(), *expected)).collect();
    wait_for(py, &words, timeout)
}

fn wait_for(py: Python<'_>, words: &[(&Word, u32)], timeout: Option<f64>) -> PyResult<Option<usize>> {
    let timeout = self::timeout(timeout)?;
    words.iter().try_for_each(|(word, _)| word.expect_ours(py, "wait for words of"))?;
    patience::wait(py, timeout, |left| {
        let changed = py.detach(|| {
            let words = words.iter().map(|(word, expected)| Ok((word.object.word(word.offset)?, *expected)));
            indelible::wait_any(&words.collect::<indelible::Result<Vec<_>>>()?, Some(left))
        });
        changed.map_err(|error| exception(py, &error))
    })
}
