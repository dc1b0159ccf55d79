//! Making, removing and listing ties; `removal` obeys them.

use crate::error::{Result, StoreError};
use crate::space::TableTransaction;
use crate::store::pool::Store;
use crate::table::{Key, Located, Tie};
use std::sync::Arc;

impl Store {
    /// Ties the object `name` to `to`, which it outlives.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`, `TieCycle`, `TieTarget`, `TooManyTies`, `NoRoom`: nothing happened.
    pub fn tie(self: &Arc<Self>, name: &str, key: Key<'_>, to: &str) -> Result<()> {
        self.tie_to(name, key, |table| table.object(to))
    }

    pub(super) fn tie_to(
        self: &Arc<Self>,
        name: &str,
        key: Key<'_>,
        find: impl Fn(&TableTransaction<'_>) -> Result<Located>,
    ) -> Result<()> {
        self.change_ties(name, key, |table, object| {
            let mut to = find(table)?;
            Ok(table.tie(object, &mut to)?.then_some(()))
        })
    }

    /// Removes the tie of `name` to the object called `from`, deleted or not. Returns whether there
    /// was one.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`, `NoRoom`: nothing happened.
    pub fn untie(self: &Arc<Self>, name: &str, key: Key<'_>, from: &str) -> Result<bool> {
        let untied = self.change_ties(name, key, |table, object| {
            table.untie(object, |target| target.entry.name_bytes() == from.as_bytes())
        })?;
        Ok(untied > 0)
    }

    /// The objects that `name` is tied to.
    ///
    /// # Errors
    /// `NotFound`. `Damaged`: the list is.
    pub fn ties(&self, name: &str) -> Result<Vec<Tie>> {
        self.view(|table| Ok(table.ties(&table.object(name)?)?.iter().map(Located::as_tie).collect()))
    }

    fn change_ties<R>(
        self: &Arc<Self>,
        name: &str,
        key: Key<'_>,
        change: impl Fn(&mut TableTransaction<'_>, &mut Located) -> Result<Option<R>>,
    ) -> Result<R> {
        loop {
            let done = self.update(|table| {
                let mut object = table.object(name)?;
                match object.opens_for_writing(key) {
                    true => change(table, &mut object),
                    false => Err(StoreError::WrongKey),
                }
            })?;
            if let Some(done) = done {
                return Ok(done);
            }
        }
    }
}
