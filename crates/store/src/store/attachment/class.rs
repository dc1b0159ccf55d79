//! Attaching objects by durability class.

use super::unlocked::expect_key;
use super::writer::Writer;
use crate::error::{Result, StoreError};
use crate::format::entry::FLAG_READ_ONLY;
use crate::mutant::Mutant;
use crate::space::TableTransaction;
use crate::store::pool::Store;
use crate::table::{Class, Key, Located};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Memory {
    None,
    New(u64),
    Left(u64),
}

impl Store {
    /// [`attach_writer`](Store::attach_writer) of a transactional object, for
    /// [`Commits`](crate::store::Commits).
    ///
    /// # Errors
    /// `Mismatch` of its class, and as for [`attach_writer`](Store::attach_writer).
    pub fn attach_transactional_writer(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Writer> {
        self.attach_any_writer(name, key, &|object| {
            expect_class(object, Class::Transactional)?;
            expect_key(object, None)
        })
    }

    pub(super) fn attach_any_writer(
        self: &Arc<Self>,
        name: &str,
        key: Key<'_>,
        check: &dyn Fn(&Located) -> Result<()>,
    ) -> Result<Writer> {
        let find = |table: &TableTransaction<'_>| {
            let object = self.usable(table, name)?;
            check(&object)?;
            Ok(object)
        };
        self.attach_found_writer(&find, Some(key), Memory::None)
    }

    pub(super) fn attach_found_writer(
        self: &Arc<Self>,
        find: &dyn Fn(&TableTransaction<'_>) -> Result<Located>,
        key: Option<Key<'_>>,
        memory: Memory,
    ) -> Result<Writer> {
        self.bind_writer(|table, search| {
            let object = find(table)?;
            expect_writable(&object, key)?;
            self.begin_writing(table, object, memory, search)
        })
    }
}

pub(super) fn expect_writable(object: &Located, key: Option<Key<'_>>) -> Result<()> {
    if object.entry.has(FLAG_READ_ONLY) {
        return Err(StoreError::ObjectReadOnly);
    }
    match key.is_none_or(|key| object.opens_for_writing(key)) {
        true => Ok(()),
        false => Err(StoreError::WrongKey),
    }
}

pub(super) fn expect_class(object: &Located, class: Class) -> Result<()> {
    if Mutant::ClassIgnored.is_on() { Ok(()) } else { class.expect(&object.entry) }
}
