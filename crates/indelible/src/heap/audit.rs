//! Reachability of a heap's blocks, by its roots' descriptions: leaks, and dangling addresses.
//!
//! Undescribed blocks, and everything if a value is damaged, are searched word by word for blocks'
//! addresses. So a leak may be missed, but no block called leaked is referred to, except by an
//! address kept as a number of a described type.

use super::check::HeapFinding;
use super::error::HeapError;
use super::read::ReadHeap;
use super::root::Root;
use super::walk::Block;
use super::writer::Heap;
use crate::error::{self, Cause};
use crate::types::far::own;
use crate::types::walk::{Memory, Visitor, Walk, Walked};
use crate::types::{Description, Path, Ranges, truncate};
use std::collections::HashMap;

/// Result of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapAudit {
    /// Roots by name.
    pub roots: Vec<AuditedRoot>,
    /// Blocks in use.
    pub blocks: u64,
    /// Blocks that described values own.
    pub owned: u64,
    /// Others that something in the heap refers to.
    pub referred: u64,
    /// Blocks without references, in address order.
    pub leaks: Vec<Block>,
    /// Raw pointers of described values to no block in use.
    pub pointers: Vec<AuditedPointer>,
    /// Invalid values, and blocks with wrong owners or counts: the first 10,000, then a count.
    pub findings: Vec<HeapFinding>,
}

/// A root in an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditedRoot {
    /// Its name.
    pub name: String,
    /// Name of its type.
    pub type_name: String,
    /// Whether its type has a usable description.
    pub described: bool,
    /// If not, why: the first word that describes no type, or the type's fault.
    pub why_not: Option<String>,
}

/// A raw pointer to no block in use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditedPointer {
    /// Offset of the pointer in the object.
    pub offset: u64,
    /// Its path: `list[3].next`.
    pub path: String,
    /// Its address.
    pub target: u64,
    /// Whether it lies in the object's free memory.
    pub inside: bool,
}

pub(super) struct Index {
    pub(super) all: Vec<Block>,
}

impl Index {
    pub(super) fn around(&self, address: u64) -> Option<usize> {
        let after = self.all.partition_point(|block| block.address as u64 <= address);
        let index = after.checked_sub(1)?;
        let block = self.all[index];
        (address - (block.address as u64) < block.size as u64).then_some(index)
    }

    pub(super) fn bounds(&self, address: u64) -> Option<(u64, u64)> {
        let block = self.all[self.around(address)?];
        Some((block.address as u64, block.size as u64))
    }

    pub(super) fn at(&self, address: u64) -> Option<u64> {
        let index = self.all.binary_search_by_key(&address, |block| block.address as u64).ok()?;
        Some(self.all[index].size as u64)
    }

    pub(super) fn rest(
        &self,
        owned: &HashMap<u64, u64>,
        followed: &Ranges,
        roots: &[Root],
    ) -> Vec<(u64, u64)> {
        let is_owned = |start: u64| self.bounds(start).is_some_and(|(block, _)| owned.contains_key(&block));
        let mut rest: Vec<(u64, u64)> = Vec::new();
        for (start, len) in
            followed.starts().filter(|start| !is_owned(*start)).filter_map(|at| self.bounds(at))
        {
            rest.extend(followed.gaps(start, start + len));
        }
        for root in roots {
            let (start, end) = (root.address as u64, root.address as u64 + root.size);
            rest.extend(self.bounds(start).map(|(block, len)| (end, block + len)));
        }
        rest
    }
}

const FINDINGS: usize = 10_000;
const SHOWN: usize = 1024;

pub(super) fn shown(path: &Path<'_, '_>) -> String {
    let mut text = path.to_string();
    truncate(&mut text, SHOWN);
    text.shrink_to_fit();
    text
}

struct Seen<'a> {
    index: &'a Index,
    memory: Memory<'a>,
    findings: Vec<HeapFinding>,
    more: u64,
    pointers: Vec<AuditedPointer>,
    referred: Vec<usize>,
    opaque: Vec<(u64, u64)>,
    lasting: Vec<HeapFinding>,
}

