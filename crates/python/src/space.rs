//! Spaces, in which far pointers are followed and stored. Values are copied in and out, so that nothing of Python refers to an object of a space.

use crate::error::{closed, exception, forked};
use crate::pool::Pool;
use crate::process;
use indelible::{Far, Rights, TypeInfo};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, PoisonError};

/// A space. `indelible.Space` adds references to structs.
#[pyclass(frozen, subclass, weakref, module = "indelible._indelible")]
pub(crate) struct Space {
    space: Mutex<Option<indelible::Space>>,
    process: u32,
}

fn id_of(bytes: &[u8]) -> PyResult<[u8; 16]> {
    bytes.try_into().map_err(|_| PyValueError::new_err("the ID of an object has 16 bytes"))
}

impl Space {
    /// Does something with the space, without the GIL.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        operation: &str,
        f: impl FnOnce(&mut indelible::Space) -> indelible::Result<T> + Send,
    ) -> PyResult<T> {
        if self.process != process::generation() {
            return Err(forked(py, operation, "the space"));
        }
        let done = py.detach(|| self.space.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(f));
        done.ok_or_else(|| closed(py, operation, "the space"))?.map_err(|error| exception(py, &error))
    }
}

#[pymethods]
impl Space {
    #[new]
    #[pyo3(signature = (pools = Vec::new()))]
    fn new(py: Python<'_>, pools: Vec<Bound<'_, Pool>>) -> PyResult<Self> {
        let mut space = indelible::Space::new();
        for pool in &pools {
            space.add(&pool.get().get(py, "add")?);
        }
        Ok(Space { space: Mutex::new(Some(space)), process: process::generation() })
    }

    /// Has objects that pointers lead to be looked for in a pool, behind those that were added before.
    fn add(&self, py: Python<'_>, pool: &Bound<'_, Pool>) -> PyResult<()> {
        let pool = pool.get().get(py, "add")?;
        self.with(py, "use", |space| {
            space.add(&pool);
            Ok(())
        })
    }

    /// Attaches an object for storing; its ID.
    fn attach<'py>(
        &self,
        py: Python<'py>,
        pool: &Bound<'_, Pool>,
        name: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let pool = pool.get().get(py, "attach")?;
        let id = self.with(py, "attach", |space| space.attach(&pool, name))?;
        Ok(PyBytes::new(py, &id))
    }

    /// Attaches an object for reading; its ID.
    fn attach_read<'py>(
        &self,
        py: Python<'py>,
        pool: &Bound<'_, Pool>,
        name: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let pool = pool.get().get(py, "attach")?;
        let id = self.with(py, "attach", |space| {
            let id = pool.stat(name)?.id;
            space.attach_read(&id).map(|()| id)
        })?;
        Ok(PyBytes::new(py, &id))
    }

    /// Takes an object out of the space: what was not psynced is forgotten. Whether it was there.
    fn remove(&self, py: Python<'_>, object: &[u8]) -> PyResult<bool> {
        let id = id_of(object)?;
        self.with(py, "use", |space| {
            let there = space.objects().contains(&id);
            drop(space.remove(&id));
            Ok(there)
        })
    }

    /// IDs of the objects of the space.
    fn objects<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let ids = self.with(py, "use", |space| Ok(space.objects()))?;
        Ok(ids.iter().map(|id| PyBytes::new(py, id)).collect())
    }

    /// Looks up again what entries name, when they are next used.
    fn resolve_again(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, "use", |space| {
            space.resolve_again();
            Ok(())
        })
    }

    /// Makes all stores to objects of the space durable: those of one pool as one step.
    fn psync(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, "psync", indelible::Space::psync_all)
    }

    /// Detaches all objects: what was not psynced is forgotten.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.space.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }

    /// The pointer, within its object, to a root of this type; made with the bytes `first` if there is none and they are given.
    fn _record(
        &self,
        py: Python<'_>,
        object: &[u8],
        name: &str,
        described: (String, String),
        first: Option<&[u8]>,
    ) -> PyResult<u64> {
        let (id, ty) = (id_of(object)?, TypeInfo::described(&described.0, &described.1));
        let found = self.with(py, "use a record of", |space| match first {
            Some(first) => space.record_or_insert(&id, name, &ty, first),
            None => space.record(&id, name, &ty),
        })?;
        Ok(found.word())
    }

    /// A copy of the bytes that a pointer leads to which lies in an object; with the ID of their object, and their place in that.
    fn _get<'py>(
        &self,
        py: Python<'py>,
        object: &[u8],
        pointer: u64,
        size: usize,
    ) -> PyResult<(Bound<'py, PyBytes>, u64, Bound<'py, PyBytes>)> {
        let id = id_of(object)?;
        let (id, place, bytes) = self.with(py, "follow a pointer of", |space| {
            let at = space.get(&id, Far::<u8>::from_word(pointer))?;
            Ok((at.object(), at.here().word(), at.slice(size)?.to_vec()))
        })?;
        Ok((PyBytes::new(py, &id), place, PyBytes::new(py, &bytes)))
    }

    /// Stores bytes where a pointer leads to.
    fn _set(&self, py: Python<'_>, object: &[u8], pointer: u64, bytes: &[u8]) -> PyResult<()> {
        let id = id_of(object)?;
        self.with(py, "store to", |space| {
            space.slice_mut(&id, Far::<u8>::from_word(pointer), bytes.len())?.copy_from_slice(bytes);
            Ok(())
        })
    }

    /// Stores bytes into a new block of an object; the pointer to it, within that.
    fn _create(&self, py: Python<'_>, object: &[u8], bytes: &[u8]) -> PyResult<u64> {
        let id = id_of(object)?;
        Ok(self.with(py, "allocate in", |space| space.create_slice(&id, bytes))?.word())
    }

    /// Frees the block that a pointer leads to.
    fn _free(&self, py: Python<'_>, object: &[u8], pointer: u64) -> PyResult<()> {
        let id = id_of(object)?;
        self.with(py, "free a block of", |space| space.free(&id, Far::<u8>::from_word(pointer)))
    }

    /// A pointer for an object to a place in another one, or the same.
    fn _far(&self, py: Python<'_>, object: &[u8], target: &[u8], place: u64, write: bool) -> PyResult<u64> {
        let (id, target) = (id_of(object)?, id_of(target)?);
        let rights = if write { Rights::READ | Rights::WRITE } else { Rights::READ };
        let pointer = self.with(py, "store a pointer in", |space| {
            space.far(&id, &target, Far::<u8>::from_word(place), rights)
        })?;
        Ok(pointer.word())
    }
}

/// The ID of a read-only object that holds these bytes, which is their hash: made, unless the pool has one.
#[pyfunction]
pub(crate) fn _create_by_content<'py>(
    pool: &Bound<'py, Pool>,
    name: &str,
    content: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let py = pool.py();
    let found = pool.get().with(py, "create", |pool| pool.create_by_content(name, content))?;
    Ok(PyBytes::new(py, &found.id))
}
