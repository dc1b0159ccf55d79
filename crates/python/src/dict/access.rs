//! Reading and changing the table: each of these is one `Attachment::quick`.

use super::table::{PythonDict, ROOT};
use super::value::{Found, New};
use super::{Dict, values};
use crate::block::Block;
use crate::error::read_only;
use crate::held::Held;
use indelible::collections::HeapRef;
use indelible::{Error, ErrorKind, Heap};
use pyo3::intern;
use pyo3::prelude::*;
use std::sync::atomic::Ordering;

/// A value found; an array's block is counted as in use.
pub(super) enum Fetched {
    Object(Py<PyAny>),
    Tree(Py<PyAny>),
    Array(Block),
}

impl Dict {
    pub(super) fn look<T>(&self, py: Python<'_>, mut f: impl FnMut(&PythonDict<'_>) -> T) -> PyResult<T> {
        self.attachment.quick(py, "read the dict of", |held| {
            Ok(f(match held {
                Held::Heap(heap) => heap.root_ref(ROOT)?,
                Held::ReadHeap(heap) => heap.root_ref(ROOT)?,
                Held::Writer(_) | Held::Reader(_) => unreachable!("a dict without a heap"),
            }))
        })
    }

    /// Does work that fails without a trace; grows the object until there is room.
    pub(super) fn change<T>(
        &self,
        py: Python<'_>,
        need: impl Fn(&PythonDict<'_>) -> usize,
        mut f: impl for<'h> FnMut(&mut PythonDict<'h>, HeapRef<'h>) -> Result<T, Error>,
    ) -> PyResult<T> {
        if self.readonly {
            return Err(read_only(py, "change", &format!("the dict in object {:?}", self.attachment.name)));
        }
        self.attachment.quick(py, "change the dict of", |held| {
            let Held::Heap(heap) = held else { unreachable!("a dict without a heap") };
            loop {
                let (table, at) = heap.root_and_heap::<PythonDict<'_>>(ROOT)?;
                table.purge(|address| self.counts.has(address));
                match f(table, at) {
                    Err(error) if error.kind() == ErrorKind::HeapFull => {
                        let need = need(table);
                        grow(heap, need)?;
                    }
                    result => return result,
                }
            }
        })
    }

    pub(super) fn update_with(&self, py: Python<'_>, items: &[(&str, New<'_>)]) -> PyResult<()> {
        let size: usize = items.iter().map(|(key, new)| key.len() + new.size() + 64).sum();
        let need = |table: &PythonDict<'_>| table.room_for(items.len()).max(size);
        let grown = self
            .change(py, need, |table, heap| table.update(heap, items, |address| self.counts.has(address)))?;
        self.changed(grown);
        Ok(())
    }

    /// Counts changes: of `keys`, or of values alone.
    pub(super) fn changed(&self, keys: bool) {
        self.changes.fetch_add(u64::from(keys), Ordering::Relaxed);
    }

    /// Converts a found value; counts an array as a view, under the same lock.
    pub(super) fn hold(&self, found: Found) -> Fetched {
        match found {
            Found::Object(object) => Fetched::Object(object),
            Found::Tree(bytes) => Fetched::Tree(bytes),
            Found::Array(address, len) => {
                Fetched::Array(Block::new(&self.attachment, &self.counts, (address, len), !self.readonly))
            }
        }
    }

    pub(super) fn get_with(slf: &Bound<'_, Self>, key: &str) -> PyResult<Option<Py<PyAny>>> {
        let (py, dict) = (slf.py(), slf.get());
        let found = dict.look(py, |table| {
            let at = table.find(key)?;
            Some(dict.hold(Found::of(py, table.value(at))))
        })?;
        found.map(|held| Dict::finish(slf, held)).transpose()
    }

    /// The value, after the lock is released.
    pub(super) fn finish(slf: &Bound<'_, Self>, held: Fetched) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let (name, argument) = match held {
            Fetched::Object(object) => return Ok(object),
            Fetched::Tree(bytes) => (intern!(py, "tree"), bytes.into_bound(py)),
            Fetched::Array(block) => {
                let _ = block.owner.set(py, slf.clone().into_any().unbind());
                (intern!(py, "array"), Bound::new(py, block)?.into_any())
            }
        };
        Ok(values(py)?.getattr(name)?.call1((&slf.get().attachment.name, argument))?.unbind())
    }

    pub(super) fn take<T>(
        &self,
        py: Python<'_>,
        key: Option<&str>,
        keep: impl Fn(&str, Found) -> T,
    ) -> PyResult<Option<T>> {
        let taken = self.change(
            py,
            |_| 4096,
            |table, _| {
                let at = match key {
                    Some(key) => table.find(key),
                    None => table.last(),
                };
                let Some((at, key, value)) = at.and_then(|at| table.next(at, true)) else { return Ok(None) };
                let taken = keep(key, Found::of(py, value));
                table.remove(at, |address| self.counts.has(address))?;
                Ok(Some(taken))
            },
        )?;
        if taken.is_some() {
            self.changed(true);
        }
        Ok(taken)
    }
}

/// Grows an object by a quarter plus a block of `need` bytes; by the block alone for want of room.
pub(super) fn grow(heap: &mut Heap, need: usize) -> Result<(), Error> {
    let size = heap.size() as u64;
    // A new chunk of the heap comes on top.
    let least = size + need as u64 + (4 << 20);
    match heap.grow(least.max(size + size / 4)) {
        Err(error) if matches!(error.kind(), ErrorKind::NoRoom | ErrorKind::NoSpace) => heap.grow(least),
        grown => grown,
    }
}
