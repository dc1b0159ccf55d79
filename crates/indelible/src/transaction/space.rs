//! This process's transactions on the objects of one class in a pool: one memory of words, whose
//! commits the store makes durable in order, singly or, on demand, in epochs.

#![allow(unsafe_code)]

use super::checked::{Repairs, Words, word};
use super::demand::Demand;
use super::durable::{Durable, Syncing, view_of};
use super::leaving::{Leaver, Leaving};
use super::own::Own;
use super::view::View;
use crate::error::{Cause, TransactionError};
use crate::memory::{Group, MemoryError};
use crate::pool::{Class, Inner, inside_transaction};
use indelible_stm::{BeginError, Line, Stm, Transaction, WriteSet};
use indelible_store::Mutant;
use indelible_store::error::StoreError;
use indelible_store::format::LINE;
use indelible_store::store::{ChangedLine, Commits, Writer};
use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::time::Instant;

/// After the last detach, an attach starts fresh, also after a failure.
pub(super) struct Space {
    /// All users that share data have one memory of words.
    users: OnceLock<Users>,
    pub(super) stm: Arc<Stm<Words, Durable>>,
    class: Class,
    leaving: Leaving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Users {
    Functions,
    Blocks,
}

impl Space {
    pub(super) fn of(pool: &Inner, class: Class) -> Result<Arc<Space>, Cause> {
        let mut places = pool.transactions();
        if let Some(there) = places.get(&class).and_then(Weak::upgrade)
            && let Ok(space) = there.downcast::<Space>()
            // A failed one without attached objects exists only because its thread looks at it.
            && (space.check().is_ok() || space.views().len() > space.leaving.objects().len())
        {
            return Ok(space);
        }
        let mut sink = Durable::default();
        if class == Class::OnDemand {
            let group = Group::new(pool.memory_place(), pool.store.memory_number()?);
            let group = group.map_err(MemoryError::from)?;
            sink.demand =
                Some(Demand::new(&pool.store, group, (pool.epochs().clone(), pool.groups().clone())));
        }
        let stm = Stm::new(Words::default(), sink);
        let space = Arc::new(Space { users: OnceLock::new(), stm, class, leaving: Leaving::default() });
        let weak = Arc::downgrade(&space);
        let sync = move |number| match weak.upgrade() {
            Some(space) => space.sync(number),
            None => Err(StoreError::Poisoned.into()),
        };
        let _ = space.stm.sink().sync.set(Syncing(Box::new(sync)));
        if class == Class::OnDemand {
            let publish = |space: &Space| {
                let is_leaving = || !space.leaving.objects().is_empty();
                if space.demand().is_some_and(|demand| demand.pending() > 0 || is_leaving()) {
                    let _ = space.publish();
                }
            };
            super::epochs::now_and_then(&space, pool.epochs().clone(), publish)?;
            let access = super::guarded::Access { demand: Space::demand, publish: Space::publish };
            super::guarded::watch(&space, access, pool)?;
        }
        let erased: Arc<dyn Any + Send + Sync> = space.clone();
        places.insert(class, Arc::downgrade(&erased));
        Ok(space)
    }

    pub(super) fn class(&self) -> Class {
        self.class
    }

    pub(super) fn claim(&self, users: Users) -> Result<(), Cause> {
        if *self.users.get_or_init(|| users) == users {
            Ok(())
        } else {
            Err(TransactionError::OtherUsers.into())
        }
    }

    pub(super) fn is_for_blocks(&self) -> bool {
        self.users.get() == Some(&Users::Blocks)
    }

    pub(super) fn last(&self) -> u64 {
        self.stm.now().max(self.stm.sink().numbers.load(Ordering::Acquire))
    }

    /// Of two commits with a common line, the first is told and stored first.
    pub(super) fn tell(&self, lines: Vec<ChangedLine>) -> Result<(), StoreError> {
        let number = self.stm.sink().number();
        self.commits().tell(number, lines).inspect_err(|_| self.commits().skip(number))
    }

    pub(super) fn commits(&self) -> &Commits {
        &self.stm.sink().commits
    }

    pub(super) fn demand(&self) -> Option<&Demand> {
        self.stm.sink().demand.as_ref()
    }

    pub(super) fn add(&self, view: View) {
        if let Some(pairs) = view.pairs {
            self.stm.memory().add(pairs);
        }
        self.change_views(|views| views.push(view));
        self.forget_lists();
    }

    pub(super) fn remove(&self, object: u64) {
        let of_object = |view: &View| view.object == object;
        let pairs = self.views().into_iter().find(of_object).and_then(|view| view.pairs);
        self.change_views(|views| views.retain(|view| !of_object(view)));
        if let Some(pairs) = pairs {
            self.stm.memory().remove(pairs.own);
        }
    }

    pub(super) fn is_leaving(&self, object: u64) -> bool {
        self.leaving.objects().contains(&object)
    }

