//! Hidden objects, which no name leads to.
//!
//! Invariant: the first process that has a hidden object [that nothing needs](Located::is_left) to
//! itself removes it.

use super::Located;
use super::objects::entry_hash;
use crate::error::Result;
use crate::format::entry::{FLAG_BASE, FLAG_DELETED, FLAG_HIDDEN};
use crate::format::root::TreeId;
use crate::space::TableTransaction;

impl TableTransaction<'_> {
    /// Hides a deleted object, and frees its name.
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
    /// Whether nothing in the table needs it: deleted, unfinished, or an unused base. A process may
    /// still use it; its lock tells.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.entry.has(FLAG_HIDDEN) && (!self.entry.has(FLAG_BASE) || self.entry.users.get() == 0)
    }
}
