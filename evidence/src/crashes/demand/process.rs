use super::found::{CELLS, PAGES};
use super::{LARGE, OBJECTS};
use indelible::{Pending, Pool, Transactional, TxCell, TxObject};
use indelible_testing::SimMedium;
use std::collections::BTreeMap;
use std::sync::Arc;

enum Kind {
    Page(TxObject<[TxCell<u64>; CELLS]>),
    Large(TxObject<[TxCell<u64>; CELLS * PAGES]>),
}

pub(super) struct Object {
    kind: Kind,
    pub(super) apart: bool,
}

macro_rules! each {
    ($object:expr, $it:ident => $what:expr) => {
        match $object.kind {
            Kind::Page($it) => $what,
            Kind::Large($it) => $what,
        }
    };
    (ref $object:expr, $it:ident => $what:expr) => {
        match &$object.kind {
            Kind::Page($it) => $what,
            Kind::Large($it) => $what,
        }
    };
}

impl Object {
    pub(super) fn attach(pool: &Pool, object: usize, apart: bool) -> indelible::Result<Object> {
        let name = OBJECTS[object];
        let kind = match (object == LARGE, apart) {
            (true, _) => Kind::Large(pool.attach_with_on_demand(name, b"")?),
            (_, true) => Kind::Page(pool.attach_transactional(name)?),
            _ => Kind::Page(pool.attach_with_on_demand(name, b"")?),
        };
        Ok(Object { kind, apart })
    }

    pub(super) fn cells(&self) -> &[TxCell<u64>] {
        each!(ref self, it => &it.root()[..])
    }

    pub(super) fn part(&self) -> &dyn Transactional {
        each!(ref self, it => it)
    }

    pub(super) fn tx_sync(&self) -> indelible::Result<()> {
        each!(ref self, it => it.tx_sync())
    }

    pub(super) fn psync(&self) -> indelible::Result<()> {
        each!(ref self, it => it.psync())
    }

    pub(super) fn pending(&self) -> Pending {
        each!(ref self, it => it.pending())
    }

    pub(super) fn detach(self) -> indelible::Result<()> {
        each!(self, it => it.detach())
    }
}

pub(super) struct Life {
    pub(super) number: u32,
    pub(super) objects: BTreeMap<usize, Arc<Object>>,
    pub(super) pool: Pool,
    pub(super) medium: Arc<SimMedium>,
}

pub(super) struct Seat {
    pub(super) number: usize,
    pub(super) thread: u32,
    pub(super) life: Option<Life>,
}
