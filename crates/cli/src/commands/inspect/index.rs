//! A listing of the whole pool, for pages of it and totals. It is made anew in at most a tenth of
//! the time, so that a pool of a million objects does not keep a processor busy.

use crate::failure::Result;
use indelible::{ErrorKind, Pool};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

const SHARE: u32 = 9;

#[derive(Default)]
pub struct Kept(Mutex<Option<Arc<Index>>>);

impl Kept {
    pub fn index(&self, pool: &Pool, path: &Path) -> Result<Arc<Index>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let file = std::fs::metadata(path).map_or((0, 0), |file| (file.dev(), file.ino()));
        let of = (pool.id(), file);
        if let Some(index) = kept.as_ref().filter(|index| index.of == of && index.is_fresh()) {
            return Ok(index.clone());
        }
        let index = Arc::new(Index::read(pool, of)?);
        *kept = Some(index.clone());
        Ok(index)
    }
}

#[derive(Clone, Default, Serialize)]
pub struct Totals {
    pub objects: u64,
    pub size: u64,
    pub own: u64,
    pub psyncs: u64,
    pub needs_recovery: u64,
    pub states: BTreeMap<char, u64>,
    /// Objects that cannot be read, and the first error.
    pub damaged: u64,
    pub error: Option<String>,
}

/// Bytes of the pool that an object has.
#[derive(Clone, Copy)]
pub struct Extent {
    pub offset: u64,
    pub len: u64,
    /// Place among the names.
    pub object: usize,
}

type Identity = ([u8; 16], (u64, u64));

pub struct Index {
    of: Identity,
    began: Instant,
    done: Instant,
    pub totals: Totals,
    /// Sorted.
    pub names: Vec<Box<str>>,
    /// By offset.
    pub extents: Vec<Extent>,
    /// Seconds since 1970, and places among the names; the newest first.
    pub snapshots: Vec<(u64, usize)>,
}

struct Item {
    name: Box<str>,
    extent: (u64, u64),
    snapshot: Option<u64>,
}

impl Index {
    fn read(pool: &Pool, of: Identity) -> Result<Index> {
        let (began, mut totals, mut items) = (Instant::now(), Totals::default(), Vec::new());
        for stat in pool.list() {
            match stat {
                Ok(stat) => {
                    totals.objects += 1;
                    totals.size = totals.size.saturating_add(stat.size);
                    totals.own = totals.own.saturating_add(stat.own);
                    totals.psyncs = totals.psyncs.saturating_add(stat.psyncs);
                    totals.needs_recovery += u64::from(stat.needs_recovery);
                    *totals.states.entry(stat.state.letter()).or_default() += 1;
                    let created = stat.created.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
                    items.push(Item {
                        name: stat.name.into_boxed_str(),
                        extent: (stat.offset, stat.extent),
                        snapshot: stat.snapshot.then_some(created),
                    });
                }
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    totals.damaged += 1;
                    totals.error.get_or_insert_with(|| error.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        items.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let place = |(object, item): (usize, &Item)| {
            let (offset, len) = item.extent;
            Extent { offset, len, object }
        };
        let mut extents: Vec<Extent> = items.iter().enumerate().map(place).collect();
        extents.sort_unstable_by_key(|extent| extent.offset);
        let snapshot = |(object, item): (usize, &Item)| Some((item.snapshot?, object));
        let mut snapshots: Vec<_> = items.iter().enumerate().filter_map(snapshot).collect();
        snapshots.sort_unstable_by(|a, b| b.cmp(a));
        let names = items.into_iter().map(|item| item.name).collect();
        Ok(Index { of, began, done: Instant::now(), totals, names, extents, snapshots })
    }

    fn is_fresh(&self) -> bool {
        self.done.elapsed() < self.done.duration_since(self.began) * SHARE
    }

    /// When it was made, on the clock of [`ticks`].
    pub fn at(&self) -> Duration {
        ticks(self.began)
    }

    /// The names that begin with this.
    pub fn beginning(&self, prefix: &str) -> Range<usize> {
        let from = self.names.partition_point(|name| **name < *prefix);
        let behind = self.names[from..].partition_point(|name| name.starts_with(prefix));
        from..from + behind
    }
}

/// Time since some moment of this process.
pub fn ticks(at: Instant) -> Duration {
    static BEGIN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    at.saturating_duration_since(*BEGIN)
}
