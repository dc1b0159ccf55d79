//! Objects by pattern, in sequence: a pool may have too many to keep.

use crate::failure::{Failure, Result};
use crate::glob::Glob;
use indelible::{ErrorKind, List, Pool, Stat};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, available_parallelism, scope};

/// Objects that a thread reads at a time.
const PIECE: usize = 256;
const STACK: usize = 256 << 10;
/// Threads that read; more would wait for the memory.
const MOST: usize = 4;

/// Calls `look` for the objects with matching names, or all, in no order. Damaged ones are
/// reported.
pub fn each(
    pool: &Pool,
    pattern: Option<&str>,
    damaged: &mut bool,
    look: impl FnMut(Stat) -> Result,
) -> Result {
    match matching(pool, pattern) {
        Matching::List(list) => spread(list, damaged, |stat| stat, look),
        Matching::One(found) => every(found.map(|found| *found), damaged, look),
    }
}

/// The objects of a pattern: a name without wildcards is looked up.
pub enum Matching {
    List(List),
    One(Option<Box<indelible::Result<Stat>>>),
}

pub fn matching(pool: &Pool, pattern: Option<&str>) -> Matching {
    let Some(glob) = pattern.map(Glob::new) else {
        return Matching::List(pool.list());
    };
    let Some(name) = glob.literal() else {
        return Matching::List(pool.list().named(move |name| glob.matches(name)));
    };
    Matching::One(match pool.stat(name) {
        Ok(stat) if stat.name != name => None,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::BadName) => None,
        found => Some(Box::new(found)),
    })
}

/// Calls `show` for a listing's objects on several threads, and `look` for its results, unordered.
/// Damaged objects are reported.
pub fn spread<R: Send>(
    list: List,
    damaged: &mut bool,
    show: impl Fn(Stat) -> R + Sync,
    mut look: impl FnMut(R) -> Result,
) -> Result {
    let threads = available_parallelism().map_or(1, usize::from).min(MOST);
    let parts = Mutex::new(list.split(threads)?);
    let threads = if lock(&parts).len() > 1 { threads } else { 0 };
    let (send, receive) = sync_channel(2 * threads);
    scope(|scope| {
        for _ in 0..threads {
            let (send, parts, show) = (send.clone(), &parts, &show);
            let read = move || {
                let Some(mut part) = next(parts) else { return };
                loop {
                    let piece: Vec<_> = part.by_ref().take(PIECE).map(|stat| stat.map(show)).collect();
                    // No more are taken after a failure.
                    if piece.is_empty() || send.send(piece).is_err() {
                        return;
                    }
                }
            };
            // The system may refuse a thread.
            let _ = Builder::new().stack_size(STACK).spawn_scoped(scope, read);
        }
        drop(send);
        receive.into_iter().try_for_each(|piece| every(piece, damaged, &mut look))?;
        std::iter::from_fn(|| next(&parts))
            .try_for_each(|part| every(part.map(|stat| stat.map(&show)), damaged, &mut look))
    })
}

fn next(parts: &Mutex<Vec<List>>) -> Option<List> {
    lock(parts).pop()
}

fn lock(parts: &Mutex<Vec<List>>) -> MutexGuard<'_, Vec<List>> {
    parts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `look` for a listing's objects. Damaged ones are reported.
pub fn every<R>(
    listing: impl IntoIterator<Item = indelible::Result<R>>,
    damaged: &mut bool,
    mut look: impl FnMut(R) -> Result,
) -> Result {
    for stat in listing {
        match stat {
            Ok(found) => look(found)?,
            Err(error) if error.kind() == ErrorKind::Damaged => {
                Failure::from(error).report();
                *damaged = true;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
