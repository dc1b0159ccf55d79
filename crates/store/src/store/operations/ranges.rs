//! New objects of page ranges of others. Pages that keep their place in one of the sources are
//! shared with it, as a copy shares them; others are copied.
//!
//! The object is hidden until all of its pages are in place, for [`Store::reap`] after a crash. A
//! range is of its source's last psync; each source is seen at a moment of its own.

use super::boundary::Right;
use super::diff::Still;
use super::revive::Revived;
use crate::entropy::{now, random_id};
use crate::error::{ClassError, Result, SealError, StoreError};
use crate::format::entry::{CLASS_ON_DEMAND, FLAG_BASE, FLAG_ECC};
use crate::format::{PAGE, pages_for};
use crate::medium::{LockMode, Medium};
use crate::mutant::Mutant;
use crate::recovery::{Standing, put_progress};
use crate::space::TableTransaction;
use crate::store::attachment::Reader;
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::{Bitmap, Class, CreateOptions, Key, Layers, Located};
use std::ops::Range;
use std::sync::Arc;

/// Fewer pages of an object in use are copied: sharing makes the first change of each of its pages
/// dearer.
const LEAST: u64 = 16;
/// Most pages per copy.
const PIECE: u64 = 256;

/// Bytes of an object that a new one begins with.
#[derive(Clone, Debug)]
pub struct RangeOf<'a> {
    /// Name of the object.
    pub object: &'a str,
    /// Its key.
    pub key: Key<'a>,
    /// The bytes: whole pages, or up to its end.
    pub bytes: Range<u64>,
    /// Their place in the new object, a multiple of a page.
    pub at: u64,
}

impl RangeOf<'_> {
    fn len(&self) -> u64 {
        self.bytes.end.saturating_sub(self.bytes.start)
    }

    /// Pages of the new object, the last one perhaps in part.
    fn pages(&self) -> Range<u64> {
        self.at / PAGE..(self.at + self.len()).div_ceil(PAGE)
    }

    /// Pages that keep their place, and are all the source's.
    fn staying(&self) -> Range<u64> {
        let end = if self.at == self.bytes.start { self.bytes.end / PAGE } else { self.at / PAGE };
        self.at / PAGE..end
    }

    fn wrong(&self, why: &'static str) -> StoreError {
        let (of, from, len) = (self.object.to_owned(), self.bytes.start, self.len());
        StoreError::BadRange { of, from, len, at: self.at, why }
    }

    /// Names the source in errors about it; callers repeat the call after others, as they are.
    fn about(&self, cause: StoreError) -> StoreError {
        match cause {
            StoreError::NotFound
            | StoreError::WrongKey
            | StoreError::VolatileGone
            | StoreError::ObjectFeature { .. }
            | StoreError::Class(_)
            | StoreError::Seal(_) => StoreError::Part { of: self.object.to_owned(), cause: Box::new(cause) },
            _ => cause,
        }
    }

    fn expect_in(&self, source: &Located) -> Result<()> {
        let entry = &source.entry;
        Class::expect_bytes(entry).map_err(|cause| self.about(cause))?;
        if source.is_sealed() {
            let instead = "copy it whole";
            return Err(self.about(SealError::Refused { what: "copies of page ranges", instead }.into()));
        }
        let (class, needed) = match entry.class {
            CLASS_ON_DEMAND => (Class::OnDemand.name(), "psync or transactional"),
            _ if entry.has(FLAG_ECC) => ("one with check words", "without them"),
            _ => ("", ""),
        };
        if !needed.is_empty() {
            return Err(self.about(ClassError::Mismatch { class, needed }.into()));
        }
        let size = entry.size.get();
        if self.bytes.end > size {
            return Err(self.wrong("the object that has them ends before"));
        }
        if !self.bytes.end.is_multiple_of(PAGE) && self.bytes.end != size {
            return Err(self.wrong("they end neither with a page (4096 bytes) nor with their object"));
        }
        Ok(())
    }
}

fn expect_apart(of: &[RangeOf<'_>], size: u64) -> Result<()> {
    for range in of {
        if range.bytes.is_empty() {
            return Err(range.wrong("there are none"));
        }
        if !range.bytes.start.is_multiple_of(PAGE) || !range.at.is_multiple_of(PAGE) {
            return Err(range.wrong("both places are multiples of a page (4096 bytes)"));
        }
        if range.at.checked_add(range.len()).is_none_or(|end| end > size) {
            return Err(range.wrong("the new object ends before"));
        }
    }
    let mut sorted: Vec<&RangeOf<'_>> = of.iter().collect();
    sorted.sort_by_key(|range| range.at);
    match sorted.windows(2).find(|pair| pair[0].pages().end > pair[1].pages().start) {
        Some(pair) => Err(pair[1].wrong("other bytes were to go there, too")),
        None => Ok(()),
    }
}

/// A source, at one moment.
struct Source<'a> {
    id: [u8; 16],
    of: Vec<&'a RangeOf<'a>>,
    reader: Option<Reader>,
}

