use super::history::{GROUPS, History, MEMBERS, label, name};
use super::keeper::{Work, collect};
use super::kept::Keeper;
use super::writer::{Writer, count, histories, same};
use crate::kills::watch::idle;
use crate::kills::{check_pool, failed};
use crate::workloads::program::mixed;
use crate::workloads::wire::Said;
use crate::workloads::world::{Trouble, patient};
use anyhow::Result;
use clap::{Args, ValueEnum};
use indelible::{Pool, PoolOptions, Tracking};
use std::path::PathBuf;
use std::thread;

pub(super) const KEEPERS: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    Writer,
    /// Makes snapshots and copies of the groups' objects, changes copies, removes and merges
    Keeper,
    Follower,
    /// Merges without pause
    Collector,
    Judge,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Child {
    pub(crate) role: Role,
    #[arg(long)]
    pub(crate) pool: PathBuf,
    /// Folder of the journals
    #[arg(long)]
    pub(crate) journals: PathBuf,
    #[arg(long)]
    pub(crate) tracking: String,
    #[arg(long)]
    pub(crate) seed: u64,
    /// Which writer, or which keeper
    #[arg(long, default_value_t = 0)]
    pub(crate) number: usize,
    /// Steps before the process waits for its end
    #[arg(long, default_value_t = 100)]
    pub(crate) steps: u64,
    /// End instead; a judge: remove all that is kept
    #[arg(long)]
    pub(crate) end: bool,
}

impl Child {
    pub(crate) fn run(&self) -> Result<()> {
        match self.act() {
            Ok(()) => {}
            Err(Trouble::Wrong(why)) => Said::Wrong { why }.say(),
            Err(trouble) => failed(self.number as u32, &trouble).say(),
        }
        Ok(())
    }

    fn act(&self) -> Result<(), Trouble> {
        let tracking = Tracking::WORDS.into_iter().find(|(word, _)| *word == self.tracking);
        let tracking = tracking.map_or(Tracking::Auto, |(_, tracking)| tracking);
        if self.role == Role::Judge {
            check_pool(&self.pool, false)?;
        }
        let pool = PoolOptions::new().tracking(tracking).open(&self.pool)?;
        let histories = histories(&self.journals, self.seed)?;
        match self.role {
            Role::Writer => {
                let mut writer = Writer::settle(&pool, &histories[self.number], self.seed)?;
                self.repeat(|| writer.step())
            }
            Role::Keeper => {
                let keeper = Keeper::open(&self.journals, self.seed, self.number)?;
                let mut work = Work::settle(&pool, &histories, &keeper, self.seed)?;
                self.repeat(|| work.step())
            }
            Role::Follower => {
                let mut rng = mixed(self.seed, 400, u64::from(std::process::id()));
                self.repeat(|| follow(&pool, &histories, &mut rng))
            }
            Role::Collector => self.repeat(|| collect(&pool)),
            Role::Judge => {
                self.judge(&pool, &histories)?;
                drop(pool);
                check_pool(&self.pool, true)
            }
        }
    }

    fn repeat(&self, mut step: impl FnMut() -> Result<(), Trouble>) -> Result<(), Trouble> {
        for _ in 0..self.steps {
            step()?;
        }
        if !self.end {
            idle().say();
            loop {
                thread::park();
            }
        }
        Ok(())
    }

    fn judge(&self, pool: &Pool, histories: &[History]) -> Result<(), Trouble> {
        for history in histories {
            drop(Writer::settle(pool, history, self.seed)?);
            count("groups compared with the model");
        }
        let keepers: Vec<Keeper> = (0..KEEPERS)
            .map(|keeper| Keeper::open(&self.journals, self.seed, keeper))
            .collect::<Result<_, _>>()?;
        let mut names: Vec<String> = (0..GROUPS * MEMBERS).map(name).collect();
        let mut all = Vec::new();
        for keeper in &keepers {
            let work = Work::settle(pool, histories, keeper, self.seed)?;
            work.compare_all()?;
            names.extend(work.names());
            all.push(work);
        }
        let mut found = pool.list().map(|stat| Ok(stat?.name)).collect::<Result<Vec<_>, Trouble>>()?;
        names.sort();
        found.sort();
        if names != found {
            return Err(Trouble::Wrong(format!("{found:?} are in the pool instead of {names:?}")));
        }
        collect(pool)?;
        all.iter().try_for_each(Work::compare_all)?;
        if self.end {
            all.iter_mut().try_for_each(Work::end_all)?;
            collect(pool)?;
            let found = pool.info()?.objects;
            if found != (GROUPS * MEMBERS) as u64 {
                return Err(Trouble::Wrong(format!("{found} objects are left, hidden ones with them")));
            }
        }
        for history in histories {
            drop(Writer::settle(pool, history, self.seed)?);
        }
        Ok(())
    }
}

fn follow(pool: &Pool, histories: &[History], rng: &mut fastrand::Rng) -> Result<(), Trouble> {
    let (history, member) = (&histories[rng.usize(0..GROUPS)], rng.usize(0..MEMBERS));
    let name = name(history.object(member));
    let mut from = history.journal.known()?;
    let mut reader = patient(|| pool.attach_snapshot(&name))?;
    for look in 0..rng.usize(1..8) {
        if look > 0 {
            from = history.journal.known()?;
            patient(|| reader.refresh())?;
        }
        let to = history.journal.last()?;
        let found = label(reader.as_slice());
        let Some(states) = history.find(&[(member, found)], from..=to)? else {
            let why = format!("a reader of {name} sees {found:?}, no state behind events {from} to {to}");
            return Err(Trouble::Wrong(why));
        };
        let image = history.image(member, states[member])?;
        same(reader.as_slice(), &image)
            .map_err(|why| Trouble::Wrong(format!("a reader of {name}: {why}")))?;
        count("looks of readers that follow writers");
    }
    Ok(reader.detach()?)
}
