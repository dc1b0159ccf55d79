#![allow(unsafe_code)]

use super::attached::{Attached, shown};
use super::place::Range;
use super::{FOLLOW, STORES, Space};
use crate::error::{FarError, Result};
use crate::far::{Far, FarEntry, FarTarget, Rights};
use crate::heap::{Compacted, Heap};
use crate::plain::Plain;
use indelible_store::Mutant;

const STORE: &str = "store by a far pointer to";
const MAKE: &str = "store a far pointer in";

fn expect_own<T>(home: &Attached, target: &[u8; 16], pointer: Far<T>) -> Result<()> {
    if pointer.index() == 0 {
        return Ok(());
    }
    let why = "the pointer leads through an entry of another object".to_owned();
    Err(home.error(MAKE, FarError::Name { target: shown(target), why }))
}

impl Space {
    /// A pointer in the object `home` to the target of `pointer` in the object `target`, which need
    /// not be in the space: direct, or through an entry of `home` that is found or added.
    ///
    /// # Errors
    /// As for [`Heap::far_index`]; `NotAttached`: `home` is not in the space. `ReadOnly`: it is
    /// attached for reading. `Unsuitable`: `pointer` leads out of its object.
    pub fn far<T>(
        &mut self,
        home: &[u8; 16],
        target: &[u8; 16],
        pointer: Far<T>,
        rights: Rights,
    ) -> Result<Far<T>> {
        let attached = self.here_mut(home, MAKE)?;
        expect_own(attached, target, pointer)?;
        if home == target || pointer.is_null() {
            return Ok(pointer);
        }
        let index = attached.index_of(target, rights, MAKE)?;
        Ok(Far::new(index, pointer.offset()).unwrap_or_default())
    }

    /// As [`far`](Space::far), through a new entry: [`retarget`](Space::retarget) of it moves only
    /// this pointer and its copies.
    pub fn private_far<T>(
        &mut self,
        home: &[u8; 16],
        target: &[u8; 16],
        pointer: Far<T>,
        rights: Rights,
    ) -> Result<Far<T>> {
        let attached = self.here_mut(home, MAKE)?;
        expect_own(attached, target, pointer)?;
        let entry = FarEntry { target: FarTarget::Object(*target), rights };
        let index = attached.heap_mut(MAKE)?.private_far_index(&entry)?;
        Ok(Far::new(index, pointer.offset()).unwrap_or_default())
    }

    /// As [`far`](Space::far), through an entry for any object that it names, even by a name
    /// resolved on use.
    pub fn far_by<T>(&mut self, home: &[u8; 16], entry: &FarEntry, pointer: Far<T>) -> Result<Far<T>> {
        let attached = self.here_mut(home, MAKE)?;
        let index = attached.heap_mut(MAKE)?.far_index(entry)?;
        Ok(Far::new(index, pointer.offset()).unwrap_or_default())
    }

    /// Redirects an entry of an object, and all pointers through it: see [`Heap::retarget`].
    ///
    /// # Errors
    /// As for [`Heap::retarget`]; `NotAttached`, `ReadOnly`.
    pub fn retarget(&mut self, home: &[u8; 16], index: u32, entry: &FarEntry) -> Result<()> {
        self.here_mut(home, "change")?
            .heap_mut("change an entry for another object of")?
            .retarget(index, entry)?;
        if !Mutant::FarCacheKept.is_on() {
            self.forget();
        }
        Ok(())
    }

    /// Removes an object's unneeded entries: see [`Heap::compact_far`].
    ///
    /// # Errors
    /// As for [`Heap::compact_far`]; `NotAttached`, `ReadOnly`.
    pub fn compact(&mut self, home: &[u8; 16]) -> Result<Compacted> {
        let done = self
            .here_mut(home, "compact")?
            .heap_mut("compact the entries for other objects of")?
            .compact_far();
        self.forget();
        done
    }

    /// Creates a value in an object, durable at the next psync. Store the returned pointer: nothing
    /// else refers to the value.
    ///
    /// # Errors
    /// `HeapFull`; `Unsuitable`: safe code stores by far pointers only in position-independent
    /// objects with described roots without addresses; `NotAttached`, `ReadOnly`.
    pub fn create<T: Plain>(&mut self, home: &[u8; 16], value: T) -> Result<Far<T>> {
        let (pointer, values) = self.made(home, 1)?;
        values[0] = value;
        Ok(pointer)
    }

