//! Objects of a listing, to be read again in another order.
//!
//! Cost: the name and 26 bytes of each object, and a second read.

use super::list::PIECE;
use super::{Pool, Stat};
use crate::error::Result;
use indelible_store::store::Listed;

#[derive(Clone, Copy)]
struct Item {
    rank: u64,
    entry: u64,
    name: usize,
}

/// Objects chosen from a [listing](Pool::list), to be sorted and read again; memory holds little
/// more than their names.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("pool.pmo"), 16 << 20)?;
/// # for name in ["b", "a", "c"] { pool.create(name, 4096)?; }
/// let mut selection = pool.selection();
/// for stat in pool.list() {
///     selection.add(&stat?, 0);
/// }
/// selection.sort();
/// let names = selection.stats().map(|stat| Ok(stat?.name)).collect::<indelible::Result<Vec<_>>>()?;
/// assert_eq!(names, ["a", "b", "c"]);
/// # Ok::<(), indelible::Error>(())
/// ```
pub struct Selection {
    pool: Pool,
    names: Vec<u8>,
    items: Vec<Item>,
}

impl Pool {
    /// An empty selection.
    #[must_use]
    pub fn selection(&self) -> Selection {
        Selection { pool: self.clone(), names: Vec::new(), items: Vec::new() }
    }
}

impl Selection {
    /// Adds an object of this pool, to be sorted by `rank`, then name.
    pub fn add(&mut self, stat: &Stat, rank: u64) {
        self.items.push(Item { rank, entry: stat.entry, name: self.names.len() });
        self.names.extend((stat.name.len() as u16).to_le_bytes());
        self.names.extend(stat.name.as_bytes());
    }

    /// Sorts by rank, then by name, both ascending.
    pub fn sort(&mut self) {
        let names = &self.names;
        self.items.sort_unstable_by(|a, b| {
            a.rank.cmp(&b.rank).then_with(|| name_at(names, a.name).cmp(name_at(names, b.name)))
        });
    }

    /// Reverses the order.
    pub fn reverse(&mut self) {
        self.items.reverse();
    }

    /// Number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Reads the present state of the objects, in order, without destroyed or renamed ones; a
    /// damaged one is an error, and the iterator continues.
    pub fn stats(&self) -> impl Iterator<Item = Result<Stat>> {
        self.items.chunks(PIECE).flat_map(|items| self.read(items))
    }

    fn read(&self, items: &[Item]) -> Vec<Result<Stat>> {
        let entries: Vec<_> = items.iter().map(|item| Listed { offset: item.entry, hash: 0 }).collect();
        let found = match self.pool.inner.store.statuses(&entries, None, Stat::made) {
            Ok(found) => found,
            Err(cause) => return vec![Err(self.pool.error("list", cause))],
        };
        let stats = items.iter().zip(found).filter_map(|(item, found)| match found? {
            Ok(stat) => (stat.name.as_bytes() == name_at(&self.names, item.name)).then_some(Ok(stat)),
            Err(cause) => Some(Err(self.pool.error("list", cause))),
        });
        stats.collect()
    }
}

fn name_at(names: &[u8], at: usize) -> &[u8] {
    let len = usize::from(u16::from_le_bytes([names[at], names[at + 1]]));
    &names[at + 2..at + 2 + len]
}
