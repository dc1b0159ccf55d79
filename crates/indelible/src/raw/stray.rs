//! Addresses in an object that mean nothing in the next run: of the program, its libraries, its memory, and of other objects.
//!
//! The words of all blocks in use are looked at, or of the whole object if it has no heap, whatever their type: a number that looks
//! like such an address counts as one, and so does what an allocation found in its block and the program never overwrote. An
//! address at an odd place is not seen. Cost: all of these words, once, and the list of the process's mappings.

#![allow(unsafe_code)]

use super::Audit;
use super::registry::{Attachment, find};
use super::surroundings::{Outside, Surroundings};
use crate::error::{Cause, ErrorKind, Result};
use crate::heap::{Block, RawHeap, Root};
use std::fmt;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

/// An address in an object that means nothing in the next run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StrayPointer {
    /// Offset of the word in the object, in bytes.
    pub offset: u64,
    /// The address.
    pub target: u64,
    /// The way to the word by the types of its root, with the name of its type, where these are described: `list.next (*mut
    /// node)`; else the block that it lies in.
    pub place: String,
    /// The kind of memory that the address lies in.
    pub into: Outside,
    /// The name of that: a path, the name of an object, or nothing.
    pub name: String,
}

impl StrayPointer {
    /// Words for what it leads into.
    #[must_use]
    pub fn target_words(&self) -> String {
        let name = &self.name;
        match self.into {
            Outside::Program => format!("the program ({name})"),
            Outside::Library => format!("a library ({name})"),
            Outside::Stack => "the stack".to_owned(),
            Outside::Memory if name.is_empty() => {
                "memory of the process (malloc's, or a thread's stack)".to_owned()
            }
            Outside::Memory => format!("memory of the process ({name})"),
            Outside::Object => format!("object {name:?}"),
        }
    }
}

impl fmt::Display for StrayPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {} leads into {}", self.place, self.offset, self.target_words())
    }
}

/// The addresses in the object at `address` that mean nothing in the next run, in the order in which they lie in it.
///
/// # Errors
/// `NotAttached`; those of opening its heap, if it has one.
///
/// # Safety
/// No thread detaches the object meanwhile.
pub unsafe fn stray_pointers(address: *const u8) -> Result<Vec<StrayPointer>> {
    find("audit", address.addr())?.stray("audit", Audit::Everything)
}

/// Has every psync of the object at `address` fail with [`StrayPointer`](ErrorKind::StrayPointer), before anything of it is durable, while
/// there are such addresses in it. For finding mistakes: each psync then costs as much as [`stray_pointers`].
///
/// # Errors
/// `NotAttached`; `ReadOnly` for an object attached for reading.
///
/// # Safety
/// From now on, no thread detaches the object while another one psyncs it.
pub unsafe fn set_audit(address: *const u8, audit: Audit) -> Result<()> {
    let found = find("audit", address.addr())?;
    if found.core().is_none() {
        return Err(found.error("audit", Cause::ForReading));
    }
    found.set_audit(audit);
    Ok(())
}

impl Attachment {
    /// Fails if psyncs are to be audited and there are such addresses.
    pub(super) fn audited(&self, operation: &'static str) -> Result<()> {
        let audit = self.audit();
        if audit == Audit::Off {
            return Ok(());
        }
        let all = self.stray(operation, audit)?;
        let Some(first) = all.first() else { return Ok(()) };
        let text = match all.len() - 1 {
            0 => first.to_string(),
            more => format!("{first}, and {more} more"),
        };
        Err(self.error(operation, Cause::Stray(text)))
    }

    fn stray(&self, operation: &'static str, audit: Audit) -> Result<Vec<StrayPointer>> {
        let surroundings = Surroundings::of(self.start(), audit == Audit::Everything).map_err(|error| {
            self.error(operation, Cause::Unsupported(format!("cannot read /proc/self/maps: {error}")))
        })?;
        match self.opened(None) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotAHeap => {
                let whole = Block { address: self.start(), size: self.len() };
                return Ok(self.scan(&[whole], &[], &surroundings, "the object"));
            }
            Err(error) => return Err(error),
        }
        let heap = self.heap.read().unwrap_or_else(PoisonError::into_inner);
        let heap_of = |heap: &RawHeap| -> Result<_, crate::heap::HeapError> {
            Ok((heap.blocks().collect::<Result<Vec<_>, _>>()?, heap.roots()?))
        };
        let Some(heap) = heap.as_ref() else { return Ok(Vec::new()) };
        let (blocks, roots) = heap_of(heap).map_err(|error| self.error(operation, Cause::Heap(error)))?;
        Ok(self.scan(&blocks, &roots, &surroundings, "a block"))
    }

    fn scan(
        &self,
        blocks: &[Block],
        roots: &[Root],
        surroundings: &Surroundings,
        what: &str,
    ) -> Vec<StrayPointer> {
        let mut all = Vec::new();
        for block in blocks {
            for at in (block.address..block.address + block.size / 8 * 8).step_by(8) {
                let target = self.word(at);
                let Some((into, name)) = surroundings.find(target) else { continue };
                let (offset, name) = ((at - self.start()) as u64, name.to_owned());
                let place = place(at, roots).unwrap_or_else(|| format!("{what} of {} bytes", block.size));
                all.push(StrayPointer { offset, target, place, into, name });
            }
        }
        all
    }

    /// The word at an address, which another thread may be storing.
    fn word(&self, address: usize) -> u64 {
        debug_assert!(address >= self.start() && address + 8 <= self.start() + self.len());
        let word = self.base.as_ptr().wrapping_add(address - self.start()).cast::<u64>();
        // SAFETY: blocks lie in the object, and begin at multiples of 16; nobody detaches it meanwhile, as callers of the two
        // functions above promise.
        unsafe { AtomicU64::from_ptr(word) }.load(Ordering::Relaxed)
    }
}

/// The way to an address by the type of the root that it lies in.
fn place(address: usize, roots: &[Root]) -> Option<String> {
    let within = |root: &&Root| (root.address..root.address + root.size as usize).contains(&address);
    let root = roots.iter().find(within)?;
    let Some(of) = root.description() else { return Some(format!("{} ({})", root.name, root.type_name)) };
    let (way, name) = of.locate((address - root.address) as u64);
    Some(format!("{}{way} ({name})", root.name))
}
