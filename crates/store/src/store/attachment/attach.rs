//! Attach and detach on the medium: locks, recovery, the entry, a lane.

use super::class::{Memory, expect_class};
use super::sealed_pages::SealedPages;
use super::tail::{Followed, Tail};
use super::unlocked::{Unlocked, expect_key};
use super::writer::Writer;
use super::written::Direct;
use crate::entropy::{now, random_id};
use crate::error::{Result, StoreError};
use crate::format::entry::{Entry, NO_LANE, STATE_D};
use crate::medium::{LockKey, LockMode};
use crate::mutant::Mutant;
use crate::recovery::{Recovered, Standing, clear_left};
use crate::space::TableTransaction;
use crate::store::lanes::page_cache_for;
use crate::store::locks::ObjectLock;
use crate::store::pool::LaneSearch;
use crate::store::pool::Store;
use crate::sync::Mutex;
use crate::table::{Class, CreateOptions, Key, Layers, Located};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zerocopy::little_endian::U32;

/// An object attached for reading; dropping it detaches.
pub struct Reader {
    pub(super) store: Arc<Store>,
    /// `None` in a read-only store.
    object_lock: Option<ObjectLock>,
    pub(super) object: Located,
    pub(super) layers: Option<Layers>,
    pub(super) tail: Option<Tail>,
    first_tail: Option<Tail>,
    pub(super) sealed: Option<Arc<SealedPages>>,
}

