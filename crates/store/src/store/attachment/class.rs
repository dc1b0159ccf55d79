//! Attaching an object as one of its durability class.

use super::unlocked::expect_key;
use super::writer::Writer;
use crate::error::Result;
use crate::mutant::Mutant;
use crate::store::pool::Store;
use crate::table::{Class, Key, Located};
use std::sync::Arc;

impl Store {
    /// As [`attach_writer`](Store::attach_writer), of a transactional object, for [`Commits`](crate::store::Commits).
    ///
    /// # Errors
    /// `Mismatch` of its class, and as for [`attach_writer`](Store::attach_writer).
    pub fn attach_transactional_writer(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Writer> {
        self.attach_any_writer(name, key, &|object| {
            expect_class(object, Class::Transactional)?;
            expect_key(object, None)
        })
    }
}

pub(super) fn expect_class(object: &Located, class: Class) -> Result<()> {
    if Mutant::ClassIgnored.is_on() { Ok(()) } else { class.expect(&object.entry) }
}