impl Seen<'_> {
    fn is_complete(&self) -> bool {
        self.findings.is_empty() && self.referred.is_empty() && self.opaque.is_empty()
    }
}

impl Visitor for Seen<'_> {
    fn pointer(&mut self, at: u64, target: u64, path: &Path<'_, '_>) {
        match self.index.around(target) {
            Some(index) => self.referred.push(index),
            None => self.pointers.push(AuditedPointer {
                offset: at.wrapping_sub(self.memory.base),
                path: shown(path),
                target,
                inside: self.memory.get(target, 1).is_some(),
            }),
        }
    }

    fn opaque(&mut self, address: u64, len: u64, _: &str, _: &Path<'_, '_>) {
        self.opaque.push((address, len));
    }

    fn shared(&mut self, address: u64, counted: u64, found: u64) {
        if found < counted && self.lasting.len() < FINDINGS {
            let offset = address.wrapping_sub(self.memory.base);
            let what =
                format!("a block counts {counted} owners, and {found} were found: it will never be freed");
            self.lasting.push(HeapFinding { offset, what });
        }
    }

    fn wrong(&mut self, address: u64, what: &str, path: &Path<'_, '_>) {
        let offset = address.wrapping_sub(self.memory.base);
        match self.findings.len() < FINDINGS {
            true => self.findings.push(HeapFinding { offset, what: format!("{}: {what}", shown(path)) }),
            false => self.more += 1,
        }
    }
}

struct Words<'a> {
    index: &'a Index,
    memory: Memory<'a>,
    reached: Vec<bool>,
    pending: Vec<usize>,
}

impl Words<'_> {
    fn refer(&mut self, index: usize) {
        if !std::mem::replace(&mut self.reached[index], true) {
            self.pending.push(index);
        }
    }

    fn scan(&mut self, address: u64, len: u64) {
        let skipped = address.next_multiple_of(8) - address;
        let (address, len) = (address + skipped, len.saturating_sub(skipped));
        for word in self.memory.get(address, len).unwrap_or_default().as_chunks::<8>().0 {
            if let Some(index) = self.index.around(u64::from_le_bytes(*word)) {
                self.refer(index);
            }
        }
    }

    fn scan_far(&mut self, address: u64, len: u64) {
        for word in self.memory.get(address, len).unwrap_or_default().as_chunks::<8>().0 {
            let target = own(u64::from_le_bytes(*word)).map(|offset| self.memory.base.wrapping_add(offset));
            if let Some(index) = target.and_then(|target| self.index.around(target)) {
                self.refer(index);
            }
        }
    }

    fn around(&mut self, values: &Ranges) {
        for start in values.starts() {
            let Some(index) = self.index.around(start) else { continue };
            if !std::mem::replace(&mut self.reached[index], true) {
                let Block { address, size } = self.index.all[index];
                for (from, to) in values.gaps(address as u64, (address + size) as u64) {
                    let from = from & !7;
                    self.scan(from, to - from);
                    self.scan_far(from, to - from);
                }
            }
        }
    }

    fn finish(mut self) -> Vec<bool> {
        while let Some(index) = self.pending.pop() {
            let Block { address, size } = self.index.all[index];
            self.scan(address as u64, size as u64);
        }
        self.reached
    }
}

pub(super) fn sound(findings: &[HeapFinding]) -> Result<(), HeapError> {
    match findings {
        [] => Ok(()),
        [HeapFinding { offset, what }, others @ ..] => {
            Err(HeapError::Findings { offset: *offset, what: what.clone(), more: others.len() })
        }
    }
}

const AUDIT: &str = "audit the heap of";

