//! Pointers from object to object.

use crate::handle::Handle;
use crate::pool::Pool;
use crate::rights::{named, rights as rights_of};
use crate::shared::message;
use indelible::{Far, FarEntry, FarTarget};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Objects connected by far pointers. `indelible.Space` has pointers as Python values.
#[pyclass(frozen, subclass, weakref, module = "indelible._indelible")]
pub(crate) struct Space {
    handle: Handle<indelible::Space>,
    /// Pools of its objects: its end waits for their tables.
    pools: Mutex<Vec<indelible::Pool>>,
}

/// The ID of "id:" and 32 hexadecimal digits.
fn id(text: &str) -> PyResult<[u8; 16]> {
    let digits = text.strip_prefix("id:").filter(|digits| digits.len() == 32);
    let number = digits.and_then(|digits| u128::from_str_radix(digits, 16).ok());
    let why = || PyValueError::new_err(format!("an ID is \"id:\" and 32 hexadecimal digits, not {text:?}"));
    number.map(u128::to_be_bytes).ok_or_else(why)
}

fn entry(resolver: &str, name: &str, rights: &str) -> PyResult<FarEntry> {
    let target = FarTarget::Name { resolver: resolver.to_owned(), name: name.to_owned() };
    Ok(FarEntry { target, rights: rights_of(rights)? })
}

const FOLLOW: &str = "follow a far pointer in";

impl Space {
    fn pools(&self) -> MutexGuard<'_, Vec<indelible::Pool>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn uses(&self, pool: &indelible::Pool) {
        let mut pools = self.pools();
        if !pools.iter().any(|known| known.path() == pool.path()) {
            pools.push(pool.clone());
        }
    }
}

#[pymethods]
impl Space {
    #[new]
    #[pyo3(signature = (*pools))]
    fn new(py: Python<'_>, pools: Vec<Bound<'_, Pool>>) -> PyResult<Self> {
        let mut space = indelible::Space::new();
        let pools: Vec<_> = pools.iter().map(|pool| pool.get().get(py, "use")).collect::<PyResult<_>>()?;
        pools.iter().for_each(|pool| space.add(pool));
        Ok(Space { handle: Handle::new("the space".to_owned(), space), pools: Mutex::new(pools) })
    }

    /// Adds a pool, in which objects are looked for after the earlier ones.
    fn add(&self, pool: &Bound<'_, Pool>) -> PyResult<()> {
        let (py, pool) = (pool.py(), pool.get().get(pool.py(), "use")?);
        self.handle.with(py, "add a pool to", |space| {
            space.add(&pool);
            self.uses(&pool);
            Ok(())
        })
    }

    /// Attaches an object for storing; makes a heap in a blank one; returns its ID.
    fn attach(&self, pool: &Bound<'_, Pool>, name: &str) -> PyResult<String> {
        let (py, pool) = (pool.py(), pool.get().get(pool.py(), "attach")?);
        let id = self.handle.with(py, "attach in", |space| {
            let id = space.attach(&pool, name)?;
            self.uses(&pool);
            Ok(id)
        })?;
        Ok(named(id))
    }

    /// Attaches the object with this ID, of any of its pools, for reading, unless it is attached.
    /// Targets of pointers are attached automatically.
    fn attach_read(&self, py: Python<'_>, home: &str) -> PyResult<()> {
        let home = id(home)?;
        self.handle.with(py, "attach in", |space| space.attach_read(&home))
    }

    /// Attaches for storing an object that was attached for reading: no other process may have it.
    fn upgrade(&self, py: Python<'_>, home: &str) -> PyResult<()> {
        let home = id(home)?;
        self.handle.with(py, "attach in", |space| space.upgrade(&home))
    }

    /// Detaches an object; unpsynced stores are lost.
    fn remove(&self, py: Python<'_>, home: &str) -> PyResult<()> {
        let home = id(home)?;
        self.handle.with(py, "remove an object of", |space| {
            drop(space.remove(&home));
            Ok(())
        })
    }

    /// IDs of the attached objects, in the order of their attaching.
    #[getter]
    fn objects(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let ids = self.handle.with(py, "inspect", |space| Ok(space.objects()))?;
        Ok(ids.into_iter().map(named).collect())
    }

    /// Limits pointers between objects to the rights that security contexts of a pool allow;
    /// without any, entries get the rights they ask for.
    fn set_contexts(&self, pool: &Bound<'_, Pool>, contexts: Vec<String>) -> PyResult<()> {
        let (py, pool) = (pool.py(), pool.get().get(pool.py(), "use")?);
        self.handle.with(py, "set the security contexts of", |space| space.set_contexts(&pool, &contexts))
    }

