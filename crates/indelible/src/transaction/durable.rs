#![allow(unsafe_code)]

use super::checked::word;
use super::demand::{Changed, Demand};
use super::own::Own;
use super::view::View;
use crate::error::{Cause, TransactionError};
use crate::memory::MemoryError;
use indelible_stm::pairs::PairLine;
use indelible_stm::{Line, Receipt, Sink, WriteSet};
use indelible_store::Mutant;
use indelible_store::error::StoreError;
use indelible_store::format::LINE;
use indelible_store::store::{ChangedLine, Commits};
use std::borrow::Borrow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock};

pub(super) fn view_of<'v>(views: &'v [View], line: &Line<'_>) -> Option<(&'v View, u64)> {
    let view = views.iter().find(|view| line.address().wrapping_sub(view.base) < view.len)?;
    Some((view, (line.address() - view.base) as u64))
}

#[inline]
fn changed<'w>(line: Line<'w>) -> Changed<&'w [u64; 8]> {
    Changed { address: line.address(), mask: line.mask(), words: line.words() }
}

pub(super) struct Syncing(pub(super) Box<dyn Fn(u64) -> Result<(), Cause> + Send + Sync>);

#[derive(Default)]
pub(super) struct Durable {
    pub(super) commits: Commits,
    pub(super) views: RwLock<Vec<View>>,
    pub(super) version: AtomicU64,
    pub(super) numbers: AtomicU64,
    pub(super) demand: Option<Demand>,
    pub(super) sync: OnceLock<Syncing>,
}

impl Durable {
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// [`stored`](Sink::stored) must follow. After `NoRoom`, [make
    /// room](super::space::Space::make_room) first.
    pub(super) fn log_block<W: Borrow<[u64; 8]>, L: Iterator<Item = Changed<W>>>(
        &self,
        own: &mut Own,
        lines: impl Fn() -> L,
    ) -> Result<u64, Cause> {
        let Some(demand) = self.demand.as_ref().filter(|demand| !demand.has_failed()) else {
            return Err(self.explained(StoreError::Poisoned));
        };
        own.set_strict(false);
        demand.give_log(own, 1).map_err(MemoryError::from)?;
        self.know_views(own);
        let number = self.number();
        demand.log(&self.commits, own, number, lines)?;
        Ok(number)
    }

    /// `Poisoned` with its cause, if the pool refused what a transaction had changed.
    #[cold]
    pub(super) fn explained(&self, error: StoreError) -> Cause {
        let refused = || self.demand.as_ref().map_or_else(|| self.commits.refused(), Demand::refused);
        match error {
            StoreError::Poisoned => match refused() {
                Some(refusal) => TransactionError::Unpublished(refusal).into(),
                None => StoreError::Poisoned.into(),
            },
            other => other.into(),
        }
    }

    #[inline]
    fn know_views(&self, own: &mut Own) {
        let version = self.version.load(Ordering::Acquire);
        if !own.has_views_of(version) {
            own.take_views(version, self.views());
        }
    }

    pub(super) fn views(&self) -> Vec<View> {
        self.views.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[cold]
    fn await_epoch(&self, demand: &Demand, receipt: Receipt) -> Result<(), StoreError> {
        if Mutant::StrongerClassIgnored.is_on() {
            return Ok(());
        }
        let sync = self.sync.get().ok_or(StoreError::Poisoned)?;
        let error = match sync.0(receipt.durable_from()) {
            Ok(()) => return Ok(()),
            Err(Cause::Store(error)) => error,
            // This thread is in no transaction, and in no forked child.
            Err(_) => StoreError::Poisoned,
        };
        // Rule D7 of docs/protocol.md: one that only read changed nothing.
        if receipt.sequence().is_none() {
            return Err(error);
        }
        if error.is_refusal() {
            demand.fail_refused(error);
            return Err(StoreError::Poisoned);
        }
        demand.fail();
        Err(error)
    }

    fn lines(&self, own: &mut Own, writes: &WriteSet) -> Option<Vec<ChangedLine>> {
        self.know_views(own);
        let (_, views) = own.parts();
        let mut told = Vec::with_capacity(writes.len());
        for line in writes.lines() {
            let (view, offset) = view_of(views, &line)?;
            let object = view.object;
            if let Some(pairs) = &view.pairs {
                let lines = pairs.changed(offset, (line.mask(), line.words()));
                let changed =
                    |line: PairLine| ChangedLine { object, offset: line.offset, bytes: line.bytes() };
                told.extend(lines.map(changed));
                continue;
            }
            let mut bytes = [0; LINE as usize];
            for (nth, (new, into)) in line.words().iter().zip(bytes.as_chunks_mut::<8>().0).enumerate() {
                let bits = if Mutant::CommitLineBefore.is_on() { 0 } else { line.word_bits(nth) };
                // SAFETY: a word of a view that the transaction has borrowed (2), which other
                // threads access as an atomic (1).
                let before = unsafe { word(line.address() + 8 * nth) };
                *into = (before & !bits | new & bits).to_le_bytes();
            }
            told.push(ChangedLine { object, offset, bytes });
        }
        Some(told)
    }
}

impl Sink for Durable {
    type Own = Own;
    type Error = StoreError;

    #[inline]
    fn commit(&self, own: &mut Own, sequence: u64, writes: &WriteSet) -> Result<(), StoreError> {
        if let Some(demand) = &self.demand {
            self.know_views(own);
            return demand.log(&self.commits, own, sequence, || writes.lines().map(changed));
        }
        let told = self.lines(own, writes).ok_or(StoreError::NotFound);
        match told.and_then(|lines| self.commits.tell(sequence, lines)) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.commits.skip(sequence);
                Err(error)
            }
        }
    }

    #[inline]
    fn stored(&self, own: &mut Own, _: u64) {
        own.end_log();
    }

    fn skipped(&self, _: &mut Own, sequence: u64) {
        if self.demand.is_none() {
            self.commits.skip(sequence);
        }
    }

    #[inline]
    fn acknowledge(&self, own: &mut Own, receipt: Receipt) -> Result<(), StoreError> {
        if let Some(demand) = &self.demand {
            own.note(receipt.durable_from());
            return if own.is_strict() { self.await_epoch(demand, receipt) } else { Ok(()) };
        }
        let from = if Mutant::ReadNotAwaited.is_on() {
            receipt.sequence().unwrap_or(0)
        } else {
            receipt.durable_from()
        };
        self.commits.wait(from)
    }
}