    /// After a failure the object stays: see [`leaving`](super::leaving).
    pub(super) fn let_go(&self, leaver: Leaver) -> Result<(), Cause> {
        let Some(demand) = self.demand() else { return Err(StoreError::Poisoned.into()) };
        let inside = inside_transaction();
        let published = if inside { Err(TransactionError::Inside.into()) } else { self.publish() };
        let stays = inside || published.is_err() && !demand.has_failed();
        if stays && !Mutant::LeftUnpublished.is_on() {
            self.leaving.add(leaver);
            return published;
        }
        // An epoch in progress reads all objects' memory.
        let turn = demand.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (writer, flushed) = self.take_out(leaver.object);
        drop(turn);
        leaver.end(demand, writer, published.and(flushed))
    }

    fn take_out(&self, object: u64) -> (Option<Writer>, Result<(), Cause>) {
        let (writer, flushed) = self.commits().leave(object);
        self.remove(object);
        (writer, flushed.map_err(Cause::from))
    }

    fn forget_lists(&self) {
        if self.stm.memory().has_many()
            && let Ok(_alone) = self.stm.thread().alone()
        {
            // SAFETY: this thread is alone.
            unsafe { self.stm.memory().forget() };
        }
    }

    pub(super) fn repairs(&self) -> Repairs {
        self.stm.memory().repairs()
    }

    pub(super) fn lengthen(&self, object: u64, len: usize) {
        self.change_views(|views| {
            for view in views.iter_mut().filter(|view| view.object == object) {
                view.lengthen(len);
                if let Some(pairs) = &view.pairs {
                    self.stm.memory().lengthen(pairs.own, pairs.len);
                }
            }
        });
    }

    fn change_views(&self, change: impl FnOnce(&mut Vec<View>)) {
        let sink = self.stm.sink();
        change(&mut sink.views.write().unwrap_or_else(PoisonError::into_inner));
        sink.version.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn views(&self) -> Vec<View> {
        self.stm.sink().views()
    }

    #[inline]
    pub(super) fn check(&self) -> Result<(), Cause> {
        let failed = match self.demand() {
            Some(demand) => demand.has_failed(),
            None => self.commits().check().is_err(),
        };
        if failed { Err(self.explained(StoreError::Poisoned)) } else { Ok(()) }
    }

    pub(super) fn explained(&self, error: StoreError) -> Cause {
        self.stm.sink().explained(error)
    }

    /// `strict`: the next transaction is durable on return.
    #[inline]
    pub(super) fn prepare(&self, own: &mut Own, strict: bool) -> Result<(), Cause> {
        let Some(demand) = self.demand() else { return Ok(()) };
        own.set_strict(strict);
        Ok(demand.give_log(own, 1).map_err(MemoryError::from)?)
    }

    #[inline]
    fn shortage(&self, running: &mut Transaction<'_, 'static, Words, Durable>, lines: usize) -> u64 {
        let sink = self.stm.sink();
        if let Some(demand) = &sink.demand {
            if running.own().is_strict() && !sink.commits.fits_on_bases(demand.pending() + lines as u64) {
                // It must not change memory before an epoch without room.
                sink.commits.look();
            }
            let fits =
                lines <= running.own().room() && (lines < FEW || lines as u64 <= sink.commits.fitting());
            return if fits { 0 } else { lines as u64 };
        }
        let places = || self.places(running.writes(), |places| places.collect::<Vec<_>>()).into_iter();
        sink.commits.shortage(lines, places)
    }

    #[inline]
    pub(super) fn lines_told(&self, running: &Transaction<'_, 'static, Words, Durable>) -> usize {
        let writes = running.writes();
        if self.stm.memory().is_plain() { writes.len() } else { self.places(writes, |places| places.count()) }
    }

    fn places<R>(
        &self,
        writes: &WriteSet,
        look: impl FnOnce(&mut dyn Iterator<Item = (u64, u64)>) -> R,
    ) -> R {
        let views = self.stm.sink().views.read().unwrap_or_else(PoisonError::into_inner);
        let of = |line: Line<'_>| {
            let (view, offset) = view_of(&views, &line)?;
            let object = view.object;
            Some(view.changed(offset, line.mask()).map(move |offset| (object, offset)))
        };
        look(&mut writes.lines().filter_map(of).flatten())
    }

    /// Returns the missing part, for [`make_room`](Self::make_room); none for one that is alone.
    #[inline]
    pub(super) fn room_for(
        &self,
        running: &mut Transaction<'_, 'static, Words, Durable>,
        lines: usize,
    ) -> Result<Option<u64>, StoreError> {
        let short = self.shortage(running, lines);
        if short > 0 && running.is_alone() && self.demand().is_none() {
            // No thread waits for its lines, and it might be unrepeatable.
            self.commits().make_room(short)?;
            return Ok(None);
        }
        Ok((short > 0).then_some(short))
    }