    /// Looks up again what every entry names, at its next use.
    fn resolve_again(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with(py, FOLLOW, |space| {
            space.resolve_again();
            Ok(())
        })
    }

    fn _root(&self, py: Python<'_>, home: &str, name: &str) -> PyResult<u64> {
        let home = id(home)?;
        self.handle.with(py, "use a root of", |space| Ok(space.root::<Far<u8>>(&home, name)?.value().word()))
    }

    fn _set_root(&self, py: Python<'_>, home: &str, name: &str, pointer: u64) -> PyResult<()> {
        let (home, pointer) = (id(home)?, Far::<u8>::from_word(pointer));
        self.handle.with(py, "use a root of", |space| {
            *space.root_or_insert::<Far<u8>>(&home, name, pointer)? = pointer;
            Ok(())
        })
    }

    fn _create(&self, py: Python<'_>, home: &str, data: &Bound<'_, PyAny>) -> PyResult<u64> {
        let (home, data) = (id(home)?, message(data)?);
        // Aligned for any type: a block begins at a multiple of 16.
        let bytes = data.as_bytes();
        self.handle.with(py, "store to an object of", |space| Ok(space.create_slice(&home, bytes)?.word()))
    }

    fn _free(&self, py: Python<'_>, home: &str, pointer: u64) -> PyResult<()> {
        let home = id(home)?;
        self.handle.with(py, "free a block of", |space| space.free(&home, Far::<u8>::from_word(pointer)))
    }

    fn _read<'py>(
        &self,
        py: Python<'py>,
        home: &str,
        pointer: u64,
        size: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let home = id(home)?;
        let bytes = self.handle.with(py, FOLLOW, |space| {
            let first = space.get(&home, Far::<u8>::from_word(pointer))?;
            Ok(first.slice(size)?.to_vec())
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn _write(&self, py: Python<'_>, home: &str, pointer: u64, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let (home, data) = (id(home)?, message(data)?);
        let bytes = data.as_bytes();
        self.handle.with(py, FOLLOW, |space| {
            space.slice_mut(&home, Far::<u8>::from_word(pointer), bytes.len())?.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn _follow(&self, py: Python<'_>, home: &str, pointer: u64) -> PyResult<(String, u64)> {
        let home = id(home)?;
        self.handle.with(py, FOLLOW, |space| {
            let found = space.get(&home, Far::<u8>::from_word(pointer))?;
            Ok((named(found.object()), found.here().word()))
        })
    }

    fn _far(&self, py: Python<'_>, home: &str, target: &str, pointer: u64, rights: &str) -> PyResult<u64> {
        let (home, target, rights) = (id(home)?, id(target)?, rights_of(rights)?);
        self.handle.with(py, "store a far pointer in", |space| {
            Ok(space.far(&home, &target, Far::<u8>::from_word(pointer), rights)?.word())
        })
    }

    fn _far_by_name(
        &self,
        py: Python<'_>,
        home: &str,
        of: (String, String),
        pointer: u64,
        rights: &str,
    ) -> PyResult<u64> {
        let (home, entry) = (id(home)?, entry(&of.0, &of.1, rights)?);
        self.handle.with(py, "store a far pointer in", |space| {
            Ok(space.far_by(&home, &entry, Far::<u8>::from_word(pointer))?.word())
        })
    }

    /// Makes the stores to an object durable, as one step, with the entries that its pointers need;
    /// by default those to all objects: those of one pool as one step, the pools one after the
    /// other: psync the targets of pointers first.
    #[pyo3(signature = (home = None))]
    fn psync(&self, py: Python<'_>, home: Option<&str>) -> PyResult<()> {
        let home = home.map(id).transpose()?;
        self.handle.with(py, "psync", |space| match home {
            Some(home) => space.psync(&home),
            None => space.psync_all(),
        })
    }

    /// Whether it was closed, or belongs to another process.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Detaches all objects; unpsynced stores are lost.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let pools = self.pools().clone();
        let table = || pools.iter().try_for_each(crate::pool_calls::look);
        let ended = self.handle.end(py, table);
        if ended.is_ok() {
            self.pools().clear();
        }
        py.detach(|| drop(pools));
        ended
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Psyncs all objects and closes; on an exception nothing is psynced.
    fn __exit__(
        &self,
        py: Python<'_>,
        exception: Bound<'_, PyAny>,
        _value: Bound<'_, PyAny>,
        _traceback: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if exception.is_none() && !self.closed() {
            self.psync(py, None)?;
        }
        self.close(py)
    }
}
