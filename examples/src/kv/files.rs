//! The same store on plain files: an index file, and files of data by path. Pointers are a file's
//! number and an offset, converted by hand.

use super::table::{self, EMPTY, Found, REMOVED};
use crate::files::MappedFile;
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    room: u64,
    len: u64,
    used: u64,
    seed: u64,
    files: u64,
    reserved: [u64; 2],
    paths: [[u8; PATH]; FILES],
}

#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Slot {
    hash: u64,
    /// File number above 40 bits of offset.
    at: u64,
    key_len: u64,
    value_len: u64,
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct DataHeader {
    magic: [u8; 8],
    used: u64,
    /// Each class's first free block, which has the offset of the next.
    free: [u64; CLASSES],
}

const INDEX: [u8; 8] = *b"KVINDEX1";
const DATA: [u8; 8] = *b"KVDATA-1";
/// Bytes of a path; number of files.
const PATH: usize = 256;
const FILES: usize = 16;
/// A block of class `n` has 2^n bytes.
const CLASSES: usize = 40;
const OFFSET_BITS: u32 = 40;
const DAMAGED: &str = "the store is damaged";

/// A store on plain files. A crash may leave any changes since the last [`sync`](FileStore::sync),
/// and no valid store.
#[derive(Debug)]
pub struct FileStore {
    index: MappedFile,
    data: Vec<MappedFile>,
}

fn class_of(len: u64) -> usize {
    len.max(16).next_power_of_two().trailing_zeros() as usize
}

impl FileStore {
    /// Opens or makes the store of an index file, with all data.
    pub fn open(path: &Path) -> Result<FileStore> {
        let mut store = FileStore { index: MappedFile::open(path)?, data: Vec::new() };
        let header = store.header_mut()?;
        if header.magic == [0; 8] {
            let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
            *header = Header { magic: INDEX, seed, ..FromZeros::new_zeroed() };
        }
        ensure!(header.magic == INDEX, "{} is no index of a store", path.display());
        let paths = header.paths.get(..header.files as usize).context(DAMAGED)?;
        let paths: Vec<PathBuf> = paths
            .iter()
            .map(|path| {
                let len = path.iter().position(|byte| *byte == 0).unwrap_or(PATH);
                Ok(PathBuf::from(std::str::from_utf8(&path[..len]).context(DAMAGED)?))
            })
            .collect::<Result<_>>()?;
        store.data = paths.iter().map(|path| MappedFile::open(path)).collect::<Result<_>>()?;
        Ok(store)
    }

    /// Adds a file for data, made if missing; returns its number.
    pub fn data(&mut self, path: &Path) -> Result<usize> {
        if let Some(number) = self.data.iter().position(|file| file.path() == path) {
            return Ok(number);
        }
        let number = self.data.len();
        let text = path.to_str().filter(|path| path.len() < PATH).context("the path is too long")?;
        ensure!(number < FILES, "a store has up to {FILES} files of data");
        let mut file = MappedFile::open(path)?;
        let header = data_header(file.bytes_mut())?;
        if header.magic == [0; 8] {
            let used = size_of::<DataHeader>().next_multiple_of(16) as u64;
            *header = DataHeader { magic: DATA, used, free: [0; CLASSES] };
        }
        ensure!(header.magic == DATA, "{} has no data of a store", path.display());
        self.data.push(file);
        let header = self.header_mut()?;
        header.paths[number][..text.len()].copy_from_slice(text.as_bytes());
        header.files = number as u64 + 1;
        Ok(number)
    }

    fn header(&self) -> Result<&Header> {
        Header::ref_from_prefix(self.index.bytes()).map(|(header, _)| header).ok().context(DAMAGED)
    }

    fn header_mut(&mut self) -> Result<&mut Header> {
        Header::mut_from_prefix(self.index.bytes_mut()).map(|(header, _)| header).ok().context(DAMAGED)
    }

    fn slots(&self) -> Result<&[Slot]> {
        let room = self.header()?.room as usize;
        let bytes = &self.index.bytes()[size_of::<Header>()..];
        <[Slot]>::ref_from_prefix_with_elems(bytes, room).map(|(slots, _)| slots).ok().context(DAMAGED)
    }

    fn slots_mut(&mut self) -> Result<&mut [Slot]> {
        let room = self.header()?.room as usize;
        let bytes = &mut self.index.bytes_mut()[size_of::<Header>()..];
        <[Slot]>::mut_from_prefix_with_elems(bytes, room).map(|(slots, _)| slots).ok().context(DAMAGED)
    }

    #[inline]
    fn texts(&self, slot: &Slot) -> Result<(&[u8], &[u8])> {
        let (file, offset) = (slot.at >> OFFSET_BITS, slot.at & ((1 << OFFSET_BITS) - 1));
        let bytes = self.data.get(file as usize).context(DAMAGED)?.bytes();
        let end = offset.checked_add(slot.key_len).and_then(|end| end.checked_add(slot.value_len));
        let bytes = end.and_then(|end| bytes.get(offset as usize..end as usize)).context(DAMAGED)?;
        bytes.split_at_checked(slot.key_len as usize).context(DAMAGED)
    }

