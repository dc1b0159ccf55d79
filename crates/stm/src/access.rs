//! A word is read between two looks at its stripe. If it is newer than the snapshot, the snapshot
//! advances, if all former reads are still valid; else the transaction is doomed: none sees two
//! states of memory (opacity). A changed line is owned, and the change waits in the write set. In
//! memory that changes [in place](Memory::in_place), the write set has the former bytes.
//!
//! A transaction stores a damaged word's former value, so that its commit repairs it; without a
//! former value it is doomed.
//!
//! # Invariants
//!
//! 1. Callers of unsafe functions here promise what [`Memory`] asks of words: they exist whole
//!    until the transaction has ended.
//! 2. A line in the write set has only bytes that the caller stored to, and whole words where they
//!    have check words.

use super::descriptor::Descriptor;
use super::error::Conflict;
use super::memory::{Damaged, Memory};
use super::sink::Sink;
use super::stripes::{LINE, State};
use super::sync::{Ordering, fence};
use super::write_set::{Entry, NONE, bits};

pub(crate) const WORD: usize = 8;

#[inline]
const fn mask(from: usize, to: usize) -> u8 {
    ((1_u16 << to) - (1_u16 << from)) as u8
}

impl<M: Memory, S: Sink> Descriptor<M, S> {
    /// Loads the word at this address, a multiple of 8.
    ///
    /// # Safety
    ///
    /// Invariant 1.
    #[inline(always)]
    pub(crate) unsafe fn load_word(&mut self, address: usize) -> Result<u64, Conflict> {
        let stripe = self.stm.stripes.of(address);
        let seen = self.stm.stripes.look(stripe);
        // SAFETY: the caller's promise (1).
        match self.covers(seen).then(|| unsafe { self.load_seen(address, stripe, seen) }) {
            Some(Some(Ok(value))) => Ok(value),
            // SAFETY: the caller's promise (1).
            _ => unsafe { self.load_contended(address, stripe) },
        }
    }

    /// Loads a word of a stripe in the snapshot, as it was seen. `None`: the stripe has changed
    /// since.
    ///
    /// # Safety
    ///
    /// Invariant 1.
    #[inline(always)]
    unsafe fn load_seen(
        &mut self,
        address: usize,
        stripe: usize,
        seen: State,
    ) -> Option<Result<u64, Damaged>> {
        // SAFETY: the caller's promise (1).
        let loaded = unsafe { self.stm.memory.load(address) };
        fence(Ordering::Acquire);
        self.stm.stripes.is_still(stripe, seen).then(|| loaded.inspect(|_| self.note_read(stripe, seen)))
    }

    /// Out of line: the stripe is owned or newer than the snapshot, or the word is damaged.
    ///
    /// # Safety
    ///
    /// Invariant 1.
    #[inline(never)]
    unsafe fn load_contended(&mut self, address: usize, stripe: usize) -> Result<u64, Conflict> {
        loop {
            let seen = self.stm.stripes.look(stripe);
            if self.covers(seen) {
                // SAFETY: the caller's promise (1).
                match unsafe { self.load_seen(address, stripe, seen) } {
                    Some(Ok(value)) => return Ok(value),
                    // SAFETY: the caller's promise (1).
                    Some(Err(Damaged)) => return unsafe { self.mend(address) },
                    None => continue,
                }
            }
            if seen.is_owner(self.number) {
                // SAFETY: the caller's promise (1).
                return unsafe { self.load_owned(address, seen.line()) };
            }
            if seen.is_owned() { self.wait_for(stripe)? } else { self.extend()? }
        }
    }

    /// A word as in memory now, with the transaction's own changes; not part of the reads.
    ///
    /// # Safety
    ///
    /// Invariant 1.
    #[inline]
    pub(crate) unsafe fn peek_word(&self, address: usize) -> u64 {
        let seen = self.stm.stripes.look(self.stm.stripes.of(address));
        let newest = if seen.is_owner(self.number) { seen.line() } else { NONE };
        let (own, changed) = self.own(address, newest);
        // SAFETY: the caller's promise (1).
        let below = unsafe { self.stm.memory.load(address) }.unwrap_or_default();
        below & !bits(changed) | own
    }

    #[inline(always)]
    fn note_read(&mut self, stripe: usize, seen: State) {
        let read = (stripe as u32, seen);
        if self.reads.last() != Some(&read) {
            self.reads.push(read);
        }
    }

    /// Values and mask; `newest` as for [`WriteSet::find`](super::write_set::WriteSet::find).
    #[inline]
    fn own(&self, address: usize, newest: u32) -> (u64, u8) {
        let line = self.writes.find(newest, address & !(LINE - 1)).map(|at| &self.writes.lines[at]);
        let line = line.filter(|line| !line.in_place);
        let word = address % LINE / WORD;
        line.map_or((0, 0), |line| (line.words[word], line.changed(word)))
    }

