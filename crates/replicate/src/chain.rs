//! The segments of a moment: from the newest one that begins from nothing.
//!
//! They are read once, into a file without a name, and proved as a chain before anything is
//! written.

use crate::decode::{Change, Segment, header};
use crate::error::{ReplicateError, Result};
use crate::format::{Header, PAGE, flag, hex};
use crate::history::History;
use crate::names::Position;
use crate::patient::Patient;
use crate::records::is_boundary;
use indelible_store::store::Attributes;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

type Id = [u8; 16];

/// Bytes of an object that its pool may have, of those that are the moment's.
fn most(object: &Attributes) -> u64 {
    // A pool relies on zeros past the published bytes.
    object.published.next_multiple_of(PAGE).min(object.pages() * PAGE)
}

pub(crate) struct Chain {
    spool: File,
    /// Ascending: place in the store, offset in the spool, bytes.
    segments: Vec<(Position, u64, u64)>,
    pool: String,
}

/// The objects of a proved chain.
pub(crate) struct Found {
    pub(crate) last: Header,
    pub(crate) objects: BTreeMap<Id, Attributes>,
    /// Of each object: number of a segment, and its bytes from there on.
    sizes: BTreeMap<Id, Vec<(usize, u64)>>,
}

impl Found {
    /// Bytes of an object that a segment's runs may change: those that no later one cut off.
    pub(crate) fn limit(&self, segment: usize, object: &Attributes) -> u64 {
        let Some(sizes) = self.sizes.get(&object.id) else { return 0 };
        // Runs before the object was made anew are of another.
        if sizes.first().is_none_or(|(first, _)| *first > segment) {
            return 0;
        }
        let later = sizes.iter().filter(|(from, _)| *from >= segment).map(|(_, size)| *size);
        let now = sizes.iter().rfind(|(from, _)| *from <= segment).map(|(_, size)| *size);
        later.chain(now).min().unwrap_or(0).min(most(object))
    }
}

impl Chain {
    /// Finds and reads the segments of a moment; `None`: of the newest.
    ///
    /// # Errors
    /// `Empty`, `NoMoment`, `Missing`, `Damaged`; the store's.
    pub(crate) fn open(store: Patient<'_>, at: Option<Position>, folder: &Path) -> Result<Chain> {
        let spool =
            tempfile::tempfile_in(folder).map_err(ReplicateError::file("create a file in", folder))?;
        let history = History::read(store)?;
        if history.last().is_none() {
            return Err(ReplicateError::Empty("no process has shipped to it".into()));
        }
        let mut chain = Chain { spool, segments: Vec::new(), pool: String::new() };
        let epochs = history.all().iter().rev().filter(|one| at.is_none_or(|at| at.epoch == one.epoch));
        for epoch in epochs {
            let next = history.all().iter().find(|next| next.epoch == epoch.epoch + 1);
            let first = match at {
                // Damage behind it is no obstacle.
                Some(at) if next.is_none_or(|next| at <= next.after()) => at,
                Some(_) => break,
                None => history.end(store, epoch.epoch)?.0,
            };
            if let Some(at) = at
                && (at.seq == 0 || store.find(&at.name())?.is_none())
            {
                break;
            }
            chain.pool.clone_from(&epoch.pool);
            if chain.read_back(store, &history, first, at.is_some(), folder)? {
                return Ok(chain);
            }
        }
        match at {
            Some(at) => Err(ReplicateError::NoMoment { asked: at.to_string() }),
            None => Err(ReplicateError::Empty("its first moment is not whole".into())),
        }
    }