    pub(super) fn shortage_of_block(&self, own: &Own, lines: usize) -> u64 {
        let Some(demand) = self.demand() else { return 0 };
        let fits = lines <= own.room() && demand.fits(self.commits(), lines as u64);
        if fits { 0 } else { lines as u64 }
    }

    pub(super) fn make_room(&self, own: &mut Own, short: u64) -> Result<(), Cause> {
        let Some(demand) = self.demand() else { return Ok(self.commits().make_room(short)?) };
        if short > self.commits().fitting() {
            self.commits().make_room_for(short)?;
        }
        demand.give_log(own, short as usize).map_err(MemoryError::from)?;
        self.publish()
    }

    /// After an error that left no trace, such as `NoRoom`, the next call tries again. Any other is
    /// the last: memory is ahead of the pool.
    pub(super) fn publish(&self) -> Result<(), Cause> {
        self.publish_up_to(u64::MAX)
    }

    fn publish_up_to(&self, sequence: u64) -> Result<(), Cause> {
        let Some(demand) = self.demand() else {
            return self.commits().flush().map_err(|error| self.explained(error));
        };
        let _turn = demand.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Rule D5 of docs/protocol.md.
        if demand.is_durable(sequence) {
            return Ok(());
        }
        if self.commits().check().is_err() {
            demand.fail();
        }
        self.check()?;
        let begin = Instant::now();
        let Epoch { last, mut lines, since, leaving } = self.epoch(demand)?;
        let count = lines.len() as u64;
        if count > 0 {
            // Rule D7 of docs/protocol.md.
            if let Err(error) = self.publish_lines(&mut lines) {
                if !Mutant::RefusedForgotten.is_on() {
                    self.mark_again(demand, &lines, since);
                }
                if self.commits().check().is_err() {
                    demand.fail();
                }
                return Err(error.into());
            }
            demand.measure(count, begin.elapsed());
        }
        demand.made_durable(last);
        self.leaving.end(&leaving, |leaver| {
            let (writer, flushed) = self.take_out(leaver.object);
            let _ = leaver.end(demand, writer, flushed);
        });
        Ok(())
    }

    fn publish_lines(&self, lines: &mut [ChangedLine]) -> Result<(), StoreError> {
        let count = lines.len() as u64;
        if count > self.commits().fitting() {
            self.commits().make_room_for(count)?;
        }
        self.commits().publish_epoch(lines)
    }

    pub(super) fn sync(&self, sequence: u64) -> Result<(), Cause> {
        // Without epochs, each commit was durable on return, unless one failed.
        let Some(demand) = self.demand() else { return self.check() };
        let durable = demand.is_durable(sequence) || Mutant::SyncNotAwaited.is_on();
        if durable { Ok(()) } else { self.publish_up_to(sequence) }
    }

    fn epoch(&self, demand: &Demand) -> Result<Epoch, Cause> {
        // Rule D4 of docs/protocol.md.
        let mut thread = self.stm.thread();
        let ungated = Mutant::EpochUngated.is_on();
        let _alone = if ungated { None } else { Some(thread.alone()?) };
        let (last, leaving) = (self.last(), self.leaving.objects());
        let mut lines = Vec::with_capacity(demand.pending() as usize);
        for view in self.views() {
            let Some(marks) = view.marks() else { continue };
            marks.take(|line| {
                let (object, offset) = (view.object, line as u64 * LINE);
                let mut bytes = [0; LINE as usize];
                for (nth, into) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                    // SAFETY: a word of a view, which is not removed meanwhile (5).
                    *into = unsafe { word(view.bytes() + offset as usize + 8 * nth) }.to_le_bytes();
                }
                lines.push(ChangedLine { object, offset, bytes });
            });
        }
        Ok(Epoch { last, lines, since: demand.take_pending(), leaving })
    }

    fn mark_again(&self, demand: &Demand, lines: &[ChangedLine], since: u64) {
        for view in self.views() {
            let Some(marks) = view.marks() else { continue };
            let own = lines.iter().filter(|line| line.object == view.object);
            own.for_each(|line| marks.set((line.offset / LINE) as usize));
        }
        demand.return_pending(lines.len() as u64, since);
    }
}

struct Epoch {
    last: u64,
    lines: Vec<ChangedLine>,
    since: u64,
    leaving: Vec<u64>,
}

impl Drop for Space {
    fn drop(&mut self) {
        if let Some(demand) = self.demand() {
            self.leaving.end(&self.leaving.objects(), |leaver| {
                let (writer, _) = self.take_out(leaver.object);
                let _ = leaver.end(demand, writer, Err(StoreError::Poisoned.into()));
            });
            demand.end();
        }
    }
}

/// So few lines always fit into a lane.
const FEW: usize = 16;

impl From<BeginError> for Cause {
    fn from(error: BeginError) -> Cause {
        match error {
            BeginError::Forked => Cause::Forked,
            BeginError::Nested => TransactionError::Inside.into(),
        }
    }
}
