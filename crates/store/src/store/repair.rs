//! Repair.
/// Options.
#[derive(Clone, Debug, Default)]
pub struct RepairOptions {}
/// Action.
#[derive(Clone, Debug)]
pub struct RepairAction {}
