//! A heap's far pointers, found by its roots' descriptions; unneeded entries.
//!
//! An entry may only go if no pointer needs it. An undescribed block may have an unseen pointer, so
//! all of the heap must be described (`heap/rebase`).

use super::super::audit::{Index, shown, sound};
use super::super::check::HeapFinding;
use super::super::error::HeapError;
use super::super::root::Root;
use super::super::walk::Block;
use crate::far::Far;
use crate::types::walk::{Memory, Visitor, Walk, Walked};
use crate::types::{Description, Path};
use indelible_store::Mutant;
use std::collections::HashSet;

/// A far pointer of a described value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FarPointer {
    /// Its offset in the object, in bytes.
    pub offset: u64,
    /// Its path: `list.next`.
    pub path: String,
    /// The pointer.
    pub to: Far<()>,
}

/// Result of [`Heap::compact_far`](crate::Heap::compact_far).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Entries left.
    pub kept: u32,
    /// Entries removed.
    pub removed: u32,
}

struct Seen {
    base: u64,
    pointers: Vec<FarPointer>,
    opaque: Option<String>,
    findings: Vec<HeapFinding>,
}

impl Visitor for Seen {
    fn far(&mut self, at: u64, word: u64, path: &Path<'_, '_>) {
        let to = Far::from_word(word);
        self.pointers.push(FarPointer { offset: at.wrapping_sub(self.base), path: shown(path), to });
    }

    fn opaque(&mut self, _: u64, len: u64, name: &str, path: &Path<'_, '_>) {
        if len > 0 {
            self.opaque.get_or_insert_with(|| format!("{} is a {name}", shown(path)));
        }
    }

    fn wrong(&mut self, address: u64, what: &str, path: &Path<'_, '_>) {
        let offset = address.wrapping_sub(self.base);
        self.findings.push(HeapFinding { offset, what: format!("{}: {what}", shown(path)) });
    }
}

pub(super) struct Pointers {
    pub(super) all: Vec<FarPointer>,
    pub(super) unseen: Option<String>,
    /// In words beside described values: of an array only the first value is described.
    pub(super) beside: HashSet<u32>,
}

pub(super) fn pointers(
    memory: Memory<'_>,
    roots: &[Root],
    blocks: Vec<Block>,
) -> Result<Pointers, HeapError> {
    let index = Index { all: blocks };
    let described: Vec<Option<Description>> = roots.iter().map(Root::description).collect();
    let (live, around) = (|address: u64| index.at(address), |address: u64| index.bounds(address));
    let seen = Seen { base: memory.base, pointers: Vec::new(), opaque: None, findings: Vec::new() };
    let mut walk = Walk::new(memory, &live, seen).following(&around);
    for (root, of) in roots.iter().zip(&described) {
        if let Some(of) = of {
            walk.root(&root.name, of, root.address as u64, root.size);
        }
    }
    let Walked { visitor: seen, owned, followed } = walk.finish();
    sound(&seen.findings)?;
    let mut reached = vec![false; index.all.len()];
    let starts = owned.keys().copied().chain(followed.starts());
    starts.filter_map(|address| index.around(address)).for_each(|number| reached[number] = true);
    let undescribed = roots.iter().zip(&described).find(|(_, of)| of.is_none());
    let missed = index.all.iter().zip(&reached).find(|(_, reached)| !**reached);
    let unseen = match (undescribed, missed) {
        (Some((root, _)), _) => Some(format!("root {:?} has no description", root.name)),
        (None, Some((block, _))) => Some(format!(
            "no described value leads to the block of {} bytes at offset {:#x}",
            block.size,
            block.address as u64 - memory.base
        )),
        (None, None) => seen.opaque,
    };
    let words = index.rest(&owned, &followed, roots).into_iter().flat_map(|(from, to)| {
        let from = from.next_multiple_of(8);
        memory.get(from, to.saturating_sub(from)).unwrap_or_default().as_chunks::<8>().0
    });
    let beside = match Mutant::FarBesideForgotten.is_on() {
        true => HashSet::new(),
        false => words.map(|word| Far::<()>::from_word(u64::from_le_bytes(*word)).index()).collect(),
    };
    let mut all = seen.pointers;
    all.sort_by_key(|pointer| pointer.offset);
    all.dedup_by_key(|pointer| pointer.offset);
    Ok(Pointers { all, unseen, beside })
}
