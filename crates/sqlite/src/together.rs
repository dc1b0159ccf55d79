//! Databases of one pool that a connection of SQLite has attached: their transaction is one psync.
//!
//! SQLite syncs one file after the other. Those of a pool wait for the last of them; with a
//! super-journal they wait for its deletion, SQLite's point of commit. A super-journal is a file,
//! as plain databases that take part in the transaction rely on it.
//!
//! Lock order: databases' states by address. `PARTS` and `SUPER_JOURNALS` alone.

use crate::database::Database;
use crate::failure::{Failure, Result, code};
use crate::state::{State, Synced, Wait, lock};
use crate::tickets;
use indelible::PerProcess;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

#[derive(Clone)]
pub(crate) struct Part {
    id: u64,
    owner: usize,
    database: Arc<Database>,
}

/// In the order in which SQLite opened them, and in which it writes and syncs them at a commit.
pub(crate) static PARTS: PerProcess<Mutex<Vec<Part>>> = PerProcess::new();

type Files = Vec<(u64, Weak<Database>)>;

/// Super-journals that SQLite opened by this VFS, until it deletes them.
pub(crate) static SUPER_JOURNALS: PerProcess<Mutex<BTreeMap<Vec<u8>, Files>>> = PerProcess::new();

pub(crate) fn enter(journal: &[u8]) {
    let mut journals = lock(SUPER_JOURNALS.get());
    // The rollback of a plain file may have deleted one.
    journals.retain(|name, _| Path::new(OsStr::from_bytes(name)).exists());
    journals.entry(journal.to_vec()).or_default();
}

pub(crate) fn is_entered(name: &[u8]) -> bool {
    lock(SUPER_JOURNALS.get()).contains_key(name)
}

pub(crate) fn has_super_journals() -> bool {
    !lock(SUPER_JOURNALS.get()).is_empty()
}

pub(crate) fn join(id: u64, owner: usize, database: &Arc<Database>) {
    let mut parts = lock(PARTS.get());
    match parts.iter_mut().find(|part| part.id == id) {
        Some(part) => part.owner = owner,
        None => parts.push(Part { id, owner, database: database.clone() }),
    }
}

pub(crate) fn leave(id: u64) {
    lock(PARTS.get()).retain(|part| part.id != id);
}

/// Notes that SQLite has written the file's transaction, which may have a super-journal. It syncs
/// the file next, unless `synchronous=OFF`.
pub(crate) fn announce(id: u64, database: &Arc<Database>, journal: Option<&[u8]>) -> Result<()> {
    // One of another VFS is deleted without a call to this one.
    let mut journals = lock(SUPER_JOURNALS.get());
    let wait = match journal.and_then(|name| journals.get_mut(name)) {
        Some(files) => {
            files.push((id, Arc::downgrade(database)));
            Wait::Journal
        }
        None => Wait::Others,
    };
    drop(journals);
    database.lock().finish(id, wait);
    undo(id, database)
}

struct Other {
    id: u64,
    database: Arc<Database>,
    wait: Option<Wait>,
    synced: bool,
    undone: bool,
    later: bool,
}

fn others(id: u64, database: &Database) -> Vec<Other> {
    let parts: Vec<(bool, Part)> = {
        let parts = lock(PARTS.get());
        let Some(me) = parts.iter().position(|part| part.id == id) else { return Vec::new() };
        let other = |(at, part): &(usize, &Part)| {
            *at != me && part.owner == parts[me].owner && part.database.is_with(database)
        };
        parts.iter().enumerate().filter(other).map(|(at, part)| (at > me, part.clone())).collect()
    };
    let writes = |(later, Part { id, database, .. })| {
        let state = database.lock();
        let (wait, synced, undone) = (state.wait, state.synced.is_some(), state.is_undone(id));
        let is_writer = state.writer == Some(id);
        drop(state);
        is_writer.then_some(Other { id, database, wait, synced, undone, later })
    };
    parts.into_iter().filter_map(writes).collect()
}

/// Syncs the file: makes its transaction durable, unless that waits for another file's, or by
/// `ticket` for later.
pub(crate) fn sync(id: u64, database: &Arc<Database>, ticket: bool) -> Result<()> {
    {
        let mut state = database.lock();
        if state.wait == Some(Wait::Journal) {
            return Ok(());
        }
        state.finish(id, Wait::Others);
    }
    let mut group = vec![(id, database.clone())];
    for other in others(id, database) {
        if other.later || other.wait != Some(Wait::Others) {
            return Ok(());
        }
        group.push((other.id, other.database));
    }
    finish(group, ticket)
}

