//! The process's words: only the bytes that a block changed are stored, as code outside of blocks
//! may share the others.

use crate::mutant::Mutant;
use crate::objects::{self, Short, Told};
use indelible_stm::pairs;
use indelible_stm::{Damaged, Direct, Memory, Receipt, Sink, Stm, WriteSet};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Words;

pub(crate) type Tm = Stm<Words, Commits>;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Commits;

impl Sink for Commits {
    type Own = Told;
    type Error = Short;

    #[inline]
    fn commit(&self, told: &mut Told, _: u64, writes: &WriteSet) -> Result<(), Short> {
        if objects::any() {
            *told = objects::tell(writes)?;
        }
        Ok(())
    }

    #[inline]
    fn stored(&self, told: &mut Told, _: u64) {
        objects::stored(*told);
    }

    #[inline]
    fn acknowledge(&self, told: &mut Told, _: Receipt) -> Result<(), Short> {
        objects::wait(std::mem::take(told));
        Ok(())
    }
}

// SAFETY: loads as `Direct`; stores by atomics of those bytes alone.
unsafe impl Memory for Words {
    /// Blocks call libpmo, which has its own transactions. In a program with both static libraries,
    /// these share thread-local variables.
    const BESIDE_OTHERS: bool = true;

    #[inline]
    unsafe fn load(&self, address: usize) -> Result<u64, Damaged> {
        // SAFETY: the caller's promise.
        unsafe { if objects::may_have(address) { load_in_object(address) } else { Direct.load(address) } }
    }

    #[inline]
    unsafe fn store(&self, address: usize, value: u64, bits: u64) {
        // SAFETY: the caller's promise.
        unsafe {
            if objects::may_have(address) {
                store_in_object(address, value, bits);
            } else {
                store_bits(address, value, bits);
            }
        }
    }

    /// True outside of objects. GCC turns loops into plain calls of libc: these then see the
    /// block's stores, and the commit does not overwrite theirs.
    #[inline]
    fn in_place(&self, line: usize) -> bool {
        !objects::may_have(line) || !is_in_object(line)
    }

    #[inline]
    fn is_checked(&self, address: usize) -> bool {
        objects::may_have(address) && has_check_word(address)
    }

    #[cold]
    unsafe fn repaired(&self, address: usize) -> Option<u64> {
        let place = objects::find(address).filter(|place| place.checked)?;
        // SAFETY: as for `load`.
        unsafe { pairs::repaired(place.at) }
    }
}

/// Out of line, so that other loads are inlined.
///
/// # Safety
/// As for [`Memory::load`].
#[cold]
unsafe fn load_in_object(address: usize) -> Result<u64, Damaged> {
    // SAFETY: the caller's promise; or the same word of an attached object.
    unsafe {
        match objects::find(address) {
            None => Direct.load(address),
            Some(place) if place.checked => pairs::load(place.at),
            Some(place) => Direct.load(place.at),
        }
    }
}

/// # Safety
/// As for [`Memory::store`].
#[cold]
unsafe fn store_in_object(address: usize, value: u64, bits: u64) {
    // SAFETY: the caller's promise; or the same word of an attached object.
    unsafe {
        match objects::find(address) {
            None => store_bits(address, value, bits),
            Some(place) if place.checked => pairs::store(place.at, value, bits),
            Some(place) => store_bits(place.at, value, bits),
        }
    }
}

#[cold]
fn is_in_object(line: usize) -> bool {
    objects::find(line).is_some()
}

#[cold]
fn has_check_word(address: usize) -> bool {
    objects::find(address).is_some_and(|place| place.checked)
}

/// # Safety
/// As for [`Memory::store`].
#[inline]
unsafe fn store_bits(address: usize, value: u64, bits: u64) {
    let whole = bits == u64::MAX || Mutant::WholeWordsStored.is_on();
    if whole {
        // SAFETY: the caller's promise.
        return unsafe { Direct.store(address, value, u64::MAX) };
    }
    let bytes = bits & 0x0101_0101_0101_0101;
    let mut at = 0;
    while at < 8 {
        let rest = bytes >> (8 * at);
        let pointer = std::ptr::with_exposed_provenance_mut::<u8>(address + at);
        let part = value >> (8 * at);
        // The largest aligned piece that changes whole, so that a number is stored at once. SAFETY:
        // bytes of the word, which the caller may store to; aligned as `at` is.
        at += unsafe {
            if at % 4 == 0 && rest & 0x0101_0101 == 0x0101_0101 {
                AtomicU32::from_ptr(pointer.cast()).store(part as u32, Ordering::Relaxed);
                4
            } else if at % 2 == 0 && rest & 0x0101 == 0x0101 {
                AtomicU16::from_ptr(pointer.cast()).store(part as u16, Ordering::Relaxed);
                2
            } else {
                if rest & 1 == 1 {
                    AtomicU8::from_ptr(pointer).store(part as u8, Ordering::Relaxed);
                }
                1
            }
        };
    }
}

/// A child of `fork` makes its own.
static TM: AtomicPtr<Tm> = AtomicPtr::new(std::ptr::null_mut());
static MAKING: Mutex<()> = Mutex::new(());

pub(crate) fn tm() -> Arc<Tm> {
    let there = |pointer: *mut Tm| {
        // SAFETY: of `Arc::into_raw`, with a count that is never released.
        (!pointer.is_null()).then(|| unsafe {
            Arc::increment_strong_count(pointer);
            Arc::from_raw(pointer)
        })
    };
    there(TM.load(Ordering::Acquire)).unwrap_or_else(|| {
        let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        there(TM.load(Ordering::Acquire)).unwrap_or_else(|| {
            let made = Stm::new(Words, Commits);
            TM.store(Arc::into_raw(made.clone()).cast_mut(), Ordering::Release);
            made
        })
    })
}

/// Called in a child of `fork`: gives up the parent's transactional memory. The next block makes
/// another one.
pub(crate) fn forget() {
    let parents = TM.swap(std::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: of `Arc::into_raw`, with a count that is never released.
    if let Some(tm) = unsafe { parents.as_ref() } {
        tm.forked();
    }
}