impl Store {
    /// Attaches `name` for reading. Writes nothing, unless there is something to recover.
    pub fn attach_reader(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Reader> {
        let reader = self.attach_raw_reader(name, key)?;
        expect_key(&reader.object, None)?;
        Ok(reader)
    }

    /// [`attach_reader`](Store::attach_reader) of a sealed object, by the key of
    /// [`unlock`](Store::unlock).
    ///
    /// # Errors
    /// `NotSealed`, `Broken`.
    pub fn attach_sealed_reader(
        self: &Arc<Self>,
        name: &str,
        key: Key<'_>,
        unlocked: &Unlocked,
    ) -> Result<Reader> {
        let mut reader = self.attach_raw_reader(name, key)?;
        reader.unseal(unlocked)?;
        Ok(reader)
    }

    /// [`attach_reader`](Store::attach_reader) of the bytes in the pool: ciphertext of a sealed
    /// object, until [unsealed](Reader::unseal).
    pub fn attach_raw_reader(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Reader> {
        let clean = self.unless_held_still(|| {
            self.view(|table| {
                let (object, object_lock) = self.open_for_reading(table, name, key)?;
                let unclean = self.has_memory(&object)
                    || self.stale_lane(table, &object)?.is_some()
                    || undefined(table, &object)?.is_some();
                let layers = if unclean { None } else { table.layers(&object)? };
                Ok((!unclean).then_some((object, object_lock, layers)))
            })
        })?;
        let (object, object_lock, layers) = match clean {
            Some(found) => found,
            None if self.read_only => return Err(StoreError::NeedsRecovery),
            None => self.recover_for_reading(name, key)?,
        };
        Ok(Reader {
            store: self.clone(),
            object_lock,
            object,
            layers,
            tail: None,
            first_tail: None,
            sealed: None,
        })
    }

    /// Looks in the writer's lane for psyncs after a [`reader`](Self::attach_snapshot)'s state,
    /// unnoticed by the writer.
    pub fn follow(&self, reader: &mut Reader) -> Followed {
        let Some(tail) = &mut reader.tail else { return Followed::Newest };
        let Ok(Some((found, lines))) = self.read_tail(tail) else { return Followed::Lost };
        let newer = found.shown() != tail.shown();
        let lines = match &reader.sealed {
            Some(sealed) if newer => match sealed.lay(&reader.object, &lines) {
                Ok(Some(plain)) => plain,
                Ok(None) | Err(_) => return Followed::Lost,
            },
            _ => lines,
        };
        *tail = found;
        if newer { Followed::Newer(lines) } else { Followed::Newest }
    }

    /// Whether the log proves that the reader is the newest; otherwise [`follow`](Store::follow).
    #[must_use]
    pub fn is_newest(&self, reader: &Reader) -> bool {
        let Some(tail) = reader.tail else { return true };
        matches!(self.read_tail(&tail), Ok(Some((found, _))) if found.shown() == tail.shown())
    }

    fn open_for_reading(
        self: &Arc<Self>,
        table: &TableTransaction<'_>,
        name: &str,
        key: Key<'_>,
    ) -> Result<(Located, Option<ObjectLock>)> {
        let object = self.usable(table, name)?;
        Class::expect_bytes(&object.entry)?;
        if !object.opens_for_reading(key) {
            return Err(StoreError::WrongKey);
        }
        if !self.read_only {
            let object_lock = ObjectLock::take(&self.object_locks, &object, LockMode::Shared)?;
            return Ok((object, Some(object_lock)));
        }
        match self.device.probe(LockKey::Object(object.offset))? {
            Some(LockMode::Exclusive) => Err(self.object_locks.held(&object, true)),
            _ => Ok((object, None)),
        }
    }

    fn recover_for_reading(
        self: &Arc<Self>,
        name: &str,
        key: Key<'_>,
    ) -> Result<(Located, Option<ObjectLock>, Option<Layers>)> {
        self.forget_failed_lanes();
        let (object, object_lock, layers, _recovered) = self.unless_held_still(|| {
            self.update(|table| {
                let (mut object, object_lock) = self.open_for_reading(table, name, key)?;
                let recovered = self.recover(table, &object)?;
                if let Some((from, to)) = undefined(table, &object)? {
                    // Only a writer changes the progress line.
                    let medium = table.pages().medium();
                    clear_left(medium, &object.entry, from, to)?;
                    medium.barrier()?;
                }
                if object.entry.state != STATE_D {
                    object.entry.state = STATE_D;
                    object.entry.lane = U32::new(NO_LANE);
                    table.put_entry(&object)?;
                }
                let layers = table.layers(&object)?;
                // Given back after publication.
                Ok((object, object_lock, layers, recovered))
            })
        })?;
        Ok((object, object_lock, layers))
    }

    /// Attaches `name` for writing, after recovery if the last writer died.
    pub fn attach_writer(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Writer> {
        self.attach_any_writer(name, key, &|object| {
            expect_key(object, None)?;
            expect_class(object, Class::Psync)
        })
    }

    /// [`attach_writer`](Store::attach_writer), of any class, only to change the size.
    pub fn attach_to_resize(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Writer> {
        self.attach_any_writer(name, key, &|object| expect_key(object, None))
    }

    /// [`attach_writer`](Store::attach_writer) without decryption.
    pub(in crate::store) fn attach_raw_writer(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Writer> {
        self.attach_any_writer(name, key, &|_| Ok(()))
    }

    /// [`attach_writer`](Store::attach_writer) of a sealed object, by the key of
    /// [`unlock`](Store::unlock).
    ///
    /// # Errors
    /// `NotSealed`, `Broken`; `SignKeyNeeded`, `NotSigned`, `BadSignature`.
    pub fn attach_sealed_writer(
        self: &Arc<Self>,
        name: &str,
        key: Key<'_>,
        unlocked: &Unlocked,
    ) -> Result<Writer> {
        let mut writer = self.attach_any_writer(name, key, &|object| {
            expect_class(object, Class::Psync)?;
            expect_key(object, Some(unlocked))?;
            unlocked.expect_sign_key()
        })?;
        writer.unseal(unlocked)?;
        writer.finish_resize()?;
        Ok(writer)
    }

    /// Creates an object, attached for writing.
    pub fn create_writer(self: &Arc<Self>, name: &str, how: &CreateOptions<'_>) -> Result<Writer> {
        if how.read_only {
            return Err(StoreError::ObjectReadOnly);
        }
        let (id, now) = (random_id()?, now());
        self.with_way_made(name, || {
            self.bind_writer(|table, search| {
                let object = table.create(name, id, now, &self.with_window(how))?;
                expect_class(&object, Class::Psync)?;
                self.prepare_extent(table, &object, 0)?;
                self.begin_writing(table, object, Memory::None, search)
            })
        })
    }

    /// Publishes a writer's binding, again without a dead process's lane that fails.
    pub(super) fn bind_writer(
        self: &Arc<Self>,
        change: impl Fn(&mut TableTransaction<'_>, &mut LaneSearch) -> Result<Unbound>,
    ) -> Result<Writer> {
        self.publish_binding(change).and_then(|pending| self.attached(pending))
    }

    pub(super) fn publish_binding<B>(
        self: &Arc<Self>,
        change: impl Fn(&mut TableTransaction<'_>, &mut LaneSearch) -> Result<B>,
    ) -> Result<B> {
        loop {
            self.forget_failed_lanes();
            let mut search = LaneSearch::default();
            match self.unless_held_still(|| self.update(|table| change(table, &mut search))) {
                Err(_) if search.is_to_be_repeated => {}
                done => return done,
            }
        }
    }

    /// Repeats `attempt` after holds and short locks, not awaited under the table's lock.
    pub(in crate::store) fn unless_held_still<R>(&self, mut attempt: impl FnMut() -> Result<R>) -> Result<R> {
        let mut deadline = self.apply_locks.deadline();
        loop {
            match attempt() {
                Err(StoreError::HeldStill { lane, .. }) => self.apply_locks.pause(lane, &mut deadline)?,
                Err(held @ StoreError::Held { passing: true, .. }) => {
                    self.apply_locks.pause_or(held, &mut deadline)?;
                }
                done => return done,
            }
        }
    }

    pub(super) fn begin_writing(
        self: &Arc<Self>,
        table: &mut TableTransaction<'_>,
        mut object: Located,
        memory: Memory,
        search: &mut LaneSearch,
    ) -> Result<Unbound> {
        Class::expect_bytes(&object.entry)?;
        let object_lock = ObjectLock::take(&self.object_locks, &object, LockMode::Exclusive)?;
        if !matches!(memory, Memory::Left(_)) {
            self.expect_no_memory(&object)?;
        }
        let recovered = self.recover_lane(table, &object)?;
        let progress = table.progress(&object)?;
        let standing = Standing {
            published: progress.published.get(),
            psyncs: progress.psyncs.get(),
            direct: progress.direct.get(),
        };
        let (found, recovered) = recovered.map_or((None, Recovered::default()), |(l, r)| (Some(l), r));
        let lane = self.choose_lane(table, found, search)?;
        if undefined(table, &object)?.is_some() && self.apply_locks.is_held(lane.index)? {
            return Err(self.apply_locks.refused(lane.index));
        }
        let layers = table.layers(&object)?;
        if let Memory::New(number) = memory {
            object.entry.keep_in(Some((number, self.identity.boot)));
        }
        self.bind(table, &mut object, lane.index)?;
        if table.root.boot != self.identity.boot {
            table.root.boot = self.identity.boot;
            table.root.boots = U32::new(table.root.boots.get().wrapping_add(1));
        }
        let (based, revision) = (layers.is_some(), lane.revision());
        let layers = layers.unwrap_or_else(|| Layers::alone(&object)).in_revision(revision);
        let writer = Writer {
            store: self.clone(),
            revision,
            pages_lane: Arc::new(Mutex::new(lane.clone())),
            lane,
            object_lock: None,
            object,
            standing,
            direct: Direct::Left,
            unsettled: false,
            scratch: None,
            page_cache: page_cache_for(&*self.device),
            layers: Arc::new(Mutex::new(layers)),
            based,
            former: Vec::new(),
            backed: Vec::new(),
            sealed: None,
            heading: None,
            recovered,
            forgets_memory: false,
        };
        Ok(Unbound { object_lock, writer })
    }

    pub(super) fn attached(&self, pending: Unbound) -> Result<Writer> {
        // Rule L12 of docs/protocol.md.
        let Unbound { object_lock, mut writer } = pending;
        writer.object_lock = Some(object_lock);
        writer.lane.bound.fetch_add(1, Ordering::Relaxed);
        self.keep_lane(&writer.lane);
        writer.cancel_direct()?;
        Ok(writer)
    }
}

/// The range left undefined by a direct write.
pub(in crate::store) fn undefined(
    table: &TableTransaction<'_>,
    object: &Located,
) -> Result<Option<(u64, u64)>> {
    let progress = table.progress(object)?;
    let (from, to) = (progress.published.get(), progress.direct.get().min(object.entry.extent_len()));
    Ok((from < to).then_some((from, to)))
}

pub(super) struct Unbound {
    object_lock: ObjectLock,
    pub(super) writer: Writer,
}

impl Reader {
    /// A reader of a base made of `tail`'s object, locked by the caller.
    pub(in crate::store) fn of_base(
        store: &Arc<Store>,
        object_lock: ObjectLock,
        base: Located,
        layers: Option<Layers>,
        tail: Tail,
    ) -> Self {
        let (store, object_lock) = (store.clone(), Some(object_lock));
        Reader {
            store,
            object_lock,
            object: base,
            layers,
            tail: Some(tail),
            first_tail: Some(tail),
            sealed: None,
        }
    }

    /// Another reader of the same base and state; `None`: this one follows nothing.
    pub fn again(&self) -> Result<Option<Reader>> {
        let Some(tail) = self.first_tail else { return Ok(None) };
        self.store.view(|table| {
            let object_lock = ObjectLock::take(&self.store.object_locks, &self.object, LockMode::Shared)?;
            let layers = table.layers(&table.entry(self.object.offset)?)?;
            Ok(Some(Reader::of_base(&self.store, object_lock, self.object, layers, tail)))
        })
    }

    /// Number of the shown psync.
    #[must_use]
    pub fn shown(&self) -> Option<u64> {
        self.tail.map(|tail| tail.shown())
    }

    /// Whether both readers show the same psync of the same object.
    #[must_use]
    pub fn shows_as(&self, other: &Reader) -> bool {
        self.tail.zip(other.tail).is_some_and(|(tail, other)| tail.shows_as(&other))
    }

    /// The object at the attach.
    #[must_use]
    pub fn object(&self) -> &Located {
        &self.object
    }

    /// Takes its layers, for readers of the object; `None`: without a base.
    pub fn take_layers(&mut self) -> Option<Layers> {
        self.layers.take()
    }

    /// Whether all reads since the attach saw one psync; asked after the last read in a read-only
    /// store.
    pub fn is_current(&self) -> Result<bool> {
        if self.object_lock.is_some() || Mutant::ReadUnchecked.is_on() {
            return Ok(true);
        }
        let (then, store) = (&self.object.entry, &self.store);
        store.view(|table| {
            let Ok(now) = table.entry(self.object.offset) else { return Ok(false) };
            let same = |entry: &Entry| {
                (entry.id, entry.binding, entry.state, entry.primary, entry.pages, entry.size)
            };
            let alone = store.device.probe(LockKey::Object(now.offset))? != Some(LockMode::Exclusive);
            Ok(alone && same(&now.entry) == same(then))
        })
    }

    /// Detaches.
    pub fn detach(self) -> Result<()> {
        Ok(())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(object_lock) = self.object_lock.take() {
            drop(object_lock);
            self.store.remove_if_deleted(&self.object);
        }
    }
}
