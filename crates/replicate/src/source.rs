//! The objects of a pool as of one moment, and their changes since the last one that was shipped.
//!
//! Lines of psyncs come from the writers' lanes (`Store::attach_in_place`), which no writer
//! notices. An object whose lane cannot tell, because its writer came, went, or changed its size,
//! is kept as a snapshot, and compared with its snapshot of before.
//!
//! A moment is proved by two looks: between them each followed object had no psync. Snapshots are
//! taken in between, as of one moment. After some tries all objects are snapshots.
//!
//! Invariants:
//! 1. `Known::still` is a snapshot that was shipped; the replica differs from it in pages of
//!    `Known::touched` alone.
//! 2. `Known::tail` yields each psync since the state that was shipped, or is lost.
//! 3. A snapshot that the store's newest moment states stays until another moment is there.
//! 4. A snapshot's name states its store. A source removes its own store's alone, and ships none.
//!
//! Snapshots for other stores move an object: its lane cannot tell from then on. An object that has
//! had no psync since its own snapshot is compared with it once it has another place: a rollback
//! leaves the psyncs as they are.

mod kept;
mod resume;

use crate::content::{Content, Pages};
use crate::error::{ReplicateError, Result};
use crate::feed::Feed;
use crate::format::{PAGE, StillBody, is_generated, pages_of};
use indelible::Pool;
use indelible_store::error::StoreError;
use indelible_store::format::entry::{Entry, FLAG_BASE, FLAG_OVERLAY, FLAG_SPARSE, FLAG_VOLATILE};
use indelible_store::store::{Attributes, Followed, InPlace, Lines, SnapshotOf, Store};
use indelible_store::table::{Class, Key, Located};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Prefix of the snapshots' names.
pub(crate) const PREFIX: &str = "pmo-replica.";
/// Looks before all objects are snapshots.
const LOOKS: usize = 3;

type Id = [u8; 16];

/// An object as it was shipped.
struct Known {
    attributes: Attributes,
    place: Place,
    still: Option<String>,
    /// ID of `still`, and its psyncs.
    rests: Option<(Id, u64)>,
    tail: Option<InPlace>,
    touched: BTreeSet<u64>,
    /// Followed, not yet shipped.
    lines: Vec<Lines>,
}

/// Where an object lies: a psync changes none of it. Each attach for writing and each rollback has
/// another binding.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Place([u64; 5]);

impl Place {
    fn of(entry: &Entry) -> Place {
        Place([entry.primary, entry.pages, entry.size, entry.base, entry.binding].map(|word| word.get()))
    }
}

struct Listed {
    attributes: Attributes,
    place: Place,
}

impl Listed {
    fn is_fixed(&self) -> bool {
        self.attributes.flags & FLAG_BASE != 0
    }
}

/// A snapshot of the present moment.
struct Still {
    id: Id,
    object: String,
    name: String,
    attributes: Attributes,
    /// Offset of its entry.
    entry: u64,
    /// Its own ID.
    snapshot: Id,
}

pub(crate) struct Source {
    pool: Pool,
    store: Arc<Store>,
    key: Vec<u8>,
    known: BTreeMap<Id, Known>,
    /// In names of snapshots: the store's ID, and a random number.
    mark: String,
    count: u64,
    /// Snapshots that the next moment needs no more, and their objects' names.
    retired: Vec<(String, String)>,
}

impl Source {
    /// Begins from nothing. Removes snapshots that earlier runs to this store left.
    pub(crate) fn new(pool: &Pool, key: &[u8], store_id: &str) -> Result<Source> {
        let source = Source::named(pool, key, store_id)?;
        source.clear(store_id, &BTreeSet::new())?;
        Ok(source)
    }

    fn named(pool: &Pool, key: &[u8], store_id: &str) -> Result<Source> {
        let mut run = [0; 8];
        getrandom::fill(&mut run)
            .map_err(|error| ReplicateError::damaged("the system", format!("no random numbers: {error}")))?;
        let (pool, store, key) = (pool.clone(), pool.store().clone(), key.to_vec());
        let mark = format!("{store_id}.{}", u64::from_le_bytes(run));
        Ok(Source { pool, store, key, known: BTreeMap::new(), mark, count: 0, retired: Vec::new() })
    }

    /// Removes snapshots of earlier runs to this store but those `kept`.
    fn clear(&self, store_id: &str, kept: &BTreeSet<String>) -> Result<()> {
        let (own, mut merge) = (own_prefix(store_id), Vec::new());
        self.each(&mut |object, _| {
            let name = object.entry.name();
            let left = is_snapshot(&object) && (name.starts_with(&own) || is_of_no_store(&name));
            match left && !kept.contains(&name) {
                true => drop(self.store.destroy(&name, Key(&self.key))),
                false => merge.push(name),
            }
        })?;
        merge.iter().for_each(|name| drop(self.store.merge(name)));
        Ok(())
    }

