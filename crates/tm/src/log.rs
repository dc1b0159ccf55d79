//! Former bytes of memory that a block changes in place without its transaction: those that GCC's
//! code logs, and stores of an irrevocable block with cancellable inner blocks.

use crate::entry;
use crate::mutant::Mutant;
use std::ops::Range;

/// Bytes below the stack pointer for the undoing functions.
const BELOW: usize = 512;
/// In place of an address: nothing to undo.
const FREED: usize = 0;

/// The stack that a block's frames had and this library's calls now have: from below the stack
/// pointer to `end`.
#[inline(always)]
pub(crate) fn frames(end: usize) -> Range<usize> {
    let here = entry::stack();
    here - BELOW..end.max(here)
}

#[derive(Default)]
pub(crate) struct Log {
    entries: Vec<(usize, usize)>,
    bytes: Vec<u8>,
}

impl Log {
    pub(crate) fn mark(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
    }

    /// # Safety
    /// They may be read, and stored to until the block has ended.
    pub(crate) unsafe fn keep(&mut self, address: usize, len: usize) {
        self.entries.push((address, len));
        // SAFETY: the caller's promise.
        let now =
            unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(address), len) };
        self.bytes.extend_from_slice(now);
    }

    /// The last first, except on the stack up to `stack`, where frames of the block were and this
    /// function's are.
    ///
    /// # Safety
    /// As for `keep`.
    #[inline(never)]
    pub(crate) unsafe fn undo(&mut self, mark: usize, stack: usize) {
        while self.entries.len() > mark {
            let Some((address, len)) = self.entries.pop() else { return };
            let at = self.bytes.len() - len;
            let dead = if Mutant::DeadFramesWritten.is_on() { 0..0 } else { frames(stack) };
            // A frame is either, but what is logged need not be one frame's.
            let (below, above) =
                (dead.start.clamp(address, address + len), dead.end.clamp(address, address + len));
            for part in [address..below, above..address + len] {
                if address == FREED || Mutant::PlainStoresKept.is_on() {
                    continue;
                }
                let to = std::ptr::with_exposed_provenance_mut::<u8>(part.start);
                let from = &self.bytes[at + (part.start - address)..][..part.len()];
                // SAFETY: the promise that came with the bytes, of which none are this function's.
                unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
            }
            self.bytes.truncate(at);
        }
    }

    pub(crate) fn forget(&mut self, range: &Range<usize>) {
        for (address, _) in self.entries.iter_mut().filter(|(address, _)| range.contains(address)) {
            *address = FREED;
        }
    }
}
