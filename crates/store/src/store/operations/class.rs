//! The durability class of an object that nobody has attached.

use super::boundary::Right;
use crate::error::Result;
use crate::store::pool::Store;
use crate::table::{Class, Key};
use std::sync::Arc;

impl Store {
    /// Gives an object that nobody has attached another class. Its bytes stay.
    ///
    /// # Errors
    /// `Refused`; `Held`, `WrongKey`, `ObjectReadOnly` for a snapshot: nothing happened.
    pub fn set_class(self: &Arc<Self>, name: &str, key: Key<'_>, class: Class) -> Result<()> {
        class.give(&mut self.find(name)?.entry)?;
        let (object, object_lock) = self.unless_held_still(|| self.take_any(name, Right::Write, key))?;
        self.update(|table| {
            let mut object = table.entry(object.offset)?;
            class.give(&mut object.entry)?;
            table.put_entry(&object)
        })?;
        drop(object_lock);
        Ok(())
    }
}
