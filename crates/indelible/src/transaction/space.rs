//! The transactions of this process in one pool: one memory of words, whose commits the store makes durable in the order of their numbers.

#![allow(unsafe_code)]

use crate::error::{Cause, TransactionError};
use crate::pool::Inner;
use indelible_stm::{Direct, Line, Receipt, Sink, Stm, WriteSet};
use indelible_store::Mutant;
use indelible_store::error::StoreError;
use indelible_store::format::LINE;
use indelible_store::store::{ChangedLine, Commits};
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// See the module. The pool has it as long as an object is attached: who attaches after all were detached begins anew, also after a failure.
pub(super) struct Space {
    /// The kind of users that has these transactions: there is one memory of words for all that share data.
    users: OnceLock<Users>,
    /// The last number of a block's commit.
    numbers: AtomicU64,
    pub(super) stm: Arc<Stm<Direct, Durable>>,
}

/// Those who run transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Users {
    /// Closures and functions, by this crate.
    Functions,
    /// Blocks that a compiler made, by a library of their own.
    Blocks,
}

impl Space {
    /// That of a pool.
    pub(super) fn of(pool: &Inner) -> Result<Arc<Space>, Cause> {
        let mut place = pool.transactions();
        if let Some(there) = place.as_ref().and_then(std::sync::Weak::upgrade)
            && let Ok(space) = there.downcast::<Space>()
        {
            return Ok(space);
        }
        let space = Arc::new(Space {
            users: OnceLock::new(),
            numbers: AtomicU64::new(0),
            stm: Stm::new(Direct, Durable::default()),
        });
        let erased: Arc<dyn Any + Send + Sync> = space.clone();
        *place = Some(Arc::downgrade(&erased));
        Ok(space)
    }

    /// Whether these users may have the pool's objects: only one kind at a time may.
    pub(super) fn claim(&self, users: Users) -> Result<(), Cause> {
        if *self.users.get_or_init(|| users) == users {
            Ok(())
        } else {
            Err(TransactionError::OtherUsers.into())
        }
    }

    /// Tells of the commit of a block that a compiler made, whose lines nobody else can change meanwhile: of two that have a line in common, the first is told, and
    /// stored, first.
    pub(super) fn tell(&self, lines: Vec<ChangedLine>) -> Result<(), StoreError> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        self.commits().tell(number, lines).inspect_err(|_| self.commits().skip(number))
    }

    pub(super) fn commits(&self) -> &Commits {
        &self.stm.sink().commits
    }

    /// Takes the view of an object in, which is as long as the caller has it.
    pub(super) fn add(&self, view: View) {
        self.stm.sink().views_mut().push(view);
    }

    pub(super) fn remove(&self, object: u64) {
        self.stm.sink().views_mut().retain(|view| view.object != object);
    }

    /// Bytes that the lane is short of for what a transaction changes.
    pub(super) fn shortage(&self, writes: &WriteSet) -> u64 {
        let sink = self.stm.sink();
        sink.commits.shortage(writes.lines().len(), || {
            let views = sink.views.read().unwrap_or_else(PoisonError::into_inner);
            let places: Vec<_> = writes.lines().filter_map(|line| place_of(&views, &line)).collect();
            places.into_iter()
        })
    }
}

/// The memory that an object's cells are in.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// First byte.
    pub(super) base: usize,
    /// Bytes, whole pages.
    pub(super) len: usize,
    /// Offset of the object's entry.
    pub(super) object: u64,
}

/// The object in which a line lies, and where.
fn place_of(views: &[View], line: &Line<'_>) -> Option<(u64, u64)> {
    let view = views.iter().find(|view| line.address().wrapping_sub(view.base) < view.len)?;
    Some((view.object, (line.address() - view.base) as u64))
}

/// Tells the store of commits.
#[derive(Default)]
pub(super) struct Durable {
    commits: Commits,
    views: RwLock<Vec<View>>,
}

impl Durable {
    fn views_mut(&self) -> std::sync::RwLockWriteGuard<'_, Vec<View>> {
        self.views.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lines as they are after the commit. Nobody changes them meanwhile, and what other transactions have not committed is not in memory.
    fn lines(&self, writes: &WriteSet) -> Option<Vec<ChangedLine>> {
        let views = self.views.read().unwrap_or_else(PoisonError::into_inner);
        let whole = |line: Line<'_>| {
            let (object, offset) = place_of(&views, &line)?;
            let mut bytes = [0; LINE as usize];
            for (nth, (word, into)) in line.words().iter().zip(bytes.as_chunks_mut::<8>().0).enumerate() {
                let bits = if Mutant::CommitLineBefore.is_on() { 0 } else { line.word_bits(nth) };
                // SAFETY: a word of a view that the transaction has borrowed (2), and of which others are told as atomics alone (1).
                let before = unsafe {
                    let address = std::ptr::with_exposed_provenance_mut(line.address() + 8 * nth);
                    AtomicU64::from_ptr(address).load(Ordering::Relaxed)
                };
                *into = (before & !bits | word & bits).to_le_bytes();
            }
            Some(ChangedLine { object, offset, bytes })
        };
        writes.lines().map(whole).collect()
    }
}

impl Sink for Durable {
    type Own = ();
    type Error = StoreError;

    fn commit(&self, (): &mut (), sequence: u64, writes: &WriteSet) -> Result<(), StoreError> {
        let told = self.lines(writes).ok_or(StoreError::NotFound);
        match told.and_then(|lines| self.commits.tell(sequence, lines)) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.commits.skip(sequence);
                Err(error)
            }
        }
    }

    fn skipped(&self, (): &mut (), sequence: u64) {
        self.commits.skip(sequence);
    }

    fn acknowledge(&self, (): &mut (), receipt: Receipt) -> Result<(), StoreError> {
        let from = if Mutant::ReadNotAwaited.is_on() {
            receipt.sequence().unwrap_or(0)
        } else {
            receipt.durable_from()
        };
        self.commits.wait(from)
    }
}
