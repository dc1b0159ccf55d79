use super::child::Role;
use super::program::Data;
use crate::kills::watch::{End, Fate, Seen, start, watch};
use crate::workloads::program::mixed;
use crate::workloads::wire::Said;
use anyhow::{Context, Result, bail};
use indelible::{MediumKind, Pool, PoolOptions};
use indelible_record::add;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;

const SIZE: u64 = 16 << 20;

pub(super) type Counts = BTreeMap<String, u64>;

#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) medium: MediumKind,
    pub(super) tracking: &'static str,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {}", self.medium, self.tracking)
    }
}

impl Cell {
    pub(super) fn run(self, seed: u64, kills: u64, broken: Option<&str>) -> Result<Counts> {
        let below = if self.medium == MediumKind::Memory { "/dev/shm" } else { "/var/tmp" };
        let folder = tempfile::Builder::new().prefix("indelible-retention-").tempdir_in(below)?;
        let own = mixed(seed, self.medium as u64, self.tracking.len() as u64).u64(..);
        let path = folder.path().join("pool.pmo");
        drop::<Pool>(PoolOptions::new().medium(self.medium).format(&path, SIZE)?);
        let mut line = Line {
            cell: self,
            path,
            seed: own,
            broken: broken.map(str::to_owned),
            rng: mixed(own, 3, 0),
            done: 0,
            model: Data::new(own),
            counts: Counts::new(),
        };
        match line.follow(kills) {
            Ok(()) => Ok(line.counts),
            Err(error) if broken.is_some() => Err(error),
            Err(error) => {
                let kept = folder.keep();
                Err(error.context(format!(
                    "after step {}; the pool is left in {}",
                    line.done,
                    kept.display()
                )))
            }
        }
    }
}

struct Line {
    cell: Cell,
    path: PathBuf,
    seed: u64,
    broken: Option<String>,
    rng: fastrand::Rng,
    done: u64,
    model: Data,
    counts: Counts,
}

impl Line {
    fn follow(&mut self, kills: u64) -> Result<()> {
        self.process(Role::Maker, Fate::default())?;
        while self.counts.get("SIGKILL of a victim").copied().unwrap_or(0) < kills {
            for _ in 0..self.rng.u8(1..4) {
                let fate = self.fate(13, 20_000);
                self.process(Role::Victim, fate)?;
            }
            for _ in 0..self.rng.u8(0..3) {
                let fate = self.fate(1, 80_000);
                self.process(Role::Judge, fate)?;
            }
            if self.process(Role::Judge, Fate::default())? != End::Exit {
                bail!("the judge came to no verdict");
            }
        }
        Ok(())
    }

    fn fate(&mut self, lines: usize, spins: u32) -> Fate {
        let spins = if self.cell.medium == MediumKind::Memory { spins } else { 10 * spins };
        Fate { death: Some((self.rng.usize(0..lines), self.rng.u32(0..spins))), ..Fate::default() }
    }

    fn process(&mut self, role: Role, fate: Fate) -> Result<End> {
        let seen = watch(start(self.command(role))?, fate, &|| false)?;
        let who = format!("{role:?}").to_lowercase();
        self.account(&who, &seen).with_context(|| format!("a {who} behind step {}", self.done))?;
        Ok(seen.end)
    }

    fn command(&self, role: Role) -> Command {
        let own = std::env::current_exe().unwrap_or_else(|_| "pmo-evidence".into());
        let mut command = Command::new(own);
        command.args([
            "retention-child",
            &format!("{role:?}").to_lowercase(),
            "--tracking",
            self.cell.tracking,
        ]);
        command.args(["--seed", &self.seed.to_string(), "--done", &self.done.to_string()]);
        command.arg("--pool").arg(&self.path);
        command.envs(self.broken.iter().map(|rule| ("INDELIBLE_MUTANT", rule)));
        command
    }

    fn account(&mut self, who: &str, seen: &Seen) -> Result<()> {
        let mut count = |what: &str, number: u64| add(&mut self.counts, what, number);
        for said in &seen.said {
            match said {
                Said::Wrong { why } => bail!("{why}"),
                Said::Settled { step, .. } => {
                    count("steps done, not yet acknowledged", step - self.done);
                    self.done = *step;
                }
                Said::Done { step, .. } => {
                    count("steps acknowledged", 1);
                    self.done = *step;
                }
                Said::Count { what, count: number } => count(what, *number),
                other => bail!("unexpected: {other}"),
            }
        }
        while self.model.step < self.done {
            let action = self.model.next();
            count(&format!("steps: {}", action.word(&self.model)), 1);
            count(&format!("steps by programs of version {}", self.model.version()), 1);
            self.model.take(&action);
        }
        match seen.end {
            End::Exit => count("processes that ended by themselves", 1),
            End::Killed if who == "judge" => count("SIGKILL of a recoverer", 1),
            End::Killed => count(&format!("SIGKILL of a {who}"), 1),
            end => bail!("it ended by {end:?}: {}", seen.stderr),
        }
        Ok(())
    }
}
