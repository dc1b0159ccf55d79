//! Durability classes: how stores to an object become durable.

use crate::error::{ClassError, Result};
use crate::format::entry::{
    CLASS_ON_DEMAND, CLASS_PSYNC, CLASS_SHARED, CLASS_TRANSACTIONAL, Entry, FLAG_ECC, FLAG_OVERLAY,
    FLAG_READABLE, FLAG_SEALED, FLAG_SPARSE, FLAG_TYPED, FLAG_VOLATILE,
};
use std::fmt;
use zerocopy::little_endian::U64;

/// Durability class of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Plain stores, durable at psync.
    #[default]
    Psync,
    /// Stores in transactions, durable at commit.
    Transactional,
    /// Stores in transactions, which outlive the process at commit, and become durable later.
    OnDemand,
    /// Plain stores of several processes to shared memory, never durable: for waiting, queues and
    /// messages. The object is volatile.
    Shared,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 4] = [Class::Psync, Class::Transactional, Class::OnDemand, Class::Shared];

    /// The entry's byte.
    #[must_use]
    pub fn byte(self) -> u8 {
        match self {
            Class::Psync => CLASS_PSYNC,
            Class::Transactional => CLASS_TRANSACTIONAL,
            Class::OnDemand => CLASS_ON_DEMAND,
            Class::Shared => CLASS_SHARED,
        }
    }

    /// An entry's class; `None`: unknown.
    #[must_use]
    pub fn of(entry: &Entry) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.byte() == entry.class)
    }

    /// Name, for messages and the tool's options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::Psync => "psync",
            Class::Transactional => "transactional",
            Class::OnDemand => "on-demand",
            Class::Shared => "shared",
        }
    }

    pub(crate) fn give(self, entry: &mut Entry) -> Result<()> {
        let refused = match self {
            Class::Psync | Class::Shared if entry.has(FLAG_ECC) => {
                Some("its words have check words, which transactions alone keep")
            }
            Class::Psync => None,
            _ if entry.has(FLAG_SEALED) => Some("it is sealed"),
            Class::Shared if !entry.has(FLAG_VOLATILE) => {
                Some("it is not volatile, and nothing makes durable what processes share")
            }
            Class::Shared if entry.has(FLAG_OVERLAY) => Some("it shares pages with a snapshot or a copy"),
            Class::Shared => None,
            _ if entry.has(FLAG_SPARSE) && !entry.has(FLAG_OVERLAY) => {
                Some("it is sparse, and a commit must not fail for want of space")
            }
            _ => None,
        };
        if let Some(why) = refused {
            return Err(ClassError::Refused { class: self.name(), why }.into());
        }
        entry.class = self.byte();
        entry.keep_in(None);
        // The mark does not prove other types.
        if self != Class::Psync {
            entry.set(FLAG_TYPED, false);
        }
        if !matches!(self, Class::Transactional | Class::OnDemand) {
            entry.set(FLAG_READABLE, false);
        }
        Ok(())
    }

    pub(crate) fn let_read(entry: &mut Entry, is: bool) -> Result<()> {
        let refused = match Class::of(entry) {
            _ if !is => None,
            Some(Class::Transactional | Class::OnDemand) if entry.has(FLAG_ECC) => {
                Some("its words have check words, between which plain loads would find none of its values")
            }
            Some(Class::Transactional | Class::OnDemand) => None,
            _ => Some(
                "it is neither transactional nor on-demand, and any process that has it loads and stores",
            ),
        };
        match refused {
            Some(why) => Err(ClassError::Unreadable { why }.into()),
            None => {
                entry.set(FLAG_READABLE, is);
                Ok(())
            }
        }
    }

    pub(crate) fn expect(self, entry: &Entry) -> Result<()> {
        match Class::of(entry) {
            Some(class) if class != self => {
                Err(ClassError::Mismatch { class: class.name(), needed: self.name() }.into())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn expect_bytes(entry: &Entry) -> Result<()> {
        if entry.class == CLASS_SHARED { Err(ClassError::NoBytes.into()) } else { Ok(()) }
    }
}

impl Entry {
    /// Whether plain loads see commits.
    #[must_use]
    pub fn is_readable_outside(&self) -> bool {
        self.has(FLAG_READABLE)
            && !self.has(FLAG_ECC)
            && matches!(Class::of(self), Some(Class::Transactional | Class::OnDemand))
    }
}

impl Entry {
    /// This boot's memory that may have commits which the pool lacks.
    #[must_use]
    pub fn memory_in(&self, boot: &[u8; 16]) -> Option<u64> {
        (self.memory.get() != 0 && self.memory_boot == *boot).then_some(self.memory.get())
    }

    /// Sets the memory that has commits, and its boot; `None`: the pool has them all.
    pub fn keep_in(&mut self, memory: Option<(u64, [u8; 16])>) {
        let (number, boot) = memory.unwrap_or_default();
        (self.memory, self.memory_boot) = (U64::new(number), boot);
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
