//! Programs of the versions, killed while they work, and the judge.

use super::compare;
use super::perform::{make, perform, wait_for_the_end};
use super::program::Data;
use crate::workloads::wire::Said;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use indelible::{Heap, Pool, PoolOptions, Tracking};
use std::path::PathBuf;

const NAME: &str = "retention";
const SIZE: u64 = 1 << 20;

#[derive(Args, Debug, Clone)]
pub(crate) struct Child {
    pub(crate) role: Role,
    #[arg(long)]
    pub(crate) pool: PathBuf,
    #[arg(long)]
    pub(crate) tracking: String,
    #[arg(long)]
    pub(crate) seed: u64,
    /// The last step that was reported done
    #[arg(long)]
    pub(crate) done: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Makes the object, as a program of version 1 does
    Maker,
    /// Makes steps until it is killed
    Victim,
    Judge,
}

impl Child {
    pub(crate) fn run(&self) -> Result<()> {
        let done = match self.role {
            Role::Maker => self.make(),
            Role::Victim => self.work(),
            Role::Judge => self.judge(),
        };
        if let Err(error) = done {
            Said::Wrong { why: format!("{error:#}") }.say();
        }
        Ok(())
    }

    fn pool(&self) -> Result<Pool> {
        let tracking = Tracking::WORDS.into_iter().find(|(word, _)| *word == self.tracking);
        let tracking = tracking.map_or(Tracking::Auto, |(_, tracking)| tracking);
        Ok(PoolOptions::new().tracking(tracking).open(&self.pool)?)
    }

    fn make(&self) -> Result<()> {
        let mut heap = Heap::format(self.pool()?.create_attached(NAME, SIZE)?)?;
        make(&mut heap, &Data::new(self.seed))?;
        heap.psync()?;
        Ok(heap.into_object().detach()?)
    }

    fn open(&self) -> Result<(Heap, Data)> {
        let mut heap = Heap::open(self.pool()?.attach(NAME)?)?;
        let step = compare::step(&mut heap)?;
        if step != self.done && step != self.done + 1 {
            bail!("the heap is after step {step}; step {} was reported done", self.done);
        }
        Said::Settled { workload: 0, step, ring: 0 }.say();
        Ok((heap, Data::at(self.seed, step)))
    }

    fn judge(&self) -> Result<()> {
        let (mut heap, data) = self.open()?;
        compare::sound(&mut heap, &data)?;
        compare::same(&mut heap, &data)?;
        heap.into_object().detach()?;
        Said::Count { what: "heaps compared with the model".into(), count: 1 }.say();
        Ok(())
    }

    fn work(&self) -> Result<()> {
        let (mut heap, mut data) = self.open()?;
        loop {
            let action = data.next();
            perform(&mut heap, &data, &action)?;
            if data.step % 4 == 0 {
                heap.psync_cut()?
            } else {
                heap.psync()?
            };
            data.take(&action);
            Said::Done { workload: 0, step: data.step }.say();
            if data.era_ends() {
                break;
            }
        }
        if data.step % 20 == 0 {
            return Ok(heap.into_object().detach()?);
        }
        wait_for_the_end()
    }
}
