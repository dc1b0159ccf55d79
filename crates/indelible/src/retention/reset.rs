use super::comparison::Comparison;
use super::versions::Opened;
use crate::collections::{Describing, OldValue, Persist};
use crate::error::{Cause, Result};
use crate::heap::{HeapError, ReadHeap, Reclaimed, Root, TypeInfo};
use std::fmt;

/// A reset root; as text, a line for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reset {
    /// Name of the object.
    pub object: String,
    /// Name of the root.
    pub root: String,
    /// Name of its former type.
    pub old_type: String,
    /// Its fingerprint.
    pub old_fingerprint: u128,
    /// Name of its present type.
    pub new_type: String,
    /// The types, compared.
    pub comparison: Comparison,
    /// Blocks that were freed.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Effect of a possible reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reclaimable {
    /// Blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
}

const RESET: &str = "reset a root of";

impl Reset {
    pub(super) fn of<'h, T: Persist<'h>>(opened: &Opened<'_, 'h>) -> Result<(Reset, OldValue<'h>)> {
        let Opened { heap, root, .. } = opened;
        if !heap.is_trusted() {
            return Err(opened.error(RESET, HeapError::Untrusted { name: root.name.clone() }));
        }
        let found = heap.reclaimed(&root.name).map_err(|error| opened.error(RESET, error))?;
        let described = Describing::of::<T>().describe();
        let reset = Reset::new(heap.attached().name(), root, &described.info(), &found);
        Ok((reset, OldValue::of_blocks(found)))
    }

    fn new(object: &str, root: &Root, ty: &TypeInfo<'_>, found: &Reclaimed) -> Reset {
        Reset {
            object: object.to_owned(),
            root: root.name.clone(),
            old_type: root.type_name.clone(),
            old_fingerprint: root.fingerprint,
            new_type: ty.name.to_owned(),
            comparison: root.compare(ty),
            blocks: found.count(),
            bytes: found.bytes,
        }
    }
}

impl fmt::Display for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reset { object, root, old_type, new_type, blocks, bytes, .. } = self;
        write!(f, "reset root {root:?} of object {object:?}, a {old_type}, to a new {new_type}")?;
        match &self.comparison {
            Comparison::Appended(first) | Comparison::Differs(first) => {
                write!(f, " (here the old type, there the new one, {first})")?;
            }
            Comparison::Same | Comparison::Undescribed => {}
        }
        write!(f, "; freed {blocks} blocks, {bytes} bytes")
    }
}

impl ReadHeap {
    /// The blocks that a reset of the root `name` would free
    /// ([`RootFrom::or_reset`](super::RootFrom::or_reset)).
    ///
    /// # Errors
    /// `RootMissing`; as for [`OrReset::or_insert_with`](super::OrReset::or_insert_with) if it
    /// would be refused.
    pub fn reclaimable(&self, name: &str) -> Result<Reclaimable> {
        match self.reclaimed(name) {
            Ok(found) => Ok(Reclaimable { blocks: found.count(), bytes: found.bytes }),
            Err(error) => Err(self.object().error(RESET, Cause::Heap(error))),
        }
    }
}