    /// # Safety
    ///
    /// Invariant 1.
    unsafe fn load_owned(&mut self, address: usize, newest: u32) -> Result<u64, Conflict> {
        let (own, changed) = self.own(address, newest);
        if changed == u8::MAX {
            return Ok(own);
        }
        // SAFETY: the caller's promise (1).
        match unsafe { self.stm.memory.load(address) } {
            Ok(below) => Ok(below & !bits(changed) | own),
            // SAFETY: the caller's promise (1).
            Err(Damaged) => unsafe { self.mend(address) },
        }
    }

    /// Restores the former value of a damaged, unchanged word.
    ///
    /// # Safety
    ///
    /// Invariant 1, and the word may be stored to.
    #[cold]
    unsafe fn mend(&mut self, address: usize) -> Result<u64, Conflict> {
        let line = self.line(address & !(LINE - 1))?;
        // From here on no other thread stores to it. SAFETY: the caller's promise (1).
        if let Ok(word) = unsafe { self.stm.memory.load(address) } {
            return Ok(word);
        }
        // SAFETY: the caller's promise (1).
        let Some(word) = (unsafe { self.stm.memory.repaired(address) }) else {
            self.lost = Some(address);
            return Err(self.doom());
        };
        self.writes.lines[line].set(address % LINE / WORD, word, u8::MAX);
        Ok(word)
    }

    /// Changes the bytes `mask` of the word at this address, a multiple of 8.
    ///
    /// # Safety
    ///
    /// Invariant 1, and the word may be stored to.
    #[inline]
    pub(crate) unsafe fn store_word(&mut self, address: usize, value: u64, mask: u8) -> Result<(), Conflict> {
        let line = self.line(address & !(LINE - 1))?;
        if self.writes.lines[line].in_place {
            // SAFETY: the caller's promise (1); the line is owned.
            unsafe { self.store_in_place(line, address, value, mask) };
            return Ok(());
        }
        let (value, mask) = if mask != u8::MAX && self.stm.memory.is_checked(address) {
            // SAFETY: the caller's promise (1); the line is owned.
            let before = unsafe { self.load_owned(address, line as u32) }?;
            (before & !bits(mask) | value & bits(mask), u8::MAX)
        } else {
            (value, mask)
        };
        self.writes.lines[line].set(address % LINE / WORD, value, mask);
        Ok(())
    }

    /// Stores at once, and keeps the former bytes.
    ///
    /// # Safety
    ///
    /// Invariant 1, the word may be stored to, and the line is owned.
    #[inline]
    unsafe fn store_in_place(&mut self, line: usize, address: usize, value: u64, mask: u8) {
        let word = address % LINE / WORD;
        let fresh = mask & !self.writes.lines[line].changed(word);
        if fresh != 0 {
            // SAFETY: the caller's promise (1). Such a word has no check word.
            let before = unsafe { self.stm.memory.load(address) }.unwrap_or_default();
            self.writes.lines[line].set(word, before, fresh);
        }
        // A thread that reads the new value then sees that the stripe was owned.
        fence(Ordering::Release);
        // SAFETY: the caller's promise (1); no other thread stores to it.
        unsafe { self.stm.memory.store(address, value, bits(mask)) };
    }

    /// Restores the former bytes that line number `line` changed in place, except those in `kept`,
    /// which become those in `words`.
    pub(crate) fn undo_in_place(&mut self, line: usize, kept: u64, words: &[u64; 8]) {
        let entry = &mut self.writes.lines[line];
        for (word, changed) in entry.changed_words() {
            let stays = bits((kept >> (8 * word)) as u8);
            let value = entry.words[word] & !stays | words[word] & stays;
            // SAFETY: the transaction stored to these bytes, and owns the line.
            unsafe { self.stm.memory.store(entry.address + word * WORD, value, bits(changed)) };
        }
        entry.keep_alone(kept);
    }

    pub(crate) fn changed_in_place(&self, line: usize) -> u64 {
        let seen = self.stm.stripes.look(self.stm.stripes.of(line));
        let newest = if seen.is_owner(self.number) { seen.line() } else { NONE };
        let entry = self.writes.find(newest, line).map(|at| &self.writes.lines[at]);
        entry.filter(|entry| entry.in_place).map_or(0, |entry| entry.mask)
    }

    pub(crate) fn forget(&mut self, range: std::ops::Range<usize>) {
        for entry in self.writes.lines.iter_mut().filter(|entry| entry.in_place) {
            let kept = (0..LINE).filter(|byte| !range.contains(&(entry.address + byte)));
            entry.keep_alone(kept.fold(0, |kept, byte| kept | 1 << byte));
        }
    }

    pub(crate) fn changes(&self, line: usize) -> (u64, [u64; 8]) {
        let entry = &self.writes.lines[line];
        let mut words = entry.words;
        for (word, changed) in entry.changed_words().filter(|_| entry.in_place) {
            // SAFETY: the transaction stored to bytes of the word, and owns the line.
            let now = unsafe { self.stm.memory.load(entry.address + word * WORD) };
            words[word] = now.unwrap_or_default() & bits(changed);
        }
        (entry.mask, words)
    }

