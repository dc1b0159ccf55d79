#![allow(unsafe_code)]

use super::means::{Means, Tools, drop_page};
use crate::workloads::program::mixed;
use crate::workloads::wire::Said;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use indelible::{Object, Pool, PoolOptions, Tracking};
use std::path::PathBuf;

pub(super) const SIZE: usize = LEN + 4096;
/// Bytes of the rounds. The page after them is the probe's, where a victim may die.
const LEN: usize = 96 * 4096;
pub(super) const NAME: &str = "stores";
const ROUNDS: u64 = 60;

#[derive(Args, Debug, Clone)]
pub(crate) struct Child {
    #[arg(long)]
    pub(crate) pool: PathBuf,
    #[arg(long)]
    pub(crate) tracking: String,
    #[arg(long)]
    pub(crate) means: Means,
    #[arg(long)]
    pub(crate) seed: u64,
    /// The last round that was reported done
    #[arg(long)]
    pub(crate) done: u64,
    #[arg(long)]
    pub(crate) judge: bool,
}

fn round(seed: u64, number: u64, grain: usize) -> Vec<(usize, Vec<u8>)> {
    let mut rng = mixed(seed, number, 7);
    (0..rng.usize(1..4))
        .map(|_| {
            let len = if grain > 8 { grain } else { 8 * rng.usize(1..40) };
            let at = rng.usize(0..(LEN - len) / grain) * grain;
            let at = if rng.bool() { at % (8 * 4096) } else { at };
            (at, (0..len).map(|_| rng.u8(..)).collect())
        })
        .collect()
}

fn grain(means: Means) -> usize {
    if means == Means::Direct { 512 } else { 8 }
}

impl Child {
    pub(crate) fn run(&self) -> Result<()> {
        let done = if self.judge { self.look() } else { self.work() };
        if let Err(error) = done {
            Said::Wrong { why: format!("{error:#}") }.say();
        }
        Ok(())
    }

    fn tracking(&self) -> Tracking {
        let known = Tracking::WORDS.into_iter().find(|(word, _)| *word == self.tracking);
        known.map_or(Tracking::Auto, |(_, tracking)| tracking)
    }

    fn open(&self) -> Result<Pool> {
        Ok(PoolOptions::new().tracking(self.tracking()).open(&self.pool)?)
    }

    fn model(&self, rounds: u64) -> Vec<u8> {
        let mut bytes = vec![0; LEN];
        for number in 1..=rounds {
            take(&mut bytes, &round(self.seed, number, grain(self.means)));
        }
        bytes
    }

    fn look(&self) -> Result<()> {
        let pool = self.open()?;
        let object = pool.attach(NAME)?;
        let mut model = self.model(self.done);
        for step in [self.done, self.done + 1] {
            if object.as_slice()[..LEN] == model {
                Said::Settled { workload: 0, step, ring: 0 }.say();
                return Ok(object.detach()?);
            }
            if step == self.done {
                take(&mut model, &round(self.seed, step + 1, grain(self.means)));
            }
        }
        bail!("{}", self.explain(&object.as_slice()[..LEN]))
    }

    fn explain(&self, found: &[u8]) -> String {
        let differs = |rounds: u64| -> Vec<usize> {
            let model = self.model(rounds);
            (0..LEN).step_by(8).filter(|at| found[*at..at + 8] != model[*at..at + 8]).collect()
        };
        let words = differs(self.done + 1);
        let mut text = format!(
            "after round {} {} words differ, after the next {}",
            self.done,
            differs(self.done).len(),
            words.len()
        );
        for at in words.into_iter().take(6) {
            let mut bytes = vec![0; LEN];
            let mut last = (found[at..at + 8] == bytes[at..at + 8]).then_some(0);
            let mut stored = Vec::new();
            for number in 1..=self.done + 1 {
                let stores = round(self.seed, number, grain(self.means));
                take(&mut bytes, &stores);
                if stores.iter().any(|(from, new)| (*from..from + new.len()).contains(&at)) {
                    stored.push(number);
                    if found[at..at + 8] == bytes[at..at + 8] {
                        last = Some(number);
                    }
                }
            }
            stored.drain(..stored.len().saturating_sub(4));
            text += &format!("; word {at:#x}: as stored in round {last:?}, last stored to in {stored:?}");
        }
        text
    }