impl Source<'_> {
    fn staying(&self) -> u64 {
        self.of.iter().map(|range| range.staying()).map(|pages| pages.end - pages.start).sum()
    }
}

impl Store {
    /// Creates an object of `how.size` bytes, zeros but for `of`, the ranges of its sources' last
    /// psyncs. Each source is seen at a moment of its own.
    ///
    /// # Errors
    /// `BadRange`; `Part`: a source cannot be read; `Exists`, `NoRoom`, `NoSpace`, `NoAddresses`,
    /// `Refused` of a class other than psync. Nothing happened.
    pub fn create_from_ranges(
        self: &Arc<Self>,
        name: &str,
        of: &[RangeOf<'_>],
        how: &CreateOptions<'_>,
    ) -> Result<Located> {
        if how.class != Class::Psync || how.ecc {
            let why =
                "it is to begin with pages of other objects; set the class of the object once it is there";
            return Err(ClassError::Refused { class: how.class.name(), why }.into());
        }
        expect_apart(of, how.size)?;
        self.reap()?;
        let mut sources = self.sources(of)?;
        let most = sources.iter().enumerate().max_by_key(|(_, source)| source.staying());
        let shared = most.filter(|(_, source)| source.staying() > 0).map(|(nth, _)| nth);
        let made = self.made_of(name, &mut sources, shared, how);
        for reader in sources.into_iter().filter_map(|source| source.reader) {
            let _ = self.end_snapshot(reader);
        }
        if made.is_err() {
            let _ = self.reap();
        }
        made
    }

    fn sources<'a>(&self, of: &'a [RangeOf<'a>]) -> Result<Vec<Source<'a>>> {
        let mut sources: Vec<Source<'a>> = Vec::new();
        for range in of {
            let found = self.find(range.object).map_err(|cause| range.about(cause))?;
            range.expect_in(&found)?;
            match sources.iter_mut().find(|source| source.id == found.entry.id) {
                Some(source) => source.of.push(range),
                None => sources.push(Source { id: found.entry.id, of: vec![range], reader: None }),
            }
        }
        Ok(sources)
    }

    fn made_of(
        self: &Arc<Self>,
        name: &str,
        sources: &mut [Source<'_>],
        shared: Option<usize>,
        how: &CreateOptions<'_>,
    ) -> Result<Located> {
        let begun = shared.map(|nth| self.begin_on(name, &sources[nth], how));
        let (revived, base) = match begun {
            Some(Ok(Some((revived, base)))) => (revived, Some(base)),
            None | Some(Ok(None) | Err(StoreError::NoRoom { .. })) => {
                (self.begin_apart(name, sources, how)?, None)
            }
            Some(Err(error)) => return Err(error),
        };
        let shared = shared.filter(|_| base.is_some());
        for (nth, source) in sources.iter_mut().enumerate() {
            let is_shared = shared == Some(nth);
            let still = match &base {
                Some(base) if is_shared => self.still_base(base)?,
                _ => self.opened(source)?,
            };
            for range in &source.of {
                range.expect_in(&still.object)?;
                let shared = if is_shared { range.staying().end } else { 0 };
                self.copy_range(&revived, &still, range, shared)?;
            }
        }
        if let Some(shared) = shared {
            self.claim_others(revived.object(), &sources[shared].of)?;
        }
        revived.publish()
    }

    fn still_base(&self, base: &Located) -> Result<Still> {
        let layers = self.view(|table| table.layers(base))?;
        Ok(Still { layers: layers.unwrap_or_else(|| Layers::alone(base)), object: *base })
    }

    fn opened(self: &Arc<Self>, source: &mut Source<'_>) -> Result<Still> {
        let first = source.of[0];
        let reader = self.attach_still(first.object, first.key).map_err(|cause| first.about(cause))?;
        Ok(Still::of(source.reader.insert(reader)))
    }

    fn begin_apart(
        self: &Arc<Self>,
        name: &str,
        sources: &[Source<'_>],
        how: &CreateOptions<'_>,
    ) -> Result<Revived> {
        let (id, now) = (random_id()?, now());
        let end = sources.iter().flat_map(|source| &source.of).map(|range| range.at + range.len()).max();
        self.revive_made(|table| {
            let object = table.create_unfinished(name, id, now, &self.with_window(how))?;
            self.prepare_extent(table, &object, 0)?;
            Ok((object, Standing { published: end.unwrap_or(0), psyncs: 1, direct: 0 }))
        })
    }

    /// `None`: too little to share, or no right.
    fn begin_on(
        self: &Arc<Self>,
        name: &str,
        source: &Source<'_>,
        how: &CreateOptions<'_>,
    ) -> Result<Option<(Revived, Located)>> {
        let first = source.of[0];
        let (ids, now) = ((random_id()?, random_id()?), now());
        let made = |table: &mut TableTransaction<'_>, base: &mut Located| {
            source.of.iter().try_for_each(|range| range.expect_in(base))?;
            self.rest_on_part(table, base, source, (name, ids.0, now), how)
        };
        let found = self.find(first.object).map_err(|cause| first.about(cause))?;
        let (object, lock, base) = if found.entry.has(FLAG_BASE) {
            self.update(|table| {
                let mut base = table.object(first.object)?;
                if !base.opens_for_reading(first.key) {
                    return Err(first.about(StoreError::WrongKey));
                }
                if !base.entry.has(FLAG_BASE) {
                    return Err(first.about(StoreError::NotFound));
                }
                let (object, lock) = made(table, &mut base)?;
                Self::prove(table)?;
                Ok((object, lock, base))
            })?
        } else if source.staying() < LEAST || !found.opens_for_writing(first.key) {
            return Ok(None);
        } else {
            self.at_boundary(&[(first.object, first.key)], Right::Write, |table, objects| {
                let object = objects.first_mut().ok_or(StoreError::NotFound)?;
                let mut base = self.freeze(table, object, None, Key::default(), (ids.1, now))?;
                let (made, lock) = made(table, &mut base)?;
                // Last, for the space behind.
                self.go_on(table, object, &mut base)?;
                Self::prove(table)?;
                Ok((made, lock, base))
            })?
        };
        Ok(Some((Revived::of(self, object, lock), base)))
    }

    fn rest_on_part(
        &self,
        table: &mut TableTransaction<'_>,
        base: &mut Located,
        source: &Source<'_>,
        (name, id, now): (&str, [u8; 16], u64),
        how: &CreateOptions<'_>,
    ) -> Result<(Located, ObjectLock)> {
        // An overlay claims space as it is written.
        let how = CreateOptions { sparse: true, ..self.with_window(how) };
        let mut object = table.create_unfinished(name, id, now, &how)?;
        self.prepare_extent(table, &object, 0)?;
        let based = source.of.iter().filter(|range| !range.staying().is_empty());
        let based = based.map(|range| range.staying().end).max().unwrap_or(0);
        table.rest_in_part(&mut object, base, based)?;
        self.clear_bitmap(table, &object)?;
        let standing = Standing { published: how.size, psyncs: 1, direct: 0 };
        put_progress(table.pages().medium(), self.seed, &object, &standing)?;
        let lock = ObjectLock::take(&self.object_locks, &object, LockMode::Exclusive)?;
        Ok((object, lock))
    }

    /// Copies a range but for its pages before page `shared` of the new object.
    fn copy_range(&self, to: &Revived, from: &Still, range: &RangeOf<'_>, shared: u64) -> Result<()> {
        let medium = self.latch.enter();
        let (pages, mut bytes) = (range.pages(), Vec::new());
        let mut page = pages.start.max(shared.min(pages.end));
        while page < pages.end {
            let count = PIECE.min(pages.end - page);
            let first = range.bytes.start / PAGE + (page - pages.start);
            bytes.resize((count * PAGE) as usize, 0);
            from.read(&medium, first, &mut bytes)?;
            to.write(page * PAGE, &bytes)?;
            page += count;
        }
        Ok(())
    }

    /// Marks the new object's pages that are not its base's.
    fn claim_others(&self, object: &Located, of: &[&RangeOf<'_>]) -> Result<()> {
        let medium = self.latch.enter();
        let bitmap = Bitmap::read(&object.entry, |offset, bytes| medium.read(offset, bytes))?;
        let shared: Vec<Range<u64>> = of.iter().map(|range| range.staying()).collect();
        let own = |page: &u64| !shared.iter().any(|pages| pages.contains(page));
        let based = object.entry.based.get().min(pages_for(object.entry.size.get()));
        let (first, then) = bitmap.claiming((0..based).filter(own));
        for (offset, bytes) in &first {
            medium.reserve(*offset, bytes.len() as u64)?;
            medium.write(*offset, bytes)?;
        }
        // A page precedes its bit.
        medium.barrier()?;
        if !Mutant::RangeUnclaimed.is_on() {
            then.iter().try_for_each(|(offset, bytes)| medium.write(*offset, bytes))?;
        }
        Ok(())
    }
}
