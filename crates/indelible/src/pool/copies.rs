use super::{CreateOptions, Pool};
use crate::error::{Cause, Error, Result, TransactionError};
use indelible_store::error::SealError;
use indelible_store::error::StoreError;
use indelible_store::format::entry::FLAG_ECC;
pub use indelible_store::store::Difference;
use indelible_store::store::{RangeOf, SnapshotOf};
use indelible_store::table::Key;
use std::ops::Range;

impl Pool {
    /// Creates an object `copy` with the last psynced contents, size and addresses of `name`, in
    /// constant time. The pool needs a free piece as large as the object, two if `name` is no
    /// snapshot.
    ///
    /// A process attaches one of the two at a time. Without keys in `options`, the copy has the key
    /// of this call if `name` has any.
    ///
    /// ```
    /// use indelible::{CreateOptions, Pool};
    ///
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// let pool = Pool::format(&path, 16 << 20)?;
    /// pool.create("list", 100_000)?;
    /// let mut list = pool.attach("list")?;
    /// list.as_mut_slice()[..5].copy_from_slice(b"first");
    /// list.psync()?;
    /// list.detach()?;
    /// pool.create_from("list", "trial", b"", &CreateOptions::new(0))?;
    /// let mut trial = pool.attach("trial")?;
    /// trial.as_mut_slice()[..5].copy_from_slice(b"other");
    /// trial.psync()?;
    /// trial.detach()?;
    /// assert_eq!(&pool.attach("list")?.as_slice()[..5], b"first");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `Held`, `WrongKey`, `NoRoom`: nothing happened.
    pub fn create_from(&self, name: &str, copy: &str, key: &[u8], options: &CreateOptions) -> Result<()> {
        let inner = &self.inner;
        let made = || Ok(inner.store.create_from(name, Key(key), copy, &options.as_store())?);
        let result = inner.alive().and_then(|()| self.with_room(|| inner.patiently(made)));
        self.about("copy", name, result.map(drop))
    }

