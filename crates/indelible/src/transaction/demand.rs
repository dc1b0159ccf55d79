//! Objects on demand: commits in memory that outlives the process become durable in epochs
//! (docs/decisions/0052-on-demand.md).
//!
//! A commit makes its thread's log valid, changes memory, and ends the log ([`Durable`] calls
//! [`Demand::log`], then clears it). An epoch is one commit to the store of all lines changed since
//! the last one, taken while no transaction runs.

use super::checked::Pairs;
use super::marks::Marks;
use super::own::Own;
use super::view::View;
use crate::memory::{self, Group, Log, Logged};
use crate::pool::{Bounds, Groups};
use indelible_store::Mutant;
use indelible_store::error::StoreError;
use indelible_store::format::LINE;
use indelible_store::store::{Commits, Store};
use std::borrow::Borrow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

const LINES: usize = 512;

const UNBOUNDED: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct Demand {
    /// Weak: threads that look at this keep no pool open.
    store: Weak<Store>,
    pub(super) group: Arc<Group>,
    bounds: Arc<Bounds>,
    groups: Arc<Groups>,
    /// [`UNBOUNDED`] without a guard.
    budget: AtomicU64,
    measured: Mutex<(u64, u64)>,
    /// Memory stays ahead of the pool: an epoch failed, or one was refused that a changed
    /// transaction waited for.
    failed: AtomicBool,
    /// That refusal. Set before `failed`.
    refused: OnceLock<Arc<StoreError>>,
    /// An object was detached with commits that the pool lacks.
    left: AtomicBool,
    pub(super) ended: Arc<OnceLock<bool>>,
    /// Locked while an epoch is published.
    pub(super) turn: Mutex<()>,
}

impl Demand {
    pub(super) fn new(
        store: &Arc<Store>,
        group: Group,
        (bounds, groups): (Arc<Bounds>, Arc<Groups>),
    ) -> Demand {
        groups.begin(group.number());
        Demand {
            store: Arc::downgrade(store),
            group: Arc::new(group),
            bounds,
            groups,
            budget: AtomicU64::new(UNBOUNDED),
            measured: Mutex::default(),
            failed: AtomicBool::new(false),
            refused: OnceLock::new(),
            left: AtomicBool::new(false),
            ended: Arc::default(),
            turn: Mutex::default(),
        }
    }

    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// The pool refused an epoch after the caller had changed memory.
    pub(super) fn fail_refused(&self, refusal: StoreError) {
        let _ = self.refused.set(Arc::new(refusal));
        self.fail();
    }

    pub(super) fn refused(&self) -> Option<Arc<StoreError>> {
        self.refused.get().cloned()
    }

    pub(super) fn leave(&self) {
        // Rule D6 of docs/protocol.md.
        self.left.store(true, Ordering::Release);
    }

    pub(super) fn end(&self) {
        let is_told =
            || self.store.upgrade().is_none_or(|store| store.may_be_in(self.group.number()).unwrap_or(true));
        let left = self.left.load(Ordering::Acquire) && is_told();
        self.group.end(left);
        if !left {
            self.groups.end(self.group.number());
        }
        let _ = self.ended.set(left);
    }

    #[inline]
    pub(super) fn is_durable(&self, sequence: u64) -> bool {
        sequence <= self.durable()
    }

    pub(super) fn durable(&self) -> u64 {
        self.group.figures().durable().load(Ordering::Acquire)
    }

    pub(super) fn made_durable(&self, sequence: u64) {
        self.group.figures().durable().fetch_max(sequence, Ordering::AcqRel);
    }

    pub(super) fn pending(&self) -> u64 {
        self.group.figures().pending().load(Ordering::Relaxed)
    }

    pub(super) fn take_pending(&self) -> u64 {
        let figures = self.group.figures();
        figures.pending().store(0, Ordering::Relaxed);
        figures.since().swap(0, Ordering::Relaxed)
    }

    pub(super) fn return_pending(&self, lines: u64, since: u64) {
        let figures = self.group.figures();
        figures.pending().fetch_add(lines, Ordering::Relaxed);
        figures.since().store(since, Ordering::Relaxed);
    }

    /// Bounds the marked lines; 0: each commit is durable on return; `None`: no bound.
    pub(super) fn set_budget(&self, lines: Option<u64>) {
        self.budget.store(lines.unwrap_or(UNBOUNDED), Ordering::Release);
    }

    pub(super) fn measure(&self, lines: u64, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        *self.measured.lock().unwrap_or_else(PoisonError::into_inner) = (lines * LINE, nanoseconds);
    }