    /// As [`create`](Space::create), of consecutive values in one block, with room for at least
    /// one.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// use indelible::{CreateOptions, Space};
    ///
    /// pool.create_with("texts", &CreateOptions::new(1 << 20).position_independent(true))?;
    /// let mut space = Space::new();
    /// let id = space.attach(&pool, "texts")?;
    /// let text = space.create_slice(&id, b"hello")?;
    /// space.slice_mut(&id, text, 5)?[0] = b'j';
    /// assert_eq!(space.get(&id, text)?.slice(5)?, b"jello");
    /// assert!(space.slice_mut(&id, text, 500).is_err(), "the block has fewer");
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for `create`.
    pub fn create_slice<T: Plain + Copy>(&mut self, home: &[u8; 16], values: &[T]) -> Result<Far<T>> {
        self.create_parts(home, &[values])
    }

    /// As [`create_slice`](Space::create_slice), of several slices' values in sequence.
    ///
    /// # Errors
    /// As for `create`.
    pub fn create_parts<T: Plain + Copy>(&mut self, home: &[u8; 16], parts: &[&[T]]) -> Result<Far<T>> {
        let count = parts.iter().fold(0_usize, |count, part| count.saturating_add(part.len()));
        let (pointer, mut values) = self.made::<T>(home, count)?;
        for part in parts {
            let (first, rest) = values.split_at_mut(part.len());
            first.copy_from_slice(part);
            values = rest;
        }
        Ok(pointer)
    }

    /// As [`create_slice`](Space::create_slice), of `count` zeroed values.
    ///
    /// # Errors
    /// As for `create`.
    pub fn create_zeroed<T: Plain>(&mut self, home: &[u8; 16], count: usize) -> Result<Far<T>> {
        self.reserve::<T>(home, count, true)
    }

    pub(super) fn reserve<T: Plain>(&mut self, home: &[u8; 16], count: usize, zero: bool) -> Result<Far<T>> {
        let attached = self.here_mut(home, STORE)?;
        let size = size_of::<T>().saturating_mul(count.max(1)).max(1);
        let block = attached.free_heap_mut(STORE)?.aligned_block(align_of::<T>().max(16), size, zero)?;
        attached.refresh();
        let offset = block.addr().get() - attached.range.base();
        Ok(Far::own(offset as u64).unwrap_or_default())
    }

    fn made<T: Plain>(&mut self, home: &[u8; 16], count: usize) -> Result<(Far<T>, &mut [T])> {
        let pointer = self.reserve::<T>(home, count, false)?;
        let attached = self.here_mut(home, STORE)?;
        if pointer.is_null() {
            return Err(attached.error(STORE, FarError::Null));
        }
        attached.mark(pointer.offset(), size_of::<T>().saturating_mul(count), STORE)?;
        // SAFETY: a block of an object whose values have no invariants beyond their bits; the space
        // is borrowed exclusively.
        let found = unsafe { attached.range.values_mut(pointer.offset(), count) };
        let attached = &*attached;
        let wrong = |why| Space::no_values::<T>(attached, attached, (pointer.offset(), count), why);
        Ok((pointer, found.map_err(wrong)?))
    }

    /// A pointer's target for storing; the pointer lies in the object `home`.
    ///
    /// # Errors
    /// As for [`get`](Space::get) and [`create`](Space::create). `ReadOnly`: the entry does not ask
    /// for stores, or the object is attached for reading ([`upgrade`](Space::upgrade)).
    /// `NotABlock`, `BadSize`: it does not lie in one block.
    pub fn get_mut<T: Plain>(&mut self, home: &[u8; 16], pointer: Far<T>) -> Result<&mut T> {
        let (attached, range, offset) = self.stored(home, pointer, 1)?;
        // SAFETY: as in `made`.
        let found = unsafe { range.value_mut(offset) };
        found.map_err(|why| Space::no_value::<T>(attached, attached, offset, why))
    }

    /// As [`get_mut`](Space::get_mut), of `count` consecutive values.
    ///
    /// # Errors
    /// As for `get_mut`.
    pub fn slice_mut<T: Plain>(
        &mut self,
        home: &[u8; 16],
        pointer: Far<T>,
        count: usize,
    ) -> Result<&mut [T]> {
        let (attached, range, offset) = self.stored(home, pointer, count)?;
        // SAFETY: as for `get_mut`, all in one block.
        let found = unsafe { range.values_mut(offset, count) };
        found.map_err(|why| Space::no_values::<T>(attached, attached, (offset, count), why))
    }

    fn stored<T: Plain>(
        &mut self,
        home: &[u8; 16],
        pointer: Far<T>,
        count: usize,
    ) -> Result<(&Attached, Range, u64)> {
        let (attached, offset, size) = self.inside(home, pointer, count)?;
        let range = attached.stored(offset, size, STORE)?;
        Ok((attached, range, offset))
    }

