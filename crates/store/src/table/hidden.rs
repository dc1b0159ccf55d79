//! Objects that no name leads to: how an object becomes one, and when it may go.
//!
//! Invariant: a hidden object that [nothing needs](Located::is_left) is removed by the first
//! process that has it for itself; until then its space is its own.

use super::Located;
use super::objects::entry_hash;
use crate::error::Result;
use crate::format::entry::{FLAG_BASE, FLAG_DELETED, FLAG_HIDDEN};
use crate::format::root::TreeId;
use crate::space::TableTransaction;

impl TableTransaction<'_> {
    /// Takes the name from a deleted object: lookups no longer find it, and the name is free.
    pub fn hide(&mut self, object: &mut Located) -> Result<()> {
        self.stock_up(false)?;
        self.remove(TreeId::Names, (entry_hash(self.seed(), &object.entry), object.offset))?;
        object.entry.set(FLAG_HIDDEN, true);
        object.entry.set(FLAG_DELETED, true);
        self.insert(TreeId::Names, (entry_hash(self.seed(), &object.entry), object.offset), object.offset)?;
        self.put_entry(object)
    }
}

impl Located {
    /// Whether nothing in the table needs it: it is deleted, or the work of a resize, or a base
    /// that nothing rests on. A process may have it attached, or be at work on it: its lock tells.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.entry.has(FLAG_HIDDEN) && (!self.entry.has(FLAG_BASE) || self.entry.users.get() == 0)
    }
}