    /// Creates an object `name` of page ranges of other objects, at given places, with zeros
    /// between them: all of it, or nothing. It has addresses of its own; bytes that are addresses
    /// keep their values.
    ///
    /// Pages that keep their place are shared with their source until one of the two changes them,
    /// if the source is a snapshot, or if they are 64 KiB and more and `key` allows to write it; of
    /// one source, the one with the most. Other pages are copied, also beside a writer. A range is
    /// of the last psync; each source is seen at a moment of its own.
    ///
    /// ```
    /// use indelible::{CreateOptions, PageRange, Pool};
    ///
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// let pool = Pool::format(&path, 16 << 20)?;
    /// for (name, byte) in [("head", b'h'), ("body", b'b')] {
    ///     let mut object = pool.create_attached(name, 20_000)?;
    ///     object.as_mut_slice().fill(byte);
    ///     object.psync()?;
    ///     object.detach()?;
    /// }
    /// let of = [
    ///     PageRange { object: "head", bytes: 0..4096, at: 0 },
    ///     PageRange { object: "body", bytes: 12288..20_000, at: 8192 },
    /// ];
    /// pool.create_from_ranges("page", &of, b"", &CreateOptions::new(16384))?;
    /// let page = pool.attach_read("page")?;
    /// assert_eq!([0, 4096, 8192, 15_903, 15_904].map(|at| page.as_slice()[at]), [b'h', 0, b'b', b'b', 0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `BadSize`: a range is empty, does not begin with a page, ends neither with one nor with its
    /// object, or meets another, or the end of the new object. `Sealed` and `ClassMismatch` of
    /// sealed objects, of sources that are on demand, shared or have check words, and of options
    /// for another class than psync. `NotFound`, `WrongKey`, `Exists`, `NoRoom`, `NoSpace`,
    /// `NoAddresses`. Nothing happened.
    pub fn create_from_ranges(
        &self,
        name: &str,
        of: &[PageRange<'_>],
        key: &[u8],
        options: &CreateOptions,
    ) -> Result<()> {
        let inner = &self.inner;
        let ranges = of.iter().map(|range| {
            let PageRange { object, bytes, at } = range;
            RangeOf { object, key: Key(key), bytes: bytes.clone(), at: *at }
        });
        let ranges: Vec<RangeOf<'_>> = ranges.collect();
        let possible = inner.alive().and_then(|()| match options.first_seal_key() {
            Some(_) => {
                let instead = "create it empty, and store the bytes";
                Err(StoreError::from(SealError::Refused { what: "pages of other objects", instead }).into())
            }
            None => Ok(()),
        });
        let made = || Ok(inner.store.create_from_ranges(name, &ranges, &options.as_store())?);
        let result = possible.and_then(|()| self.with_room(|| inner.patiently(made)));
        self.about("create", name, result.map(drop))
    }

    /// Keeps the last psynced contents of `name` under another name, read-only, in constant time.
    /// The pool needs a free piece as large as the object.
    ///
    /// ```
    /// use indelible::Pool;
    ///
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// let pool = Pool::format(&path, 16 << 20)?;
    /// let mut list = pool.create_attached("list", 100_000)?;
    /// list.as_mut_slice()[..5].copy_from_slice(b"first");
    /// list.psync()?;
    /// pool.snapshot("list", "list yesterday", b"")?;
    /// list.as_mut_slice()[..5].copy_from_slice(b"later");
    /// list.psync()?;
    /// list.detach()?;
    /// assert_eq!(&pool.attach_read("list yesterday")?.as_slice()[..5], b"first");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `Held`, `WrongKey`, `NoRoom`: nothing happened. `Busy`: the object is
    /// busy for longer than [`set_wait`](Pool::set_wait) allows.
    pub fn snapshot(&self, name: &str, snapshot: &str, key: &[u8]) -> Result<()> {
        self.snapshot_all(&[(name, snapshot)], key)
    }

    /// As [`snapshot`](Pool::snapshot), of several objects (name, name of the snapshot) as of one
    /// moment.
    ///
    /// # Errors
    /// As for [`snapshot`](Pool::snapshot).
    pub fn snapshot_all(&self, of: &[(&str, &str)], key: &[u8]) -> Result<()> {
        let inner = &self.inner;
        let of: Vec<_> = of.iter().map(|(object, name)| SnapshotOf { object, key: Key(key), name }).collect();
        let made = || Ok(inner.store.snapshot(&of)?);
        let result = inner.alive().and_then(|()| self.with_room(|| inner.patiently(made)));
        let named =
            of.iter().find(|of| result.is_err() && inner.store.find(of.object).is_err()).or(of.first());
        self.about("snapshot", named.map_or("", |of| of.object), result.map(drop))
    }

    /// Without room, [collects](Pool::collect) and tries again: only a merge frees pages of removed
    /// snapshots.
    pub(crate) fn with_room<T>(&self, mut attempt: impl FnMut() -> Result<T, Cause>) -> Result<T, Cause> {
        match attempt() {
            Err(full @ Cause::Store(StoreError::NoRoom { .. })) => match self.collect(&mut |_, _| {}) {
                Ok(done) if done.copied > 0 || done.removed > 0 => attempt(),
                _ => Err(full),
            },
            done => done,
        }
    }

    /// Restores the unattached object `name` from its snapshot `snapshot`, or a copy's, which
    /// stays, in constant time. Later psyncs that are in no other snapshot are lost.
    ///
    /// ```
    /// use indelible::Pool;
    ///
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// let pool = Pool::format(&path, 16 << 20)?;
    /// let mut list = pool.create_attached("list", 100_000)?;
    /// list.as_mut_slice()[..5].copy_from_slice(b"first");
    /// list.psync()?;
    /// pool.snapshot("list", "before", b"")?;
    /// list.as_mut_slice()[..5].copy_from_slice(b"wrong");
    /// list.psync()?;
    /// list.detach()?;
    /// pool.rollback("list", "before", b"")?;
    /// assert_eq!(&pool.attach("list")?.as_slice()[..5], b"first");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound`: no such object, or `snapshot` is no snapshot with its addresses. `Held`,
    /// `WrongKey`, `ObjectReadOnly`, `NoRoom`, `NoAddresses`. The object is unchanged.
    pub fn rollback(&self, name: &str, snapshot: &str, key: &[u8]) -> Result<()> {
        let inner = &self.inner;
        let done = || Ok(inner.store.rollback(name, snapshot, Key(key))?);
        let result = inner.alive().and_then(|()| inner.patiently(done));
        self.about("roll back", name, result)
    }

    /// Finds the pages that differ between the last psyncs of two objects or snapshots, without
    /// reading shared pages.
    ///
    /// ```
    /// use indelible::Pool;
    ///
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// let pool = Pool::format(&path, 16 << 20)?;
    /// let mut list = pool.create_attached("list", 100_000)?;
    /// pool.snapshot("list", "before", b"")?;
    /// list.as_mut_slice()[5000] = 1;
    /// list.psync()?;
    /// assert_eq!(pool.diff("before", "list", b"")?.pages, [1..2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`; as for [`attach_snapshot`](Pool::attach_snapshot) of an object; in a
    /// pool opened for reading, `Held` if a process writes one of them.
    pub fn diff(&self, older: &str, newer: &str, key: &[u8]) -> Result<Difference> {
        let inner = &self.inner;
        let with_check_words = |name: &str| {
            let found = inner.alive().and_then(|()| Ok(inner.store.find(name)?));
            Ok(self.about("compare", name, found)?.entry.has(FLAG_ECC))
        };
        let [before, after] = [with_check_words(older)?, with_check_words(newer)?];
        let compared = match before == after {
            true => inner.patiently(|| Ok(inner.store.diff(older, newer, Key(key))?)),
            false => {
                Err(TransactionError::Checked("it is compared with objects that have them alone").into())
            }
        };
        let found = self.about("compare", if before { older } else { newer }, compared)?;
        Ok(if after { of_words(&found) } else { found })
    }

    /// Merges unneeded bases; removes deleted objects without attachments, volatile ones whose
    /// contents are gone, and leftovers of dead processes. `progress` gets the objects examined,
    /// and all.
    ///
    /// # Errors
    /// `NoSpace`, failures of the medium: earlier merges and removals stay.
    pub fn collect(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Collected> {
        let inner = &self.inner;
        let result = inner.alive().and_then(|()| {
            let removed =
                inner.store.remove_gone()? + inner.store.reap()? + inner.remove_leftover_memory()?;
            let mut done = Collected { removed, ..Collected::default() };
            let names: Vec<String> =
                self.list().flatten().filter(|stat| stat.shares).map(|stat| stat.name).collect();
            for (nth, name) in (1..).zip(&names) {
                match inner.patiently(|| Ok(inner.store.merge(name)?)) {
                    Err(Cause::Store(StoreError::NotFound)) => {}
                    copied => done.copied += copied?,
                }
                progress(nth, names.len() as u64);
            }
            Ok(done)
        });
        result.map_err(|cause| Error::new("collect what is unused in", cause).pool(&inner.path))
    }
}

/// Bytes that an object of [`Pool::create_from_ranges`] begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRange<'a> {
    /// Name of an object or a snapshot.
    pub object: &'a str,
    /// Its whole pages of 4096 bytes, or up to its end.
    pub bytes: Range<u64>,
    /// Their place in the new object, a multiple of 4096.
    pub at: u64,
}

/// Work done by [`Pool::collect`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Objects removed: deleted ones, volatile ones of an earlier boot, leftovers.
    pub removed: u64,
    /// Bytes copied.
    pub copied: u64,
}

fn of_words(found: &Difference) -> Difference {
    let mut words: Vec<std::ops::Range<u64>> = Vec::new();
    for pages in &found.pages {
        let (start, end) = (pages.start / 2, pages.end.div_ceil(2));
        match words.last_mut() {
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ => words.push(start..end),
        }
    }
    Difference { pages: words, older_size: found.older_size / 2, newer_size: found.newer_size / 2 }
}
