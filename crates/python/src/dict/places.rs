//! Which value of a dict has an address in the heap.
//!
//! Ignores memory of the dict outside its values: hashes and positions, padding, spare room, and
//! remains of former values. Keys, text and trees are ignored, too: they have no addresses.

use super::table::{PythonDict, ROOT};
use crate::held::Held;
use indelible::{Error, ErrorKind};

pub(crate) enum Place<'a> {
    /// The value of this key.
    Value(&'a str),
    /// The dict's own memory, no value.
    Own,
    /// Another root's.
    Elsewhere,
}

pub(crate) struct Places {
    /// Address, bytes and key of each value, in the order of addresses.
    values: Vec<(usize, usize, String)>,
    blocks: Vec<(usize, usize)>,
}

pub(crate) fn places(held: &Held) -> Result<Option<Places>, Error> {
    let Held::Heap(heap) = held else { return Ok(None) };
    let table = match heap.root_ref::<PythonDict<'_>>(ROOT) {
        Ok(table) => table,
        Err(error) if error.kind() == ErrorKind::RootMissing => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut owned: Vec<usize> = table.own_memory().collect();
    let mut values = Vec::new();
    for (key, value) in table.values() {
        owned.push(key.as_ptr().addr());
        owned.extend(value.letters());
        if let Some((address, len)) = value.words() {
            owned.push(address);
            values.push((address, len, key.to_owned()));
        }
    }
    values.sort_unstable();
    owned.sort_unstable();
    let mut blocks = Vec::new();
    for block in heap.blocks() {
        let block = block?;
        let (begin, end) = (block.address, block.address + block.size);
        if owned.get(owned.partition_point(|address| *address < begin)).is_some_and(|address| *address < end)
        {
            blocks.push((begin, block.size));
        }
    }
    blocks.sort_unstable();
    Ok(Some(Places { values, blocks }))
}

impl Places {
    pub(crate) fn at(&self, address: usize) -> Place<'_> {
        let behind = self.values.partition_point(|(begin, ..)| *begin <= address);
        match behind.checked_sub(1).map(|last| &self.values[last]) {
            Some((begin, len, key)) if address < begin + len => return Place::Value(key),
            _ => {}
        }
        let behind = self.blocks.partition_point(|(begin, _)| *begin <= address);
        match behind.checked_sub(1).map(|last| self.blocks[last]) {
            Some((begin, len)) if address < begin + len => Place::Own,
            _ => Place::Elsewhere,
        }
    }
}