    #[inline]
    fn inside<T: Plain>(
        &mut self,
        home: &[u8; 16],
        pointer: Far<T>,
        count: usize,
    ) -> Result<(&mut Attached, u64, usize)> {
        let (attached, offset) = self.target_mut(home, pointer)?;
        let (range, size) = (attached.now(), size_of::<T>().saturating_mul(count));
        if offset.checked_add(size as u64).is_none_or(|end| end > range.len() as u64) {
            return Err(Space::no_values::<T>(attached, attached, (offset, count), super::NoValue::Beyond));
        }
        Ok((attached, offset, size))
    }

    /// In a damaged collection, a store might change something else.
    pub(super) fn expect_block<T: Plain>(
        &mut self,
        home: &[u8; 16],
        first: Far<T>,
        count: usize,
    ) -> Result<()> {
        let (attached, offset, size) = self.inside(home, first, count)?;
        attached.expect_block(offset, size, STORE)
    }

    /// Frees the block of a pointer in the object `home`. Other pointers to it lead to the block's
    /// next contents.
    ///
    /// # Errors
    /// As for [`get_mut`](Space::get_mut); `NotABlock`: not a block's first byte; `RootExists`: a
    /// root's block.
    pub fn free<T: Plain>(&mut self, home: &[u8; 16], pointer: Far<T>) -> Result<()> {
        let (attached, offset) = self.target_mut(home, pointer)?;
        let range = attached.now();
        if offset >= range.len() as u64 {
            return Err(Space::no_value::<T>(attached, attached, offset, super::NoValue::Beyond));
        }
        let address = range.base() + offset as usize;
        attached.freeing();
        let heap = attached.free_heap_mut(STORE)?;
        // SAFETY: a block of an object in which only its root owns a block; the space is borrowed
        // exclusively.
        unsafe { heap.free(std::ptr::with_exposed_provenance_mut(address)) }
    }

    /// The entry must ask for stores.
    pub(super) fn target<T>(&self, home: &[u8; 16], pointer: Far<T>) -> Result<(&Attached, u64)> {
        let attached = self.here(home, FOLLOW)?;
        let (index, offset) = (pointer.index(), pointer.offset());
        if offset == 0 {
            return Err(attached.error(FOLLOW, FarError::Null));
        }
        match index {
            0 => Ok((attached, offset)),
            _ => Ok((self.linked(attached, index, STORES)?.1, offset)),
        }
    }

    fn target_mut<T>(&mut self, home: &[u8; 16], pointer: Far<T>) -> Result<(&mut Attached, u64)> {
        if pointer.index() == 0 && pointer.offset() != 0 {
            return Ok((self.here_mut(home, FOLLOW)?, pointer.offset()));
        }
        let (target, offset) = self.target(home, pointer)?;
        let id = target.id;
        Ok((self.here_mut(&id, FOLLOW)?, offset))
    }

    /// The value of the root `name` of an object, for storing.
    ///
    /// # Errors
    /// As for [`Heap::root_mut`]; `NotAttached`, `ReadOnly`.
    pub fn root_mut<T: Plain + for<'h> crate::Persist<'h>>(
        &mut self,
        home: &[u8; 16],
        name: &str,
    ) -> Result<&mut T> {
        self.here_mut(home, "use a root of")?.heap_mut("use a root of")?.root_mut(name)
    }

    /// As [`root_mut`](Space::root_mut); makes the root with `value` if absent.
    ///
    /// # Errors
    /// As for [`Heap::root_or_insert_with`]; `NotAttached`, `ReadOnly`.
    pub fn root_or_insert<T: Plain + for<'h> crate::Persist<'h>>(
        &mut self,
        home: &[u8; 16],
        name: &str,
        value: T,
    ) -> Result<&mut T> {
        self.here_mut(home, "use a root of")?.heap_mut("use a root of")?.root_or_insert_with(name, |_| value)
    }

    /// Makes all stores to an object durable, atomically.
    ///
    /// # Errors
    /// As for [`Heap::psync`]; `NotAttached`, `ReadOnly`.
    pub fn psync(&mut self, home: &[u8; 16]) -> Result<()> {
        self.here_mut(home, "psync")?.heap_mut("psync")?.psync()
    }

    /// Makes all stores to the space's objects durable: atomically per pool, the pools in the order
    /// of their first objects: psync targets first.
    ///
    /// # Errors
    /// As for [`psync_all`](crate::psync_all): earlier pools have their psync.
    pub fn psync_all(&mut self) -> Result<()> {
        let heaps = self.attached.iter_mut().filter_map(Attached::heap_to_psync);
        let mut pools: Vec<(std::path::PathBuf, Vec<&mut Heap>)> = Vec::new();
        for heap in heaps {
            let path = heap.attached().pool_path().to_owned();
            match pools.iter_mut().find(|(known, _)| *known == path) {
                Some((_, of_pool)) => of_pool.push(heap),
                None => pools.push((path, vec![heap])),
            }
        }
        pools.iter_mut().try_for_each(|(_, heaps)| Heap::psync_all(heaps, &mut []))
    }
}