impl Heap {
    /// Audits the heap by its roots' descriptions: blocks without references, dangling raw
    /// pointers, damaged values. Undescribed values are searched for addresses of blocks. Costs
    /// time and memory per block.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// use indelible::Heap;
    /// use indelible::collections::PVec;
    ///
    /// let mut heap = Heap::format(pool.create_attached("o", 1 << 20)?)?;
    /// heap.root_or_default::<PVec<u64>>("list")?.push(7);
    /// let lost = heap.malloc(100)?; // and its address is lost
    ///
    /// let audit = heap.audit()?;
    /// assert_eq!((audit.blocks, audit.leaks.len()), (3, 1)); // the root, its elements, and this:
    /// assert_eq!(audit.leaks[0].address, lost.as_ptr().addr());
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Damaged`, with the first finding of [`check`](Heap::check).
    pub fn audit(&mut self) -> error::Result<HeapAudit> {
        let findings = self.check();
        sound(&findings).map_err(|error| self.attached().error(AUDIT, Cause::Heap(error)))?;
        let (roots, blocks) = (self.all_roots()?, self.all_blocks().collect::<error::Result<_>>()?);
        Ok(audit(Memory::of(self.attached().as_slice()), roots, blocks))
    }
}

impl ReadHeap {
    /// As [`Heap::audit`].
    ///
    /// # Errors
    /// `Damaged`, with the first finding of [`check`](ReadHeap::check).
    pub fn audit(&self) -> error::Result<HeapAudit> {
        sound(&self.check()).map_err(|error| self.object().error(AUDIT, Cause::Heap(error)))?;
        let (roots, blocks) = (self.roots()?, self.blocks().collect::<error::Result<_>>()?);
        Ok(audit(Memory::of(self.object().as_slice()), roots, blocks))
    }
}

fn audit(memory: Memory<'_>, roots: Vec<Root>, blocks: Vec<Block>) -> HeapAudit {
    let index = Index { all: blocks };
    let described: Vec<Result<Description, String>> = roots.iter().map(Root::read_description).collect();
    let (live, around) = (|address: u64| index.at(address), |address: u64| index.bounds(address));
    let seen = Seen {
        index: &index,
        memory,
        findings: Vec::new(),
        more: 0,
        pointers: Vec::new(),
        referred: Vec::new(),
        opaque: Vec::new(),
        lasting: Vec::new(),
    };
    let mut walk = Walk::new(memory, &live, seen).following(&around);
    for (root, of) in roots.iter().zip(&described) {
        if let Ok(of) = of {
            walk.root(&root.name, of, root.address as u64, root.size);
        }
    }
    let Walked { visitor: mut seen, owned, followed } = walk.finish();
    let mut reached = vec![false; index.all.len()];
    owned.keys().filter_map(|address| index.around(*address)).for_each(|index| reached[index] = true);
    let mut words = Words { index: &index, memory, reached, pending: Vec::new() };
    if !seen.findings.is_empty() {
        let values = owned.keys().copied().chain(followed.starts());
        values.filter_map(|address| index.around(address)).for_each(|index| words.pending.push(index));
    }
    words.around(&followed);
    seen.referred.iter().for_each(|index| words.refer(*index));
    seen.opaque.iter().for_each(|(address, len)| words.scan(*address, *len));
    for (root, _) in roots.iter().zip(&described).filter(|(_, of)| of.is_err()) {
        match index.around(root.address as u64) {
            Some(index) => words.refer(index),
            None => words.scan(root.address as u64, root.size),
        }
    }
    let reached = words.finish();
    let leaks: Vec<Block> =
        index.all.iter().zip(&reached).filter(|(_, reached)| !**reached).map(|(block, _)| *block).collect();
    let audited = |(root, of): (Root, Result<Description, String>)| AuditedRoot {
        name: root.name,
        type_name: root.type_name,
        described: of.is_ok(),
        why_not: of.err(),
    };
    let complete = seen.is_complete() && described.iter().all(Result::is_ok);
    let mut findings = seen.findings;
    if complete {
        seen.lasting.sort_unstable_by_key(|finding| finding.offset);
        findings.append(&mut seen.lasting);
    }
    if seen.more > 0 {
        findings
            .push(HeapFinding { offset: 0, what: format!("{} more findings of the same audit", seen.more) });
    }
    HeapAudit {
        blocks: index.all.len() as u64,
        owned: owned.len() as u64,
        referred: (index.all.len() - owned.len() - leaks.len()) as u64,
        leaks,
        roots: roots.into_iter().zip(described).map(audited).collect(),
        pointers: seen.pointers,
        findings,
    }
}
