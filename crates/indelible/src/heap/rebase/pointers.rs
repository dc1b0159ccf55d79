//! All addresses in a heap, found by its roots' descriptions; or why they may not be all. A heap is
//! refused if other live bytes have words that would be addresses in the object, or if no described
//! value leads to some block.

use super::super::audit::{Index, shown, sound};
use super::super::check::HeapFinding;
use super::super::error::HeapError;
use super::super::root::Root;
use super::super::walk::Block;
use super::image::Image;
use crate::types::walk::{Memory, Visitor, Walk, Walked};
use crate::types::{Description, Path};

struct Seen<'m> {
    memory: Memory<'m>,
    links: Vec<u64>,
    pinned: Option<String>,
    findings: Vec<HeapFinding>,
}

impl Seen<'_> {
    fn pin(&mut self, why: impl FnOnce() -> String) {
        self.pinned.get_or_insert_with(why);
    }
}

impl Visitor for Seen<'_> {
    const PLAIN: bool = true;

    fn link(&mut self, at: u64) {
        self.links.push(at);
    }

    fn pointer(&mut self, _: u64, target: u64, path: &Path<'_, '_>) {
        if self.memory.get(target, 1).is_none() {
            self.pin(|| format!("the pointer {} leads out of the object, to {target:#x}", shown(path)));
        }
    }

    fn plain(&mut self, address: u64, len: u64, path: &Path<'_, '_>) {
        if let Some(word) = address_in(self.memory, address, len) {
            self.pin(|| {
                format!(
                    "{} has {word:#x}, an address in the object, and is no pointer by its type",
                    shown(path)
                )
            });
        }
    }

    fn opaque(&mut self, _: u64, len: u64, name: &str, path: &Path<'_, '_>) {
        if len > 0 {
            self.pin(|| format!("{} is a {name}, whose content is not described", shown(path)));
        }
    }

    fn wrong(&mut self, address: u64, what: &str, path: &Path<'_, '_>) {
        let offset = address.wrapping_sub(self.memory.base);
        self.findings.push(HeapFinding { offset, what: format!("{}: {what}", shown(path)) });
    }
}

fn address_in(memory: Memory<'_>, address: u64, len: u64) -> Option<u64> {
    let skipped = address.next_multiple_of(8).wrapping_sub(address);
    let bytes = memory.get(address.wrapping_add(skipped), len.checked_sub(skipped)?)?;
    let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    words.into_iter().find(|word| memory.get(*word, 1).is_some())
}

fn pinned<T>(why: String) -> Result<T, HeapError> {
    Err(HeapError::Pinned { why })
}

/// Ascending.
pub(super) fn find(image: &Image, base: u64, size: u64) -> Result<Vec<u64>, HeapError> {
    image.with_heap(size, |heap, mapped| {
        sound(&heap.check())?;
        let moved = |address: usize| base as usize + (address - mapped);
        let mut roots = heap.roots()?;
        roots.iter_mut().for_each(|root| root.address = moved(root.address));
        let blocks: Result<Vec<Block>, HeapError> = heap
            .blocks()
            .map(|block| block.map(|block| Block { address: moved(block.address), ..block }))
            .collect();
        let memory = Memory { base, bytes: &image.bytes()[..size as usize] };
        links(memory, &roots, &Index { all: blocks? })
    })
}

fn links(memory: Memory<'_>, roots: &[Root], index: &Index) -> Result<Vec<u64>, HeapError> {
    let described: Vec<Description> = roots.iter().map(described).collect::<Result<_, _>>()?;
    let (live, around) = (|address: u64| index.at(address), |address: u64| index.bounds(address));
    let seen = Seen { memory, links: Vec::new(), pinned: None, findings: Vec::new() };
    let mut walk = Walk::new(memory, &live, seen).following(&around);
    for (root, of) in roots.iter().zip(&described) {
        walk.root(&root.name, of, root.address as u64, root.size);
    }
    let Walked { visitor: seen, owned, followed } = walk.finish();
    sound(&seen.findings)?;
    if let Some(why) = seen.pinned {
        return pinned(why);
    }
    let mut reached = vec![false; index.all.len()];
    let starts = owned.keys().copied().chain(followed.starts());
    starts.filter_map(|address| index.around(address)).for_each(|number| reached[number] = true);
    let missed: Vec<&Block> =
        index.all.iter().zip(&reached).filter(|(_, reached)| !**reached).map(|(block, _)| block).collect();
    if let [first, others @ ..] = &missed[..] {
        let (offset, size, more) = (first.address as u64 - memory.base, first.size, others.len());
        return pinned(format!(
            "no described value leads to the block of {size} bytes at offset {offset:#x}, and to {more} more"
        ));
    }
    // Bytes of the same blocks behind and between values, where a C program may have more values.
    for (from, to) in index.rest(&owned, &followed, roots) {
        if let Some(word) = address_in(memory, from, to.saturating_sub(from)) {
            let offset = from - memory.base;
            return pinned(format!(
                "a block has {word:#x}, an address in the object, behind the described value that ends at offset {offset:#x}"
            ));
        }
    }
    let mut links = seen.links;
    links.sort_unstable();
    links.dedup();
    Ok(links)
}

fn described(root: &Root) -> Result<Description, HeapError> {
    let named = |why: &str| format!("root {:?} of type {:?}: {why}", root.name, root.type_name);
    let of = root.read_description().or_else(|why| pinned(named(&format!("no description: {why}"))))?;
    match of.keys_with_pointers() {
        Some(key) => pinned(named(&format!("hashes of keys of type {key} may depend on addresses in them"))),
        None => Ok(of),
    }
}
