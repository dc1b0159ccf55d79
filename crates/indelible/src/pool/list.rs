use super::{Pool, Stat};
use crate::error::Result;
use indelible_store::error::StoreError;
use indelible_store::store::Listed;
use std::sync::Arc;

pub(super) const PIECE: usize = 1024;

type Wanted = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// See [`Pool::list`].
pub struct List {
    pool: Pool,
    wanted: Option<Wanted>,
    entries: Option<Vec<Listed>>,
    piece: std::vec::IntoIter<Option<Result<Stat, StoreError>>>,
}

impl List {
    pub(super) fn of(pool: Pool) -> List {
        List { pool, wanted: None, entries: None, piece: Vec::new().into_iter() }
    }

    /// Skips objects whose names `wanted` refuses, which saves most of their cost.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("pool.pmo"), 16 << 20)?;
    /// # for name in ["logs/a", "logs/b", "other"] { pool.create(name, 4096)?; }
    /// let logs = pool.list().named(|name| name.starts_with("logs/"));
    /// assert_eq!(logs.count(), 2);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    #[must_use]
    pub fn named(self, wanted: impl Fn(&str) -> bool + Send + Sync + 'static) -> List {
        List { wanted: Some(Arc::new(wanted)), ..self }
    }

    /// Splits the rest among at most `parts` listings, one for each thread. Few objects stay
    /// together.
    ///
    /// # Errors
    /// The table cannot be read.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("pool.pmo"), 16 << 20)?;
    /// # for name in ["a", "b", "c"] { pool.create(name, 4096)?; }
    /// let mut sizes = 0;
    /// for part in pool.list().split(2)? {
    ///     let own = std::thread::spawn(|| part.flatten().map(|stat| stat.size).sum::<u64>());
    ///     sizes += own.join().unwrap();
    /// }
    /// assert_eq!(sizes, 3 * 4096);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    pub fn split(mut self, parts: usize) -> Result<Vec<List>> {
        let found = self.entries().map(|entries| entries.len());
        let mut left = found.map_err(|cause| self.pool.error("list", cause))?;
        let parts = parts.min(left.div_ceil(PIECE));
        let mut lists = Vec::new();
        for part in (1..parts).rev() {
            left -= left / (part + 1);
            let entries = self.entries.as_mut().map(|entries| entries.split_off(left));
            let (pool, wanted) = (self.pool.clone(), self.wanted.clone());
            lists.push(List { pool, wanted, entries, piece: Vec::new().into_iter() });
        }
        lists.push(self);
        Ok(lists)
    }

    /// The entries that are not read, the next one last.
    fn entries(&mut self) -> Result<&mut Vec<Listed>, StoreError> {
        if self.entries.is_none() {
            let mut all = self.pool.inner.store.entries()?;
            all.reverse();
            self.entries = Some(all);
        }
        Ok(self.entries.get_or_insert_default())
    }

    fn refill(&mut self) -> Result<(), StoreError> {
        let entries = self.entries()?;
        let mut piece = entries.split_off(entries.len().saturating_sub(PIECE));
        piece.reverse();
        let wanted = self.wanted.as_ref().map(|wanted| &**wanted as &dyn Fn(&str) -> bool);
        self.piece = self.pool.inner.store.statuses(&piece, wanted, Stat::made)?.into_iter();
        Ok(())
    }
}

impl Iterator for List {
    type Item = Result<Stat>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.piece.next() {
                Some(None) => continue,
                Some(Some(found)) => return Some(found.map_err(|cause| self.pool.error("list", cause))),
                None if self.entries.as_ref().is_some_and(Vec::is_empty) => return None,
                None => {}
            }
            if let Err(cause) = self.refill() {
                self.entries = Some(Vec::new());
                return Some(Err(self.pool.error("list", cause)));
            }
        }
    }
}
