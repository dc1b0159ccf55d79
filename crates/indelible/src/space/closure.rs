use super::attached::{Attached, Content, shown};
use super::{FOLLOW, Space};
use crate::error::{Error, FarError, Result};
use crate::far::FarEntry;
use crate::heap::FarPointer;
use crate::pool::{Pool, Stat};
use indelible_store::Mutant;
use indelible_store::table::id_name;
use std::collections::{BTreeMap, HashSet, VecDeque};

/// A reached object.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reachable {
    /// Its ID.
    pub id: [u8; 16],
    /// Its name.
    pub name: String,
    /// Its pool.
    pub pool: Pool,
}

/// A dangling entry or pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dangling {
    /// The entry's number and target; `None`: a pointer within its object, or of an unused entry.
    pub entry: Option<(u32, FarEntry)>,
    /// The pointer, if one of a described value.
    pub pointer: Option<FarPointer>,
    /// The reason.
    pub what: String,
}

impl Attached {
    fn entries(&self) -> Result<Vec<(u32, FarEntry)>> {
        match &self.content {
            Content::Writing { heap, .. } => heap.far_entries(),
            Content::Reading(heap) => heap.far_entries(),
            Content::Bare(_) => Ok(Vec::new()),
        }
    }
}

impl Space {
    /// The objects with these IDs, and, with `closed`, all objects reachable by their entries: each
    /// once, in order of discovery. All stay attached for reading, unless the space has them.
    ///
    /// # Errors
    /// `Dangling`: an object is in none of the pools. Those of [`get`](Space::get).
    pub fn reachable(&self, ids: &[[u8; 16]], closed: bool) -> Result<Vec<Reachable>> {
        let (mut reached, mut seen) = (Vec::new(), HashSet::new());
        let mut pending: VecDeque<[u8; 16]> = ids.iter().copied().collect();
        while let Some(id) = pending.pop_front() {
            if !seen.insert(id) {
                continue;
            }
            let missing =
                || Error::new("reach", FarError::NoObject { target: shown(&id), pools: self.pools.len() });
            let (pool, stat) = self.find(&id)?.ok_or_else(missing)?;
            reached.push(Reachable { id, name: stat.name, pool });
            if !closed || (Mutant::FarClosureShort.is_on() && !ids.contains(&id)) {
                continue;
            }
            let (_, attached) = self.reach(&id)?.ok_or_else(missing)?;
            for (_, entry) in attached.entries()? {
                let target = self.resolve(attached, &entry.target)?;
                if self.find(&target)?.is_none() {
                    let (target, pools) = (entry.target.to_string(), self.pools.len());
                    return Err(attached.error(FOLLOW, FarError::NoObject { target, pools }));
                }
                pending.push_back(target);
            }
        }
        Ok(reached)
    }

    fn find(&self, id: &[u8; 16]) -> Result<Option<(Pool, Stat)>> {
        for pool in &self.pools {
            match pool.stat(&id_name(id)) {
                Ok(stat) => return Ok(Some((pool.clone(), stat))),
                Err(error) if super::is_elsewhere(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// An object's entries without a target in the pools, and its described values' pointers beyond
    /// an object or through unused entries. Attaches only this object, for reading, unless the
    /// space has it.
    ///
    /// # Errors
    /// `Dangling`: no pool has the object itself. `Damaged`: its heap is.
    pub fn dangling(&mut self, id: &[u8; 16]) -> Result<Vec<Dangling>> {
        self.attach_read(id)?;
        let pointers = match &mut self.here_mut(id, "check")?.content {
            Content::Writing { heap, .. } => heap.far_pointers()?,
            Content::Reading(heap) => heap.far_pointers()?,
            Content::Bare(_) => return Ok(Vec::new()),
        };
        let attached = self.here(id, "check")?;
        let own = attached.now().len() as u64;
        let (mut sizes, mut dangling) = (BTreeMap::new(), Vec::new());
        for (index, entry) in attached.entries()? {
            match self.size_of(attached, &entry) {
                Ok(size) => drop(sizes.insert(index, (entry, Some(size)))),
                Err(error) => {
                    let what = error.to_string();
                    dangling.push(Dangling { entry: Some((index, entry.clone())), pointer: None, what });
                    sizes.insert(index, (entry, None));
                }
            }
        }
        for pointer in pointers {
            let (index, offset) = (pointer.to.index(), pointer.to.offset());
            let (entry, what) = match (index, sizes.get(&index)) {
                (0, _) if (1..own).contains(&offset) => continue,
                (0, _) => (None, format!("it leads to byte {offset:#x}, and the object has {own:#x}")),
                (_, None) => (None, format!("its entry {index} is not in use")),
                (_, Some((entry, Some(size)))) if offset >= *size || offset == 0 => {
                    let what =
                        format!("it leads to byte {offset:#x} of {}, which has {size:#x}", entry.target);
                    (Some((index, entry.clone())), what)
                }
                (_, Some(_)) => continue,
            };
            dangling.push(Dangling { entry, pointer: Some(pointer), what });
        }
        Ok(dangling)
    }

    fn size_of(&self, home: &Attached, entry: &FarEntry) -> Result<u64> {
        let id = self.resolve(home, &entry.target)?;
        let missing = || FarError::NoObject { target: entry.target.to_string(), pools: self.pools.len() };
        Ok(self.find(&id)?.ok_or_else(|| home.error(FOLLOW, missing()))?.1.size)
    }
}