    fn each(&self, show: &mut dyn FnMut(Located, (u64, u64))) -> Result<()> {
        let entries = self.store.entries()?;
        for part in entries.chunks(1024) {
            let found = self
                .store
                .statuses(part, None, |object, status| (*object, status.psyncs, status.published))?;
            for object in found.into_iter().flatten() {
                let (object, psyncs, published) = object?;
                show(object, (psyncs, published));
            }
        }
        Ok(())
    }

    fn list(&self) -> Result<BTreeMap<Id, Listed>> {
        let (mut found, mut bases) = (Vec::new(), BTreeMap::new());
        self.each(&mut |object, (psyncs, published)| {
            if object.entry.has(FLAG_BASE) {
                bases.insert(object.offset, object.entry);
            }
            let own = is_snapshot(&object);
            let kept =
                !own && !object.entry.has(FLAG_VOLATILE) && Class::of(&object.entry) != Some(Class::Shared);
            if kept {
                let attributes = Attributes { psyncs, published, ..Attributes::of(&object) };
                found.push((object.entry, attributes));
            }
        })?;
        let listed = |(entry, mut attributes): (Entry, Attributes)| {
            // An object that rests on a snapshot is sparse; before, it was as it was shipped, or as
            // the lowest snapshot.
            let below = |entry: &Entry| match entry.has(FLAG_OVERLAY) {
                true => bases.get(&entry.base.get()).copied(),
                false => None,
            };
            let dense = match self.known.get(&entry.id).filter(|_| entry.has(FLAG_OVERLAY)) {
                Some(known) => known.attributes.flags & FLAG_SPARSE == 0,
                None => std::iter::successors(Some(entry), below).any(|entry| !entry.has(FLAG_SPARSE)),
            };
            if dense {
                attributes.flags &= !FLAG_SPARSE;
            }
            attributes.flags &= !FLAG_OVERLAY;
            (entry.id, Listed { attributes, place: Place::of(&entry) })
        };
        Ok(found.into_iter().map(listed).collect())
    }

    /// Follows all lanes; whether no object had a psync.
    fn follow(&mut self) -> bool {
        let mut quiet = true;
        for known in self.known.values_mut() {
            let Some(tail) = &mut known.tail else { continue };
            match tail.follow() {
                Followed::Newest => {}
                Followed::Newer(lines) => {
                    known.lines.push(lines);
                    quiet = false;
                }
                Followed::Lost => {
                    known.tail = None;
                    quiet = false;
                }
            }
        }
        quiet
    }

    /// Finds a moment, and feeds the changes since the last one; `false`: none.
    ///
    /// # Errors
    /// The pool's. The source must not be used again after an error of `feed`.
    pub(crate) fn tick(&mut self, feed: &mut dyn Feed) -> Result<bool> {
        for look in 0..=LOOKS {
            self.follow();
            let listed = self.list()?;
            let stills = match self.keep(&listed, look == LOOKS) {
                Err(ReplicateError::Object { cause: StoreError::NotFound, .. }) if look < LOOKS => continue,
                stills => stills?,
            };
            // In the last look all objects are snapshots, of one moment.
            if (look == LOOKS || self.follow()) && self.others_are_as(&listed, &stills)? {
                return self.feed(listed, stills, feed);
            }
            stills.iter().for_each(|still| self.remove(&still.object, &still.name));
        }
        Err(ReplicateError::Restless)
    }