    #[inline]
    fn find(&self, key: &[u8]) -> Result<(Found, u64)> {
        let (slots, hash) = (self.slots()?, table::hash(self.header()?.seed, key));
        let is_key = |slot: usize| {
            let slot = &slots[slot];
            Ok(slot.key_len == key.len() as u64 && self.texts(slot)?.0 == key)
        };
        Ok((table::find(hash, slots.len(), |slot| slots[slot].hash, is_key)?, hash))
    }

    pub fn len(&self) -> Result<u64> {
        Ok(self.header()?.len)
    }

    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        let (slots, hash) = (self.slots()?, table::hash(self.header()?.seed, key));
        let mut value = None;
        let is_key = |slot: usize| {
            let slot = &slots[slot];
            if slot.key_len != key.len() as u64 {
                return Ok(false);
            }
            let (found, its_value) = self.texts(slot)?;
            value = (found == key).then_some(its_value);
            Ok(value.is_some())
        };
        table::find(hash, slots.len(), |slot| slots[slot].hash, is_key)?;
        Ok(value)
    }

    pub fn insert(&mut self, data: usize, key: &[u8], value: &[u8]) -> Result<bool> {
        let len = (key.len() + value.len()) as u64;
        let file = self.data.get_mut(data).context("there is no such file for data")?;
        let at = take(file, class_of(len))?;
        let bytes = file.bytes_mut().get_mut(at as usize..).context(DAMAGED)?;
        let (of_key, rest) = bytes.split_at_mut_checked(key.len()).context(DAMAGED)?;
        of_key.copy_from_slice(key);
        rest.get_mut(..value.len()).context(DAMAGED)?.copy_from_slice(value);
        let was_there = self.remove(key)?;
        let (mut found, hash) = self.find(key)?;
        let header = *self.header()?;
        if found.free.is_none() || !table::has_room(header.used, header.room) {
            self.enlarge()?;
            found = self.find(key)?.0;
        }
        let slot = found.free.context("a new table has room")?;
        let at = (data as u64) << OFFSET_BITS | at;
        let slot = &mut self.slots_mut()?[slot];
        let was_empty = slot.hash == EMPTY;
        *slot = Slot { hash, at, key_len: key.len() as u64, value_len: value.len() as u64 };
        let header = self.header_mut()?;
        (header.len, header.used) =
            (header.len.saturating_add(1), header.used.saturating_add(was_empty.into()));
        Ok(!was_there)
    }

    fn enlarge(&mut self) -> Result<()> {
        let full: Vec<Slot> = self.slots()?.iter().filter(|slot| slot.hash > REMOVED).copied().collect();
        let room = table::room_for(full.len() as u64) as usize;
        self.index.grow_to(size_of::<Header>() + room * size_of::<Slot>())?;
        let header = self.header_mut()?;
        (header.room, header.used) = (room as u64, full.len() as u64);
        let slots = self.slots_mut()?;
        slots.fill(Slot::default());
        for slot in full {
            let free = table::way(slot.hash, room).find(|at| slots[*at].hash == EMPTY);
            slots[free.context("a new table has room")?] = slot;
        }
        Ok(())
    }

    pub fn remove(&mut self, key: &[u8]) -> Result<bool> {
        let (Found { at: Some(slot), .. }, _) = self.find(key)? else { return Ok(false) };
        let slot = &mut self.slots_mut()?[slot];
        let former = std::mem::replace(slot, Slot { hash: REMOVED, ..Slot::default() });
        let header = self.header_mut()?;
        header.len = header.len.saturating_sub(1);
        let file = self.data.get_mut((former.at >> OFFSET_BITS) as usize).context(DAMAGED)?;
        let class = class_of(former.key_len.saturating_add(former.value_len));
        give_back(file, class, former.at & ((1 << OFFSET_BITS) - 1))?;
        Ok(true)
    }

    /// Writes all changes to the files, in no order.
    pub fn sync(&self) -> Result<()> {
        self.data.iter().chain([&self.index]).try_for_each(MappedFile::sync)
    }
}

fn data_header(bytes: &mut [u8]) -> Result<&mut DataHeader> {
    DataHeader::mut_from_prefix(bytes).map(|(header, _)| header).ok().context(DAMAGED)
}

fn word(bytes: &mut [u8], at: u64) -> Result<&mut u64> {
    let word = bytes.get_mut(at as usize..).and_then(|bytes| bytes.get_mut(..8));
    word.and_then(|word| u64::mut_from_bytes(word).ok()).context(DAMAGED)
}

fn take(file: &mut MappedFile, class: usize) -> Result<u64> {
    if class >= CLASSES {
        bail!("a key and its value have up to {} bytes", 1_u64 << (CLASSES - 1));
    }
    let free = data_header(file.bytes_mut())?.free[class];
    if free != 0 {
        let next = *word(file.bytes_mut(), free)?;
        data_header(file.bytes_mut())?.free[class] = next;
        return Ok(free);
    }
    let at = data_header(file.bytes_mut())?.used;
    let end = at.checked_add(1 << class).context(DAMAGED)?;
    file.grow_to(end as usize)?;
    data_header(file.bytes_mut())?.used = end;
    Ok(at)
}

fn give_back(file: &mut MappedFile, class: usize, at: u64) -> Result<()> {
    let next = *data_header(file.bytes_mut())?.free.get(class).context(DAMAGED)?;
    *word(file.bytes_mut(), at)? = next;
    data_header(file.bytes_mut())?.free[class] = at;
    Ok(())
}
