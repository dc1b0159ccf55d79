//! A sealed object's name, which its root authenticates. A rename is three durable steps: the root
//! has both names, the table the new one, the root that alone. The next attach for writing ends it.

use super::sealed_pages::Heading;
use super::writer::Writer;
use crate::error::{Result, SealError, StoreError};
use crate::format::seal::Identity;
use crate::mutant::Mutant;
use crate::table::check_name;

impl Writer {
    /// Renames a sealed object, and [binds](Writer::bind_name) one of an earlier release, or a
    /// copy, to the name.
    ///
    /// # Errors
    /// `NotSealed`, `BadName`, `Exists`: nothing changed. Those of [`psync`](Writer::psync) and of
    /// the table: it may have either name.
    pub fn rename(&mut self, new: &str) -> Result<()> {
        self.expect_sealed()?;
        check_name(new)?;
        if self.store.view(|table| table.find(new))?.is_some() {
            return Err(StoreError::Exists);
        }
        if !Mutant::RenamedFirst.is_on() {
            self.psync_header(Heading::Identity(self.identity().or_named(new)))?;
        }
        let (store, offset) = (self.store.clone(), self.object.offset);
        let renamed = store.unless_held_still(|| {
            store.update(|table| {
                let mut object = table.entry(offset)?;
                table.rename(&mut object, new)
            })
        });
        if let Err(error) = renamed {
            // The next attach tries again.
            let _ = self.finish_rename();
            return Err(error);
        }
        self.object.entry.set_name(new);
        self.psync_header(Heading::Identity(self.identity()))
    }

    /// Lets the root authenticate the table's ID and name: for objects of an earlier release, and
    /// copies.
    ///
    /// # Errors
    /// `NotSealed`; those of [`psync`](Writer::psync).
    pub fn bind_name(&mut self) -> Result<()> {
        let identity = self.identity();
        if self.expect_sealed()? == Some(identity) {
            return Ok(());
        }
        self.psync_header(Heading::Identity(identity))
    }

    /// Ends an interrupted rename.
    pub fn finish_rename(&mut self) -> Result<()> {
        let Some(sealed) = &self.sealed else { return Ok(()) };
        let begun = sealed.identity().filter(Identity::has_two_names);
        let Some(begun) = begun else { return Ok(()) };
        let entry = self.store.view(|table| table.entry(self.object.offset))?.entry;
        if !begun.is_of(&entry) {
            return Ok(());
        }
        self.object.entry.set_name(&entry.name());
        self.bind_name()
    }

    fn identity(&self) -> Identity {
        Identity::of(self.object.entry.id, &self.object.entry.name())
    }

    fn expect_sealed(&self) -> Result<Option<Identity>> {
        Ok(self.sealed.as_ref().ok_or(SealError::NotSealed)?.identity())
    }
}