    #[inline]
    fn line(&mut self, address: usize) -> Result<usize, Conflict> {
        let stripe = self.stm.stripes.of(address);
        loop {
            let seen = self.stm.stripes.look(stripe);
            if seen.is_owner(self.number) {
                if let Some(at) = self.writes.find(seen.line(), address) {
                    return Ok(at);
                }
                let at = self.add_line(address, stripe, None, seen.line());
                self.stm.stripes.rename(stripe, State::owned(self.number, at as u32));
                return Ok(at);
            }
            if self.covers(seen) {
                let own = State::owned(self.number, self.writes.lines.len() as u32);
                if self.stm.stripes.take(stripe, seen, own) {
                    return Ok(self.add_line(address, stripe, Some(seen), NONE));
                }
                continue;
            }
            if seen.is_owned() { self.wait_for(stripe)? } else { self.extend()? }
        }
    }

    fn add_line(&mut self, address: usize, stripe: usize, before: Option<State>, next: u32) -> usize {
        let in_place = self.stm.memory.in_place(address);
        self.writes.lines.push(Entry { address, mask: 0, words: [0; 8], stripe, before, next, in_place });
        self.writes.lines.len() - 1
    }

    /// Loads `size` bytes, at most 8, at any address, into the lowest bytes of the result.
    ///
    /// # Safety
    ///
    /// Invariant 1.
    #[inline]
    pub(crate) unsafe fn load_bits(&mut self, address: usize, size: usize) -> Result<u64, Conflict> {
        let at = address % WORD;
        if at + size <= WORD {
            // SAFETY: the caller's promise (1).
            return Ok(unsafe { self.load_word(address - at) }? >> (8 * at));
        }
        // SAFETY: the caller's promise (1).
        unsafe { self.load_across(address) }
    }

    /// Loads up to 8 bytes that cross a word.
    ///
    /// # Safety
    ///
    /// Invariant 1, for both words.
    #[cold]
    unsafe fn load_across(&mut self, address: usize) -> Result<u64, Conflict> {
        let at = address % WORD;
        // SAFETY: the caller's promise, for both words (1).
        let (low, high) = unsafe { (self.load_word(address - at)?, self.load_word(address - at + WORD)?) };
        Ok(low >> (8 * at) | high << (8 * (WORD - at)))
    }

    /// Changes `size` bytes, at most 8, at any address, to the lowest ones of `value`.
    ///
    /// # Safety
    ///
    /// Invariant 1, and the bytes may be stored to.
    #[inline]
    pub(crate) unsafe fn store_bits(
        &mut self,
        address: usize,
        size: usize,
        value: u64,
    ) -> Result<(), Conflict> {
        let at = address % WORD;
        if at + size > WORD {
            // SAFETY: the caller's promise (1).
            return unsafe { self.store_across(address, size, value) };
        }
        // SAFETY: the caller's promise (1).
        unsafe { self.store_word(address - at, value << (8 * at), mask(at, at + size)) }
    }

    /// # Safety
    ///
    /// As for [`store_bits`](Self::store_bits).
    #[cold]
    unsafe fn store_across(&mut self, address: usize, size: usize, value: u64) -> Result<(), Conflict> {
        let at = address % WORD;
        let high = value >> (8 * (WORD - at));
        // SAFETY: the caller's promise, for both words (1).
        unsafe {
            self.store_word(address - at, value << (8 * at), mask(at, WORD))?;
            self.store_word(address - at + WORD, high, mask(0, at + size - WORD))
        }
    }

    /// # Safety
    ///
    /// Invariant 1.
    pub(crate) unsafe fn load_bytes(&mut self, address: usize, into: &mut [u8]) -> Result<(), Conflict> {
        let mut done = 0;
        while done < into.len() {
            let (at, rest) = ((address + done) % WORD, into.len() - done);
            let count = rest.min(WORD - at);
            // SAFETY: the caller's promise (1).
            let word = unsafe { self.load_word(address + done - at) }?;
            into[done..done + count].copy_from_slice(&word.to_le_bytes()[at..at + count]);
            done += count;
        }
        Ok(())
    }

    /// # Safety
    ///
    /// Invariant 1, and the bytes may be stored to.
    pub(crate) unsafe fn store_bytes(&mut self, address: usize, bytes: &[u8]) -> Result<(), Conflict> {
        let mut done = 0;
        while done < bytes.len() {
            let (at, rest) = ((address + done) % WORD, bytes.len() - done);
            let count = rest.min(WORD - at);
            let mut word = [0; WORD];
            word[at..at + count].copy_from_slice(&bytes[done..done + count]);
            let (value, mask) = (u64::from_le_bytes(word), mask(at, at + count));
            // SAFETY: the caller's promise (1).
            unsafe { self.store_word(address + done - at, value, mask) }?;
            done += count;
        }
        Ok(())
    }
}
