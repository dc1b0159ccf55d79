use super::banks::{GUEST, OBJECTS, THREADS, has_check_words, name};
use super::beside;
use crate::kills::watch::idle;
use crate::kills::{check_pool, failed};
use crate::workloads::program::mixed;
use crate::workloads::wire::Said;
use crate::workloads::world::{Trouble, patient};
use anyhow::Result;
use clap::{Args, ValueEnum};
use indelible::{EpochBounds, Error, Plain, Pool, Transactional, TxCell, TxObject, transaction};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

const ACCOUNTS: usize = 48;
const FIRST: i64 = 0;

const LEAVES: usize = 1;

/// An object of a bank. Balances are unbounded, so that transfers commute.
#[derive(Plain)]
#[repr(C)]
struct Accounts {
    done: [TxCell<u64>; 8 * THREADS],
    balances: [TxCell<i64>; ACCOUNTS],
}

pub(super) const SIZE: u64 = size_of::<Accounts>() as u64;

type Account = (usize, usize);

fn transfer(seed: u64, bank: usize, thread: usize, step: u64) -> Vec<(Account, Account, i64)> {
    let mut rng = mixed(seed, (bank * THREADS + thread) as u64, step);
    let mut account = || (rng.usize(0..OBJECTS), rng.usize(0..ACCOUNTS));
    let ends: Vec<_> = (0..6).map(|_| (account(), account())).collect();
    let count = rng.usize(1..=ends.len());
    ends.into_iter().take(count).map(|(from, to)| (from, to, rng.i64(1..1000))).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Makes transfers until it is killed
    Victim,
    Judge,
    /// Sweeps, recovers, keeps and copies beside the others
    Keeper,
    /// Clones the pool of dead processes
    Cloner,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Child {
    pub(crate) role: Role,
    #[arg(long)]
    pub(crate) pool: PathBuf,
    #[arg(long)]
    pub(crate) seed: u64,
    #[arg(long)]
    pub(crate) bank: usize,
    /// Its objects are on demand
    #[arg(long)]
    pub(crate) on_demand: bool,
    /// Transfers of each thread that are committed
    #[arg(long)]
    pub(crate) done: Vec<u64>,
    #[arg(long, default_value_t = 100)]
    pub(crate) steps: u64,
    #[arg(long)]
    pub(crate) to: Option<PathBuf>,
    /// End instead; a judge: nothing may be left to recover
    #[arg(long)]
    pub(crate) end: bool,
}

struct Bank {
    objects: Vec<TxObject<Accounts>>,
}

impl Bank {
    fn all(&self) -> Vec<&dyn Transactional> {
        self.objects.iter().map(|object| object as &dyn Transactional).collect()
    }
}

impl Child {
    pub(crate) fn run(&self) -> Result<()> {
        match self.act() {
            Ok(()) => {}
            Err(Trouble::Wrong(why)) => Said::Wrong { why }.say(),
            Err(trouble) => failed(self.bank as u32, &trouble).say(),
        }
        Ok(())
    }

    fn act(&self) -> Result<(), Trouble> {
        match (self.role, &self.to) {
            (Role::Keeper, _) => return beside::keep(&self.pool, self.seed, self.steps),
            (Role::Cloner, Some(to)) => return beside::clone(&self.pool, to),
            _ => {}
        }
        if self.role == Role::Judge {
            check_pool(&self.pool, false)?;
        }
        let pool = Pool::open(&self.pool)?;
        pool.set_epochs(EpochBounds { every: Duration::from_millis(5), bytes: 1 << 20 });
        let names = (0..OBJECTS).map(|object| name(self.bank, object));
        let attach = |name: String| patient(|| pool.attach_transactional::<Accounts>(&name));
        let bank = Bank { objects: names.map(attach).collect::<Result<_, _>>()? };
        let done = self.compare(&bank)?;
        if self.on_demand {
            self.compare_guest(&pool, &bank)?;
        }
        match self.role {
            Role::Victim => self.work(&pool, &bank, &done)?,
            _ => {
                self.scrub(&bank)?;
                Said::Count { what: "banks compared with their transfers".into(), count: 1 }.say();
            }
        }
        bank.objects.into_iter().try_for_each(TxObject::detach)?;
        drop(pool);
        if self.role == Role::Judge && self.end { check_pool(&self.pool, true) } else { Ok(()) }
    }

    fn scrub(&self, bank: &Bank) -> Result<(), Trouble> {
        for object in bank.objects.iter().filter(|_| has_check_words(self.bank)) {
            let found = object.scrub(&mut |_, _| {})?;
            if found.repaired > 0 || !found.lost.is_empty() {
                return Err(Trouble::Wrong(format!("words of {} are damaged: {found:?}", object.name())));
            }
        }
        Ok(())
    }

    fn compare(&self, bank: &Bank) -> Result<Vec<u64>, Trouble> {
        let (done, found) = transaction(&bank.all(), |tx| {
            let done = (0..THREADS).map(|thread| tx.read(&bank.objects[0].done[thread * 8]));
            let done = done.collect::<indelible::Result<Vec<u64>>>()?;
            let mut found = Vec::new();
            for object in &bank.objects {
                let balances = object.balances.iter().map(|balance| tx.read(balance));
                found.push(balances.collect::<indelible::Result<Vec<i64>>>()?);
            }
            Ok::<_, Error>((done, found))
        })?;
        for (thread, (done, told)) in done.iter().zip(&self.done).enumerate() {
            if done.checked_sub(*told).is_none_or(|more| more > 1) {
                let why = format!("thread {thread} was told of {told} transfers, and {done} are there");
                return Err(Trouble::Wrong(why));
            }
        }
        let mut right = vec![vec![FIRST; ACCOUNTS]; OBJECTS];
        for (thread, done) in done.iter().enumerate() {
            for step in 1..=*done {
                for (from, to, amount) in transfer(self.seed, self.bank, thread, step) {
                    right[from.0][from.1] -= amount;
                    right[to.0][to.1] += amount;
                }
            }
        }
        let sum: i64 = found.iter().flatten().sum();
        if found != right || sum != FIRST {
            return Err(Trouble::Wrong(format!(
                "bank {} has {sum} in all after {done:?}: {found:?} instead of {right:?}",
                self.bank
            )));
        }
        for (thread, done) in done.iter().enumerate() {
            Said::Settled { workload: thread as u32, step: *done, ring: 0 }.say();
        }
        Ok(done)
    }

    fn compare_guest(&self, pool: &Pool, bank: &Bank) -> Result<(), Trouble> {
        let guest = patient(|| pool.attach_transactional::<Accounts>(&name(self.bank, GUEST)))?;
        let (own, others) = transaction(&[&guest, &bank.objects[0]], |tx| {
            Ok::<_, Error>((tx.read(&guest.done[LEAVES])?, tx.read(&bank.objects[0].done[LEAVES])?))
        })?;
        guest.detach()?;
        match own == others {
            true => Ok(()),
            false => Err(Trouble::Wrong(format!("the guest has left {own} times, by the bank {others}"))),
        }
    }

    fn visit(&self, pool: &Pool, bank: &Bank, step: u64) -> Result<(), Trouble> {
        let guest = patient(|| pool.attach_transactional::<Accounts>(&name(self.bank, GUEST)))?;
        transaction(&[&guest, &bank.objects[0]], |tx| {
            let leaves = tx.read(&bank.objects[0].done[LEAVES])? + 1;
            tx.write(&guest.done[LEAVES], leaves)?;
            tx.write(&bank.objects[0].done[LEAVES], leaves)
        })?;
        if step.is_multiple_of(3) {
            return Ok(guest.detach()?);
        }
        let mut guest = Some(guest);
        bank.objects[1].transaction(|_| {
            drop(guest.take());
            Ok::<_, Error>(())
        })?;
        if step.is_multiple_of(2) { Ok(bank.objects[1].tx_sync()?) } else { Ok(()) }
    }

    fn work(&self, pool: &Pool, bank: &Bank, done: &[u64]) -> Result<(), Trouble> {
        thread::scope(|scope| {
            let work = |thread: usize, done: u64| move || self.transfers(pool, bank, thread, done);
            let running: Vec<_> =
                done.iter().enumerate().map(|(thread, done)| scope.spawn(work(thread, *done))).collect();
            running.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
        })?;
        if self.end {
            return Ok(());
        }
        idle().say();
        loop {
            thread::park();
        }
    }

    fn transfers(&self, pool: &Pool, bank: &Bank, thread: usize, done: u64) -> Result<(), Trouble> {
        let all = bank.all();
        for step in done + 1..=done + self.steps {
            let moves = transfer(self.seed, self.bank, thread, step);
            transaction(&all, |tx| {
                for (from, to, amount) in &moves {
                    tx.update(&bank.objects[from.0].balances[from.1], |balance| balance - amount)?;
                    tx.update(&bank.objects[to.0].balances[to.1], |balance| balance + amount)?;
                }
                tx.write(&bank.objects[0].done[thread * 8], step)
            })?;
            Said::Done { workload: thread as u32, step }.say();
            if self.on_demand && thread == 0 && step % 8 == 0 {
                self.visit(pool, bank, step / 8)?;
            }
            if self.on_demand && step % 64 == 0 {
                bank.objects[0].tx_sync()?;
            }
        }
        Ok(())
    }
}
