use super::Space;
use super::attached::{Attached, Content};
use crate::error::{Cause, HeapError, Result};
use crate::far::Far;
use crate::heap::{Root, TypeInfo};

const USE: &str = "use a record of";

impl Space {
    /// The place of the record `name` in an object, as a pointer within that. Only a description
    /// defines a record's type: numbers, arrays, structs, and far pointers.
    ///
    /// # Errors
    /// As for [`Heap::find_record`](crate::Heap::find_record); `NotAttached`, `NotAHeap`.
    pub fn record(&self, home: &[u8; 16], name: &str, ty: &TypeInfo<'_>) -> Result<Far<u8>> {
        let attached = self.here(home, USE)?;
        let root = match &attached.content {
            Content::Writing { heap, .. } => heap.find_record(name, ty)?,
            Content::Reading(heap) => heap.find_record(name, ty)?,
            Content::Bare(object) => return Err(object.error(USE, Cause::Heap(HeapError::NotAHeap))),
        };
        Ok(place_of(attached, &root))
    }

    /// As [`record`](Space::record); makes the record of these bytes if absent.
    ///
    /// # Errors
    /// As for [`Heap::record`](crate::Heap::record); `NotAttached`, `ReadOnly`.
    pub fn record_or_insert(
        &mut self,
        home: &[u8; 16],
        name: &str,
        ty: &TypeInfo<'_>,
        first: &[u8],
    ) -> Result<Far<u8>> {
        let attached = self.here_mut(home, USE)?;
        let root = attached.heap_mut(USE)?.record(name, ty, first)?;
        Ok(place_of(attached, &root))
    }
}

fn place_of(attached: &Attached, root: &Root) -> Far<u8> {
    Far::own((root.address - attached.now().base()) as u64).unwrap_or_default()
}
