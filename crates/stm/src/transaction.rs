use super::access::WORD;
use super::descriptor::Descriptor;
use super::error::Conflict;
use super::memory::{Direct, Memory};
use super::sink::Sink;
use super::word::Number;
use super::write_set::WriteSet;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;

/// A word that only transactions change.
///
/// ```compile_fail
/// # let mut thread = indelible_stm::Stm::new(indelible_stm::Direct, indelible_stm::Volatile).thread();
/// thread.atomically(|tx| {
///     let gone_too_early = indelible_stm::TxWord::new(0);
///     tx.set(&gone_too_early, 1)?;
///     Ok::<_, indelible_stm::Abort<()>>(())
/// });
/// ```
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct TxWord(AtomicU64);

impl TxWord {
    /// Makes a word.
    #[must_use]
    pub fn new(value: u64) -> Self {
        TxWord(AtomicU64::new(value))
    }

    /// The value, once no transaction can have the word.
    #[must_use]
    pub fn into_inner(self) -> u64 {
        self.0.into_inner()
    }

    fn address(&self) -> usize {
        (&raw const self.0).expose_provenance()
    }
}

/// A transaction's changes up to a moment: see [`Transaction::checkpoint`].
#[derive(Clone, Debug, Default)]
pub struct Checkpoint(Vec<(u64, [u64; 8])>);

/// A running transaction of a thread.
///
/// It shows memory as of one moment, with its own changes, which others see only once it commits.
/// [`Conflict`] means that it is doomed: pass the error on. Functions that take a transaction are a
/// part of it (nesting is flattened). It keeps 16 bytes per read line and 112 per changed line.
///
/// The changed memory is borrowed for `'env`, which outlives it.
pub struct Transaction<'t, 'env, M: Memory, S: Sink> {
    pub(crate) descriptor: &'t mut Descriptor<M, S>,
    pub(crate) env: PhantomData<&'env mut &'env ()>,
}

impl<'t, 'env, M: Memory, S: Sink> Transaction<'t, 'env, M, S> {
    pub(crate) fn new(descriptor: &'t mut Descriptor<M, S>) -> Self {
        Transaction { descriptor, env: PhantomData }
    }

    /// Reads a number at any alignment.
    ///
    /// # Errors
    ///
    /// [`Conflict`].
    ///
    /// # Safety
    ///
    /// The number lies in aligned words of 8 bytes that exist until the transaction has ended;
    /// meanwhile only transactions of the same [`Stm`](crate::Stm) access any byte of them.
    #[inline]
    pub unsafe fn load<T: Number>(&mut self, from: *const T) -> Result<T, Conflict> {
        // SAFETY: the caller's promise.
        unsafe { self.descriptor.load_bits(from.expose_provenance(), size_of::<T>()) }.map(T::from_bits)
    }

    /// Stores a number at any alignment, if the transaction commits.
    ///
    /// # Errors
    ///
    /// [`Conflict`].
    ///
    /// # Safety
    ///
    /// As for `load`, and the bytes may be stored to.
    #[inline]
    pub unsafe fn store<T: Number>(&mut self, to: *mut T, value: T) -> Result<(), Conflict> {
        // SAFETY: the caller's promise.
        unsafe { self.descriptor.store_bits(to.expose_provenance(), size_of::<T>(), value.to_bits()) }
    }

    /// Reads a word of 8 bytes at a multiple of 8.
    ///
    /// # Errors
    ///
    /// [`Conflict`].
    ///
    /// # Safety
    ///
    /// As for `load`; it is aligned.
    #[inline(always)]
    pub unsafe fn load_word(&mut self, from: *const u64) -> Result<u64, Conflict> {
        debug_assert!(from.is_aligned());
        // SAFETY: the caller's promise.
        unsafe { self.descriptor.load_word(from.expose_provenance()) }
    }

    /// Stores a word of 8 bytes at a multiple of 8, if the transaction commits.
    ///
    /// # Errors
    ///
    /// [`Conflict`].
    ///
    /// # Safety
    ///
    /// As for `store`; it is aligned.
    #[inline]
    pub unsafe fn store_word(&mut self, to: *mut u64, value: u64) -> Result<(), Conflict> {
        debug_assert!(to.is_aligned());
        // SAFETY: the caller's promise.
        unsafe { self.descriptor.store_word(to.expose_provenance(), value, u8::MAX) }
    }

