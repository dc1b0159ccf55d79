use super::{Pool, Stat};
use crate::error::Result;
use indelible_store::error::StoreError;

pub(super) const PIECE: usize = 1024;

type Wanted = Box<dyn Fn(&str) -> bool + Send>;

/// See [`Pool::list`].
pub struct List {
    pool: Pool,
    wanted: Option<Wanted>,
    entries: Option<Vec<u64>>,
    piece: std::vec::IntoIter<Option<Result<Stat, StoreError>>>,
}

impl List {
    pub(super) fn of(pool: Pool) -> List {
        List { pool, wanted: None, entries: None, piece: Vec::new().into_iter() }
    }

    /// Skips objects whose names `wanted` refuses, which saves most of their cost.
    ///
    /// ```
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("pool.pmo"), 16 << 20)?;
    /// # for name in ["logs/a", "logs/b", "other"] { pool.create(name, 4096)?; }
    /// let logs = pool.list().named(|name| name.starts_with("logs/"));
    /// assert_eq!(logs.count(), 2);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn named(self, wanted: impl Fn(&str) -> bool + Send + 'static) -> List {
        List { wanted: Some(Box::new(wanted)), ..self }
    }

    fn refill(&mut self) -> Result<(), StoreError> {
        let store = &self.pool.inner.store;
        let entries = match &mut self.entries {
            Some(entries) => entries,
            none => {
                let mut all = store.entries()?;
                all.reverse();
                none.insert(all)
            }
        };
        let mut piece = entries.split_off(entries.len().saturating_sub(PIECE));
        piece.reverse();
        let wanted = self.wanted.as_ref().map(|wanted| &**wanted as &dyn Fn(&str) -> bool);
        self.piece = store.statuses(&piece, wanted, Stat::made)?.into_iter();
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
