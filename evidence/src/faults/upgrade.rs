//! Upgrade of a pool of format 1 as traced work: after a failed call or a kill, another upgrade
//! finishes with the old content.

use super::verify::{expect_sound, failed};
use crate::workloads::wire::Said;
use crate::workloads::world::Trouble;
use anyhow::Result;
use indelible::{Pool, PoolOptions, Severity, upgrade};
use indelible_testing::hostile::pool::{old_image, old_pool};
use std::path::Path;

pub(super) struct Upgrade<'a> {
    pub(super) pool: &'a Path,
    pub(super) name: &'a str,
}

pub(super) fn begin(path: &Path, name: &str) -> Result<()> {
    Ok(std::fs::write(path, old_image(name))?)
}

impl Upgrade<'_> {
    fn upgrade(&self) -> indelible::Result<()> {
        upgrade(self.pool, &PoolOptions::new(), false, &mut |_, _| {}).map(drop)
    }

    pub(super) fn work(&self) -> Result<(), Trouble> {
        Said::Begun { workload: 0, step: 1, ring: 0 }.say();
        if let Err(error) = self.upgrade() {
            failed(&error);
            self.upgrade()?;
        }
        Said::Done { workload: 0, step: 1 }.say();
        Said::Settled { workload: 0, step: 1, ring: 0 }.say();
        Ok(())
    }

    pub(super) fn judge(&self) -> Result<(), Trouble> {
        self.upgrade()?;
        expect_sound(self.pool, Severity::Warning)?;
        let pool = Pool::open(self.pool)?;
        old_pool(self.name).expect_in(pool.store()).map_err(Trouble::Wrong)?;
        drop(pool);
        expect_sound(self.pool, Severity::Warning)
    }
}