    /// Reads bytes.
    ///
    /// # Errors
    ///
    /// [`Conflict`]: a part of `into` may be filled.
    ///
    /// # Safety
    ///
    /// As for `load`. `into` is outside of such memory.
    pub unsafe fn load_bytes(&mut self, from: *const u8, into: &mut [u8]) -> Result<(), Conflict> {
        // SAFETY: the caller's promise.
        unsafe { self.descriptor.load_bytes(from.expose_provenance(), into) }
    }

    /// Stores bytes, if the transaction commits.
    ///
    /// # Errors
    ///
    /// [`Conflict`].
    ///
    /// # Safety
    ///
    /// As for `store`. `bytes` are outside of such memory.
    pub unsafe fn store_bytes(&mut self, to: *mut u8, bytes: &[u8]) -> Result<(), Conflict> {
        // SAFETY: the caller's promise.
        unsafe { self.descriptor.store_bytes(to.expose_provenance(), bytes) }
    }

    /// The word as in memory now, with the transaction's own changes; conclusions need a check by
    /// `load`.
    ///
    /// # Safety
    ///
    /// As for `load`, of an aligned word.
    #[inline]
    #[must_use]
    pub unsafe fn peek(&self, from: *const u64) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.descriptor.peek_word(from.expose_provenance()) }
    }

    /// Registers an action for after the acknowledged commit, in order of registration. An aborted
    /// try drops it.
    pub fn on_commit(&mut self, action: Box<dyn FnOnce()>) {
        self.descriptor.actions.on_commit(action);
    }

    /// Registers an action for an abort of this try, conflicts included; in reverse order.
    pub fn on_abort(&mut self, action: Box<dyn FnOnce()>) {
        self.descriptor.actions.on_abort(action);
    }

    /// Dooms the transaction; its next try runs alone.
    pub fn restart_alone(&mut self) -> Conflict {
        self.descriptor.contention.ask_alone();
        self.descriptor.doom()
    }

    /// Whether no other transaction runs.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.descriptor.alone
    }

    /// All its changes so far; none if it is doomed.
    #[must_use]
    pub fn writes(&self) -> &WriteSet {
        &self.descriptor.writes
    }

    /// The bytes of the line at this address that it changed in place: bit i stands for byte i.
    #[must_use]
    pub fn changed_in_place(&self, line: usize) -> u64 {
        self.descriptor.changed_in_place(line)
    }

    /// Makes an abort undo nothing in this range, changed in place: the memory has another use now.
    pub fn forget(&mut self, range: std::ops::Range<usize>) {
        self.descriptor.forget(range);
    }

    /// Its changes so far, for [`Transaction::restore`].
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        let lines = 0..self.descriptor.writes.lines.len();
        Checkpoint(lines.map(|line| self.descriptor.changes(line)).collect())
    }

    /// Undoes its changes since a checkpoint of this run. It still owns these lines and relies on
    /// its reads since.
    pub fn restore(&mut self, checkpoint: &Checkpoint) {
        for nth in 0..self.descriptor.writes.lines.len() {
            let (mask, words) = checkpoint.0.get(nth).copied().unwrap_or_default();
            if self.descriptor.writes.lines[nth].in_place {
                self.descriptor.undo_in_place(nth, mask, &words);
                continue;
            }
            let line = &mut self.descriptor.writes.lines[nth];
            (line.mask, line.words) = (mask, words);
        }
    }

    /// The address of a read word that is damaged beyond repair. The transaction is doomed.
    #[inline]
    #[must_use]
    pub fn lost(&self) -> Option<usize> {
        self.descriptor.lost
    }

    /// The last commit that it may have seen.
    #[must_use]
    pub fn snapshot(&self) -> u64 {
        self.descriptor.snapshot
    }

    /// The sink's state of this thread.
    pub fn own(&mut self) -> &mut S::Own {
        &mut self.descriptor.own
    }
}

impl<'env, S: Sink> Transaction<'_, 'env, Direct, S> {
    /// Reads a word.
    ///
    /// # Errors
    ///
    /// [`Conflict`].
    #[inline]
    pub fn get(&mut self, word: &TxWord) -> Result<u64, Conflict> {
        // SAFETY: the word is borrowed, and only transactions access it.
        unsafe { self.descriptor.load_word(word.address()) }
    }

    /// Stores to a word, if the transaction commits.
    ///
    /// # Errors
    ///
    /// [`Conflict`].
    #[inline]
    pub fn set(&mut self, word: &'env TxWord, value: u64) -> Result<(), Conflict> {
        // SAFETY: the borrow outlives the transaction, and only transactions access the word.
        unsafe { self.descriptor.store_word(word.address(), value, u8::MAX) }
    }
}

const _: () = assert!(size_of::<TxWord>() == WORD);
