//! Heaps of transactional objects, for blocks that GCC compiles: libpmo-tm calls these functions
//! with the block's words.

use crate::args::{borrow, text};
use crate::described::Described;
use crate::guard::{Result, guarded};
use crate::tm_interface::{Answer, CONFLICT, DONE, FAILED, FULL, Words};
use crate::transactions::ALIGN;
use crate::types::Type;
use indelible::ErrorKind;
use indelible::raw::blocks::{self, BlockWords, Step};
use std::ffi::c_char;

pub(crate) struct OfBlock<'a>(pub(crate) &'a Words);

impl BlockWords for OfBlock<'_> {
    fn load(&mut self, address: usize) -> Option<u64> {
        let mut value = 0;
        ((self.0.load)(address, &mut value) == 0).then_some(value)
    }

    fn store(&mut self, address: usize, value: u64) -> Option<()> {
        ((self.0.store)(address, value) == 0).then_some(())
    }

    fn store_byte(&mut self, address: usize, value: u8) -> Option<()> {
        ((self.0.store_byte)(address, value) == 0).then_some(())
    }

    fn peek(&self, address: usize) -> u64 {
        (self.0.peek)(address)
    }
}

const fn answer(outcome: u32, value: usize) -> Answer {
    Answer { outcome, reserved: 0, value }
}

fn step(
    words: *const Words,
    body: impl FnOnce(&mut OfBlock<'_>) -> Result<indelible::Result<Step>>,
) -> Answer {
    guarded(answer(FAILED, 0), || {
        // SAFETY: libpmo-tm gives the words of this thread's block, or NULL.
        let words = unsafe { borrow(words, "block that runs on this thread") }?;
        match body(&mut OfBlock(words))? {
            Ok(Step::Done(address)) => Ok(answer(DONE, address)),
            Ok(Step::Full(needed)) => Ok(answer(FULL, needed)),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(answer(CONFLICT, 0)),
            Err(error) => Err(error.into()),
        }
    })
}

pub(crate) extern "C" fn allocate(words: *const Words, beside: usize, size: usize) -> Answer {
    step(words, |words| Ok(blocks::alloc(words, beside, size, ALIGN)))
}

pub(crate) extern "C" fn free(words: *const Words, block: usize) -> Answer {
    step(words, |words| Ok(blocks::free(words, block)))
}

pub(crate) extern "C" fn root(words: *const Words, beside: usize, name: *const c_char, ty: usize) -> Answer {
    step(words, |words| {
        let ty: *const Type = std::ptr::with_exposed_provenance(ty);
        // SAFETY: the program's promise to libpmo-tm.
        let (name, ty) = unsafe { (text(name, "name")?, Described::of(ty)?) };
        Ok(blocks::root(words, beside, name, (ty.size, ty.align.max(ALIGN)), &ty.info()))
    })
}

pub(crate) extern "C" fn grow(address: usize, needed: usize) -> usize {
    let before = blocks::size(address).unwrap_or(0);
    guarded(before, || Ok(blocks::grow(address, needed)?))
}
