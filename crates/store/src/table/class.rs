//! Durability classes of objects: by what their stores become durable.

use crate::error::{ClassError, Result};
use crate::format::entry::{
    CLASS_PSYNC, CLASS_TRANSACTIONAL, Entry, FLAG_OVERLAY, FLAG_SEALED, FLAG_SPARSE, FLAG_TYPED,
};
use std::fmt;

/// Durability class of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Plain stores, which are durable at psync.
    #[default]
    Psync,
    /// Stores in transactions alone, each of which is durable when it is committed (S1.16).
    Transactional,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 2] = [Class::Psync, Class::Transactional];

    /// As the entry has it.
    #[must_use]
    pub fn byte(self) -> u8 {
        match self {
            Class::Psync => CLASS_PSYNC,
            Class::Transactional => CLASS_TRANSACTIONAL,
        }
    }

    /// That of an object; `None`: one that this code does not know.
    #[must_use]
    pub fn of(entry: &Entry) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.byte() == entry.class)
    }

    /// Its name for people, and for options of the tool.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::Psync => "psync",
            Class::Transactional => "transactional",
        }
    }

    /// Gives an object this class, if it may have it.
    ///
    /// # Errors
    /// `Refused`.
    pub(crate) fn give(self, entry: &mut Entry) -> Result<()> {
        let refused = match self {
            Class::Psync => None,
            Class::Transactional if entry.has(FLAG_SEALED) => Some("it is sealed"),
            Class::Transactional if entry.has(FLAG_SPARSE) && !entry.has(FLAG_OVERLAY) => {
                Some("it is sparse, and a commit must not fail for want of space")
            }
            Class::Transactional => None,
        };
        if let Some(why) = refused {
            return Err(ClassError::Refused { class: self.name(), why }.into());
        }
        entry.class = self.byte();
        // Transactions store what their program's types are, not those that are proved by the mark.
        if self != Class::Psync {
            entry.set(FLAG_TYPED, false);
        }
        Ok(())
    }

    /// Refuses an object of another class.
    ///
    /// # Errors
    /// `Mismatch`.
    pub(crate) fn expect(self, entry: &Entry) -> Result<()> {
        match Class::of(entry) {
            Some(class) if class != self => {
                Err(ClassError::Mismatch { class: class.name(), needed: self.name() }.into())
            }
            // An unknown one was refused when the object was found.
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
