//! Which key of a dict has an address in the heap.

use super::table::{PythonDict, ROOT};
use crate::held::Held;
use indelible::{Error, ErrorKind};

/// Ranges of memory and their keys, in the order of their addresses.
pub(crate) struct Places(Vec<(usize, usize, String)>);

/// Those of the entries, keys and values of a dict that is attached to store; `None` if there is none.
pub(crate) fn places(held: &Held) -> Result<Option<Places>, Error> {
    let Held::Heap(heap) = held else { return Ok(None) };
    match heap.root_ref::<PythonDict<'_>>(ROOT) {
        Ok(table) => {
            let mut all = table.extents();
            all.sort_unstable();
            Ok(Some(Places(all)))
        }
        Err(error) if error.kind() == ErrorKind::RootMissing => Ok(None),
        Err(error) => Err(error),
    }
}

impl Places {
    /// The key whose entry, or one of whose blocks, has the address.
    pub(crate) fn key(&self, address: usize) -> Option<&str> {
        let behind = self.0.partition_point(|(begin, ..)| *begin <= address);
        let (begin, len, key) = self.0.get(behind.checked_sub(1)?)?;
        (address < begin + len).then_some(key)
    }
}
