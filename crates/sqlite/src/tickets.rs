//! Commits by ticket, which return before they are durable, and the thread that makes them durable:
//! one psync of all owing databases of a pool.
//!
//! Lock order: databases' states by address. `QUEUE` alone.

use crate::database::Database;
use crate::failure::{Failure, Result, code};
use crate::host;
use crate::state::{State, lock};
use indelible::PerProcess;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Least time between two psyncs, unless a connection waits: others join meanwhile.
const DELAY: Duration = Duration::from_millis(10);

#[derive(Default)]
pub(crate) struct Queue {
    owing: Vec<Weak<Database>>,
    urgent: bool,
    started: bool,
}

impl Queue {
    /// Adds a database that owes, once: [`pay`] locks each that is here.
    fn add(&mut self, database: Weak<Database>) {
        if !self.owing.iter().any(|known| known.ptr_eq(&database)) {
            self.owing.push(database);
        }
    }
}

/// The queue, and the condition that it has work. A forked child owes nothing of its parent's.
pub(crate) static QUEUE: PerProcess<(Mutex<Queue>, Condvar)> = PerProcess::new();

/// Commits the stores of the connection `id` by ticket: they become durable soon, and before any
/// later commit.
pub(crate) fn owe(id: u64, database: &Arc<Database>) -> Result<()> {
    let first = {
        let mut state = database.lock();
        state.check_writer(id)?;
        state.owe()?
    };
    match first {
        true => enter(database, false).or_else(|_| database.lock().pay()),
        false => Ok(()),
    }
}

fn enter(database: &Arc<Database>, urgent: bool) -> Result<()> {
    let (queue, work_is_there) = QUEUE.get();
    let mut queue = lock(queue);
    if !queue.started {
        std::thread::Builder::new()
            .name("pmo-tickets".into())
            .spawn(work)
            .map_err(|error| Failure::new(code::IOERR, format!("cannot start a thread: {error}")))?;
        queue.started = true;
    }
    queue.add(Arc::downgrade(database));
    queue.urgent |= urgent;
    work_is_there.notify_one();
    Ok(())
}

fn work() {
    let (all, work_is_there) = QUEUE.get();
    loop {
        let mut queue = lock(all);
        while queue.owing.is_empty() {
            queue = work_is_there.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue = work_is_there
            .wait_timeout_while(queue, DELAY, |queue| !queue.urgent)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        queue.urgent = false;
        let owing = std::mem::take(&mut queue.owing);
        drop(queue);
        let later = pay(owing.iter().filter_map(Weak::upgrade).collect());
        // A connection may have entered one of them meanwhile.
        let mut queue = lock(all);
        later.into_iter().for_each(|database| queue.add(database));
    }
}

/// Makes these databases' commits durable, by one psync for each pool. Returns databases in the
/// midst of a transaction.
fn pay(mut owing: Vec<Arc<Database>>) -> Vec<Weak<Database>> {
    let mut later = Vec::new();
    while let Some(first) = owing.first().cloned() {
        let (mut group, rest): (Vec<_>, Vec<_>) = owing.into_iter().partition(|other| other.is_with(&first));
        owing = rest;
        group.sort_by_key(|database| Arc::as_ptr(database) as usize);
        let mut states: Vec<MutexGuard<'_, State>> = group.iter().map(|database| database.lock()).collect();
        let busy = group.iter().zip(&states).filter(|(_, state)| state.is_owing() && !state.is_payable());
        later.extend(busy.map(|(database, _)| Arc::downgrade(database)));
        let payable = states.iter_mut().map(|state| &mut **state).filter(|state| state.is_payable());
        let done = State::sync(&mut payable.collect::<Vec<_>>());
        drop(states);
        // A connection that waited may close the database at once, and its pool with it.
        let paid_for: Vec<_> = group.iter().map(|database| database.paid()).collect();
        drop((group, first));
        paid_for.iter().for_each(|paid_for| paid_for.notify_all());
        if let Err(failure) = done {
            host::tell(&failure);
        }
    }
    later
}

/// Waits until a commit is durable, by its number; without one, until the newest is. Returns the
/// number of the newest durable commit.
pub(crate) fn wait(database: &Arc<Database>, ticket: Option<u64>) -> Result<u64> {
    let mut state = database.lock();
    let ticket = ticket.unwrap_or(state.committed).min(state.committed);
    state.unpaid = None;
    loop {
        state.check()?;
        if state.durable >= ticket {
            return Ok(state.durable);
        }
        if let Some(failure) = &state.unpaid {
            return Err(failure.clone());
        }
        // A transaction that waits for itself would wait for ever.
        if !state.is_payable() {
            return Err(Failure::busy());
        }
        drop(state);
        enter(database, true)?;
        state = database.lock();
        if state.durable < ticket && state.unpaid.is_none() {
            state = database.wait_paid(state);
        }
    }
}
