//! Records: roots beside the dict, of a fixed layout without pointers, which programs in other
//! languages find by name and type.

use super::Dict;
use super::access::grow;
use super::table::ROOT;
use crate::block::Block;
use crate::error::{in_use, own, read_only};
use crate::held::Held;
use indelible::{Error, ErrorKind, Heap, TypeInfo};
use pyo3::prelude::*;

/// The name of a type, and its words.
pub(super) type Described<'a> = (&'a str, &'a str);

fn info<'a>((name, words): Described<'a>) -> TypeInfo<'a> {
    TypeInfo::described(name, words)
}

impl Dict {
    /// The bytes of the record `name`, as a view; `first`: those of a new one, if it may be made.
    pub(super) fn record_block(
        slf: &Bound<'_, Self>,
        name: &str,
        ty: Described<'_>,
        first: Option<&[u8]>,
    ) -> PyResult<Block> {
        let (py, dict, ty) = (slf.py(), slf.get(), info(ty));
        let block = dict.attachment.quick(py, "use a record of", |held| {
            let root = match (held, first) {
                (Held::Heap(heap), Some(first)) => {
                    with_room(heap, first.len(), |heap| heap.record(name, &ty, first))?
                }
                (Held::Heap(heap), None) => heap.find_record(name, &ty)?,
                (Held::ReadHeap(heap), _) => heap.find_record(name, &ty)?,
                (Held::Writer(_) | Held::Reader(_), _) => unreachable!("a dict without a heap"),
            };
            Ok(Block::new(&dict.attachment, &dict.counts, (root.address, root.size as usize), !dict.readonly))
        })?;
        let _ = block.owner.set(py, slf.clone().into_any().unbind());
        Ok(block)
    }

    /// Converts a record to another type; `false`: its bytes are not `old`.
    pub(super) fn convert_block(
        &self,
        py: Python<'_>,
        name: &str,
        (from, old): (Described<'_>, &[u8]),
        (to, new): (Described<'_>, &[u8]),
    ) -> PyResult<bool> {
        let (from, to) = (info(from), info(to));
        self.replace(py, name, new.len(), |heap| heap.convert_record(name, (&from, old), (&to, new)))
    }

    /// Replaces a root of any type by a record; returns the number of freed blocks, and their
    /// bytes.
    pub(super) fn reset_block(
        &self,
        py: Python<'_>,
        name: &str,
        ty: Described<'_>,
        first: &[u8],
    ) -> PyResult<(u64, u64)> {
        if name == ROOT {
            let what = format!("the root {ROOT:?} of object {:?} is the dict itself", self.attachment.name);
            return Err(own(py, ErrorKind::RootType, "reset", &what, &self.attachment.name));
        }
        let ty = info(ty);
        self.replace(py, name, first.len(), |heap| heap.reset_to_record(name, &ty, first))
    }

    /// Replaces a record's block, which no array uses.
    fn replace<T>(
        &self,
        py: Python<'_>,
        name: &str,
        need: usize,
        mut f: impl FnMut(&mut Heap) -> Result<T, Error>,
    ) -> PyResult<T> {
        let what = || format!("record {name:?} of object {:?}", self.attachment.name);
        if self.readonly {
            return Err(read_only(py, "convert", &what()));
        }
        let replaced = self.attachment.quick(py, "convert a record of", |held| {
            let Held::Heap(heap) = held else { unreachable!("a dict without a heap") };
            match self.counts.has(heap.root_any(name)?.address) {
                true => Ok(None),
                false => with_room(heap, need, &mut f).map(Some),
            }
        })?;
        replaced.ok_or_else(|| in_use("convert", &what(), self.attachment.views()))
    }
}

/// Does work that fails without a trace; grows the object until there is room.
fn with_room<T>(
    heap: &mut Heap,
    need: usize,
    mut f: impl FnMut(&mut Heap) -> Result<T, Error>,
) -> Result<T, Error> {
    loop {
        match f(heap) {
            Err(error) if error.kind() == ErrorKind::HeapFull => grow(heap, need)?,
            result => return result,
        }
    }
}