/// Ends the file's committed transaction: makes waiting stores durable.
pub(crate) fn commit(id: u64, database: &Arc<Database>, ticket: bool) -> Result<()> {
    let mut synced = database.lock().synced;
    if database.lock().is_unsynced(id) {
        let waiting = others(id, database).into_iter().filter(|other| other.wait.is_some());
        let mut group: Vec<_> = waiting.map(|other| (other.id, other.database)).collect();
        group.push((id, database.clone()));
        finish(group, ticket)?;
        synced = synced.or(database.lock().synced);
    }
    database.lock().synced = None;
    if synced.is_some_and(|synced| synced != Synced::Alone) {
        for other in others(id, database).into_iter().filter(|other| other.synced) {
            other.database.lock().synced = Some(Synced::Bound);
        }
    }
    Ok(())
}

/// If SQLite has undone a transaction of the file that was synced and failed in another one, makes
/// that durable, as one step with the pool's other files: after the last of them. If one of them is
/// committed, refuses this one.
fn undo(id: u64, database: &Arc<Database>) -> Result<()> {
    {
        let mut state = database.lock();
        if !state.is_undone(id) {
            return Ok(());
        }
        if state.synced == Some(Synced::Bound) {
            state.fail();
            let text = "other databases of the pool have the transaction; close and open this one again";
            return Err(Failure::new(code::IOERR, text));
        }
    }
    let mut group = vec![(id, database.clone())];
    for other in others(id, database).into_iter().filter(|other| other.synced) {
        if !other.undone {
            return Ok(());
        }
        group.push((other.id, other.database));
    }
    psync(group)
}

/// Unlocks the file. Returns whether its writer stays, as its undoing waits for the pool's other
/// files. If its synced transaction cannot be undone, all of them are refused.
pub(crate) fn unlock(id: u64, database: &Arc<Database>) -> bool {
    let (stored, undone) = {
        let state = database.lock();
        if state.writer != Some(id) || state.synced.is_none() {
            return false;
        }
        (state.is_unsynced(id), state.is_undone(id))
    };
    let mut others = others(id, database);
    others.retain(|other| other.synced);
    if undone && others.iter().any(|other| !other.undone) {
        database.lock().leaving = true;
        return true;
    }
    others.retain(|other| other.undone);
    if stored || !others.is_empty() {
        others.iter().for_each(|other| other.database.lock().fail());
        database.lock().fail();
    }
    false
}

fn finish(group: Vec<(u64, Arc<Database>)>, ticket: bool) -> Result<()> {
    match &group[..] {
        [(id, database)] if ticket => tickets::owe(*id, database),
        _ => psync(group),
    }
}

/// Deletes a super-journal, also after a rollback. If that `commits`, makes the stores that wait
/// for it durable, one step for each pool.
pub(crate) fn delete(journal: &[u8], commits: bool) -> Result<()> {
    let files = lock(SUPER_JOURNALS.get()).get_mut(journal).map(std::mem::take).unwrap_or_default();
    let mut waiting: Vec<(u64, Arc<Database>)> = Vec::new();
    for (id, database) in files.iter().filter(|_| commits) {
        let waits = |database: &Arc<Database>| {
            let state = database.lock();
            state.writer == Some(*id) && state.wait == Some(Wait::Journal)
        };
        waiting.extend(database.upgrade().filter(waits).map(|database| (*id, database)));
    }
    while let Some((_, first)) = waiting.first() {
        let first = first.clone();
        let (group, rest) = waiting.into_iter().partition(|(_, other)| other.is_with(&first));
        psync(group)?;
        waiting = rest;
    }
    lock(SUPER_JOURNALS.get()).remove(journal);
    Ok(())
}

fn psync(mut group: Vec<(u64, Arc<Database>)>) -> Result<()> {
    group.sort_by_key(|(_, database)| Arc::as_ptr(database) as usize);
    let mut states: Vec<MutexGuard<'_, State>> = group.iter().map(|(_, database)| database.lock()).collect();
    for (state, (id, _)) in states.iter().zip(&group) {
        state.check_writer(*id)?;
    }
    let undoes = states.iter().zip(&group).any(|(state, (id, _))| state.is_undone(*id));
    let stored: Vec<bool> =
        states.iter().zip(&group).map(|(state, (id, _))| state.is_unsynced(*id)).collect();
    let done = State::sync(&mut states.iter_mut().map(|state| &mut **state).collect::<Vec<_>>());
    let synced = if group.len() > 1 { Synced::Together } else { Synced::Alone };
    // A connection that keeps its lock begins its next transaction with neither.
    for (state, stored) in states.iter_mut().zip(stored) {
        state.wait = None;
        state.synced = (done.is_ok() && stored && !undoes).then_some(synced);
        if undoes && done.is_err() {
            state.fail();
        }
        state.leave();
    }
    done
}
