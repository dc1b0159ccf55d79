//! A writer: a process whose threads commit on demand to its two objects.

use crate::board::{Shown, board};
use crate::{broken, number};
use anyhow::{Context, Result};
use indelible::{EpochBounds, Pool, PoolOptions, TxCell, TxObject, transaction};
use indelible_rig::commits::{Store, WORDS, commit, names};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) type Cells = [TxCell<u64>; WORDS];

pub(crate) const SOCKET: &str = "/guard.sock";
const THREADS: usize = 2;
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) fn open(path: &Path) -> indelible::Result<Pool> {
    PoolOptions::new().wait(PATIENCE).open(path)
}

/// Commits until killed, or up to the goal if idle. Arguments: its index, and the goal.
pub(crate) fn run(path: &Path, mut arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut next =
        || arguments.next().and_then(|text| text.parse::<u64>().ok()).context("an argument is missing");
    let (writer, goal) = (next()? as usize, next()?);
    let (seed, idle, wait) = (number("seed")?, number("idle")? == 1, number("wait")?);
    let shown = &board()?[writer];
    broken(|| {
        let pool = open(path)?;
        pool.set_guard(SOCKET);
        pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: u64::MAX });
        let names = names(writer);
        let halves = [pool.attach_transactional(&names[0])?, pool.attach_transactional(&names[1])?];
        let last = if idle { goal } else { u64::MAX };
        std::thread::scope(|scope| {
            let threads =
                [(); THREADS].map(|()| scope.spawn(|| write(&halves, seed, writer, last, wait, shown)));
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?)
        })?;
        loop {
            std::thread::park();
        }
    })
}

/// Does transactions up to `last`; waits for one in `wait` until it is durable; 0: for none.
fn write(
    halves: &[TxObject<Cells>; 2],
    seed: u64,
    writer: usize,
    last: u64,
    wait: u64,
    shown: &Shown,
) -> Result<()> {
    loop {
        let number = transaction(&[&halves[0], &halves[1]], |tx| {
            let number = tx.read(&halves[0][0])? + 1;
            if number > last {
                return Ok::<_, indelible::Error>(number);
            }
            for Store { half, at, value } in commit(seed, writer, number) {
                tx.write(&halves[half][at], value)?;
            }
            halves.iter().try_for_each(|half| tx.write(&half[0], number))?;
            Ok(number)
        })?;
        if number > last {
            return Ok(());
        }
        shown.acknowledged.fetch_max(number, Ordering::AcqRel);
        if number.checked_rem(wait) == Some(0) {
            halves[0].tx_sync()?;
            shown.awaited.fetch_max(number, Ordering::AcqRel);
        }
    }
}