    pub(super) fn measured(&self) -> (u64, u64) {
        *self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fits(&self, commits: &Commits, lines: u64) -> bool {
        self.pending() + lines <= self.bound(commits, self.pending())
    }

    fn bound(&self, commits: &Commits, before: u64) -> u64 {
        let fitting = commits.fitting();
        if before == 0 { fitting } else { fitting.min(self.bounds.lines()) }
    }

    #[inline]
    pub(super) fn give_log(&self, own: &mut Own, lines: usize) -> Result<(), crate::backing::BackingError> {
        if own.room() < lines.max(1) {
            let log = self.group.log(lines.max(LINES).next_power_of_two())?;
            own.take_log(log, &self.group);
        }
        Ok(())
    }

    /// `NoRoom`: nothing happened; an epoch must come first.
    #[inline]
    pub(super) fn log<W: Borrow<[u64; 8]>, L: Iterator<Item = Changed<W>>>(
        &self,
        commits: &Commits,
        own: &mut Own,
        sequence: u64,
        lines: impl Fn() -> L,
    ) -> Result<(), StoreError> {
        // Recovery ignores an invalid entry, so lines are stored before room in the epoch is
        // reserved.
        let strict = own.is_strict();
        let (Some(log), views) = own.parts() else { return Err(no_room(lines().count())) };
        log.begin();
        let mut entry = Entry { log, unmarked: 0, count: 0 };
        for line in lines() {
            let (view, offset) = place_of(views, line.address).ok_or(StoreError::NotFound)?;
            let words = line.words.borrow();
            let fits = match &view.pairs {
                None => entry.put(view, offset, line.mask, words),
                Some(pairs) => entry.put_pairs(view, pairs, offset, (line.mask, words)),
            };
            if !fits {
                return Err(no_room(lines().count()));
            }
        }
        let Entry { unmarked, count, .. } = entry;
        let budget = self.budget.load(Ordering::Relaxed);
        let mut at_once = false;
        if unmarked > 0 || budget == 0 {
            at_once = self.reserve(commits, unmarked, budget)?;
            mark(views, lines());
        } else if strict && !self.fits(commits, 0) {
            return Err(no_room(count));
        }
        // Rule D3 of docs/protocol.md.
        if !Mutant::LogUnvalidated.is_on() {
            log.validate(sequence, count);
        }
        if Mutant::LogClearedEarly.is_on() {
            log.clear();
        }
        if at_once {
            own.set_strict(true);
        }
        Ok(())
    }

    /// Whether the commit must be durable on return.
    #[cold]
    fn reserve(&self, commits: &Commits, lines: u64, budget: u64) -> Result<bool, StoreError> {
        let figures = self.group.figures();
        let before = figures.pending().fetch_add(lines, Ordering::Relaxed);
        if before + lines > self.bound(commits, before) {
            figures.pending().fetch_sub(lines, Ordering::Relaxed);
            return Err(no_room(lines as usize));
        }
        if before == 0 {
            figures.since().store(memory::now(), Ordering::Relaxed);
        }
        // Rule G3 of docs/protocol.md.
        let at_once = (before + lines > budget || budget == 0) && !Mutant::BudgetIgnored.is_on();
        if at_once {
            figures.at_once().fetch_add(1, Ordering::Relaxed);
        }
        Ok(at_once)
    }
}

struct Entry<'a> {
    log: &'a Log,
    unmarked: u64,
    count: usize,
}

impl Entry<'_> {
    #[inline]
    fn put(&mut self, view: &View, offset: u64, mask: u64, words: &[u64; 8]) -> bool {
        let is_marked = |marks: &Marks| marks.has((offset / LINE) as usize);
        self.unmarked += u64::from(view.marks().is_some_and(|marks| !is_marked(marks)));
        self.count += 1;
        self.log.put(self.count - 1, &Logged { object: view.object, offset, mask, words })
    }

    #[cold]
    fn put_pairs(&mut self, view: &View, pairs: &Pairs, offset: u64, change: (u64, &[u64; 8])) -> bool {
        pairs.changed(offset, change).all(|line| self.put(view, line.offset, line.mask, &line.words))
    }
}

#[derive(Clone, Copy)]
pub(super) struct Changed<W> {
    pub(super) address: usize,
    pub(super) mask: u64,
    pub(super) words: W,
}

fn no_room(lines: usize) -> StoreError {
    StoreError::NoRoom { needed: lines as u64 * LINE, largest: 0, free: 0 }
}

#[cold]
fn mark<W>(views: &[View], lines: impl Iterator<Item = Changed<W>>) {
    for line in lines {
        let Some((view, offset)) = place_of(views, line.address) else { continue };
        if let Some(marks) = view.marks().filter(|_| !Mutant::EpochUnmarked.is_on()) {
            view.changed(offset, line.mask).for_each(|offset| marks.set((offset / LINE) as usize));
        }
    }
}

#[inline]
fn place_of(views: &[View], address: usize) -> Option<(&View, u64)> {
    let view = views.iter().find(|view| address.wrapping_sub(view.base) < view.len)?;
    Some((view, (address - view.base) as u64))
}
