use super::super::audit::sound;
use super::super::error::HeapError;
use super::super::raw::RawHeap;
use super::super::read::ReadHeap;
use super::super::writer::Heap;
use super::compact::{Compacted, FarPointer, Pointers, pointers};
use crate::error::{Cause, Result};
use crate::far::FarEntry;
use crate::types::walk::Memory;
use indelible_store::Mutant;
use std::collections::HashSet;

/// The table's own page, one of leaves, a leaf, one for names.
const PAGES: usize = 4;

impl Heap {
    /// Number of the entry in this object's table of other objects, added if missing. Pointers
    /// through it are [`Far::new(number, offset)`](crate::Far::new); the next psync makes it
    /// durable.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// use indelible::{Far, FarEntry, FarTarget, Rights};
    ///
    /// pool.create("data", 4096)?;
    /// let data = FarTarget::Object(pool.stat("data")?.id);
    /// let index = pool.heap("index", 1 << 20)?;
    /// let entry = FarEntry { target: data, rights: Rights::READ };
    /// let number = index.far_index(&entry)?;
    /// assert_eq!(number, index.far_index(&entry)?); // one entry for all pointers
    /// let _pointer: Far<u64> = Far::new(number, 64).unwrap(); // to byte 64 of `data`
    /// assert_eq!(index.far_entry(number)?, entry);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// `HeapFull`: no room, or 16,777,215 entries are in use. `BadName`. `Damaged`.
    pub fn far_index(&self, entry: &FarEntry) -> Result<u32> {
        self.with_room(|heap| heap.far_index(entry), "add an entry for another object to")
    }

    /// Number of a new entry for the caller's pointers alone, so that [`retarget`](Heap::retarget)
    /// moves no others.
    ///
    /// # Errors
    /// As for [`far_index`](Heap::far_index).
    pub fn private_far_index(&self, entry: &FarEntry) -> Result<u32> {
        self.with_room(|heap| heap.private_far_index(entry), "add an entry for another object to")
    }

    /// The entry with this number.
    ///
    /// # Errors
    /// `Dangling`: there is none. `Damaged`.
    pub fn far_entry(&self, index: u32) -> Result<FarEntry> {
        let result = self.raw().far_entry(index);
        self.done("look up a far pointer of", result)
    }

    /// All entries in use, by number.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn far_entries(&self) -> Result<Vec<(u32, FarEntry)>> {
        let result = self.raw().far_entries();
        self.done("list the entries for other objects of", result)
    }

    /// Changes the target of an entry, and of all pointers through it: all to the same object with
    /// the same rights, unless the entry is [private](Heap::private_far_index).
    ///
    /// # Errors
    /// `Dangling`: there is no such entry. `BadName`, `HeapFull`, `Damaged`: it is unchanged.
    pub fn retarget(&mut self, index: u32, entry: &FarEntry) -> Result<()> {
        self.with_room(|heap| heap.retarget(index, entry), "change an entry for another object of")
    }

    /// The far pointers in all described values reached from the roots within this object, by
    /// offset.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn far_pointers(&mut self) -> Result<Vec<FarPointer>> {
        Ok(self.all_pointers()?.all)
    }

    /// Removes entries that no pointer in the heap needs.
    ///
    /// # Errors
    /// `Unsuitable`: there may be unseen pointers, as a root or block is undescribed. `Damaged`.
    pub fn compact_far(&mut self) -> Result<Compacted> {
        const COMPACT: &str = "compact the entries for other objects of";
        let Pointers { all, unseen, beside } = self.all_pointers()?;
        if let Some(why) = unseen {
            return Err(self.error(COMPACT, HeapError::Pinned { why }));
        }
        let needed: HashSet<u32> = all.iter().map(|pointer| pointer.to.index()).chain(beside).collect();
        let removed = self
            .raw()
            .remove_entries(&|index| needed.contains(&index) && !Mutant::FarEntryInUseFreed.is_on());
        let removed = self.done(COMPACT, removed)?;
        let kept = self.far_entries()?.len() as u32;
        Ok(Compacted { kept, removed })
    }

    fn all_pointers(&mut self) -> Result<Pointers> {
        const FIND: &str = "find the far pointers of";
        let findings = self.check();
        self.done(FIND, sound(&findings))?;
        let (roots, blocks) = (self.all_roots()?, self.all_blocks().collect::<Result<_>>()?);
        let found = pointers(Memory::of(self.attached().as_slice()), &roots, blocks);
        self.done(FIND, found)
    }

    fn with_room<R>(
        &self,
        f: impl Fn(&RawHeap) -> std::result::Result<R, HeapError>,
        what: &'static str,
    ) -> Result<R> {
        let mut result = f(self.raw());
        if matches!(result, Err(HeapError::Full { .. })) && self.raw().grows() {
            self.make_room(PAGES * 4096)?;
            result = f(self.raw());
        }
        self.done(what, result)
    }
}

impl ReadHeap {
    /// As [`Heap::far_entry`].
    pub fn far_entry(&self, index: u32) -> Result<FarEntry> {
        let wrong = |error| self.object().error("look up a far pointer of", Cause::Heap(error));
        self.raw().far_entry(index).map_err(wrong)
    }

    /// As [`Heap::far_entries`].
    pub fn far_entries(&self) -> Result<Vec<(u32, FarEntry)>> {
        let wrong = |error| self.object().error("list the entries for other objects of", Cause::Heap(error));
        self.raw().far_entries().map_err(wrong)
    }

    /// As [`Heap::far_pointers`].
    pub fn far_pointers(&self) -> Result<Vec<FarPointer>> {
        let wrong = |error| self.object().error("find the far pointers of", Cause::Heap(error));
        sound(&self.check()).map_err(wrong)?;
        let (roots, blocks) = (self.roots()?, self.blocks().collect::<Result<_>>()?);
        Ok(pointers(Memory::of(self.object().as_slice()), &roots, blocks).map_err(wrong)?.all)
    }
}
