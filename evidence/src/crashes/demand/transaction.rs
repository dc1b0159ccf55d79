use super::LARGE;

pub(super) type Set = u128;
pub(super) const MOST: usize = 120;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Open,
    Done,
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) life: u32,
    pub(super) apart: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub(super) objects: Set,
    pub(super) wide: bool,
    pub(super) line: Line,
    pub(super) thread: u32,
    pub(super) fate: Fate,
    pub(super) returned: bool,
}

impl Transaction {
    pub(super) fn has(&self, object: usize) -> bool {
        self.objects >> object & 1 == 1
    }

    pub(super) fn is_wide_in(&self, object: usize) -> bool {
        self.wide && object == LARGE && self.has(object)
    }
}
