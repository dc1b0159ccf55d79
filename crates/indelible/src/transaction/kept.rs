//! Attaches and detaches objects on demand (docs/decisions/0052-on-demand.md). An object's memory
//! exists for as long as its entry names it.

use super::attached::{Attached, Kind, Memory, closed, named};
use super::demand::Demand;
use super::marks::Marks;
use super::outside::each_piece;
use super::space::{Space, Users};
use crate::backing::BackingError;
use crate::error::Cause;
use crate::mapping::Mapping;
use crate::memory::{Area, MemoryError};
use crate::pool::{Class, Inner};
use indelible_store::error::StoreError;
use indelible_store::format::entry::Entry;
use indelible_store::store::Writer;
use indelible_store::table::{Key, Located};
use std::sync::Arc;

const ROOM: usize = 16 << 30;

impl Attached {
    /// Retries if another process resized or replaced the object before it was bound.
    pub(super) fn on_demand(
        pool: &Arc<Inner>,
        name: &str,
        key: Key<'_>,
        needed: usize,
        users: Users,
    ) -> Result<Attached, Cause> {
        loop {
            match Self::on_demand_as_found(pool, name, key, needed, users) {
                Err(Cause::Replaced) => {}
                done => return done,
            }
        }
    }

    fn on_demand_as_found(
        pool: &Arc<Inner>,
        name: &str,
        key: Key<'_>,
        needed: usize,
        users: Users,
    ) -> Result<Attached, Cause> {
        let Located { offset, entry: found, .. } = pool.store.find(name)?;
        let space = Space::of(pool, Class::OnDemand)?;
        space.check()?;
        space.claim(users)?;
        if space.is_leaving(offset) {
            // This process has it until its commits are published.
            space.publish()?;
        }
        let Some(demand) = space.demand() else { return Err(StoreError::Poisoned.into()) };
        pool.recover_other_groups(demand.group.number())?;
        let bind = || pool.store.attach_on_demand_writer(name, key, demand.group.number());
        let area = memory_for(demand, &found, bind)?;
        let marks = match Marks::new((area.len(), area.room()), area.pending().ok()) {
            Ok(marks) => marks,
            Err(error) => {
                give_back(pool, demand, &found, area);
                return Err(error.into());
            }
        };
        let writer = match bind() {
            Ok(writer) => writer,
            Err(error) => {
                give_back(pool, demand, &found, area);
                return Err(error.into());
            }
        };
        let (object, entry) = (writer.object().offset, writer.object().entry);
        let closed = match join(&space, &area, writer, (&found, needed)) {
            Ok(closed) => closed,
            Err(refused) => {
                let (mut writer, cause) = *refused;
                let bound = writer.object().entry;
                writer.forget_memory();
                let _ = writer.detach();
                give_back(pool, demand, &bound, area);
                return Err(cause);
            }
        };
        let (base, marks) = (area.words().base(), Some(Arc::new(marks)));
        let memory = Memory { view: Kind::Kept(area), closed, _named: named(&entry, name), shown: None };
        Ok(Attached::taken_in(pool, space, memory, (base, object, marks), &entry))
    }
}

/// Removes the memory, unless the entry may name it: then the next attach uses it.
fn give_back(pool: &Inner, demand: &Demand, entry: &Entry, area: Area) {
    let is_stated = match pool.store.find_id(&entry.id) {
        Ok(now) => now.entry.memory.get() == demand.group.number(),
        Err(StoreError::NotFound) => false,
        Err(_) => true,
    };
    match is_stated {
        true => demand.leave(),
        false => drop(area.remove()),
    }
}

fn memory_for(
    demand: &Demand,
    found: &Entry,
    bind: impl Fn() -> Result<Writer, StoreError>,
) -> Result<Area, Cause> {
    let len = found.content_len() as usize;
    let room = (found.reserved.get() as usize).min(ROOM.max(len.saturating_mul(4)));
    // Rule D2 of docs/protocol.md.
    match demand.group.memory_of(found.id, (len, room)) {
        Ok(area) => Ok(area),
        // This process has the object; its lock's error is better.
        Err(exists @ BackingError::Exists { .. }) => Err(match bind() {
            Ok(mut writer) => {
                writer.forget_memory();
                MemoryError::from(exists).into()
            }
            Err(held) => held.into(),
        }),
        Err(error) => Err(MemoryError::from(error).into()),
    }
}

fn join(
    space: &Space,
    area: &Area,
    writer: Writer,
    (found, needed): (&Entry, usize),
) -> Result<Mapping, Box<(Writer, Cause)>> {
    let entry = writer.object().entry;
    if (entry.id, entry.content_len()) != (found.id, found.content_len()) {
        return Err(Box::new((writer, Cause::Replaced)));
    }
    let show = |at, protection| Ok(area.show(at, protection).map_err(MemoryError::from)?);
    match closed(&entry, needed, show).and_then(|closed| fill(area, &writer).map(|()| closed)) {
        Ok(closed) => match space.commits().take_in(writer) {
            Ok(()) => Ok(closed),
            Err((writer, error)) => Err(Box::new((*writer, error.into()))),
        },
        Err(cause) => Err(Box::new((writer, cause))),
    }
}

fn fill(area: &Area, writer: &Writer) -> Result<(), Cause> {
    each_piece(writer, area.len(), |at, piece| {
        area.put(at, piece);
        Ok(())
    })?;
    area.fill();
    Ok(())
}
