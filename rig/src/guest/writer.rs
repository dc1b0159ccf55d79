//! Runs the program on a pool.

use crate::port::say;
use anyhow::{Context, Result};
use indelible::{Object, Pool, psync_all};
use indelible_rig::program::{Change, GUEST, Put, step};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

pub(crate) struct Writer {
    pool: Pool,
    seed: u64,
    objects: BTreeMap<String, Object>,
}

impl Writer {
    pub(crate) fn new(pool: Pool, seed: u64) -> Self {
        Writer { pool, seed, objects: BTreeMap::new() }
    }

    pub(crate) fn attach(&mut self, names: &[String]) -> Result<()> {
        for name in names {
            self.objects.insert(name.clone(), self.pool.attach(name)?);
        }
        Ok(())
    }

    pub(crate) fn bytes(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.objects.iter().map(|(name, object)| (name.as_str(), object.as_slice()))
    }

    pub(crate) fn rung(&self) -> String {
        self.objects.values().next().map(Object::rung).unwrap_or_default()
    }

    pub(crate) fn recovered(&self) -> u64 {
        self.objects.values().map(Object::recovered_bytes).sum()
    }

    pub(crate) fn detach(self) -> Result<Pool> {
        for object in self.objects.into_values() {
            object.detach()?;
        }
        Ok(self.pool)
    }

    /// Reports each step before it may happen, and after it has.
    pub(crate) fn run(mut self, steps: RangeInclusive<u64>) -> Result<()> {
        for number in steps {
            let step = step(self.seed, number);
            if let Some(name) = step.reattach
                && let Some(object) = self.objects.remove(name)
            {
                object.detach()?;
                self.objects.insert(name.to_owned(), self.pool.attach(name)?);
            }
            say(&format!("start {number}"));
            self.step(step.change).with_context(|| format!("step {number}"))?;
            say(&format!("done {number}"));
        }
        self.detach().map(drop)
    }

    fn step(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Psync(stores) => self.psync(&stores)?,
            Change::Create(size) => {
                self.pool.create(GUEST, size)?;
                self.objects.insert(GUEST.to_owned(), self.pool.attach(GUEST)?);
            }
            Change::Grow(size) => self.objects.get_mut(GUEST).context("no guest")?.grow(size)?,
            Change::Destroy => {
                self.objects.remove(GUEST).context("no guest")?.detach()?;
                self.pool.destroy(GUEST)?;
            }
        }
        Ok(())
    }

    fn psync(&mut self, stores: &BTreeMap<&'static str, Vec<Put>>) -> Result<()> {
        let mut chosen: Vec<&mut Object> = Vec::new();
        for (name, object) in &mut self.objects {
            let Some(puts) = stores.get(name.as_str()) else { continue };
            for put in puts {
                object.range_mut(put.at..put.at + put.bytes.len()).copy_from_slice(&put.bytes);
            }
            chosen.push(object);
        }
        match chosen.as_mut_slice() {
            [one] => one.psync()?,
            several => psync_all(several)?,
        }
        Ok(())
    }
}