    fn work(&self) -> Result<()> {
        let pool = self.open()?;
        let mut object = pool.attach(NAME)?;
        let mut model = self.model(self.done);
        if object.as_slice()[..LEN] != model {
            bail!("a victim finds another state than the judge before it");
        }
        let folder = self.pool.parent().context("a pool lies in a folder")?;
        let base = object.as_mut_ptr();
        if self.means == Means::IoUring {
            for page in 0..SIZE / 4096 {
                let at = base.wrapping_add(page * 4096);
                // SAFETY: a byte of the object, stored as it is.
                unsafe { at.write_volatile(at.read_volatile()) };
            }
        }
        // SAFETY: the object is dropped after the tools.
        let tools = match unsafe { Tools::new(self.means, folder, base, SIZE) } {
            Ok(tools) => tools,
            Err(error) => {
                Said::Failed { workload: 0, untouched: true, why: format!("{error:#}") }.say();
                return Ok(());
            }
        };
        let mut victim = Victim { object: &mut object, tools, means: self.means, tracking: self.tracking() };
        victim.object.mark_dirty(0..0);
        victim.probe()?;
        for number in self.done + 1..=self.done + ROUNDS {
            let stores = round(self.seed, number, grain(self.means));
            victim.store(&stores)?;
            take(&mut model, &stores);
            if number % 4 == 0 {
                victim.object.psync_cut()?
            } else {
                victim.object.psync()?
            };
            Said::Done { workload: 0, step: number }.say();
            victim.drop_pages(&stores, &model)?;
        }
        Said::Count { what: crate::kills::IDLE.into(), count: 1 }.say();
        loop {
            std::thread::park();
        }
    }
}

fn take(model: &mut [u8], stores: &[(usize, Vec<u8>)]) {
    for (at, bytes) in stores {
        model[*at..at + bytes.len()].copy_from_slice(bytes);
    }
}

struct Victim<'a> {
    object: &'a mut Object,
    tools: Tools,
    means: Means,
    tracking: Tracking,
}

impl Victim<'_> {
    fn at(&mut self, place: usize) -> *mut u8 {
        self.object.as_mut_ptr().wrapping_add(place)
    }

    fn put(&mut self, place: usize, bytes: &[u8]) -> Result<bool> {
        let at = self.at(place);
        // SAFETY: within the object.
        let refused = match unsafe { self.tools.put(at, bytes) } {
            Ok(()) => return Ok(false),
            Err(error) => error,
        };
        if !self.means.is_refused(self.tracking) {
            return Err(refused.context("a store that should work"));
        }
        for page in place / 4096..=(place + bytes.len() - 1) / 4096 {
            let at = self.at(place.max(page * 4096));
            // SAFETY: a byte of the object, stored as it is.
            unsafe { at.write_volatile(at.read_volatile()) };
        }
        // SAFETY: within the object.
        unsafe { self.tools.put(at, bytes) }.map_err(|error| error.context("after a store to each page"))?;
        Ok(true)
    }

    fn store(&mut self, stores: &[(usize, Vec<u8>)]) -> Result<()> {
        for (place, bytes) in stores {
            self.put(*place, bytes)?;
            if self.means.needs_mark(self.tracking) {
                self.object.mark_dirty(*place..place + bytes.len());
            }
        }
        Ok(())
    }

    fn probe(&mut self) -> Result<()> {
        for _ in 0..40 {
            self.object.psync()?;
        }
        let (place, len) = (LEN, self.tools.grain().max(64));
        let new: Vec<u8> = self.object.as_slice()[place..place + len].iter().map(|byte| !byte).collect();
        let refused = self.put(place, &new)?;
        let before = self.object.stats().logged_bytes;
        self.object.psync()?;
        let found = self.object.stats().logged_bytes > before;
        let (needs, refuses) = (self.means.needs_mark(self.tracking), self.means.is_refused(self.tracking));
        if found == needs || refused != refuses {
            return Err(anyhow!(
                "documented: {}, {}; seen: {}, {}",
                if needs { "has to be marked" } else { "found" },
                if refuses { "refused" } else { "accepted" },
                if found { "found" } else { "not found" },
                if refused { "refused" } else { "accepted" },
            ));
        }
        Ok(())
    }

    fn drop_pages(&mut self, stores: &[(usize, Vec<u8>)], model: &[u8]) -> Result<()> {
        if self.means != Means::DontNeed {
            return Ok(());
        }
        for (place, _) in stores {
            let at = self.at(*place);
            // SAFETY: no reference to the page exists.
            unsafe { drop_page(at) }?;
        }
        if self.object.as_slice()[..LEN] != *model {
            bail!("pages that were dropped after a psync came back older");
        }
        Ok(())
    }
}
