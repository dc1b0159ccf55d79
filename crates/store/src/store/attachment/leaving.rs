//! The end of writers' attachments: of one, or of several on a lane by one change of the table.

use super::writer::Writer;
use crate::error::{Result, StoreError};
use crate::format::PAGE;
use crate::format::entry::{NO_LANE, STATE_D};
use crate::medium::Medium;
use crate::mutant::Mutant;
use crate::recovery::put_progress;
use crate::store::lanes::Changing;
use crate::store::pool::{Space, Store};
use std::sync::Arc;
use zerocopy::little_endian::U32;

/// Far below the table's lane.
pub(super) const MOST_AT_ONCE: usize = 256;

impl Store {
    /// Detaches objects, those on one lane by one change of the table per 256.
    ///
    /// # Errors
    /// The first of [`Writer::detach`]'s. All writers are detached; the next attach recovers
    /// objects of a failed lane.
    pub fn detach_writers(mut writers: Vec<Writer>) -> Result<()> {
        writers.sort_by_key(|writer| Arc::as_ptr(&writer.lane));
        let mut result = Ok(());
        for on_lane in writers.chunk_by_mut(|one, other| Arc::ptr_eq(&one.lane, &other.lane)) {
            for some in on_lane.chunks_mut(MOST_AT_ONCE) {
                let ended = end(&mut some.iter_mut().collect::<Vec<_>>());
                result = result.and(ended);
            }
        }
        result
    }
}

impl Writer {
    /// Detaches: psynced data is in place, other stores are dropped.
    ///
    /// # Errors
    /// The lane or the table cannot be written: the next attach recovers the object.
    pub fn detach(mut self) -> Result<()> {
        end(&mut [&mut self])
    }

    pub(super) fn settle_within(&mut self, changing: &Changing) -> Result<()> {
        settle(&mut [self], changing)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = end(&mut [self]);
    }
}

/// Ends the writers of one lane; skips ended ones. After an error the next attach recovers.
fn end(writers: &mut [&mut Writer]) -> Result<()> {
    let mut locks = Vec::with_capacity(writers.len());
    let mut leaving: Vec<&mut Writer> = Vec::with_capacity(writers.len());
    for writer in writers {
        if let Some(object_lock) = writer.object_lock.take() {
            locks.push(object_lock);
            leaving.push(writer);
        }
    }
    let Some(first) = leaving.first() else { return Ok(()) };
    let (store, lane) = (first.store.clone(), first.lane.clone());
    let (result, changing) = match settle_for_good(&mut leaving) {
        Ok(changing) => {
            // Other processes wait for the objects' lane while this one has it.
            let unbound = unbind(&store, &leaving).inspect_err(|_| store.give_up_lane(&lane));
            (unbound, Some(changing))
        }
        Err(error) => {
            // The next attach must recover.
            lane.poison();
            (Err(error), None)
        }
    };
    leaving.iter().for_each(|writer| lane.forget(writer.object.offset));
    drop(locks);
    if let (Ok(space), Some(changing)) = (&result, &changing) {
        store.shorten_lane(&lane, changing, *space);
    }
    drop(changing);
    for writer in leaving {
        writer.give_former_up();
        store.remove_if_deleted(&writer.object);
    }
    store.forget_failed_lanes();
    result.map(drop)
}

fn settle_for_good(writers: &mut [&mut Writer]) -> Result<Changing> {
    for writer in writers.iter_mut() {
        if writer.lane.is_poisoned() {
            return Err(StoreError::Poisoned);
        }
        writer.unsettled &= !Mutant::UnsettledDetach.is_on();
        match writer.cancel_direct() {
            // The next attach takes it back.
            Err(StoreError::NoSpace) => {}
            cancelled => cancelled?,
        }
    }
    let changing = writers[0].change()?;
    writers.iter_mut().try_for_each(|writer| writer.see(&changing))?;
    settle(writers, &changing)?;
    Ok(changing)
}

/// Makes primaries and progress lines of one lane's objects durable. They leave the lane in the
/// same change, so that no hold relies on it.
///
/// # Errors
/// `Poisoned`: a failed psync's batch may be whole, and would not count under a new binding.
fn settle(writers: &mut [&mut Writer], changing: &Changing) -> Result<()> {
    let Some(first) = writers.first() else { return Ok(()) };
    let lane = first.lane.clone();
    if lane.is_poisoned() {
        return Err(StoreError::Poisoned);
    }
    let mut unsettled: Vec<_> = writers.iter_mut().filter(|writer| writer.unsettled).collect();
    if unsettled.is_empty() {
        return Ok(());
    }
    // Rule L10 of docs/protocol.md.
    unsettled.iter().try_for_each(|writer| writer.apply_within(changing))?;
    let medium = lane.medium();
    let result = unsettled
        .iter()
        .try_for_each(|writer| put_progress(medium, writer.store.seed, &writer.object, &writer.standing))
        .and_then(|()| Ok(medium.barrier()?));
    match result {
        Ok(()) => unsettled.iter_mut().for_each(|writer| writer.unsettled = false),
        Err(_) => lane.poison(),
    }
    result
}

fn unbind(store: &Store, writers: &[&mut Writer]) -> Result<Space> {
    store.update(|table| {
        for writer in writers {
            let mut object = table.entry(writer.object.offset)?;
            object.entry.state = STATE_D;
            object.entry.lane = U32::new(NO_LANE);
            if writer.forgets_memory {
                object.entry.keep_in(None);
            }
            table.put_entry(&object)?;
        }
        Ok(Space { pool: table.pool_len(), free: table.root.free_pages.get().saturating_mul(PAGE) })
    })
}