    /// Snapshots of all objects whose changes no lane tells; of `all`, in the last look.
    fn keep(&mut self, listed: &BTreeMap<Id, Listed>, all: bool) -> Result<Vec<Still>> {
        let needs = |id: &Id, now: &Listed| {
            let known = self.known.get(id).filter(|_| !all);
            !now.is_fixed()
                && known.is_none_or(|known| {
                    let same = (known.attributes.psyncs, known.place) == (now.attributes.psyncs, now.place);
                    known.tail.is_none() && !same && !self.is_as_kept(known, now)
                })
        };
        let needed: Vec<_> = listed.iter().filter(|(id, now)| needs(id, now)).collect();
        if needed.is_empty() {
            return Ok(Vec::new());
        }
        self.count += 1;
        let names: Vec<(String, String)> = needed
            .iter()
            .zip(0..)
            .map(|((_, now), n)| {
                (now.attributes.name.clone(), format!("{PREFIX}{}.{}.{n}", self.mark, self.count))
            })
            .collect();
        let of: Vec<_> =
            names.iter().map(|(object, name)| SnapshotOf { object, key: Key(&self.key), name }).collect();
        let bases = self.pool.recovering(|store| store.snapshot(&of))?.map_err(|cause| {
            let name = names[0].0.clone();
            match cause {
                StoreError::NoRoom { .. } | StoreError::NoSpace => ReplicateError::NoRoom { name, cause },
                cause => ReplicateError::Object { name, cause },
            }
        })?;
        let mut stills = Vec::new();
        let mut replaced = None;
        for ((base, (object, name)), (id, now)) in bases.iter().zip(names).zip(needed) {
            let status = self.store.status(base).map_err(ReplicateError::object(&object))?;
            let attributes = Attributes {
                psyncs: status.psyncs,
                published: status.published,
                size: base.entry.size.get(),
                reserved: base.entry.reserved.get(),
                ..now.attributes.clone()
            };
            if !self.store.find(&object).is_ok_and(|found| found.entry.id == *id) {
                replaced = Some(object.clone());
            }
            let (entry, snapshot) = (base.offset, base.entry.id);
            stills.push(Still { id: *id, object, name, attributes, entry, snapshot });
        }
        // Since the list the object went, or another got its name.
        if let Some(name) = replaced {
            stills.iter().for_each(|still| self.remove(&still.object, &still.name));
            return Err(ReplicateError::Object { name, cause: StoreError::NotFound });
        }
        Ok(stills)
    }

    /// Whether objects without lane and snapshot are as they were listed, and none is new: it may
    /// have had a psync together with one that is a snapshot.
    fn others_are_as(&self, listed: &BTreeMap<Id, Listed>, stills: &[Still]) -> Result<bool> {
        let rest = |id: &Id| {
            let followed = self.known.get(id).is_some_and(|known| known.tail.is_some());
            !followed && !stills.iter().any(|still| still.id == *id)
        };
        if stills.is_empty() && !listed.iter().any(|(id, now)| !now.is_fixed() && rest(id)) {
            return Ok(true);
        }
        let again = self.list()?;
        let new = again.iter().any(|(id, now)| !now.is_fixed() && !listed.contains_key(id));
        Ok(!new
            && listed.iter().filter(|(id, now)| !now.is_fixed() && rest(id)).all(|(id, before)| {
                again.get(id).is_some_and(|now| {
                    (now.place, now.attributes.psyncs) == (before.place, before.attributes.psyncs)
                })
            }))
    }

    fn feed(
        &mut self,
        listed: BTreeMap<Id, Listed>,
        stills: Vec<Still>,
        feed: &mut dyn Feed,
    ) -> Result<bool> {
        let mut any = false;
        let gone: Vec<Id> = self.known.keys().filter(|id| !listed.contains_key(*id)).copied().collect();
        for id in gone {
            feed.gone(&id)?;
            if let Some(Known { attributes, still: Some(still), .. }) = self.known.remove(&id) {
                self.retired.push((attributes.name, still));
            }
            any = true;
        }
        let mut kept: BTreeMap<Id, Still> = stills.into_iter().map(|still| (still.id, still)).collect();
        for (id, now) in listed {
            any |= match kept.remove(&id) {
                Some(still) => self.feed_still(still, feed)?,
                None if now.is_fixed() => self.feed_fixed(now, feed)?,
                None => self.feed_lines(&id, now, feed)?,
            };
        }
        Ok(any)
    }

    fn feed_fixed(&mut self, now: Listed, feed: &mut dyn Feed) -> Result<bool> {
        let Listed { attributes, place, .. } = now;
        let id = attributes.id;
        if self.known.get(&id).is_some_and(|known| known.attributes == attributes) {
            return Ok(false);
        }
        if self.known.contains_key(&id) {
            feed.gone(&id)?;
        }
        feed.object(&attributes, 0)?;
        Content::of(&self.store, &attributes.name, &self.key, &attributes)?.feed(&Pages::All, feed)?;
        let (still, tail, touched, lines) = (None, None, BTreeSet::new(), Vec::new());
        self.known.insert(id, Known { attributes, place, still, rests: None, tail, touched, lines });
        Ok(true)
    }

