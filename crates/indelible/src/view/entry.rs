//! An object of an attached view: reserved addresses, then memory from its first use on.

use super::classes::{Class, Classes};
use super::layout::ViewSlot;
use super::name_of;
use crate::error::{Cause, Error, ErrorKind, Result, SecurityError, ViewError};
use crate::far::Rights;
use crate::fault::reserved::{Owner, Reserved};
use crate::mapping::Mapping;
use crate::pool::Pool;
use crate::raw::{Permission, Pinned, pin};
use crate::security::Grants;
use crate::sys::mmap::Protection;
use indelible_store::table::Located;
use std::sync::Weak;

pub(super) struct Entry {
    pub(super) want: ViewSlot,
    pub(super) allowed: Rights,
    pub(super) rights: Vec<Protection>,
    pub(super) class: Class,
    pub(super) name: String,
    pub(super) address: usize,
    pub(super) len: usize,
    pub(super) memory: Memory,
    pub(super) refused: Option<Error>,
}

/// Touches are answered as long as the range is mapped.
pub(super) enum Memory {
    None,
    /// An inaccessible mapping; `None` while it gives way to the object.
    Reserved {
        mapping: Option<Mapping>,
        touches: Reserved,
    },
    Object {
        object: Pinned,
        touches: Reserved,
    },
}

impl Entry {
    pub(super) fn reserve(
        want: ViewSlot,
        allowed: Rights,
        found: Result<Located, Cause>,
        pool: &Pool,
        owner: Weak<dyn Owner>,
    ) -> Entry {
        let mut entry = Entry {
            want,
            allowed,
            rights: Vec::new(),
            class: Class::Everybody,
            name: name_of(&want.target),
            address: 0,
            len: 0,
            memory: Memory::None,
            refused: None,
        };
        match found {
            Ok(object) => {
                entry.name = object.entry.name();
                let len = object.entry.usable(object.entry.content_len());
                (entry.address, entry.len) = (object.entry.address.get() as usize, len as usize);
                if let Err(cause) = entry.reserve_addresses(owner) {
                    entry.refuse(pool, cause);
                }
            }
            Err(cause) => entry.refuse(pool, cause),
        }
        entry
    }

    fn reserve_addresses(&mut self, owner: Weak<dyn Owner>) -> Result<(), Cause> {
        let mapping = Mapping::anonymous(self.address, self.len, Protection::None)?;
        let touches = Reserved::new(self.address..self.address + self.len, owner, self.want.slot);
        let touches = touches.map_err(ViewError::Reserve)?;
        self.memory = Memory::Reserved { mapping: Some(mapping), touches };
        Ok(())
    }

    fn refuse(&mut self, pool: &Pool, cause: Cause) {
        self.refused = Some(Error::new("attach", cause).pool(pool.path()).object(&self.name));
    }

    pub(super) fn have_rights(&mut self, rights: Vec<Protection>) {
        if self.rights != rights {
            (self.rights, self.class) = (rights, Class::Everybody);
        }
    }

    /// `false`: none is left, and the slot says why.
    pub(super) fn classify(&mut self, classes: &mut Classes, make: bool) -> bool {
        if matches!(self.class, Class::Of(_)) || !self.allowed.has(Rights::READ) {
            return true;
        }
        let found = classes.of(&self.rights, make);
        let found = found.map_err(|error| Error::new("attach", error).object(&self.name));
        let closed = found.and_then(|domain| {
            self.class = Class::Of(domain);
            match &self.memory {
                Memory::Object { object, .. } => self.close(object),
                Memory::None | Memory::Reserved { .. } => Ok(()),
            }
        });
        match closed {
            Ok(()) => true,
            Err(why) => {
                self.end();
                (self.class, self.refused) = (Class::None(why.clone()), Some(why));
                false
            }
        }
    }

    pub(super) fn is_attached(&self) -> bool {
        matches!(self.memory, Memory::Object { .. })
    }

    pub(super) fn is_reserved(&self) -> bool {
        matches!(self.memory, Memory::Reserved { .. })
    }

    pub(super) fn is_for_writing(&self) -> bool {
        let wants = self.want.rights.has(Rights::WRITE) || indelible_store::Mutant::SlotRightsIgnored.is_on();
        wants && self.allowed.has(Rights::WRITE)
    }

