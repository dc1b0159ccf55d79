//! Databases of one pool that a connection of SQLite has attached: their transaction is one psync.
//!
//! SQLite syncs one file after the other. Those of a pool wait for the last of them; with a
//! super-journal they wait for its deletion, which is the point at which SQLite takes the
//! transaction for committed. A super-journal is a file, as plain databases that take part in the
//! transaction rely on it.
//!
//! Lock order: `PARTS`, then databases' states by address. `SUPER_JOURNALS` alone.

use crate::database::Database;
use crate::failure::Result;
use crate::state::{State, lock};
use crate::tickets;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

struct Part {
    id: u64,
    /// The connection of SQLite.
    owner: usize,
    database: Arc<Database>,
    /// Whether SQLite has written all of its transaction, and its psync waits for those of the
    /// others.
    waiting: bool,
    journal: Option<Vec<u8>>,
}

impl Part {
    fn writes(&self) -> bool {
        self.database.lock().writer == Some(self.id)
    }
}

static PARTS: Mutex<Vec<Part>> = Mutex::new(Vec::new());

/// Super-journals that SQLite opened by this VFS, until it deletes them.
static SUPER_JOURNALS: Mutex<BTreeSet<Vec<u8>>> = Mutex::new(BTreeSet::new());

pub(crate) fn enter(journal: &[u8]) {
    lock(&SUPER_JOURNALS).insert(journal.to_vec());
}

pub(crate) fn is_entered(name: &[u8]) -> bool {
    lock(&SUPER_JOURNALS).contains(name)
}

pub(crate) fn join(id: u64, owner: usize, database: &Arc<Database>) {
    leave(id);
    let database = database.clone();
    lock(&PARTS).push(Part { id, owner, database, waiting: false, journal: None });
}

pub(crate) fn leave(id: u64) {
    lock(&PARTS).retain(|part| part.id != id);
}

pub(crate) fn end(id: u64) {
    for part in lock(&PARTS).iter_mut().filter(|part| part.id == id) {
        (part.waiting, part.journal) = (false, None);
    }
}

/// SQLite has written all of the file's transaction, which may have a super-journal. It syncs the
/// file next, unless `synchronous=OFF`.
pub(crate) fn announce(id: u64, journal: Option<&[u8]>) {
    // One of another VFS is deleted without a call to this one.
    let ours = journal.filter(|name| is_entered(name));
    for part in lock(&PARTS).iter_mut().filter(|part| part.id == id) {
        (part.waiting, part.journal) = (true, ours.map(<[u8]>::to_vec));
    }
}

/// SQLite syncs the file: makes its transaction durable, unless that waits for another file's, or
/// by `ticket` for later.
pub(crate) fn sync(id: u64, database: &Arc<Database>, ticket: bool) -> Result<()> {
    let mut parts = lock(&PARTS);
    let Some(me) = parts.iter_mut().find(|part| part.id == id) else {
        drop(parts);
        return finish(vec![(id, database.clone())], ticket);
    };
    me.waiting = true;
    let (owner, waits) = (me.owner, me.journal.is_some());
    if waits {
        return Ok(());
    }
    let group: Vec<&Part> = parts
        .iter()
        .filter(|part| {
            part.owner == owner && part.database.is_with(database) && (part.id == id || part.writes())
        })
        .collect();
    if group.iter().any(|part| !part.waiting) {
        return Ok(());
    }
    let group = group.iter().map(|part| (part.id, part.database.clone())).collect();
    drop(parts);
    finish(group, ticket)
}

/// SQLite has committed the file's transaction: makes durable the stores that still wait.
pub(crate) fn commit(id: u64, database: &Arc<Database>, ticket: bool) -> Result<()> {
    if !database.lock().is_unsynced(id) {
        return Ok(());
    }
    let parts = lock(&PARTS);
    let owner = parts.iter().find(|part| part.id == id).map(|part| part.owner);
    let also = |part: &&Part| {
        part.id != id && part.waiting && Some(part.owner) == owner && part.database.is_with(database)
    };
    let mut group: Vec<_> = parts.iter().filter(also).map(|part| (part.id, part.database.clone())).collect();
    drop(parts);
    group.push((id, database.clone()));
    finish(group, ticket)
}

fn finish(group: Vec<(u64, Arc<Database>)>, ticket: bool) -> Result<()> {
    match &group[..] {
        [(id, database)] if ticket => {
            tickets::owe(*id, database)?;
            end(*id);
            Ok(())
        }
        _ => psync(group),
    }
}

/// SQLite deletes a super-journal: makes durable the stores that wait for it, one step for each
/// pool.
pub(crate) fn delete(journal: &[u8]) -> Result<()> {
    let mut waiting: Vec<(u64, Arc<Database>)> = {
        let parts = lock(&PARTS);
        let of = |part: &&Part| part.waiting && part.journal.as_deref() == Some(journal);
        parts.iter().filter(of).map(|part| (part.id, part.database.clone())).collect()
    };
    while let Some((_, first)) = waiting.first() {
        let first = first.clone();
        let (group, rest) = waiting.into_iter().partition(|(_, other)| other.is_with(&first));
        psync(group)?;
        waiting = rest;
    }
    lock(&SUPER_JOURNALS).remove(journal);
    Ok(())
}

fn psync(mut group: Vec<(u64, Arc<Database>)>) -> Result<()> {
    group.sort_by_key(|(_, database)| Arc::as_ptr(database) as usize);
    let mut states: Vec<MutexGuard<'_, State>> = group.iter().map(|(_, database)| database.lock()).collect();
    for (state, (id, _)) in states.iter().zip(&group) {
        state.check_writer(*id)?;
    }
    let done = State::sync(&mut states.iter_mut().map(|state| &mut **state).collect::<Vec<_>>());
    drop(states);
    // A connection that keeps its lock begins its next transaction without an `end`.
    group.iter().for_each(|(id, _)| end(*id));
    done
}
