//! Blocks and roots in a transaction that its caller, C, runs again: by address.

use super::home::Home;
use super::open::OpenTx;
use crate::error::{Cause, HeapError, Result};
use crate::heap::TypeInfo;
use crate::heap::words::Words;
use indelible_store::Mutant;
use std::sync::atomic::Ordering;

const MOST_ALIGN: usize = 4096;

impl Home {
    pub(crate) fn begin_with(&self, size: usize) -> Result<(), Cause> {
        let has = self.attached.size();
        if has < size {
            return Err(Cause::RootTooLarge { needed: size, size: has });
        }
        self.value.fetch_max(size, Ordering::AcqRel);
        Ok(())
    }

    fn expect_no_value(&self) -> Result<(), Cause> {
        match self.value.load(Ordering::Acquire) {
            0 => Ok(()),
            _ if Mutant::HeapMadeUnasked.is_on() => Ok(()),
            size => Err(HeapError::IsValue { size }.into()),
        }
    }

    fn expect_heap(&self, words: &mut impl Words) -> Result<(), Cause> {
        self.expect_no_value()?;
        self.words.expect_made(words)
    }

    pub(crate) fn alloc(&self, words: &mut impl Words, size: usize, align: usize) -> Result<u64, Cause> {
        self.expect_heap(words)?;
        if !align.is_power_of_two() || align > MOST_ALIGN {
            let why = "the alignment is to be a power of two, 4096 at most";
            return Err(HeapError::Alignment { align, why }.into());
        }
        let offset = self.words.allocate(words, size, align)?;
        Ok(self.words.address_of(offset))
    }

    pub(crate) fn free(&self, words: &mut impl Words, block: usize) -> Result<(), Cause> {
        self.expect_heap(words)?;
        self.words.free(words, block as u64)
    }

    pub(crate) fn root(
        &self,
        words: &mut impl Words,
        name: &str,
        (size, align): (usize, usize),
        ty: &TypeInfo<'_>,
    ) -> Result<u64, Cause> {
        self.expect_no_value()?;
        self.words.make(words)?;
        if let Some(root) = self.words.root(words, name, ty)? {
            return Ok(root.address as u64);
        }
        let block = self.alloc(words, size.next_multiple_of(8), align)?;
        let first = block - self.words.address_of(0);
        (0..size as u64).step_by(8).try_for_each(|at| words.store(first + at, 0))?;
        self.words.create_root(words, name, (block, size as u64), ty)?;
        Ok(block)
    }
}

impl OpenTx {
    /// `Conflict`: the transaction must be run again, perhaps after growth. `HeapFull`: it does not
    /// grow; the transaction may go on. `NotAHeap`: no root has made a heap of it.
    pub(crate) fn alloc(&mut self, beside: usize, size: usize, align: usize) -> Result<u64> {
        self.in_heap(beside, "allocate in", |home, words| home.alloc(words, size, align))
    }

    pub(crate) fn free(&mut self, block: usize) -> Result<()> {
        self.in_heap(block, "free a block of", |home, words| home.free(words, block))
    }

    /// `Exists`: the object has other contents; `NotAHeap`: it was attached as a value; `RootType`:
    /// it is of another type.
    pub(crate) fn root(
        &mut self,
        beside: usize,
        name: &str,
        size_and_align: (usize, usize),
        ty: &TypeInfo<'_>,
    ) -> Result<u64> {
        self.in_heap(beside, "find a root in", |home, words| home.root(words, name, size_and_align, ty))
    }
}
