use super::boundary::Right;
use crate::error::Result;
use crate::format::entry::Entry;
use crate::store::pool::Store;
use crate::table::{Class, Key};
use std::sync::Arc;

impl Store {
    /// Sets an unattached object's class; its bytes stay.
    ///
    /// # Errors
    /// `Refused`; `Held`, `WrongKey`, `ObjectReadOnly` for a snapshot: nothing happened.
    pub fn set_class(self: &Arc<Self>, name: &str, key: Key<'_>, class: Class) -> Result<()> {
        self.change_class(name, key, |entry| class.give(entry))
    }

    /// Sets whether plain loads see an unattached object.
    ///
    /// # Errors
    /// `Unreadable`; `Held`, `WrongKey`, `ObjectReadOnly` for a snapshot: nothing happened.
    pub fn set_readable_outside(self: &Arc<Self>, name: &str, key: Key<'_>, is: bool) -> Result<()> {
        self.change_class(name, key, |entry| Class::let_read(entry, is))
    }

    fn change_class(
        self: &Arc<Self>,
        name: &str,
        key: Key<'_>,
        change: impl Fn(&mut Entry) -> Result<()>,
    ) -> Result<()> {
        change(&mut self.find(name)?.entry)?;
        let (object, object_lock) = self.unless_held_still(|| self.take_any(name, Right::Write, key))?;
        self.update(|table| {
            let mut object = table.entry(object.offset)?;
            change(&mut object.entry)?;
            table.put_entry(&object)
        })?;
        drop(object_lock);
        Ok(())
    }
}