    pub(super) fn asks_for(&self, access: Protection) -> bool {
        access != Protection::ReadWrite || self.want.rights.has(Rights::WRITE)
    }

    pub(super) fn effective(&self) -> Rights {
        self.want.rights.and(self.allowed)
    }

    pub(super) fn denied(&self, contexts: &Grants) -> Option<Error> {
        if self.allowed.has(Rights::READ) {
            return match &self.class {
                Class::None(why) => Some(why.clone()),
                Class::Everybody | Class::Of(_) => None,
            };
        }
        let cause = SecurityError::Denied { what: "loads", contexts: contexts.shown() };
        Some(Error::new("attach", cause).object(&self.name))
    }

    /// On failure the addresses are reserved again. `told`: see [`settle`](Entry::settle).
    pub(super) fn bring(&mut self, pool: &Pool, contexts: &Grants, told: bool) -> Result<(), Error> {
        if self.is_attached() {
            return Ok(());
        }
        if let (Memory::None, Some(refused)) = (&self.memory, &self.refused) {
            return Err(refused.clone());
        }
        if let Some(denied) = self.denied(contexts) {
            self.refused = Some(denied.clone());
            return Err(denied);
        }
        self.give_way();
        let name = name_of(&self.want.target);
        let attached = match self.is_for_writing() {
            true => {
                pin(pool, &name, Permission::Write).or_else(|error| match is_for_lack_of_rights(&error) {
                    true => pin(pool, &name, Permission::Read),
                    false => Err(error),
                })
            }
            false => pin(pool, &name, Permission::Read),
        };
        self.settle(attached, told)
    }

    pub(super) fn unless_denied(&mut self, contexts: &Grants) -> Option<&mut Entry> {
        match self.denied(contexts) {
            Some(denied) => {
                self.refused = Some(denied);
                None
            }
            None => Some(self),
        }
    }

    pub(super) fn give_way(&mut self) {
        if let Memory::Reserved { mapping, .. } = &mut self.memory {
            *mapping = None;
        }
    }

    /// `told`: no thread that answers a touch would report it, so waiting threads are told here.
    pub(super) fn settle(&mut self, attached: Result<Pinned>, told: bool) -> Result<(), Error> {
        let closed = attached.and_then(|object| self.close(&object).map(|()| object));
        let refused = match (closed, std::mem::replace(&mut self.memory, Memory::None)) {
            (Ok(object), Memory::Reserved { touches, .. }) => {
                if told {
                    touches.mapped();
                }
                self.memory = Memory::Object { object, touches };
                self.refused = None;
                return Ok(());
            }
            (Ok(object), other) => {
                drop(object);
                self.memory = other;
                self.refused
                    .clone()
                    .unwrap_or_else(|| Error::new("attach", Cause::Detached).object(&self.name))
            }
            (Err(error), Memory::Reserved { touches, .. }) => {
                // If the addresses were taken meanwhile, the slot's next use fails.
                let mapping = Mapping::anonymous(self.address, self.len, Protection::None).ok();
                self.memory = Memory::Reserved { mapping, touches };
                error
            }
            (Err(error), other) => {
                self.memory = other;
                error
            }
        };
        self.refused = Some(refused.clone());
        Err(refused)
    }

    pub(super) fn take_object(&mut self) -> Option<Pinned> {
        match std::mem::replace(&mut self.memory, Memory::None) {
            Memory::Object { object, touches } => {
                self.memory = Memory::Reserved { mapping: None, touches };
                Some(object)
            }
            other => {
                self.memory = other;
                None
            }
        }
    }

    pub(super) fn end(&mut self) {
        if !self.is_attached() {
            return;
        }
        if let Memory::Object { object, touches } = std::mem::replace(&mut self.memory, Memory::None) {
            touches.unmapped();
            drop(object);
            let mapping = Mapping::anonymous(self.address, self.len, Protection::None).ok();
            self.memory = Memory::Reserved { mapping, touches };
        }
    }
}

pub(super) fn is_for_lack_of_rights(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::ReadOnly | ErrorKind::ObjectReadOnly | ErrorKind::WrongKey)
}