    /// Reads from `from` back to one that begins from nothing; `false`: there is no moment.
    fn read_back(
        &mut self,
        store: Patient<'_>,
        history: &History,
        from: Position,
        exact: bool,
        folder: &Path,
    ) -> Result<bool> {
        let (mut length, mut needs) = (0, "the moment".to_owned());
        self.segments.clear();
        let mut next = Some(from).filter(|from| from.seq > 0);
        while let Some(at) = next {
            next = history.before(at);
            let later = self.segments.last().map(|(later, ..)| later.epoch);
            if later.is_none() && at.epoch != from.epoch {
                return Ok(false);
            }
            let name = at.name();
            let bytes = store.get(&name, &needs)?;
            if is_boundary(&bytes) {
                return Err(ReplicateError::damaged(&name, "it ends the epoch before its end"));
            }
            let header = header(&bytes, &name)?;
            let flags = header.flags.get();
            // An epoch continues the last moment before it.
            if later != Some(at.epoch) && flags & flag::MOMENT == 0 {
                if exact && later.is_none() {
                    return Ok(false);
                }
                continue;
            }
            let written = self.spool.write_all_at(&bytes, length);
            written.map_err(ReplicateError::file("write a file in", folder))?;
            self.segments.push((at, length, bytes.len() as u64));
            length += bytes.len() as u64;
            if flags & flag::FULL != 0 {
                self.segments.reverse();
                return Ok(true);
            }
            needs = name;
        }
        match self.segments.last() {
            None => Ok(false),
            Some((at, ..)) => Err(ReplicateError::damaged(&at.name(), "its chain begins from nothing")),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|(.., len)| len).sum()
    }

    pub(crate) fn segment_len(&self, number: usize) -> u64 {
        self.segments[number].2
    }

    /// Reads and proves one segment.
    pub(crate) fn segment(&self, number: usize) -> Result<Segment> {
        let (at, offset, len) = self.segments[number];
        let mut bytes = vec![0; len as usize];
        let read = self.spool.read_exact_at(&mut bytes, offset);
        read.map_err(ReplicateError::file("read", Path::new("the spool")))?;
        Segment::read(&bytes, &at.name())
    }

    /// Proves all segments, and that each continues the one before.
    pub(crate) fn prove(&mut self) -> Result<Found> {
        let (mut objects, mut sizes) = (BTreeMap::new(), BTreeMap::<Id, Vec<(usize, u64)>>::new());
        let mut before: Option<(Position, Header, [u8; 32])> = None;
        for number in 0..self.len() {
            let at = self.segments[number].0;
            let segment = self.segment(number)?;
            let header = segment.header;
            let foreign = |why: &str| {
                let before = before.as_ref().map_or_else(|| "the epoch".into(), |(at, ..)| at.name());
                ReplicateError::Foreign { name: at.name(), before, why: why.to_owned() }
            };
            if hex(&header.pool) != self.pool {
                return Err(foreign("it is of another pool"));
            }
            if (header.epoch.get(), header.seq.get()) != (at.epoch, at.seq) {
                return Err(foreign(&format!("it was put as {}.{}", header.epoch, header.seq)));
            }
            match &before {
                Some((_, parent, whole)) => {
                    let follows = header.parent == parent.id && header.parent_hash == *whole;
                    let deeper = header.depth.get() == parent.depth.get() + 1;
                    if !follows || !deeper || segment.is_full() {
                        return Err(foreign("it was made after another segment"));
                    }
                }
                None if !segment.is_full() || header.depth.get() != 0 => {
                    return Err(foreign("it does not begin from nothing"));
                }
                None => {}
            }
            fold(number, &segment, &mut objects, &mut sizes);
            before = Some((at, header, segment.whole));
            let last = number + 1 == self.len();
            if last && !segment.is_moment() {
                return Err(ReplicateError::damaged(&at.name(), "it completes no moment"));
            }
        }
        let (_, last, _) = before.ok_or_else(|| ReplicateError::Empty("it has no segments".into()))?;
        Ok(Found { last, objects, sizes })
    }
}

fn fold(
    number: usize,
    segment: &Segment,
    objects: &mut BTreeMap<Id, Attributes>,
    sizes: &mut BTreeMap<Id, Vec<(usize, u64)>>,
) {
    for change in &segment.changes {
        match change {
            Change::Object(attributes) => {
                let size = if attributes.is_sealed() { attributes.pages() * PAGE } else { attributes.size };
                sizes.entry(attributes.id).or_default().push((number, size));
                objects.insert(attributes.id, attributes.clone());
            }
            Change::Gone(id) => {
                objects.remove(id);
                sizes.remove(id);
            }
            Change::Runs(_) | Change::Still(_) => {}
        }
    }
}