    fn feed_lines(&mut self, id: &Id, now: Listed, feed: &mut dyn Feed) -> Result<bool> {
        let Some(known) = self.known.get_mut(id) else { return Ok(false) };
        let lines = std::mem::take(&mut known.lines);
        let mut attributes = now.attributes;
        // In its place it only rises, and lines tell it before the list does.
        attributes.published = attributes.published.max(known.attributes.published);
        let runs = || lines.iter().flat_map(Lines::iter);
        let end = runs().map(|(offset, bytes)| offset + bytes.len() as u64).max().unwrap_or(0);
        if end > attributes.published.next_multiple_of(PAGE) {
            attributes.published = end;
        }
        if lines.is_empty() && known.attributes == attributes {
            if known.tail.is_none() {
                known.place = now.place;
            }
            return Ok(false);
        }
        feed.object(&attributes, known.attributes.psyncs)?;
        for (offset, bytes) in runs() {
            known.touched.extend(pages_of(offset, bytes.len() as u64));
            feed.run(offset, bytes)?;
        }
        (known.attributes, known.place) = (attributes, now.place);
        Ok(true)
    }

    fn feed_still(&mut self, still: Still, feed: &mut dyn Feed) -> Result<bool> {
        let Still { id, object, name, attributes, entry, snapshot } = still;
        // Before the upload: a checkpoint after the snapshot would leave a gap.
        let tail = self.tail(&object, &attributes, entry);
        let now = self.store.find(&object).map_err(ReplicateError::object(&object))?;
        // Else the object was rolled back since the snapshot: it differs at the next look.
        let rests = now.entry.id == id && now.entry.base.get() == entry;
        let place = if rests { Place::of(&now.entry) } else { Place::default() };
        let before = self.known.remove(&id);
        let content = Content::of(&self.store, &name, &self.key, &attributes)?;
        let old = before.as_ref().filter(|known| self.has_snapshot(known, attributes.address));
        let old = old.and_then(|known| known.still.as_ref().map(|still| (known, still)));
        match old {
            Some((known, still)) => {
                let older = &Content::of(&self.store, still, &self.key, &known.attributes)?;
                let pages = match attributes.is_sealed() {
                    true => std::iter::once(0..content.pages().max(older.pages())).collect(),
                    false => {
                        let found = self.store.diff(still, &name, Key(&self.key));
                        found.map_err(ReplicateError::object(&object))?.pages
                    }
                };
                feed.object(&attributes, known.attributes.psyncs)?;
                content.feed(&Pages::Changed { older, pages, touched: &known.touched }, feed)?;
            }
            None => {
                // The replica's bytes are not known.
                if before.is_some() {
                    feed.gone(&id)?;
                }
                feed.object(&attributes, 0)?;
                content.feed(&Pages::All, feed)?;
            }
        }
        feed.still(&StillBody { snapshot, psyncs: attributes.psyncs.into(), size: attributes.size.into() })?;
        drop(content);
        if let Some(still) = before.and_then(|known| known.still) {
            self.retired.push((object, still));
        }
        let (touched, lines) = (BTreeSet::new(), Vec::new());
        let (still, rests) = (Some(name), Some((snapshot, attributes.psyncs)));
        self.known.insert(id, Known { attributes, place, still, rests, tail, touched, lines });
        Ok(true)
    }

    /// The moment that was fed is in the store: removes the snapshots of before.
    pub(crate) fn settle(&mut self) {
        let retired = std::mem::take(&mut self.retired);
        retired.iter().for_each(|(object, still)| self.remove(object, still));
    }

    /// Follows the object from the state of the snapshot with this entry, if no checkpoint came
    /// since.
    fn tail(&self, object: &str, at: &Attributes, entry: u64) -> Option<InPlace> {
        let tail = self.store.attach_in_place(object, Key(&self.key)).ok()??;
        // The tail begins at the progress line of its attach, which only rises.
        let now = self.store.find(object).ok()?;
        let counted = now.progress(self.store.superblock().seed.get()).ok()?.psyncs.get();
        let found = &tail.object().entry;
        let rests = found.id == at.id && found.base.get() == entry && found.size.get() == at.size;
        (rests && now.entry.id == at.id && counted == at.psyncs).then_some(tail)
    }

    fn remove(&self, object: &str, snapshot: &str) {
        // A leftover costs space, until the next run removes it.
        let _ = self.store.destroy(snapshot, Key(&self.key));
        let _ = self.store.merge(object);
    }
}

/// Whether it is a snapshot for this or another store.
fn is_snapshot(object: &Located) -> bool {
    let name = object.entry.name();
    object.entry.has(FLAG_BASE) && (is_generated(&name, PREFIX, 3) || is_of_no_store(&name))
}

fn own_prefix(store_id: &str) -> String {
    format!("{PREFIX}{store_id}.")
}

/// Names of the release before.
fn is_of_no_store(name: &str) -> bool {
    is_generated(name, PREFIX, 2)
}

impl Drop for Source {
    fn drop(&mut self) {
        self.settle();
        for known in std::mem::take(&mut self.known).into_values() {
            if let Some(still) = known.still {
                self.remove(&known.attributes.name, &still);
            }
        }
    }
}
