//! A repair after the table's lane was applied and voided, so that changes can be published.

use super::Repair;
use crate::error::Result;
use crate::format::batch::kind;
use crate::lane::{Batch, LaneLog};
use crate::space::TableTransaction;
use crate::store::publication::append;
use std::ops::{Deref, DerefMut};

/// Entries per batch, within the table's lane.
pub(super) const TOGETHER: usize = 128;

/// Made only by [`settle_table`](Repair::settle_table).
pub(super) struct SettledRepair<'r> {
    repair: &'r mut Repair,
    log: LaneLog,
}

impl Deref for SettledRepair<'_> {
    type Target = Repair;
    fn deref(&self) -> &Repair {
        self.repair
    }
}

impl DerefMut for SettledRepair<'_> {
    fn deref_mut(&mut self) -> &mut Repair {
        self.repair
    }
}

impl<'r> SettledRepair<'r> {
    pub(super) fn new(repair: &'r mut Repair, log: LaneLog) -> Self {
        SettledRepair { repair, log }
    }

    pub(super) fn update(
        &mut self,
        change: impl FnOnce(&mut TableTransaction<'_>) -> Result<()>,
    ) -> Result<()> {
        let medium = self.medium.clone();
        let mut table = TableTransaction::begin(&*medium, self.seed, self.len)?;
        change(&mut table)?;
        if table.root_changed() {
            table.seal_root()?;
        }
        self.publish(|batch| table.pages().changed_runs(|offset, bytes| batch.copy_lines(offset, bytes)))
    }

    pub(super) fn publish(&mut self, fill: impl FnOnce(&mut Batch)) -> Result<()> {
        let mut batch = Batch::new();
        batch.begin(kind::TABLE, 0, 0);
        fill(&mut batch);
        if batch.is_empty() {
            return Ok(());
        }
        batch.seal(self.seed);
        append(&*self.repair.medium, self.repair.seed, &mut self.log, &mut batch)
    }
}
