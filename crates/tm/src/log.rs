//! Bytes as they were, of memory that a block changes in place: what GCC's code logs, because no other thread knows it, and what an irrevocable block stores where an
//! inner block may be cancelled.

use crate::mutant::Mutant;

#[derive(Default)]
pub(crate) struct Log {
    entries: Vec<(usize, usize)>,
    bytes: Vec<u8>,
}

impl Log {
    /// How much there is.
    pub(crate) fn mark(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
    }

    /// Keeps bytes as they are.
    ///
    /// # Safety
    /// They may be read, and stored to until the block has ended.
    pub(crate) unsafe fn keep(&mut self, address: usize, len: usize) {
        self.entries.push((address, len));
        // SAFETY: the caller's promise.
        let now =
            unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(address), len) };
        self.bytes.extend_from_slice(now);
    }

    /// Has all as it was at a mark, the last first; but for what lies on the stack between `here` and `stack`, in frames that are no more.
    ///
    /// # Safety
    /// As for `keep`.
    pub(crate) unsafe fn undo(&mut self, mark: usize, here: usize, stack: usize) {
        while self.entries.len() > mark {
            let Some((address, len)) = self.entries.pop() else { return };
            let at = self.bytes.len() - len;
            let gone = address.wrapping_sub(here) < stack.wrapping_sub(here);
            if !gone && !Mutant::PlainStoresKept.is_on() {
                let to = std::ptr::with_exposed_provenance_mut::<u8>(address);
                // SAFETY: the promise that came with the bytes.
                unsafe { to.copy_from_nonoverlapping(self.bytes[at..].as_ptr(), len) };
            }
            self.bytes.truncate(at);
        }
    }
}
